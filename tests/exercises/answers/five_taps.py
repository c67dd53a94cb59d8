"""Other answers to five-taps."""

from . import Answer, right, shortcut, wrong

_ZERO = """                d[i] = 0
                if 2 * t + i < x.shape[1]:
                    d[i] = x[c, 2 * t + i]
"""

_LOADED = "                d[i] = x[c, 2 * t + i]\n"

_CLAMPED = "                d[i] = x[c, min(2 * t + i, x.shape[1] - 1)]\n"

_EACH_CHANNEL = """                m[i] = U[i, c] * V[i, c, t]
"""

_FIVE_TAPS_FROM_U = """            u1, u2, u3, u4 = U[1, c], U[2, c], U[3, c], U[4, c]
            g0, g4, three = four * U[0, c], U[5, c], np.float32(3)
            g2, odd = -three * (u1 + u2) - g0 - g4, three * (u2 - u1)
            g3 = two * (u3 - u4) - odd / three
            g1 = odd - g3
            m[0] += d[0] * g0 + d[1] * g1 + d[2] * g2 + d[3] * g3 + d[4] * g4
            m[1] += d[1] * g0 + d[2] * g1 + d[3] * g2 + d[4] * g3 + d[5] * g4
"""

VARIANTS = (
    Answer("no zeros at the end", "bounds", ((_ZERO, _LOADED),)),
    Answer(
        "the last pixel in their place",
        "result",
        ((_ZERO, _CLAMPED),),
        mistake="the last pixel were repeated past the end",
    ),
    Answer("both outputs in any case", "bounds", (("        if 2 * t + 1 < y.size:\n    ", "        if True:\n    "),)),
    Answer(
        "the last channel alone",
        "result",
        (("                m[i] += U[i, c] * V[i, c, t]\n", _EACH_CHANNEL),),
        mistake="only the last channel were added",
    ),
    Answer("sums that begin anywhere", "uninitialised", (("            m[i] = 0\n", "            pass\n"),)),
    Answer("the row of -2 for 2 as well", "result", (("d[2] + two", "d[2] - two"),)),
    Answer(
        "the powers of -2 forgotten",
        "result",
        (("two * (m[3] - m[4])", "two * (m[3] + m[4])"),),
        mistake="the products at 2 and at -2 were added in each output",
    ),
    Answer("infinity forgotten", "result", ((" + m[5]", ""),), mistake="the product at infinity were left out"),
    Answer(
        "the first output with infinity",
        "result",
        (("+ m[3] + m[4]\n", "+ m[3] + m[4] + m[5]\n"),),
        mistake="the product at infinity were added to both outputs",
    ),
    Answer("float64", "budget", (("four * d[0] - five * d[2]", "4 * d[0] - 5 * d[2]"),)),
    Answer(
        "tiles side by side",
        "result",
        (
            (
                "                if 2 * t + i < x.shape[1]:\n                    d[i] = x[c, 2 * t + i]",
                "                if 6 * t + i < x.shape[1]:\n                    d[i] = x[c, 6 * t + i]",
            ),
        ),
        mistake="tiles did not overlap",
    ),
    Answer("no guard", "bounds", (("if t < V.shape[2]", "if t < 2 * V.shape[2]"),)),
    Answer(
        "each number of U from memory once more",
        "budget",
        (("m[i] += U[i, c] * V[i, c, t]", "m[i] += (U[i, c] + np.float32(0) * U[0, c]) * V[i, c, t]"),),
    ),
    Answer(
        "differences written out",
        "solved",
        (("four * (d[1] - d[2])", "four * d[1] - four * d[2]"),),
    ),
)

RIGHT = (
    right("numbers of V kept", ("m[i] += U[i, c] * V[i, c, t]", "m[i] = cuda.fma(U[i, c], V[i, c, t], m[i])")),
    right(
        "zeros by a condition",
        (
            "                d[i] = 0\n                if 2 * t + i < x.shape[1]:\n"
            "                    d[i] = x[c, 2 * t + i]\n",
            "                d[i] = x[c, 2 * t + i] if 2 * t + i < x.shape[1] else np.float32(0)\n",
        ),
    ),
    right("written out", ("d[3] + d[4] - four * (d[1] + d[2])", "d[3] + d[4] - four * d[1] - four * d[2]")),
)

WRONG = (
    wrong("the channels that are published", ("range(x.shape[0])", "range(min(x.shape[0], 3))")),
    wrong("the tiles that are published", ("if t < V.shape[2]", "if t < min(V.shape[2], 38)")),
    wrong(
        "an odd number of outputs where there is one",
        ("if 2 * t + 1 < y.size", "if t == 0 and y.size > 1 or 2 * t + 2 < y.size + y.size % 2"),
    ),
    wrong(
        "one zero at the end",
        ("if 2 * t + i < x.shape[1]", "if 2 * t + i < x.shape[1] and i < 5 or 2 * t + 5 < x.shape[1] - 1"),
    ),
    wrong("one channel where there are many", ("m[i] += U[i, c]", "m[i] += U[i, c % 4]")),
    wrong(
        "points 0, 1, -1, -2, 2",
        ("V[3, c, t] = d[4] - d[2] + two", "V[3, c, t] = d[4] - d[2] - two"),
        ("V[4, c, t] = d[4] - d[2] - two", "V[4, c, t] = d[4] - d[2] + two"),
    ),
    wrong("pixels in a small range", ("d[i] = x[c, 2 * t + i]", "d[i] = min(x[c, 2 * t + i], np.float32(2.5))")),
)

SHORTCUTS = (
    shortcut("another's kernel", cell="from labkit.conv.winograd.s02_f4x4 import f4x4 as five_taps\n"),
    shortcut("outputs as sums of V", ("m[i] += U[i, c] * V[i, c, t]", "m[i] += V[i, c, t]")),
    shortcut(
        "the definition beside V, by taps that U gives away",
        ("            for i in range(6):\n                m[i] += U[i, c] * V[i, c, t]\n", _FIVE_TAPS_FROM_U),
        ("m[0] + m[1] + m[2] + m[3] + m[4]", "m[0]"),
        ("m[1] - m[2] + two * (m[3] - m[4]) + m[5]", "m[1]"),
    ),
    shortcut(
        "pixels in place of their transform", ("V[5, c, t] = four * d[1] - five * d[3] + d[5]", "V[5, c, t] = d[5]")
    ),
    shortcut(
        "one thread for all",
        ("    t = cuda.grid(1)\n", ""),
        ("    if t < V.shape[2]:\n", "    for t in range(V.shape[2] * (cuda.grid(1) == 0)):\n"),
    ),
)
