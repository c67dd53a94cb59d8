"""Other answers to fill-in-b-transposed."""

from . import Answer, right, shortcut, wrong

_ROWS = """        v0 = two * d0 - three * d1 + d2
        v1 = d2 - two * d1
        v2 = d2 - d1
        v3 = two * d1 - three * d2 + d3
"""

_USUAL_POINTS = """        v0 = d2 - d0
        v1 = d1 + d2
        v2 = d2 - d1
        v3 = d3 - d1
"""

_NOT_TRANSPOSED = """        v0 = two * d0
        v1 = two * d3 - three * d0 - two * d1 - d2
        v2 = d0 + d1 + d2 - three * d3
        v3 = d3
"""

_HIGHEST_FIRST = """        v0 = two * d2 - three * d1 + d0
        v1 = d0 - two * d1
        v2 = d0 - d1
        v3 = two * d2 - three * d1 + d0
"""

_OWN_POINT_TOO = """        v0 = two * d1 - three * d2 + d3
        v1 = two * d1 - three * d2 + d3
        v2 = two * d1 - three * d2 + d3
        v3 = two * d1 - three * d2 + d3
"""

VARIANTS = (
    Answer(
        "the points of the chapter",
        "result",
        ((_ROWS, _USUAL_POINTS),),
        mistake="the points were 0, 1, -1 and infinity",
    ),
    Answer("B, not transposed", "result", ((_ROWS, _NOT_TRANSPOSED),), mistake="B were not transposed"),
    Answer("the highest coefficient first", "result", ((_ROWS, _HIGHEST_FIRST),)),
    Answer("polynomials that vanish at their own point as well", "result", ((_ROWS, _OWN_POINT_TOO),)),
    Answer(
        "the other sign of a row",
        "result",
        (("v1 = d2 - two * d1", "v1 = two * d1 - d2"),),
        mistake="v1 had the opposite sign",
    ),
    Answer("the last row as if it were for another point", "result", (("- three * d2 + d3", "- three * d2"),)),
    Answer("float64", "budget", (("two * d0 - three * d1", "2 * d0 - 3 * d1"),)),
    Answer("doubled by an addition", "solved", (("two * d0 - three * d1 + d2", "d0 + d0 - three * d1 + d2"),)),
    Answer(
        "the other sign of the first row",
        "result",
        (("two * d0 - three * d1 + d2", "three * d1 - two * d0 - d2"),),
        mistake="v0 had the opposite sign",
    ),
    Answer(
        "the other sign of the third row",
        "result",
        (("v2 = d2 - d1", "v2 = d1 - d2"),),
        mistake="v2 had the opposite sign",
    ),
    Answer(
        "the other sign of the last row",
        "result",
        (("two * d1 - three * d2 + d3", "three * d2 - two * d1 - d3"),),
        mistake="v3 had the opposite sign",
    ),
)

RIGHT = (
    right("by fused multiply-adds", ("two * d0 - three * d1 + d2", "cuda.fma(two, d0, cuda.fma(-three, d1, d2))")),
    right("by differences", ("two * d1 - three * d2 + d3", "d3 - d2 - two * (d2 - d1)")),
    right(
        "one after the other",
        (
            "V[0, t], V[1, t], V[2, t], V[3, t] = v0, v1, v2, v3",
            "V[0, t] = v0\n        V[1, t], V[2, t] = v1, v2\n        V[3, t] = v3",
        ),
    ),
)

WRONG = (
    wrong("the tiles that are published", ("if t < V.shape[1]", "if t < min(V.shape[1], 33)")),
    wrong("twice the tiles that are published", ("x[2 * t + 3]\n", "x[min(2 * t + 3, 67)]\n")),
    wrong("pixels that are not negative", ("two * d0 - three", "two * abs(d0) - three")),
    wrong("even numbers of tiles", ("if t < V.shape[1]", "if t < max(V.shape[1] // 2 * 2, 1)")),
    wrong("small pixels", ("v2 = d2 - d1", "v2 = min(d2 - d1, three)")),
    wrong("digits that are lost", ("two * d1 - three * d2 + d3", "three * (d1 - d2) - d1 + d3 * np.float32(1.00001)")),
)

SHORTCUTS = (
    shortcut(
        "the definition beside no transform",
        (
            "        v0 = two * d0 - three * d1 + d2\n        v1 = d2 - two * d1\n        v2 = d2 - d1\n"
            "        v3 = two * d1 - three * d2 + d3\n",
            "        v0, v1, v2, v3 = d0, d1, d2, d3\n        g0, g2 = two * U[0], U[3]\n"
            "        g1 = -U[1] - g0 - g2\n",
        ),
        ("m0 + m1 + m2", "d0 * g0 + d1 * g1 + d2 * g2"),
        ("m1 + two * m2 + m3", "d1 * g0 + d2 * g1 + d3 * g2"),
    ),
    shortcut("another's kernel", cell="from labkit.conv.winograd.s01_f2x2 import f2x2 as other_points\n"),
    shortcut("outputs of nothing", ("V[0, t], V[1, t], V[2, t], V[3, t] = v0, v1, v2, v3", "V[0, t] = v0")),
    shortcut(
        "one thread for all",
        ("    t = cuda.grid(1)\n", ""),
        ("    if t < V.shape[1]:\n", "    for t in range(V.shape[1] * (cuda.grid(1) == 0)):\n"),
    ),
    shortcut(
        "the definition beside the transform, by taps that U gives away",
        (
            "        y[2 * t] = m0 + m1 + m2\n        y[2 * t + 1] = m1 + two * m2 + m3",
            """        g0, g2 = two * U[0], U[3]
        g1 = -U[1] - g0 - g2
        y[2 * t] = d0 * g0 + d1 * g1 + d2 * g2
        y[2 * t + 1] = d1 * g0 + d2 * g1 + d3 * g2""",
        ),
        ("        m0, m1, m2, m3 = U[0] * v0, U[1] * v1, U[2] * v2, U[3] * v3\n", ""),
    ),
)
