"""Other answers to the-merge-of-a-split."""

from . import Answer, right, shortcut, wrong
from .shared import for_each_scalar

THERE = "if of_part > np.float32(-np.inf):"

FACTORS = "alpha, weight = exp(most - larger), exp(of_part - larger)"

TOTAL = "total = total * alpha + weight"

SUM = "o = o * alpha + weight * O_parts[part, row, d]"

MOVED = "                most = larger\n"

STORED = "O[row, d] = o / total if found else np.float32(0)"

LSE = "lse[row] = most + log(total) if found else np.float32(-np.inf)"

VARIANTS = (
    Answer("the mean", "result", ((FACTORS, "alpha, weight = np.float32(1), np.float32(1)"),)),
    Answer("log-sum-exps as weights", "result", ((FACTORS, "alpha, weight = np.float32(1), of_part"),)),
    Answer("no maximum", "result", (("larger = max(most, of_part)", "larger = np.float32(0)"),)),
    Answer("the sum not moved", "result", ((SUM, "o = o + weight * O_parts[part, row, d]"),)),
    Answer("the total not moved", "result", ((TOTAL, "total = total + weight"),)),
    Answer("the part not moved", "result", ((FACTORS, "alpha, weight = exp(most - larger), np.float32(1)"),)),
    Answer(
        "moved the wrong way round",
        "result",
        ((FACTORS, "alpha, weight = exp(larger - most), exp(of_part - larger)"),),
    ),
    Answer("the maximum not kept", "result", ((MOVED, ""),)),
    Answer("relative to the last part", "result", (("larger = max(most, of_part)", "larger = of_part"),)),
    Answer("empty parts are like others", "result", ((THERE, "if True:"),)),
    Answer(
        "empty parts weigh 0",
        "result",
        ((THERE, "if True:"), ("np.float32(-np.inf), np.float32(0), np", "np.float32(-3e38), np.float32(0), np")),
    ),
    Answer(
        "a first maximum of zero",
        "result",
        (("np.float32(-np.inf), np.float32(0), np", "np.float32(0), np.float32(0), np"),),
    ),
    Answer(
        "not divided", "result", ((STORED, "O[row, d] = o"),), mistake="O were not divided by the sum of the weights"
    ),
    Answer("divided by what is nothing", "result", ((STORED, "O[row, d] = o / total"),)),
    Answer(
        "divided by the number of parts",
        "result",
        ((STORED, "O[row, d] = o / np.float32(lse_parts.shape[0])"),),
        mistake="O were divided by the number of parts",
    ),
    Answer(
        "the maximum for a log-sum-exp",
        "result",
        ((LSE, "lse[row] = most"),),
        mistake="the maximum were the log-sum-exp",
    ),
    Answer(
        "a sum for a log-sum-exp",
        "result",
        ((LSE, "lse[row] = total if found else np.float32(-np.inf)"),),
        mistake="the sum were the log-sum-exp",
    ),
    Answer(
        "without the maximum",
        "result",
        ((LSE, "lse[row] = log(total) if found else np.float32(-np.inf)"),),
        mistake="the maximum were left out of the log-sum-exp",
    ),
    Answer(
        "a log-sum-exp of 0 where there is nothing",
        "result",
        ((LSE, LSE.replace("np.float32(-np.inf)", "np.float32(0)")),),
        mistake="the log-sum-exp of nothing were 0",
    ),
    Answer(
        "nothing stored where there is nothing",
        "unwritten",
        (("        O[row, d]", "        if found:\n            O[row, d]"),),
        mistake="O were not stored where all parts are empty",
    ),
    Answer(
        "until the first empty part",
        "result",
        (
            (SUM, SUM),
            (
                "            if of_part >",
                "            if of_part == np.float32(-np.inf):\n                break\n            if of_part >",
            ),
        ),
    ),
    Answer(
        "parts of small log-sum-exp taken for empty ones",
        "result",
        (("            if of_part > np.float32(-np.inf)", "            if of_part > np.float32(-2000)"),),
    ),
    Answer("no guard", "bounds", (("if row < lse.size:", "if True:"),)),
    Answer(
        "a log-sum-exp by each thread",
        "budget",
        (("        if d == 0:\n            lse", "        if True:\n            lse"),),
    ),
    Answer("loaded twice", "budget", ((FACTORS, FACTORS.replace("exp(of_part", "exp(lse_parts[part, row]")),)),
    Answer(
        "the sum in float64",
        "budget",
        (("np.float32(-np.inf), np.float32(0), np.float32(0)", "np.float32(-np.inf), np.float32(0), 0.0"),),
    ),
    Answer(
        "a first maximum below all",
        "solved",
        (("np.float32(-np.inf), np.float32(0), np", "np.float32(-3e38), np.float32(0), np"),),
    ),
    Answer("-inf by itself", "solved", ((LSE, "lse[row] = most + log(total)"),)),
)

