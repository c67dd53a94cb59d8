"""Other answers to running-sums."""

from . import Answer, right, shortcut, wrong

_ZERO = "        for i in range(4):\n            sums[half, i] = 0\n"
_HEAD = """FORMAT = ptx.FP16


@cuda.jit
def running_sums(X, out):
    sums = cuda.local.array((2, 4), np.float32)
    top = cuda.blockIdx.x * 16
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    rows = X.shape[0]
    one, zero = np.uint32(0x3C003C00), np.uint32(0)
    for half in range(2):
        for i in range(4):
            sums[half, i] = 0
"""
_PLAIN = """    row = top + lane % 16
    if lane < 16 and row < rows:
        total = np.float32(0)
        for word in range(8):
            first, second = ptx.unpack2(X[row, word], FORMAT)
            total += first
            out[row, 2 * word] = total
            total += second
            out[row, 2 * word + 1] = total
"""
_IN_WHOLE_NUMBERS = """    row = top + lane % 16
    if lane < 16 and row < rows:
        total = 0
        for word in range(8):
            first, second = ptx.unpack2(X[row, word], FORMAT)
            total += int(first)
            out[row, 2 * word] = total
            total += int(second)
            out[row, 2 * word + 1] = total
"""
_ON_ZEROS = """    for half in range(2):
        ptx.mma(sums, (half, 0), (zero, zero, zero, zero), (one, one), FORMAT)
"""
_BY_SHUFFLES = """    for half in range(2):
        ptx.mma(sums, (half, 0), (one, one, one, one), (zero, zero), FORMAT)
    for i in range(16):
        n = lane % 16
        row = top + i
        word = X[min(row, rows - 1), n // 2] if n % 2 == 0 else zero
        word = cuda.shfl_sync(0xFFFFFFFF, word, n // 2 * 2)
        first, second = ptx.unpack2(word, FORMAT)
        value = int(second) if n % 2 else int(first)
        for step in (1, 2, 4, 8):
            other = cuda.shfl_up_sync(0xFFFFFFFF, value, step)
            if n >= step:
                value += other
        if lane < 16 and row < rows:
            out[row, n] = value
"""
_TRIANGLE_FIRST = (
    _HEAD
    + """    a0 = triangle(g, 2 * t)
    a1 = triangle(g + 8, 2 * t)
    a2 = triangle(g, 2 * t + 8)
    a3 = triangle(g + 8, 2 * t + 8)
    for half in range(2):
        row = top + half * 8 + g
        b0 = b1 = zero
        if row < rows:
            b0, b1 = X[row, t], X[row, t + 4]
        ptx.mma(sums, (half, 0), (a0, a1, a2, a3), (b0, b1), FORMAT)
        for i in range(4):
            row = top + half * 8 + 2 * t + i % 2
            if row < rows:
                out[row, g + i // 2 * 8] = sums[half, i]
"""
).replace(
    "@cuda.jit\ndef running",
    '''@cuda.jit(device=True)
def triangle(n, k):
    """Two neighbours of row n."""
    low = np.uint32(0x3C00) if k <= n else np.uint32(0)
    return low | (np.uint32(0x3C000000) if k < n else np.uint32(0))


@cuda.jit
def running''',
)

