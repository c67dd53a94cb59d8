"""Other answers to swizzle-the-tiles."""

from . import Answer, right, shortcut, wrong

SWIZZLED = "    return piece ^ row % 8\n"

CARRIED_FRAGMENTS = """FORMAT = ptx.FP16


@cuda.jit
def no_conflicts(A, B, C):
    one = cuda.shared.array(32, np.float32)
    sums = cuda.local.array(4, np.float32)
    top, left = cuda.blockIdx.y * 16, cuda.blockIdx.x * 8
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    one[lane] = 1
    f = one[lane] * one[lane]
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        a = (A[top + g, k + t], A[top + g + 8, k + t], A[top + g, k + t + 4], A[top + g + 8, k + t + 4])
        b = (B[left + g, k + t], B[left + g, k + t + 4])
        ptx.mma(sums, 0, a, b, FORMAT)
    C[top + g, left + 2 * t], C[top + g, left + 2 * t + 1] = f * sums[0], f * sums[1]
    C[top + g + 8, left + 2 * t], C[top + g + 8, left + 2 * t + 1] = f * sums[2], f * sums[3]
"""

MEASURED_FRAGMENTS = """FORMAT = ptx.FP16

@cuda.jit(device=True)
def seen(word, f, s):
    low, high = ptx.unpack2(word, FORMAT)
    return ptx.pack2(low * f + s, high * f + s, FORMAT)

@cuda.jit
def no_conflicts(A, B, C):
    one = cuda.shared.array(32, np.uint32)
    zero = cuda.shared.array(32, np.uint32)
    sums = cuda.local.array(4, np.float32)
    top, left = cuda.blockIdx.y * 16, cuda.blockIdx.x * 8
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    one[lane] = 0x3C003C00
    zero[lane] = 0
    s = ptx.unpack2(zero[lane], FORMAT)[0]
    f = ptx.unpack2(one[lane], FORMAT)[0] - s
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        a0, a1 = seen(A[top + g, k + t], f, s), seen(A[top + g + 8, k + t], f, s)
        a2, a3 = seen(A[top + g, k + t + 4], f, s), seen(A[top + g + 8, k + t + 4], f, s)
        b = (seen(B[left + g, k + t], f, s), seen(B[left + g, k + t + 4], f, s))
        ptx.mma(sums, 0, (a0, a1, a2, a3), b, FORMAT)
    C[top + g, left + 2 * t], C[top + g, left + 2 * t + 1] = sums[0], sums[1]
    C[top + g + 8, left + 2 * t], C[top + g + 8, left + 2 * t + 1] = sums[2], sums[3]
"""

OWN_PLACE_FRAGMENTS = """FORMAT = ptx.FP16

@cuda.jit
def no_conflicts(A, B, C):
    hand = cuda.shared.array(32, np.uint32)
    sums = cuda.local.array(4, np.float32)
    top, left = cuda.blockIdx.y * 16, cuda.blockIdx.x * 8
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        hand[lane] = A[top + g, k + t]
        a0 = hand[lane]
        hand[lane] = A[top + g + 8, k + t]
        a1 = hand[lane]
        hand[lane] = A[top + g, k + t + 4]
        a2 = hand[lane]
        hand[lane] = A[top + g + 8, k + t + 4]
        a3 = hand[lane]
        hand[lane] = B[left + g, k + t]
        b0 = hand[lane]
        hand[lane] = B[left + g, k + t + 4]
        b1 = hand[lane]
        ptx.mma(sums, 0, (a0, a1, a2, a3), (b0, b1), FORMAT)
    C[top + g, left + 2 * t], C[top + g, left + 2 * t + 1] = sums[0], sums[1]
    C[top + g + 8, left + 2 * t], C[top + g + 8, left + 2 * t + 1] = sums[2], sums[3]
"""

VARIANTS = (
    Answer("the bug itself", "budget", ((SWIZZLED, "    return piece\n"),)),
    Answer("two places alone", "budget", ((SWIZZLED, "    return piece ^ row % 2\n"),)),
    Answer("four places alone", "budget", ((SWIZZLED, "    return piece ^ row % 4\n"),)),
    Answer("every row moved alike", "budget", ((SWIZZLED, "    return piece ^ 5\n"),)),
    Answer("all pieces of a row in one place", "race", ((SWIZZLED, "    return row % 8\n"),)),
    Answer("out of the row", "bounds", ((SWIZZLED, "    return piece + row % 8\n"),)),
    Answer(
        "rows padded by one piece",
        "budget",
        (
            (SWIZZLED, "    return piece\n"),
            ("array((16, 32)", "array((16, 36)"),
            ("array((8, 32)", "array((8, 36)"),
        ),
    ),
    Answer(
        "only what is written is moved",
        "result",
        (("(row, slot(row, step + lane // 16) * 4)", "(row, (step + lane // 16) * 4)"),),
    ),
    Answer(
        "no barrier before the reads",
        "race",
        (("        cuda.syncthreads()\n        for step", "        for step"),),
    ),
    Answer("the XOR with the whole row, kept in the row", "solved", ((SWIZZLED, "    return (piece ^ row) % 8\n"),)),
    Answer("a rotation instead", "solved", ((SWIZZLED, "    return (piece + row) % 8\n"),)),
    Answer("a rotation the other way", "solved", ((SWIZZLED, "    return (piece - row) % 8\n"),)),
)

RIGHT = (right("the other way round", ("piece ^ row % 8", "row % 8 ^ piece")),)

WRONG = (
    wrong("the longest sum that is published", ("range(0, A.shape[1], 32)", "range(0, min(A.shape[1], 128), 32)")),
    wrong("seven rows alone", ("return piece ^ row % 8", "return piece ^ row % 7")),
)

SHORTCUTS = (
    shortcut("fragments from global memory, times ones from shared memory", cell=CARRIED_FRAGMENTS),
    shortcut(
        "fragments from global memory",
        (
            "            a = ptx.ldmatrix4(A_tile, (row, slot(row, step + lane // 16) * 4))\n",
            "            a = (A[top + g, k + step * 4 + t], A[top + g + 8, k + step * 4 + t], A[top + g, "
            "k + step * 4 + 4 + t], A[top + g + 8, k + step * 4 + 4 + t])\n",
        ),
        (
            "            b = ptx.ldmatrix2(B_tile, (row, slot(row, step + lane // 8 % 2) * 4))\n",
            "            b = (B[left + g, k + step * 4 + t], B[left + g, k + step * 4 + 4 + t])\n",
        ),
    ),
    shortcut(
        "B's fragment from global memory",
        (
            "            b = ptx.ldmatrix2(B_tile, (row, slot(row, step + lane // 8 % 2) * 4))\n",
            "            b = (B[left + g, k + step * 4 + t], B[left + g, k + step * 4 + 4 + t])\n",
        ),
    ),
    shortcut("fragments from global memory, disturbed as a one and a zero are", cell=MEASURED_FRAGMENTS),
    shortcut("each word through a place of its lane's own", cell=OWN_PLACE_FRAGMENTS),
)