RIGHT = (
    right("from the last part on", ("range(lse_parts.shape[0])", "range(lse_parts.shape[0] - 1, -1, -1)")),
    right("not equal", ("if of_part > np.float32(-np.inf):", "if of_part != np.float32(-np.inf):")),
    right(
        "the average moved towards the part",
        cell="""
from math import exp, log


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    d, row = cuda.grid(2)
    if row < lse.size:
        sum_so_far, o = np.float32(-np.inf), np.float32(0)
        for part in range(lse_parts.shape[0]):
            of_part = lse_parts[part, row]
            if of_part == np.float32(-np.inf):
                continue
            most = max(sum_so_far, of_part)
            merged = most + log(exp(sum_so_far - most) + exp(of_part - most))
            o = o * exp(sum_so_far - merged) + O_parts[part, row, d] * exp(of_part - merged)
            sum_so_far = merged
        O[row, d] = o
        if d == 0:
            lse[row] = sum_so_far
""",
    ),
    right(
        "one exponential",
        cell="""
from math import exp, log


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    d, row = cuda.grid(2)
    if row >= lse.size:
        return
    most, total, o = np.float32(-3e38), np.float32(0), np.float32(0)
    for part in range(lse_parts.shape[0]):
        of_part = lse_parts[part, row]
        value = O_parts[part, row, d]
        if of_part > most:
            alpha = exp(most - of_part)
            total, o, most = total * alpha + np.float32(1), o * alpha + value, of_part
        elif of_part > np.float32(-np.inf):
            weight = exp(of_part - most)
            total, o = total + weight, o + weight * value
    if total == np.float32(0):
        O[row, d] = 0
    else:
        O[row, d] = o / total
    if d == 0 and total == np.float32(0):
        lse[row] = -np.inf
    elif d == 0:
        lse[row] = most + log(total)
""",
    ),
    right(
        "log-sum-exps handed round by shuffles",
        cell="""
from math import exp, log


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    d, row = cuda.grid(2)
    parts = lse_parts.shape[0]
    if row < lse.size:
        most, total, o = np.float32(-np.inf), np.float32(0), np.float32(0)
        for first in range(0, parts, 32):
            mine = lse_parts[first + d, row] if first + d < parts else np.float32(-np.inf)
            for n in range(min(32, parts - first)):
                of_part = cuda.shfl_sync(0xFFFFFFFF, mine, n)
                if of_part > np.float32(-np.inf):
                    larger = max(most, of_part)
                    total = total * exp(most - larger) + exp(of_part - larger)
                    o = o * exp(most - larger) + exp(of_part - larger) * O_parts[first + n, row, d]
                    most = larger
        O[row, d] = o / total if total > np.float32(0) else np.float32(0)
        if d == 0:
            lse[row] = most + log(total)
""",
    ),
)

WRONG = (
    wrong(
        "relative to the first log-sum-exp",
        ("larger = max(most, of_part)", "larger = most if most > np.float32(-np.inf) else of_part"),
    ),
    wrong("the parts that are published", ("range(lse_parts.shape[0])", "range(min(lse_parts.shape[0], 12))")),
    wrong("the rows that are published", ("if row < lse.size:", "if row < min(lse.size, 14):")),
    wrong("an even number of parts", ("range(lse_parts.shape[0])", "range(max(1, lse_parts.shape[0] // 2 * 2))")),
    wrong(
        "up to the first empty part",
        (
            "            if of_part > np.float32(-np.inf):\n",
            "            if of_part == np.float32(-np.inf):\n                break\n"
            "            if of_part > np.float32(-np.inf):\n",
        ),
    ),
    wrong(
        "log-sum-exps above zero",
        ("of_part = lse_parts[part, row]", "of_part = max(lse_parts[part, row], np.float32(0))"),
    ),
    wrong("log-sum-exps above -500", ("if of_part > np.float32(-np.inf):", "if of_part > np.float32(-500):")),
    wrong(
        "weights relative to 0, up to e^80",
        ("larger = max(most, of_part)", "larger = min(max(most, of_part), np.float32(80))"),
    ),
    wrong("moved by at most e^5", ("exp(of_part - larger)", "exp(max(of_part - larger, np.float32(-5)))")),
    wrong(
        "own sum moved by at most e^9",
        ("alpha, weight = exp(most - larger)", "alpha, weight = exp(max(most - larger, np.float32(-9)))"),
    ),
    wrong(
        "small weights left out",
        (
            "total = total * alpha + weight",
            "weight = weight if weight > np.float32(0.01) else np.float32(0)\n"
            "                total = total * alpha + weight",
        ),
    ),
    wrong("powers of 2", ("exp(of_part - larger)", "np.float32(2) ** (of_part - larger)")),
    wrong("the first part is there", ("found = total > np.float32(0)", "found = lse_parts.shape[0] > 0")),
    wrong(
        "the last part says whether there is anything",
        ("found = total > np.float32(0)", "found = of_part > np.float32(-np.inf)"),
    ),
    wrong("a row with one part is empty", ("found = total > np.float32(0)", "found = total > np.float32(1)")),
    wrong("the logarithm of 2", ("most + log(total)", "most + log(total) / np.float32(0.6931472)")),
    wrong("a least number for -inf", ("else np.float32(-np.inf)", "else np.float32(-3e38)")),
    wrong(
        "the other factor from the sixth part on",
        ("o = o * alpha + weight", "o = o * (alpha if part < 5 else np.float32(1)) + weight"),
    ),
)

