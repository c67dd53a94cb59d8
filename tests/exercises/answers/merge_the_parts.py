"""Other answers to merge-the-parts."""

from . import Answer, right, shortcut, wrong
from .shared import for_each_scalar

_BOTH = "s = s * exp(m - larger) + its_s * exp(its_m - larger)"

_LEAST = """
from math import exp


@cuda.jit
def merge(maxima, totals, maximum, total):
    r = cuda.grid(1)
    if r < maximum.size:
        m, s = np.float32(FIRST), np.float32(0)
        for p in range(maxima.shape[0]):
            its_m, its_s = maxima[p, r], totals[p, r]
            if its_s > np.float32(0):
                larger = max(m, its_m)
                s = s * exp(m - larger) + its_s * exp(its_m - larger)
                m = larger
        maximum[r], total[r] = m, s
"""

_TWO_PASSES = """
from math import exp


@cuda.jit
def merge(maxima, totals, maximum, total):
    r = cuda.grid(1)
    if r < maximum.size:
        m, s = np.float32(-3e38), np.float32(0)
        for p in range(maxima.shape[0]):
            if totals[p, r] > np.float32(0):
                m = max(m, maxima[p, r])
        for p in range(maxima.shape[0]):
            if totals[p, r] > np.float32(0):
                s += totals[p, r] * exp(maxima[p, r] - m)
        maximum[r], total[r] = m, s
"""

_STUB = """
@cuda.jit
def merge(maxima, totals, maximum, total):
    r = cuda.grid(1)
    if r < maximum.size:
        m, s = maxima[0, r], np.float32(0)
        for p in range(maxima.shape[0]):
            m = max(m, maxima[p, r])
            s += totals[p, r]
        maximum[r], total[r] = m, s
"""

VARIANTS = (
    Answer("the stub: all maxima alike", "result", cell=_STUB),
    Answer(
        "the own sum not moved",
        "result",
        ((_BOTH, "s = s + its_s * exp(its_m - larger)"),),
        mistake="the sum of the parts before were not rescaled",
    ),
    Answer(
        "the other sum not moved",
        "result",
        ((_BOTH, "s = s * exp(m - larger) + its_s"),),
        mistake="the sum of each new part were not rescaled",
    ),
    Answer("moved the wrong way round", "result", ((_BOTH, "s = s * exp(larger - m) + its_s * exp(its_m - larger)"),)),
    Answer("the maximum not kept", "result", (("                    m = larger\n", ""),)),
    Answer("the empty part's maximum counts", "result", (("if its_s > np.float32(0):", "if True:"),)),
    Answer("relative to the last part", "result", (("larger = max(m, its_m)", "larger = its_m"),)),
    Answer("the sum of maxima", "result", (("larger = max(m, its_m)", "larger = m + its_m"),)),
    Answer("the larger sum wins", "result", ((_BOTH, "s = max(s, its_s)"),), mistake="only the larger sum were kept"),
    Answer("a first maximum of zero", "result", cell=_LEAST.replace("FIRST", "0")),
    Answer("a first maximum of minus ten", "result", cell=_LEAST.replace("FIRST", "-10")),
    Answer("two passes", "budget", cell=_TWO_PASSES),
    Answer(
        "the sum loaded twice",
        "budget",
        (("+ its_s * exp", "+ totals[p, r] * exp"),),
    ),
    Answer("the sum in float64", "budget", (("m, s = np.float32(0), np.float32(0)", "m, s = np.float32(0), 0.0"),)),
    Answer("no guard", "bounds", (("if r < maximum.size:", "if True:"),)),
    Answer("a first maximum of -1e4", "result", cell=_LEAST.replace("FIRST", "-1e4")),
    Answer("a first maximum of -1e30", "result", cell=_LEAST.replace("FIRST", "-1e30")),
    Answer("a first maximum below all", "solved", cell=_LEAST.replace("FIRST", "-3e38")),
    Answer("a first maximum of minus infinity", "solved", cell=_LEAST.replace("FIRST", "-np.inf")),
)

RIGHT = (
    right("from the last part on", ("range(maxima.shape[0])", "range(maxima.shape[0] - 1, -1, -1)")),
    right("the empty part by its equality", ("if its_s > np.float32(0):", "if its_s != np.float32(0):")),
    right(
        "a grid-stride loop",
        (
            "    r = cuda.grid(1)\n    if r < maximum.size:",
            "    for r in range(cuda.grid(1), maximum.size, cuda.gridsize(1)):",
        ),
    ),
    right(
        "with a branch",
        cell="""
from math import exp


@cuda.jit
def merge(maxima, totals, maximum, total):
    r = cuda.grid(1)
    if r >= maximum.size:
        return
    m, s = np.float32(-np.inf), np.float32(0)
    for p in range(maxima.shape[0]):
        its_m, its_s = maxima[p, r], totals[p, r]
        if its_s == np.float32(0):
            continue
        if its_m > m:
            s, m = s * exp(m - its_m) + its_s, its_m
        else:
            s += its_s * exp(its_m - m)
    maximum[r] = m
    total[r] = s
""",
    ),
    right(
        "the maximum replaced where the part is empty",
        cell="""
from math import exp


@cuda.jit
def merge(maxima, totals, maximum, total):
    r = cuda.grid(1)
    if r < maximum.size:
        m, s = np.float32(-3e38), np.float32(0)
        for p in range(maxima.shape[0]):
            n, t = maxima[p, r], totals[p, r]
            n = n if t > np.float32(0) else np.float32(-3e38)
            k = max(m, n)
            s, m = s * exp(m - k) + t * exp(n - k), k
        maximum[r], total[r] = m, s
""",
    ),
)

