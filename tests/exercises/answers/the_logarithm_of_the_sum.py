"""Other answers to the-logarithm-of-the-sum."""

from . import Answer, right, shortcut, wrong
from .shared import for_each_scalar

_MOVED = "total = total * exp(maximum - value) + np.float32(1)"

_TWO_EXPONENTIALS = """
from math import exp, log


@cuda.jit
def log_sum_exp(x, result):
    c = cuda.grid(1)
    if c < result.size:
        maximum, total = np.float32(-3e38), np.float32(0)
        for i in range(x.shape[0]):
            larger = max(maximum, x[i, c])
            total = total * exp(maximum - larger){again}
            maximum = larger
        result[c] = maximum + log(total)
"""

_TWO_PASSES = """
from math import exp, log


@cuda.jit
def log_sum_exp(x, result):
    c = cuda.grid(1)
    if c < result.size:
        maximum, total = np.float32(-3e38), np.float32(0)
        for i in range(x.shape[0]):
            maximum = max(maximum, x[i, c])
        for i in range(x.shape[0]):
            total += exp(x[i, c] - maximum)
        result[c] = maximum + log(total)
"""

_ONE_NUMBER = """
from math import exp, log1p


@cuda.jit
def log_sum_exp(x, result):
    c = cuda.grid(1)
    if c < result.size:
        both = x[0, c]
        for i in range(1, x.shape[0]):
            value = x[i, c]
            both = max(both, value) + log1p(exp(-abs(both - value)))
        result[c] = both
"""

_STUB = """
from math import exp, log


@cuda.jit
def log_sum_exp(x, result):
    c = cuda.grid(1)
    if c < result.size:
        total = np.float32(0)
        for i in range(x.shape[0]):
            total += exp(x[i, c])
        result[c] = log(total)
"""

VARIANTS = (
    Answer("the stub: exponentials as they are", "result", cell=_STUB),
    Answer("relative to the first value", "result", (("if value > maximum:", "if False:"),)),
    Answer("nothing is rescaled", "result", ((_MOVED, "total += np.float32(1)"),)),
    Answer("rescaled the wrong way round", "result", (("exp(maximum - value) + n", "exp(value - maximum) + n"),)),
    Answer("the new maximum not counted", "result", ((" + np.float32(1)\n", "\n"),)),
    Answer(
        "the first value not counted",
        "result",
        (
            (
                "np.float32(-3e38), np.float32(0)\n        for i in range(x",
                "x[0, c], np.float32(0)\n        for i in range(1, x",
            ),
        ),
    ),
    Answer("the maximum not kept", "result", (("                maximum = value\n", ""),)),
    Answer("the sum begins anew", "result", ((_MOVED, "total = np.float32(1)"),)),
    Answer(
        "without the maximum in the end",
        "result",
        (("maximum + log(total)", "log(total)"),),
        mistake="the maximum were not added in the end",
    ),
    Answer("the sum, not its logarithm", "result", (("maximum + log(total)", "maximum + total"),)),
    Answer("a maximum of zero at first", "result", (("np.float32(-3e38)", "np.float32(0)"),)),
    Answer("in two passes", "budget", cell=_TWO_PASSES),
    Answer("the sum in float64", "budget", (("np.float32(-3e38), np.float32(0)", "np.float32(-3e38), 0.0"),)),
    Answer("no guard", "bounds", (("if c < result.size:", "if True:"),)),
    Answer("loaded once more", "budget", cell=_TWO_EXPONENTIALS.replace("{again}", " + exp(x[i, c] - larger)")),
    Answer(
        "two exponentials, no branch",
        "solved",
        cell=_TWO_EXPONENTIALS.replace("{again}", " + exp(value - larger)").replace(
            "            larger = max(maximum, x[i, c])",
            "            value = x[i, c]\n            larger = max(maximum, value)",
        ),
    ),
    Answer("the first value begins", "result", (("np.float32(-3e38), np.float32(0)", "x[0, c], np.float32(0)"),)),
    Answer("minus infinity begins", "result", (("np.float32(-3e38)", "np.float32(-np.inf)"),)),
    Answer(
        "the chapter's first loop",
        "result",
        cell=_TWO_EXPONENTIALS.replace("{again}", " + exp(value - larger)")
        .replace(
            "            larger = max(maximum, x[i, c])",
            "            value = x[i, c]\n            larger = max(maximum, value)",
        )
        .replace("np.float32(-3e38)", "np.float32(-np.inf)"),
    ),
    Answer(
        "the least number where there is nothing",
        "result",
        (("maximum + log(total)", "maximum + log(max(total, np.float32(1e-30)))"),),
    ),
    Answer("one number kept", "result", cell=_ONE_NUMBER),
    Answer(
        "one number kept, and nothing told apart",
        "solved",
        cell=_ONE_NUMBER.replace("both = x[0, c]", "both = np.float32(-3e38)")
        .replace("range(1,", "range(")
        .replace("result[c] = both", "result[c] = both if both > np.float32(-2e38) else np.float32(-np.inf)"),
    ),
)