PARTS_IN_SCALARS = (
    """from math import exp, log


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    d, row = cuda.grid(2)
    if row < lse.size:
        parts, most = lse_parts.shape[0], np.float32(-np.inf)
"""
    + for_each_scalar(
        100,
        """        l# = lse_parts[#, row] if # < parts else np.float32(-np.inf)
        o# = O_parts[#, row, d] if # < parts else np.float32(0)
        most = max(most, l#)
""",
    )
    + """        total, o = np.float32(0), np.float32(0)
"""
    + for_each_scalar(
        100,
        """        if l# > np.float32(-np.inf):
            total += exp(l# - most)
            o += exp(l# - most) * o#
""",
    )
    + """        found = total > np.float32(0)
        O[row, d] = o / total if found else np.float32(0)
        if d == 0:
            lse[row] = most + log(total) if found else np.float32(-np.inf)
"""
)


SHORTCUTS = (
    shortcut(
        "in double precision",
        ("np.float32(-np.inf), np.float32(0), np.float32(0)", "np.float32(-np.inf), np.float64(0), np.float32(0)"),
    ),
    shortcut(
        "loaded again by atomics",
        ("weight * O_parts[part, row, d]", "weight * cuda.atomic.add(O_parts, (part, row, d), np.float32(0))"),
    ),
    shortcut(
        "kept in the output",
        ("                most = larger\n", "                most = larger\n                O[row, d] = o\n"),
    ),
    shortcut("another's kernel", cell="from labkit.softmax.online import warp_max_and_sum as merge_split\n"),
    shortcut(
        "the maximum first",
        cell="""
from math import exp, log


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    d, row = cuda.grid(2)
    if row < lse.size:
        most, total, o = np.float32(-3e38), np.float32(0), np.float32(0)
        for part in range(lse_parts.shape[0]):
            most = max(most, lse_parts[part, row])
        for part in range(lse_parts.shape[0]):
            weight = exp(lse_parts[part, row] - most)
            if weight > np.float32(0):
                total += weight
                o += weight * O_parts[part, row, d]
        O[row, d] = o / total if total > np.float32(0) else np.float32(0)
        if d == 0:
            lse[row] = most + log(total) if total > np.float32(0) else np.float32(-np.inf)
""",
    ),
    shortcut(
        "one thread for a row",
        cell="""
from math import exp, log


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    d, row = cuda.grid(2)
    if row < lse.size and d == 0:
        for n in range(32):
            most, total, o = np.float32(-np.inf), np.float32(0), np.float32(0)
            for part in range(lse_parts.shape[0]):
                of_part = lse_parts[part, row]
                if of_part > np.float32(-np.inf):
                    larger = max(most, of_part)
                    total = total * exp(most - larger) + exp(of_part - larger)
                    o = o * exp(most - larger) + exp(of_part - larger) * O_parts[part, row, n]
                    most = larger
            O[row, n] = o / total if total > np.float32(0) else np.float32(0)
            if n == 0:
                lse[row] = most + log(total) if total > np.float32(0) else np.float32(-np.inf)
""",
    ),
    shortcut(
        "log-sum-exps kept in shared memory",
        cell="""
from math import exp, log

MOST = 128


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    kept = cuda.shared.array((4, MOST), np.float32)
    d, row = cuda.grid(2)
    y, parts = cuda.threadIdx.y, lse_parts.shape[0]
    for part in range(d, parts, 32):
        kept[y, part] = lse_parts[part, row] if row < lse.size else np.float32(-np.inf)
    cuda.syncthreads()
    most, total, o = np.float32(-3e38), np.float32(0), np.float32(0)
    for part in range(parts):
        most = max(most, kept[y, part])
    for part in range(parts):
        weight = exp(kept[y, part] - most)
        if weight > np.float32(0):
            total += weight
            o += weight * O_parts[part, row, d]
    if row < lse.size:
        O[row, d] = o / total if total > np.float32(0) else np.float32(0)
        if d == 0:
            lse[row] = most + log(total) if total > np.float32(0) else np.float32(-np.inf)
""",
    ),
    shortcut("the parts in 100 pairs of scalars", cell=PARTS_IN_SCALARS),
)