VARIANTS = (
    Answer(
        "sums without their own element",
        "result",
        (
            ("if 2 * t <= n", "if 2 * t < n"),
            ("if 2 * t + 1 <= n", "if 2 * t + 1 < n"),
            ("if 2 * t + 8 <= n", "if 2 * t + 8 < n"),
            ("if 2 * t + 9 <= n", "if 2 * t + 9 < n"),
        ),
        mistake="each sum ended before its own element",
    ),
    Answer(
        "sums from the end",
        "result",
        (
            ("if 2 * t <= n", "if 2 * t >= n"),
            ("if 2 * t + 1 <= n", "if 2 * t + 1 >= n"),
            ("if 2 * t + 8 <= n", "if 2 * t + 8 >= n"),
            ("if 2 * t + 9 <= n", "if 2 * t + 9 >= n"),
        ),
        mistake="sums ran from the end of a row",
    ),
    Answer(
        "the halves of a word swapped",
        "result",
        (
            ("if 2 * t <= n", "if 2 * t + 1 <= n"),
            ("if 2 * t + 1 <= n else zero\n        low1", "if 2 * t <= n else zero\n        low1"),
            ("if 2 * t + 8 <= n", "if 2 * t + 9 <= n"),
            ("if 2 * t + 9 <= n else zero\n        for", "if 2 * t + 8 <= n else zero\n        for"),
        ),
        mistake="the ones of each two neighbours in B were exchanged",
    ),
    Answer(
        "ones that are whole numbers",
        "result",
        (
            ("low0 = np.uint32(0x3C00)", "low0 = np.uint32(1)"),
            ("high0 = np.uint32(0x3C000000)", "high0 = np.uint32(0x10000)"),
            ("low1 = np.uint32(0x3C00)", "low1 = np.uint32(1)"),
            ("high1 = np.uint32(0x3C000000)", "high1 = np.uint32(0x10000)"),
        ),
        mistake="ones were the whole number 1",
    ),
    Answer(
        "g and t exchanged",
        "result",
        (
            ("n = half * 8 + g", "n = half * 8 + t"),
            ("if 2 * t <= n", "if 2 * g <= n"),
            ("if 2 * t + 1 <= n", "if 2 * g + 1 <= n"),
            ("if 2 * t + 8 <= n", "if 2 * g + 8 <= n"),
            ("if 2 * t + 9 <= n", "if 2 * g + 9 <= n"),
        ),
        mistake="g and t were exchanged in B",
    ),
    Answer(
        "ones in the lower half alone",
        "result",
        (
            ("high0 = np.uint32(0x3C000000)", "high0 = np.uint32(0x3C00)"),
            ("high1 = np.uint32(0x3C000000)", "high1 = np.uint32(0x3C00)"),
        ),
        mistake="all ones of B were in the lower halves of its words",
    ),
    Answer(
        "the first word of B twice",
        "result",
        (("if 2 * t + 8 <= n", "if 2 * t <= n"), ("if 2 * t + 9 <= n", "if 2 * t + 1 <= n")),
        mistake="the second word of B were the first again",
    ),
    Answer(
        "A's words side by side",
        "result",
        (("X[top + g, t + 4]", "X[top + g, t + 1]"), ("X[top + g + 8, t + 4]", "X[top + g + 8, t + 1]")),
        mistake="a2 and a3 were the words after a0 and a1",
    ),
    Answer(
        "sums stored four columns apart",
        "result",
        (("half * 8 + 2 * t + i % 2", "half * 8 + t + i % 2 * 4"),),
        mistake="sums i of a lane were 4 columns apart",
    ),
    Answer(
        "sums stored with row and column exchanged",
        "result",
        (("row = top + g + i // 2 * 8", "row = top + g + i % 2 * 8"), ("2 * t + i % 2", "2 * t + i // 2")),
        mistake="rows and columns of a lane's sums were exchanged",
    ),
    Answer("sums of eight", "result", (("n = half * 8 + g", "n = g"),), mistake="columns 8 to 15 were 0 to 7 again"),
    Answer(
        "B's words side by side",
        "result",
        (
            ("if 2 * t <= n", "if 4 * t <= n"),
            ("if 2 * t + 1 <= n", "if 4 * t + 1 <= n"),
            ("if 2 * t + 8 <= n", "if 4 * t + 2 <= n"),
            ("if 2 * t + 9 <= n", "if 4 * t + 3 <= n"),
        ),
    ),
    Answer(
        "the registers of A in the order of reading",
        "result",
        (("(a0, a1, a2, a3)", "(a0, a2, a1, a3)"),),
        mistake="a1 and a2 were exchanged",
    ),
    Answer(
        "ones of bfloat16",
        "result",
        (
            ("low0 = np.uint32(0x3C00)", "low0 = np.uint32(0x3F80)"),
            ("high0 = np.uint32(0x3C000000)", "high0 = np.uint32(0x3F800000)"),
            ("low1 = np.uint32(0x3C00)", "low1 = np.uint32(0x3F80)"),
            ("high1 = np.uint32(0x3C000000)", "high1 = np.uint32(0x3F800000)"),
        ),
        mistake="ones were bfloat16",
    ),
    Answer("rows without a guard", "bounds", (("    if top + g + 8 < rows:\n", "    if top + g < rows:\n"),)),
    Answer(
        "stores without a guard",
        "bounds",
        (("            if row < rows:\n                out", "            if row >= 0:\n                out"),),
    ),
    Answer(
        "the second half forgotten",
        "unwritten",
        (
            (
                "    for half in range(2):\n        for i in range(4):\n            row",
                "    for half in range(1):\n        for i in range(4):\n            row",
            ),
        ),
    ),
    Answer("the sums not zeroed", "uninitialised", ((_ZERO, ""),)),
    Answer(
        "one accumulator for both halves",
        "result",
        (
            (_ZERO, "        for i in range(4):\n            sums[0, i] = 0\n"),
            ("ptx.mma(sums, (half, 0)", "ptx.mma(sums, (0, 0)"),
            ("= sums[half, i]", "= sums[0, i]"),
        ),
    ),
    Answer(
        "X loaded for each half",
        "budget",
        (
            (
                "    for half in range(2):\n        n = ",
                "    for half in range(2):\n        if top + g < rows:\n            a0 = X[top + g, t]\n        n = ",
            ),
        ),
    ),
    Answer("the additions by a thread", "duty", cell=_HEAD + _PLAIN),
    Answer("the triangle as A", "solved", cell=_TRIANGLE_FIRST),
)