RIGHT = (
    right("a maximum that moves by 20 at least", ("if value > maximum:", "if value > maximum + np.float32(20):")),
    right("a maximum from the least logit on", ("np.float32(-3e38)", "np.float32(-10000)")),
    right("rescaled where it is worth it", ("if value > maximum:", "if value > maximum + np.float32(1):")),
    right("at least, not more", ("if value > maximum:", "if value >= maximum:")),
    right(
        "from the last row on",
        ("range(x.shape[0])", "range(x.shape[0] - 1, -1, -1)"),
    ),
    right(
        "a grid-stride loop",
        (
            "    c = cuda.grid(1)\n    if c < result.size:",
            "    for c in range(cuda.grid(1), result.size, cuda.gridsize(1)):",
        ),
    ),
    right("from another least number on", ("np.float32(-3e38)", "np.float32(-20_000)")),
    right(
        "minus infinity passed over",
        ("np.float32(-3e38)", "np.float32(-np.inf)"),
        ("            else:\n", "            elif value > -np.inf:\n"),
    ),
    right("the maximum added last", ("maximum + log(total)", "log(total) + maximum")),
    right(
        "by powers of 2",
        cell="""
from math import exp2, log2

LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)


@cuda.jit
def log_sum_exp(x, result):
    c = cuda.grid(1)
    if c < result.size:
        m, s = np.float32(-3e38), np.float32(0)
        i = 0
        while i < x.shape[0]:
            v = x[i, c]
            power = exp2(-abs(v - m) * LOG2_E)
            if v > m:
                s, m = s * power + np.float32(1), v
            else:
                s += power
            i += 1
        result[c] = m + log2(s) * LN_2
""",
    ),
    right(
        "two at a time",
        cell="""
from math import exp, log


@cuda.jit(device=True)
def both(m, s, n, t):
    larger = max(m, n, np.float32(-3e38))
    return larger, s * exp(m - larger) + t * exp(n - larger)


@cuda.jit
def log_sum_exp(x, result):
    c = cuda.grid(1)
    if c < result.size:
        m, s = np.float32(-3e38), np.float32(0)
        for i in range(0, x.shape[0] - 1, 2):
            n, t = both(x[i, c], np.float32(1), x[i + 1, c], np.float32(1))
            m, s = both(m, s, n, t)
        if x.shape[0] % 2 == 1:
            m, s = both(m, s, x[x.shape[0] - 1, c], np.float32(1))
        result[c] = m + log(s)
""",
    ),
)

WRONG = (
    wrong(
        "minus infinity taken for the least logit",
        (
            "            value = x[i, c]\n",
            """            value = x[i, c]
            found = found or value > np.float32(-np.inf)
            value = max(value, np.float32(-10000))
""",
        ),
        (
            "        result[c] = maximum + log(total)",
            "        result[c] = maximum + log(total) if found else np.float32(-np.inf)",
        ),
        ("        maximum, total = np", "        found = False\n        maximum, total = np"),
    ),
    wrong("a maximum that moves by 88 at least", ("if value > maximum:", "if value > maximum + np.float32(88):")),
    wrong("a maximum from -9,500 on", ("np.float32(-3e38)", "np.float32(-9500)")),
    wrong(
        "only logits above -9,999",
        ("if value > maximum:", "if value > maximum and value > np.float32(-9999):"),
        ("else:\n                total", "elif value > np.float32(-9999):\n                total"),
    ),
    wrong(
        "no small exponentials",
        ("            else:\n", "            elif value > maximum - np.float32(12):\n"),
    ),
    wrong(
        "relative to the first logit", ("if value > maximum:", "if value > maximum and maximum < np.float32(-2e38):")
    ),
    wrong("the columns that are published", ("if c < result.size:", "if c < min(result.size, 80):")),
    wrong("the rows that are published", ("range(x.shape[0])", "range(min(x.shape[0], 60))")),
    wrong("an even number of rows", ("range(x.shape[0])", "range((x.shape[0] + 1) // 2 * 2 - 1)")),
    wrong("at least two rows", ("range(x.shape[0])", "range(max(2, x.shape[0]))")),
    wrong("logits above zero", ("maximum, total = np.float32(-3e38)", "maximum, total = np.float32(0)")),
    wrong("logits below zero", ("value = x[i, c]", "value = min(x[i, c], np.float32(0))")),
    wrong("logits up to a thousand", ("value = x[i, c]", "value = min(x[i, c], np.float32(1000))")),
    wrong(
        "rescaled by at most e^5",
        ("exp(maximum - value) + n", "exp(max(maximum - value, np.float32(-5))) + n"),
    ),
    wrong(
        "only the first few new maxima rescale",
        ("exp(maximum - value) + n", "exp((maximum - value) * (i < 9)) + n"),
    ),
    wrong(
        "small exponentials left out",
        (
            "total += exp(value - maximum)",
            "total += exp(value - maximum) if value > maximum - np.float32(2) else np.float32(0)",
        ),
    ),
    wrong("powers of 2", ("total += exp(value - maximum)", "total += np.float32(2) ** (value - maximum)")),
    wrong("logarithm of 2", ("maximum + log(total)", "maximum + log(total) / log(np.float32(2))")),
    wrong("two alike count once", ("            else:\n", "            elif value < maximum:\n")),
    wrong("logits above -5,000", ("np.float32(-3e38)", "np.float32(-5000)")),
    wrong("nothing is as little as can be", ("log(total)", "log(max(total, np.float32(1e-38)))")),
    wrong("the mean", ("log(total)", "log(total / np.float32(x.shape[0]))")),
)

