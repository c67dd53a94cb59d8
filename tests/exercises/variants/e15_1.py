"""Other answers to exercise 15.1."""

from . import Variant

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
    Variant("the stub: exponentials as they are", "result", cell=_STUB),
    Variant("relative to the first value", "result", (("if value > maximum:", "if False:"),)),
    Variant("nothing is rescaled", "result", ((_MOVED, "total += np.float32(1)"),)),
    Variant("rescaled the wrong way round", "result", (("exp(maximum - value) + n", "exp(value - maximum) + n"),)),
    Variant("the new maximum not counted", "result", ((" + np.float32(1)\n", "\n"),)),
    Variant(
        "the first value not counted",
        "result",
        (
            (
                "np.float32(-3e38), np.float32(0)\n        for i in range(x",
                "x[0, c], np.float32(0)\n        for i in range(1, x",
            ),
        ),
    ),
    Variant("the maximum not kept", "result", (("                maximum = value\n", ""),)),
    Variant("the sum begins anew", "result", ((_MOVED, "total = np.float32(1)"),)),
    Variant("without the maximum in the end", "result", (("maximum + log(total)", "log(total)"),)),
    Variant("the sum, not its logarithm", "result", (("maximum + log(total)", "maximum + total"),)),
    Variant("a maximum of zero at first", "result", (("np.float32(-3e38)", "np.float32(0)"),)),
    Variant("in two passes", "budget", cell=_TWO_PASSES),
    Variant("the sum in float64", "budget", (("np.float32(-3e38), np.float32(0)", "np.float32(-3e38), 0.0"),)),
    Variant("no guard", "bounds", (("if c < result.size:", "if True:"),)),
    Variant("loaded once more", "budget", cell=_TWO_EXPONENTIALS.replace("{again}", " + exp(x[i, c] - larger)")),
    Variant(
        "two exponentials, no branch",
        "solved",
        cell=_TWO_EXPONENTIALS.replace("{again}", " + exp(value - larger)").replace(
            "            larger = max(maximum, x[i, c])",
            "            value = x[i, c]\n            larger = max(maximum, value)",
        ),
    ),
    Variant("the first value begins", "result", (("np.float32(-3e38), np.float32(0)", "x[0, c], np.float32(0)"),)),
    Variant("minus infinity begins", "result", (("np.float32(-3e38)", "np.float32(-np.inf)"),)),
    Variant(
        "the chapter's first loop",
        "result",
        cell=_TWO_EXPONENTIALS.replace("{again}", " + exp(value - larger)")
        .replace(
            "            larger = max(maximum, x[i, c])",
            "            value = x[i, c]\n            larger = max(maximum, value)",
        )
        .replace("np.float32(-3e38)", "np.float32(-np.inf)"),
    ),
    Variant(
        "the least number where there is nothing",
        "result",
        (("maximum + log(total)", "maximum + log(max(total, np.float32(1e-30)))"),),
    ),
    Variant("one number kept", "result", cell=_ONE_NUMBER),
    Variant(
        "one number kept, and nothing told apart",
        "solved",
        cell=_ONE_NUMBER.replace("both = x[0, c]", "both = np.float32(-3e38)")
        .replace("range(1,", "range(")
        .replace("result[c] = both", "result[c] = both if both > np.float32(-2e38) else np.float32(-np.inf)"),
    ),
)
