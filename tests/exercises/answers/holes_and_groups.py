"""Other answers to holes-and-groups."""

from . import Answer, right, shortcut, wrong

_TURNED = "w[R - 1 - r, S - 1 - s, c, k]"

VARIANTS = (
    Answer("not turned", "result", ((_TURNED, "w[r, s, c, k]"),), mistake="the filter were not turned"),
    Answer(
        "turned in rows alone",
        "result",
        ((_TURNED, "w[R - 1 - r, s, c, k]"),),
        mistake="only the rows of the filter were turned",
    ),
    Answer(
        "turned in columns alone",
        "result",
        ((_TURNED, "w[r, S - 1 - s, c, k]"),),
        mistake="only the columns of the filter were turned",
    ),
    Answer("no dilation", "result", (("r * dilation", "r"),), mistake="the rows of a filter had no dilation"),
    Answer(
        "no dilation along a row",
        "result",
        (("s * dilation", "s"),),
        mistake="the columns of a filter had no dilation",
    ),
    Answer(
        "no dilation at all",
        "result",
        (("p + r * dilation, q + s * dilation", "p + r, q + s"),),
        mistake="there were no dilation",
    ),
    Answer(
        "the number of the group as a channel",
        "result",
        (("k // (K // groups) * C", "k // (K // groups)"),),
        mistake="the channels of each group began one after those of the group before",
    ),
    Answer(
        "groups in turn",
        "result",
        (("k // (K // groups) * C", "k % groups * C"),),
        mistake="neighbouring filters were in different groups",
    ),
    Answer(
        "a sum per row of a window",
        "result",
        (
            ("        total = np.float32(0)\n", ""),
            ("            for s in range(S):\n", "            total = np.float32(0)\n            for s in range(S):\n"),
        ),
        mistake="only the last row of each window were counted",
    ),
    Answer(
        "a return inside the loops",
        "result",
        (("        y[p, q, k] = total", "                y[p, q, k] = total\n                return"),),
        mistake="only the first pixel of each window were counted",
    ),
    Answer(
        "the axes of the grid turned round",
        "unwritten",
        (("k, q, p = cuda.grid(3)", "p, q, k = cuda.grid(3)"),),
        mistake="the grid's z counted filters",
    ),
    Answer("a dilation of the steps, too", "bounds", (("p + r * dilation", "(p + r) * dilation"),)),
    Answer("no groups", "result", (("first + c", "c"),), mistake="all groups read the channels of the first"),
    Answer("as many filters as groups", "bounds", (("k // (K // groups) * C", "k * C"),)),
    Answer("the channels of the next filter", "bounds", (("first + c", "k + c"),)),
    Answer("no guard", "bounds", (("p < y.shape[0] and q < y.shape[1] and k < K", "p < y.shape[0]"),)),
    Answer("P and Q swapped", "bounds", (("p < y.shape[0] and q < y.shape[1]", "q < y.shape[0] and p < y.shape[1]"),)),
    Answer(
        "summed in y",
        "budget",
        (("        y[p, q, k] = total", "        y[p, q, k] = np.float32(0)\n        y[p, q, k] += total"),),
    ),
    Answer("sums in float64", "budget", (("np.float32(0)", "0.0"),)),
    Answer(
        "the window turned in place of the filter",
        "solved",
        (
            ("p + r * dilation, q + s * dilation", "p + (R - 1 - r) * dilation, q + (S - 1 - s) * dilation"),
            (_TURNED, "w[r, s, c, k]"),
        ),
    ),
    Answer(
        "C counted in the image", "solved", (("k // (K // groups) * C", "k * groups // K * (x.shape[2] // groups)"),)
    ),
)

RIGHT = (
    right(
        "channels outside",
        (
            "        for r in range(R):\n            for s in range(S):\n                for c in range(C):",
            "        for c in range(C):\n            for r in range(R):\n                for s in range(S):",
        ),
    ),
    right("unsigned indices", ("k // (K // groups) * C", "np.uint32(k) // np.uint32(K // groups) * np.uint32(C)")),
    right("negative indices", ("w[R - 1 - r, S - 1 - s, c, k]", "w[-1 - r, -1 - s, c, k]")),
    right(
        "fused multiply-adds",
        (
            "total += pixel * w[R - 1 - r, S - 1 - s, c, k]",
            "total = cuda.fma(pixel, w[R - 1 - r, S - 1 - s, c, k], total)",
        ),
    ),
)

WRONG = (
    wrong("zeros are not stored", ("y[p, q, k] = total", "if total != 0:\n            y[p, q, k] = total")),
    wrong("a dilation of no more than 3", ("r * dilation", "r * min(dilation, 3)")),
    wrong("a dilation of no more than 5", ("s * dilation", "s * min(dilation, 5)")),
    wrong("three channels of a group", ("range(C)", "range(min(C, 3))")),
    wrong("five rows of a filter", ("range(R)", "range(min(R, 5))")),
    wrong("one dilation of rows for columns as well", ("s * dilation", "s * (dilation if R > 1 else 1)")),
    wrong("at least two groups", ("first + c", "(first if groups > 1 else 0 * k + 1) % x.shape[2] + c")),
    wrong("as many filters as channels", ("k // (K // groups) * C", "k // C * C")),
    wrong("filters of at most three columns", ("range(S)", "range(min(S, 3))")),
    wrong("the rows that are published", ("p < y.shape[0]", "p < min(y.shape[0], 12)")),
    wrong("turned in columns where there is more than one row", ("S - 1 - s", "(S - 1 - s if R > 1 else s)")),
)

SHORTCUTS = (
    shortcut("another's kernel", cell="from labkit.conv.direct.s01_naive import naive as holes_and_groups\n"),
    shortcut(
        "the sum kept in y, by atomics",
        ("        total = np.float32(0)\n", "        y[p, q, k] = 0\n"),
        ("                    total += pixel", "                    cuda.atomic.add(y, (p, q, k), pixel"),
        ("s, c, k]\n", "s, c, k])\n"),
        ("        y[p, q, k] = total", ""),
    ),
    shortcut(
        "one thread for all",
        ("    k, q, p = cuda.grid(3)\n", "    x0, y0, z0 = cuda.grid(3)\n"),
        (
            "    if p < y.shape[0] and q < y.shape[1] and k < K:\n",
            """    for i in range(y.size * (x0 + y0 + z0 == 0)):
        k, q, p = i % K, i // K % y.shape[1], i // K // y.shape[1]
""",
        ),
    ),
)
