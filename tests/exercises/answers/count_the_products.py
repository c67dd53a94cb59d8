"""Other answers to count-the-products."""

from . import Answer, right, shortcut, wrong

_TILES = "(P[i] + m - 1) // m * ((Q[i] + m - 1) // m)"

_COUNT = "tiles * (m + R[i] - 1) * (m + R[i] - 1)"

VARIANTS = (
    Answer(
        "the edge left out", "result", ((_TILES, "P[i] // m * (Q[i] // m)"),), mistake="tiles at the edge were left out"
    ),
    Answer(
        "as many tiles as outputs have room for",
        "result",
        ((_TILES, "P[i] * Q[i] // (m * m)"),),
        mistake="the number of tiles were P * Q / m^2, rounded down",
    ),
    Answer("tiles that do not overlap", "result", ((_COUNT, "tiles * m * m"),), mistake="a tile had m * m products"),
    Answer("one dimension", "result", ((_COUNT, "tiles * (m + R[i] - 1)"),), mistake="a tile had m + R - 1 products"),
    Answer("3 x 3 taps", "result", ((_COUNT, "tiles * (m + 2) * (m + 2)"),), mistake="R were always 3"),
    Answer(
        "the largest of those that are as good",
        "result",
        (("count < least", "count <= least"),),
        mistake="the largest m of those that are as good were chosen",
    ),
    Answer("tiles of even sides", "result", (("range(2, 7)", "range(2, 7, 2)"),), mistake="m were 1 or even"),
    Answer("tiles of up to five outputs", "result", (("range(2, 7)", "range(2, 6)"),), mistake="m ended at 5"),
    Answer("the definition", "result", (("range(2, 7)", "range(2, 2)"),), mistake="m were always 1"),
    Answer("the largest tile", "result", (("count < least", "True"),), mistake="m were always 6"),
    Answer("no guard", "bounds", (("if i < P.size", "if i < 32"),)),
    Answer(
        "both numbers exchanged",
        "result",
        (("products[i], best[i] = least", "best[i], products[i] = least"),),
        mistake="the two results were exchanged",
    ),
    Answer(
        "kept in memory while it looks",
        "budget",
        (
            (
                "                least, tile = count, m\n",
                "                least, tile = count, m\n                best[i] = m\n",
            ),
        ),
    ),
    Answer("ceilings by a negative floor", "solved", ((_TILES, "(-P[i] // m) * (-Q[i] // m)"),)),
)

RIGHT = (
    right(
        "from the largest to the smallest",
        ("range(2, 7)", "range(6, 1, -1)"),
        ("count < least", "count < least or count == least and tile > m > 1 and tile != 1"),
    ),
    right(
        "F(1 x 1) in the loop",
        ("least, tile = P[i] * Q[i] * R[i] * R[i], 1", "least, tile = 1 << 40, 0"),
        ("range(2, 7)", "range(1, 7)"),
    ),
    right("a square", ("(m + R[i] - 1) * (m + R[i] - 1)", "(m + R[i] - 1) ** 2")),
)

WRONG = (
    wrong(
        "filters of at most five taps",
        ("(m + R[i] - 1) * (m + R[i] - 1)", "(m + min(R[i], 5) - 1) * (m + R[i] - 1)"),
    ),
    wrong("square outputs", ("((Q[i] + m - 1) // m)", "((P[i] + m - 1) // m)")),
    wrong("the layers that are published", ("if i < P.size", "if i < min(P.size, 40)")),
    wrong(
        "a remainder of one or none",
        ("(P[i] + m - 1) // m", "(P[i] // m + min(P[i] % m, 1))"),
        ("((Q[i] + m - 1) // m)", "(Q[i] // m + (Q[i] % m == 1))"),
    ),
    wrong(
        "no tile that is larger than the outputs",
        ("if count < least", "if count < least and m <= P[i] and m <= Q[i]"),
    ),
    wrong("large layers by the largest tile", ("if count < least", "if count < least or P[i] > 200 and m == 6")),
    wrong(
        "filters of one tap by tiles",
        ("P[i] * Q[i] * R[i] * R[i], 1", "P[i] * Q[i] * R[i] * R[i] + (R[i] == 1), 1"),
    ),
    wrong("filters of up to seven taps", ("(m + R[i] - 1) * (m + R[i] - 1)", "(m + min(R[i], 7) - 1) ** 2")),
    wrong("the largest tile where it is as good", ("if count < least", "if count < least + (m == 6)")),
    wrong("the larger of two tiles", ("if count < least", "if count < least + (tile > 1)")),
)

SHORTCUTS = (
    shortcut(
        "a list for the usual sizes",
        ("for m in range(2, 7)", "for m in range(4 if R[i] == 3 else 2, 5 if P[i] % 7 == 0 else 7)"),
    ),
    shortcut("the definition for all", ("if count < least", "if count < least and False")),
    shortcut("whole tiles alone", ("if count < least", "if count < least and P[i] % m == 0 and Q[i] % m == 0")),
    shortcut(
        "one thread for all",
        ("    i = cuda.grid(1)\n    if i < P.size:\n", "    for i in range(P.size * (cuda.grid(1) == 0)):\n"),
    ),
)
