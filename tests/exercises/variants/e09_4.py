"""Other answers to exercise 09.4."""

from . import Variant

_ZERO = """                d[i] = 0
                if 2 * t + i < x.shape[1]:
                    d[i] = x[c, 2 * t + i]
"""
_LOADED = "                d[i] = x[c, 2 * t + i]\n"
_CLAMPED = "                d[i] = x[c, min(2 * t + i, x.shape[1] - 1)]\n"
_EACH_CHANNEL = """                m[i] = U[i, c] * V[i, c, t]
"""

VARIANTS = (
    Variant("no zeros at the end", "bounds", ((_ZERO, _LOADED),)),
    Variant("the last pixel in their place", "result", ((_ZERO, _CLAMPED),)),
    Variant(
        "both outputs in any case", "bounds", (("        if 2 * t + 1 < y.size:\n    ", "        if True:\n    "),)
    ),
    Variant("the last channel alone", "result", (("                m[i] += U[i, c] * V[i, c, t]\n", _EACH_CHANNEL),)),
    Variant("sums that begin anywhere", "uninitialised", (("            m[i] = 0\n", "            pass\n"),)),
    Variant("the row of -2 for 2 as well", "result", (("d[2] + two", "d[2] - two"),)),
    Variant("the powers of -2 forgotten", "result", (("two * (m[3] - m[4])", "two * (m[3] + m[4])"),)),
    Variant("infinity forgotten", "result", ((" + m[5]", ""),)),
    Variant("the first output with infinity", "result", (("+ m[3] + m[4]\n", "+ m[3] + m[4] + m[5]\n"),)),
    Variant("float64", "budget", (("four * d[0] - five * d[2]", "4 * d[0] - 5 * d[2]"),)),
    Variant(
        "tiles side by side",
        "result",
        (
            (
                "                if 2 * t + i < x.shape[1]:\n                    d[i] = x[c, 2 * t + i]",
                "                if 6 * t + i < x.shape[1]:\n                    d[i] = x[c, 6 * t + i]",
            ),
        ),
    ),
    Variant("no guard", "bounds", (("if t < V.shape[2]", "if t < 2 * V.shape[2]"),)),
    Variant(
        "each number of U from memory once more",
        "budget",
        (("m[i] += U[i, c] * V[i, c, t]", "m[i] += (U[i, c] + np.float32(0) * U[0, c]) * V[i, c, t]"),),
    ),
    Variant(
        "differences written out",
        "solved",
        (("four * (d[1] - d[2])", "four * d[1] - four * d[2]"),),
    ),
)
