"""Other answers to exercise 15.2."""

from . import Variant

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
    Variant("the stub: all maxima alike", "result", cell=_STUB),
    Variant("the own sum not moved", "result", ((_BOTH, "s = s + its_s * exp(its_m - larger)"),)),
    Variant("the other sum not moved", "result", ((_BOTH, "s = s * exp(m - larger) + its_s"),)),
    Variant("moved the wrong way round", "result", ((_BOTH, "s = s * exp(larger - m) + its_s * exp(its_m - larger)"),)),
    Variant("the maximum not kept", "result", (("                    m = larger\n", ""),)),
    Variant("the empty part's maximum counts", "result", (("if its_s > np.float32(0):", "if True:"),)),
    Variant("relative to the last part", "result", (("larger = max(m, its_m)", "larger = its_m"),)),
    Variant("the sum of maxima", "result", (("larger = max(m, its_m)", "larger = m + its_m"),)),
    Variant("the larger sum wins", "result", ((_BOTH, "s = max(s, its_s)"),)),
    Variant("a first maximum of zero", "result", cell=_LEAST.replace("FIRST", "0")),
    Variant("a first maximum of minus ten", "result", cell=_LEAST.replace("FIRST", "-10")),
    Variant("two passes", "budget", cell=_TWO_PASSES),
    Variant(
        "the sum loaded twice",
        "budget",
        (("+ its_s * exp", "+ totals[p, r] * exp"),),
    ),
    Variant("the sum in float64", "budget", (("m, s = np.float32(0), np.float32(0)", "m, s = np.float32(0), 0.0"),)),
    Variant("no guard", "bounds", (("if r < maximum.size:", "if True:"),)),
    Variant("a first maximum below all", "solved", cell=_LEAST.replace("FIRST", "-3e38")),
    Variant("a first maximum of minus infinity", "solved", cell=_LEAST.replace("FIRST", "-np.inf")),
)