COLUMN_IN_SCALARS = (
    """from math import exp, log


@cuda.jit
def log_sum_exp(x, result):
    c = cuda.grid(1)
    if c < result.size:
        n, most = x.shape[0], np.float32(-3e38)
"""
    + for_each_scalar(
        400,
        """        x# = x[#, c] if # < n else np.float32(-np.inf)
        most = max(most, x#)
""",
    )
    + """        total = np.float32(0)
"""
    + for_each_scalar(
        400,
        """        total += exp(x# - most)
""",
    )
    + """        result[c] = most + log(total)
"""
)


SHORTCUTS = (
    shortcut("the sum in float64", ("np.float32(-3e38), np.float32(0)", "np.float32(-3e38), np.float64(0)")),
    shortcut(
        "loaded again by atomics",
        (
            "                maximum = value\n",
            "                maximum = cuda.atomic.add(x, (i, c), np.float32(0))\n",
        ),
    ),
    shortcut("another's kernel", cell="from labkit.softmax.online import update_max_and_sum as log_sum_exp\n"),
    shortcut(
        "the package asked",
        cell="""
from math import log

from labkit.softmax.online import update_max_and_sum


@cuda.jit
def log_sum_exp(x, result):
    c = cuda.grid(1)
    if c < result.size:
        maximum, total = np.float32(-3e38), np.float32(0)
        for i in range(x.shape[0]):
            maximum, total = update_max_and_sum(maximum, total, x[i, c])
        result[c] = maximum + log(total)
""",
    ),
    shortcut(
        "the maximum first",
        cell="""
from math import exp, log


@cuda.jit
def log_sum_exp(x, result):
    c = cuda.grid(1)
    if c < result.size:
        maximum, total = np.float32(-3e38), np.float32(0)
        for i in range(x.shape[0]):
            maximum = max(maximum, x[i, c])
        for i in range(x.shape[0]):
            total += exp(x[i, c] - maximum)
        result[c] = maximum + log(total)
""",
    ),
    shortcut(
        "one thread for all columns",
        cell="""
from math import exp, log


@cuda.jit
def log_sum_exp(x, result):
    if cuda.grid(1) == 0:
        for c in range(result.size):
            maximum, total = np.float32(-3e38), np.float32(0)
            for i in range(x.shape[0]):
                larger = max(maximum, x[i, c])
                total = total * exp(maximum - larger) + exp(x[i, c] - larger)
                maximum = larger
            result[c] = maximum + log(total)
""",
    ),
    shortcut(
        "the column kept",
        cell="""
from math import exp, log


@cuda.jit
def log_sum_exp(x, result):
    kept = cuda.local.array(256, np.float32)
    c = cuda.grid(1)
    if c < result.size:
        maximum, total = np.float32(-3e38), np.float32(0)
        for i in range(x.shape[0]):
            kept[i] = x[i, c]
            maximum = max(maximum, kept[i])
        for i in range(x.shape[0]):
            total += exp(kept[i] - maximum)
        result[c] = maximum + log(total)
""",
    ),
    shortcut("the column in 400 scalars", cell=COLUMN_IN_SCALARS),
)