WRONG = (
    wrong(
        "sums relative to the first maximum",
        ("m, s = np.float32(0), np.float32(0)", "m = s = first = np.float32(0)"),
        ("s = s * exp(m - larger) + its_s * exp(its_m - larger)", "s += its_s * exp(its_m - first)"),
        ("m, s = its_m, its_s\n", "m, s, first = its_m, its_s, its_m\n"),
        ("maximum[r], total[r] = m, s", "maximum[r], total[r] = m, s * exp(first - m)"),
    ),
    wrong("the rows that are published", ("if r < maximum.size:", "if r < min(maximum.size, 80):")),
    wrong("the parts that are published", ("range(maxima.shape[0])", "range(min(maxima.shape[0], 12))")),
    wrong("an even number of parts", ("range(maxima.shape[0])", "range(max(1, maxima.shape[0] // 2 * 2))")),
    wrong("at least two parts", ("range(maxima.shape[0])", "range(max(2, maxima.shape[0]))")),
    wrong(
        "up to the first empty part",
        (
            "            if its_s > np.float32(0):\n",
            """            if its_s == np.float32(0):
                break
            if its_s > np.float32(0):
""",
        ),
    ),
    wrong("parts of one value left out", ("if its_s > np.float32(0):", "if its_s > np.float32(1.01):")),
    wrong("the first part is there", ("                if s > np.float32(0):", "                if p > 0:")),
    wrong("maxima above zero", ("its_m, its_s = maxima[p, r]", "its_m, its_s = max(maxima[p, r], np.float32(0))")),
    wrong("moved by at most e^5", ("exp(its_m - larger)", "exp(max(its_m - larger, np.float32(-5)))")),
    wrong(
        "two parts alone",
        ("if its_s > np.float32(0):", "if its_s > np.float32(0) and (p < 2 or s == np.float32(0)):"),
    ),
    wrong("sums up to a hundred", ("+ its_s * exp", "+ min(its_s, np.float32(100)) * exp")),
    wrong(
        "the other factor past four parts",
        ("s = s * exp(m - larger)", "s = s * (exp(m - larger) if p < 5 else np.float32(1))"),
    ),
    wrong("the maximum of the last part", ("maximum[r], total[r] = m, s", "maximum[r], total[r] = its_m, s")),
    wrong("powers of 2", ("its_s * exp(its_m - larger)", "its_s * np.float32(2) ** (its_m - larger)")),
)

PARTS_IN_SCALARS = (
    """from math import exp


@cuda.jit
def merge(maxima, totals, maximum, total):
    r = cuda.grid(1)
    if r < maximum.size:
        parts, m, s = maxima.shape[0], np.float32(-np.inf), np.float32(0)
"""
    + for_each_scalar(
        100,
        """        m# = maxima[#, r] if # < parts else np.float32(0)
        s# = totals[#, r] if # < parts else np.float32(0)
        if s# > np.float32(0):
            m = max(m, m#)
""",
    )
    + for_each_scalar(
        100,
        """        if s# > np.float32(0):
            s += s# * exp(m# - m)
""",
    )
    + """        maximum[r], total[r] = m, s
"""
)


SHORTCUTS = (
    shortcut("the sum in float64", ("m, s = np.float32(0), np.float32(0)", "m, s = np.float32(0), np.float64(0)")),
    shortcut(
        "loaded again by atomics",
        ("s * exp(m - larger) + its_s", "s * exp(m - larger) + cuda.atomic.add(totals, (p, r), np.float32(0))"),
    ),
    shortcut("another's kernel", cell="from labkit.softmax.online import warp_max_and_sum as merge\n"),
    shortcut(
        "the maximum first",
        cell="""
from math import exp


@cuda.jit
def merge(maxima, totals, maximum, total):
    r = cuda.grid(1)
    if r < maximum.size:
        m, s = np.float32(-3e38), np.float32(0)
        for p in range(maxima.shape[0]):
            if totals[p, r] > np.float32(0):
                m = max(m, maxima[p, r])
        for p in range(maxima.shape[0]):
            if totals[p, r] > np.float32(0):
                s += totals[p, r] * exp(maxima[p, r] - m)
        maximum[r], total[r] = m, s
""",
    ),
    shortcut(
        "one thread for all rows",
        cell="""
from math import exp


@cuda.jit
def merge(maxima, totals, maximum, total):
    if cuda.grid(1) == 0:
        for r in range(maximum.size):
            m, s = np.float32(-3e38), np.float32(0)
            for p in range(maxima.shape[0]):
                its_m, its_s = maxima[p, r], totals[p, r]
                if its_s > np.float32(0):
                    larger = max(m, its_m)
                    s = s * exp(m - larger) + its_s * exp(its_m - larger)
                    m = larger
            maximum[r], total[r] = m, s
""",
    ),
    shortcut(
        "parts kept",
        cell="""
from math import exp


@cuda.jit
def merge(maxima, totals, maximum, total):
    m_of = cuda.local.array(64, np.float32)
    s_of = cuda.local.array(64, np.float32)
    r = cuda.grid(1)
    if r < maximum.size:
        m, s = np.float32(-3e38), np.float32(0)
        for p in range(maxima.shape[0]):
            m_of[p], s_of[p] = maxima[p, r], totals[p, r]
            if s_of[p] > np.float32(0):
                m = max(m, m_of[p])
        for p in range(maxima.shape[0]):
            if s_of[p] > np.float32(0):
                s += s_of[p] * exp(m_of[p] - m)
        maximum[r], total[r] = m, s
""",
    ),
    shortcut("the parts in 100 pairs of scalars", cell=PARTS_IN_SCALARS),
)
