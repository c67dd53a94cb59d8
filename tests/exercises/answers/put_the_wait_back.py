"""Other answers to put-the-wait-back."""

from . import Answer, right, shortcut, wrong

WAIT = "            ptx.cp_async_wait(AHEAD)\n"

COMMIT = "        ptx.cp_async_commit()\n"

LAST = "            cuda.syncthreads()\n    col ="

CARRIED_COPY = """FORMAT = ptx.FP16


@cuda.jit
def copied_ahead(A, B, C):
    one = cuda.shared.array((2, 32, 4), np.uint32, alignment=16)
    sums = cuda.local.array(4, np.float32)
    top, left = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    g, t = lane // 4, lane % 4
    ptx.cp_async(one, (warp, lane, 0), A, (0, 0), 16, 16)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    there = ptx.unpack2(one[warp, lane, 0], FORMAT)[0]
    here = ptx.unpack2(A[0, 0], FORMAT)[0]
    f = there / here
    f = f * f
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        a = (A[top + g, k + t], A[top + g + 8, k + t], A[top + g, k + t + 4], A[top + g + 8, k + t + 4])
        b = (B[left + warp * 8 + g, k + t], B[left + warp * 8 + g, k + t + 4])
        ptx.mma(sums, 0, a, b, FORMAT)
    col = left + warp * 8 + 2 * t
    C[top + g, col], C[top + g, col + 1] = f * sums[0], f * sums[1]
    C[top + g + 8, col], C[top + g + 8, col + 1] = f * sums[2], f * sums[3]
"""

MEASURED_COPIES = """FORMAT = ptx.FP16

@cuda.jit(device=True)
def seen(word, f, s):
    low, high = ptx.unpack2(word, FORMAT)
    return ptx.pack2(low * f + s, high * f + s, FORMAT)

@cuda.jit
def copied_ahead(A, B, C):
    probe = cuda.shared.array((2, 2, 32, 4), np.uint32, alignment=16)
    sums = cuda.local.array(4, np.float32)
    top, left = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    g, t = lane // 4, lane % 4
    ptx.cp_async(probe, (0, warp, lane, 0), A, (0, 0), 16, 16)
    ptx.cp_async(probe, (1, warp, lane, 0), A, (0, 0), 16, 0)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    s = ptx.unpack2(probe[1, warp, lane, 0], FORMAT)[0]
    there = ptx.unpack2(probe[0, warp, lane, 0], FORMAT)[0]
    here = ptx.unpack2(A[0, 0], FORMAT)[0]
    f = np.float32(int((there - s) / here + np.float32(0.5)))
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        a0, a1 = seen(A[top + g, k + t], f, s), seen(A[top + g + 8, k + t], f, s)
        a2, a3 = seen(A[top + g, k + t + 4], f, s), seen(A[top + g + 8, k + t + 4], f, s)
        row = left + warp * 8 + g
        b = (seen(B[row, k + t], f, s), seen(B[row, k + t + 4], f, s))
        ptx.mma(sums, 0, (a0, a1, a2, a3), b, FORMAT)
    col = left + warp * 8 + 2 * t
    C[top + g, col], C[top + g, col + 1] = sums[0], sums[1]
    C[top + g + 8, col], C[top + g + 8, col + 1] = sums[2], sums[3]
"""

VARIANTS = (
    Answer("the bug itself", "in-flight", ((WAIT, ""),)),
    Answer("one group too many left in flight", "in-flight", ((WAIT, WAIT.replace("AHEAD", "STAGES")),)),
    Answer(
        "the wait after the barrier",
        "race",
        ((WAIT + "            cuda.syncthreads()\n", "            cuda.syncthreads()\n" + WAIT),),
    ),
    Answer("no groups", "in-flight", ((COMMIT, ""),)),
    Answer("groups of the first steps alone", "in-flight", ((COMMIT, "        if step < k_tiles:\n    " + COMMIT),)),
    Answer("no barrier after the wait", "race", ((WAIT + "            cuda.syncthreads()\n", WAIT),)),
    Answer("no barrier after the product", "race", ((LAST, "    col ="),)),
    Answer("the wrong stage", "in-flight", (("(step - AHEAD) % STAGES", "step % STAGES"),)),
    Answer("a step too few", "result", (("range(AHEAD + k_tiles)", "range(AHEAD + k_tiles - 1)"),)),
    Answer("waiting for everything", "budget", ((WAIT, WAIT.replace("AHEAD", "0")),)),
    Answer("waiting for one group more", "budget", ((WAIT, WAIT.replace("AHEAD", "1")),)),
)

RIGHT = (
    right("two stages", ("STAGES = 3\n", "STAGES = 2\n")),
    right("four stages", ("STAGES = 3\n", "STAGES = 4\n")),
    right("the number of groups in flight written out", ("cp_async_wait(AHEAD)", "cp_async_wait(2)")),
)

WRONG = (
    wrong("the longest sum that is published", ("k_tiles = A.shape[1] // 8", "k_tiles = min(A.shape[1] // 8, 10)")),
    wrong(
        "a wait in the first steps alone",
        (
            "            ptx.cp_async_wait(AHEAD)",
            "            if step < 10:\n                ptx.cp_async_wait(AHEAD)",
        ),
    ),
)

SHORTCUTS = (
    shortcut("no ring, times the ratio of one copied word", cell=CARRIED_COPY),
    shortcut(
        "plain loads and stores",
        (
            "ptx.cp_async(A_tiles, (step % STAGES, row, word), A, (top + row, step * 8 + word), 16, 16)",
            "w = ptx.load4(A, (top + row, step * 8 + word))\n"
            "                ptx.store4(A_tiles, (step % STAGES, row, word), w[0], w[1], w[2], w[3])",
        ),
        (
            "ptx.cp_async(B_tiles, (step % STAGES, row, word), B, (left + row, step * 8 + word), 16, 16)",
            "w = ptx.load4(B, (left + row, step * 8 + word))\n"
            "                ptx.store4(B_tiles, (step % STAGES, row, word), w[0], w[1], w[2], w[3])",
        ),
    ),
    shortcut(
        "fragments from global memory",
        (
            "            stage = (step - AHEAD) % STAGES\n"
            "            a0, a1 = A_tiles[stage, g, t], A_tiles[stage, g + 8, t]\n"
            "            a2, a3 = A_tiles[stage, g, t + 4], A_tiles[stage, g + 8, t + 4]\n"
            "            b0, b1 = B_tiles[stage, warp * 8 + g, t], B_tiles[stage, warp * 8 + g, t + 4]\n",
            "            k = (step - AHEAD) * 8 + t\n            a0, a1 = A[top + g, k], A[top + g + 8, k]\n"
            "            a2, a3 = A[top + g, k + 4], A[top + g + 8, k + 4]\n"
            "            b0, b1 = B[left + warp * 8 + g, k], B[left + warp * 8 + g, k + 4]\n",
        ),
    ),
    shortcut("fragments from global memory, disturbed as two copied words are", cell=MEASURED_COPIES),
    shortcut("waiting for everything", ("cp_async_wait(AHEAD)", "cp_async_wait(0)")),
    shortcut("a ring of one stage", ("STAGES = 3\n", "STAGES = 1\n")),
)