RIGHT = (
    right(
        "words by `pack2`",
        ("(low0 | high0, low1 | high1)", "(b0, b1)"),
        (
            "        low0 = np.uint32(0x3C00) if 2 * t <= n else zero\n",
            "        b0 = ptx.pack2(np.float32(2 * t <= n), np.float32(2 * t < n), FORMAT)\n",
        ),
        (
            "        high0 = np.uint32(0x3C000000) if 2 * t + 1 <= n else zero\n",
            "        b1 = ptx.pack2(np.float32(2 * t + 8 <= n), np.float32(2 * t + 8 < n), FORMAT)\n",
        ),
        ("        low1 = np.uint32(0x3C00) if 2 * t + 8 <= n else zero\n", ""),
        ("        high1 = np.uint32(0x3C000000) if 2 * t + 9 <= n else zero\n", ""),
    ),
    right(
        "the halves by a shift",
        (
            "high0 = np.uint32(0x3C000000) if 2 * t + 1 <= n else zero",
            "high0 = np.uint32(0x3C00 << 16) if 2 * t < n else zero",
        ),
    ),
    right("a sum of both halves", ("(low0 | high0, low1 | high1)", "(low0 + high0, low1 + high1)")),
    right(
        "stored as soon as it is known",
        (
            "    for half in range(2):\n        for i in range(4):\n            row = ",
            "        for i in range(4):\n            row = ",
        ),
    ),
    right(
        "k in another order, the same for X and the triangle",
        ("a0, a2 = X[top + g, t], X[top + g, t + 4]", "a0, a2 = X[top + g, 2 * t], X[top + g, 2 * t + 1]"),
        (
            "a1, a3 = X[top + g + 8, t], X[top + g + 8, t + 4]",
            "a1, a3 = X[top + g + 8, 2 * t], X[top + g + 8, 2 * t + 1]",
        ),
        ("if 2 * t <= n", "if 4 * t <= n"),
        ("if 2 * t + 1 <= n", "if 4 * t + 1 <= n"),
        ("if 2 * t + 8 <= n", "if 4 * t + 2 <= n"),
        ("if 2 * t + 9 <= n", "if 4 * t + 3 <= n"),
    ),
)

WRONG = (
    wrong("the rows that are published", ("rows = X.shape[0]", "rows = min(X.shape[0], 32)")),
    wrong("eight blocks", ("top = cuda.blockIdx.x * 16", "top = cuda.blockIdx.x % 4 * 16")),
    wrong("the last sum without its element", ("if 2 * t + 9 <= n", "if 2 * t + 9 <= min(n, 14)")),
    wrong("an even number of rows", ("            if row < rows:\n", "            if row < rows // 2 * 2:\n")),
)

SHORTCUTS = (
    shortcut(
        "the triangle in shared memory",
        (
            "    sums = cuda.local.array((2, 4), np.float32)\n",
            "    triangle = cuda.shared.array((16, 8), np.uint32)\n    sums = cuda.local.array((2, 4), np.float32)\n",
        ),
        (
            "    for half in range(2):\n        n = half * 8 + g\n",
            """    for place in range(lane, 128, 32):
        row, word = place // 8, place % 8
        first = np.uint32(0x3C00) if 2 * word <= row else zero
        second = np.uint32(0x3C000000) if 2 * word + 1 <= row else zero
        triangle[row, word] = first | second
    cuda.syncthreads()
    for half in range(2):
        n = half * 8 + g
""",
        ),
        ("(low0 | high0, low1 | high1)", "(triangle[n, t], triangle[n, t + 4])"),
    ),
    shortcut("additions by a thread, beside products with zeros", cell=_HEAD + _ON_ZEROS + _PLAIN),
    shortcut("additions of whole numbers, beside products with zeros", cell=_HEAD + _ON_ZEROS + _IN_WHOLE_NUMBERS),
    shortcut("whole numbers by shuffles", cell=_HEAD + _BY_SHUFFLES),
)
