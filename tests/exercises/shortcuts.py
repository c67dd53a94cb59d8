"""Shortcuts: right results that do not do what the exercise is about, in ways that once paid or might."""

from variants import Variant


def _cheat(what, *edits):
    return Variant(what, "shortcut", edits)


def _other(what, cell):
    return Variant(what, "shortcut", cell=cell)


def _by_shuffles(lane):
    """Edits that bring A's factor from another lane's register, where the tile of A has ones."""
    return (
        ("        A_tile[y, x] = A[row", "        A_tile[y, x] = 1\n        a = A[row"),
        ("A_tile[y, k] * B", f"cuda.shfl_sync(0xFFFFFFFF, a, {lane}) * B"),
    )


ONES_ADDED = (
    "    if row < M and col < N:\n        C",
    "    total *= A_tile[y, x]\n    if row < M and col < N:\n        C",
)
ONES_SCALED = (
    "    if row < M and col < N:\n        if",
    "    total *= A_tile[y, x]\n    if row < M and col < N:\n        if",
)


def _naive(
    function, parameters, product, store, guard="row < C.shape[0] and col < C.shape[1]", K="A.shape[1]", head=""
):
    return f"""{head}

@cuda.jit
def {function}({parameters}):
    col, row = cuda.grid(2)
    if {guard}:
        total = np.float32(0)
        for k in range({K}):
            total += {product}
        {store}
"""


ATOMIC_A, ATOMIC_B = "cuda.atomic.add(A, (row, k), np.float32(0))", "cuda.atomic.add(B, (k, col), np.float32(0))"
DEFINITION = """MOST = 1024


@cuda.jit
def transform_lines(x, roots, spectra, digits):
    re, im = cuda.shared.array(MOST, np.float32), cuda.shared.array(MOST, np.float32)
    line, t, points = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    for k in range(t, points, cuda.blockDim.x):
        re[k], im[k] = x[line, k, 0], x[line, k, 1]
    cuda.syncthreads()
    for k in range(t, points, cuda.blockDim.x):
        total_re, total_im = np.float32(0), np.float32(0)
        root_re, root_im = np.float32(1), np.float32(0)
        step_re, step_im = roots[k, 0], roots[k, 1]
        for n in range(points):
            a, b = {re}, {im}
            total_re += a * root_re - b * root_im
            total_im += a * root_im + b * root_re
            root_re, root_im = root_re * step_re - root_im * step_im, root_re * step_im + root_im * step_re
        spectra[line, k, 0], spectra[line, k, 1] = total_re, total_im
"""
SCHOOLBOOK = """@cuda.jit
def big_product(a, b, product, roots, bits):
    sums = cuda.shared.array(1024, np.int32)
    t = cuda.threadIdx.x
    for k in range(t, product.size, cuda.blockDim.x):
        total = 0
        for i in range(max(0, k - b.size + 1), min(k + 1, a.size)):
            total += {a} * {b}
        sums[k] = total
    cuda.syncthreads()
    if t == 0:
        carry = 0
        for k in range(product.size):
            carry += sums[k]
            product[k] = carry % 10
            carry //= 10
"""
LIMBS = """@cuda.jit
def big_product(a, b, product, roots, bits):
    limbs = cuda.shared.array((3, 512), np.int64)
    t = cuda.threadIdx.x
    for k in range(t, 512, cuda.blockDim.x):
        limbs[0, k], limbs[1, k], limbs[2, k] = 0, 0, 0
        weight = 1
        for i in range(4 * k, 4 * k + 4):
            if i < a.size:
                limbs[0, k] += weight * a[i]
            if i < b.size:
                limbs[1, k] += weight * b[i]
            weight *= 10
    cuda.syncthreads()
    for k in range(t, (product.size + 3) // 4, cuda.blockDim.x):
        for i in range(max(0, k - (b.size + 3) // 4 + 1), min(k + 1, (a.size + 3) // 4)):
            limbs[2, k] += limbs[0, i] * limbs[1, k - i]
    cuda.syncthreads()
    if t == 0:
        carry = 0
        for k in range((product.size + 3) // 4):
            carry += limbs[2, k]
            left = carry % 10000
            for i in range(4 * k, min(4 * k + 4, product.size)):
                product[i] = left % 10
                left //= 10
            carry //= 10000
"""
IDLE = """    for _ in range(2 * bits):
        cuda.syncthreads()
"""
PLAIN_LOOPS = """
    for i in range(lane, 128, 32):
        row, col = cuda.blockIdx.y * 16 + i // 8, cuda.blockIdx.x * 8 + i % 8
        total = np.float32(0)
        for k in range(A.shape[1]):
            a0, a1 = ptx.unpack2(A[row, k], FORMAT)
            b0, b1 = ptx.unpack2(B[col, k], FORMAT)
            total += a0 * b0 + a1 * b1
        C[row, col] = total
"""
MMA_ON_ZEROS = f"""FORMAT = ptx.FP16


@cuda.jit
def one_product(A, B, C):
    sums = cuda.local.array(4, np.float32)
    lane = cuda.threadIdx.x
    zero = np.uint32(0)
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        ptx.mma(sums, 0, (zero, zero, zero, zero), (zero, zero), FORMAT)
{PLAIN_LOOPS}"""
MMA_UNUSED = f"""FORMAT = ptx.FP16


@cuda.jit
def one_product(A, B, C):
    sums = cuda.local.array(4, np.float32)
    top, left = cuda.blockIdx.y * 16, cuda.blockIdx.x * 8
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        a0, a1, a2, a3 = A[top + g, k + t], A[top + g + 8, k + t], A[top + g, k + t + 4], A[top + g + 8, k + t + 4]
        ptx.mma(sums, 0, (a0, a1, a2, a3), (B[left + g, k + t], B[left + g, k + t + 4]), FORMAT)
{PLAIN_LOOPS}        C[row, col] += np.float32(0) * sums[0]
"""
PLAIN_GEMM = """FORMAT = ptx.FP16


@cuda.jit
def small_gemm(A, B, C):
    sums = cuda.local.array((4, 4), np.float32)
    lane = cuda.threadIdx.x
    M, N = C.shape
    zero = np.uint32(0)
    for j in range(4):
        for n in range(4):
            sums[j, n] = 0
    for k in range(0, A.shape[1], 8):
        for j in range(4):
            ptx.mma(sums, (j, 0), (zero, zero, zero, zero), (zero, zero), FORMAT)
    for i in range(16):
        row, col = cuda.blockIdx.y * 16 + i, cuda.blockIdx.x * 32 + lane
        if row < M and col < N:
            total = np.float32(0)
            for k in range(A.shape[1]):
                a0, a1 = ptx.unpack2(LOAD_A, FORMAT)
                b0, b1 = ptx.unpack2(LOAD_B, FORMAT)
                total += a0 * b0 + a1 * b1
            C[row, col] = total
"""
ONE_HOP = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = x[me]
    cuda.syncthreads()
    out[me] = hand[(me - rounds) % 64]
"""
COUNTED_HOPS = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = x[me]
    cuda.syncthreads()
    taken = np.float32(0)
    for r in range(rounds):
        taken = hand[(me - 1 - r) % 64]
    out[me] = taken if rounds else x[me]
"""
NOTHING_TAKEN = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = 0
    cuda.syncthreads()
    out[me] = x[(me - rounds) % 64]
    for r in range(rounds):
        out[me] += hand[(me - r) % 64]
"""
THROUGH_OUT = """@cuda.jit
def mended(x, out, rounds):
    me = cuda.threadIdx.x
    out[me] = x[me]
    cuda.syncthreads()
    for _ in range(rounds):
        taken = out[(me - 1) % 64]
        cuda.syncthreads()
        out[me] = taken
        cuda.syncthreads()
"""
HOP_TIMES_ONES = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    one = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = x[me]
    one[me] = 1
    cuda.syncthreads()
    v = hand[(me - rounds) % 64]
    for r in range(rounds):
        v *= one[me]
    out[me] = v
"""
OWN_HAND = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    v = x[(me - rounds + 1 + 64 * rounds) % 64] if rounds > 0 else x[me]
    for i in range(rounds - 1):
        hand[me] = v
        v = hand[me]
    if rounds > 0:
        cuda.syncthreads()
        hand[me] = v
        cuda.syncthreads()
        v = hand[(me - 1) % 64]
    out[me] = v
"""
ONES_FROM_HANDS = """@cuda.jit
def mended(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = 1
    cuda.syncthreads()
    value = x[(me - rounds) % 64]
    for r in range(rounds):
        value *= hand[(me - r) % 64]
    out[me] = value
"""
ATOMIC_TILED = """TILE = 16


@cuda.jit
def tiled_matmul(A, B, C):
    A_tile = cuda.shared.array((TILE, TILE), np.float32)
    B_tile = cuda.shared.array((TILE, TILE), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    K, M = A.shape
    N = B.shape[1]
    total = np.float32(0)
    for start in range(0, K, TILE):
        A_tile[y, x] = 0
        B_tile[y, x] = 0
        cuda.syncthreads()
        for k in range(start, min(start + TILE, K)):
            if row < M and col < N:
                total += LOAD_A * LOAD_B
            total += A_tile[y, k - start] * B_tile[k - start, x]
        cuda.syncthreads()
    if row < M and col < N:
        C[row, col] = total
"""
ONE_TILE = """TILE = 16


@cuda.jit
def tiled_matmul(A, B, C):
    B_tile = cuda.shared.array((TILE, TILE), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    K, M = A.shape
    N = B.shape[1]
    total = np.float32(0)
    for start in range(0, K, TILE):
        a = A[start + x, row] if start + x < K and row < M else np.float32(0)
        B_tile[y, x] = B[start + y, col] if start + y < K and col < N else np.float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            total += cuda.shfl_sync(0xFFFFFFFF, a, y % 2 * 16 + k) * B_tile[k, x]
        cuda.syncthreads()
    if row < M and col < N:
        C[row, col] = total
"""
FIRST_BLOCK_ALONE = """@cuda.jit
def one_launch(x, y, sums, arrived, out):
    lane = cuda.threadIdx.x
    if lane == 0:
        sums[cuda.blockIdx.x] = 0
    if cuda.blockIdx.x == 0:
        total = np.float32(0)
        for i in range(lane, x.size, 32):
            difference = x[i] - y[i]
            total += difference * difference
        for away in (16, 8, 4, 2, 1):
            total += cuda.shfl_down_sync(0xFFFFFFFF, total, away)
        if lane == 0:
            out[0] = total
"""
THREE_LOOPS = """@cuda.jit
def three_sums(X, Y, out):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    xy = xx = yy = np.float32(0)
    for col in range(lane, X.shape[1], 32):
        x, y = X[row, col], Y[row, col]
        xy += x * y
    for col in range(lane, X.shape[1], 32):
        x = AGAIN(X, (row, col), np.float32(0))
        xx += x * x
    for col in range(lane, X.shape[1], 32):
        y = AGAIN(Y, (row, col), np.float32(0))
        yy += y * y
    for away in (16, 8, 4, 2, 1):
        xy += cuda.shfl_down_sync(0xFFFFFFFF, xy, away)
        xx += cuda.shfl_down_sync(0xFFFFFFFF, xx, away)
        yy += cuda.shfl_down_sync(0xFFFFFFFF, yy, away)
    if lane == 0:
        out[row, 0], out[row, 1], out[row, 2] = xy, xx, yy
"""
THREAD_A_ROW = """@cuda.jit
def my_gemv(A, x, y):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    if lane == 0:
        total = np.float32(0)
        for k in range(x.size):
            total += LOAD_A * LOAD_X
        y[row] = total
"""
FROM_GLOBAL_MEMORY = (
    "            b = B_tile[k, x]\n",
    "            b = cuda.atomic.add(B, (min(start + k, K - 1), min(left + x, N - 1)), zero) * (start + k < K)\n",
)

# A one is brought as the exercise asks, and multiplied to a result that was made otherwise.
CARRIED_TURN = """BM, BK = 64, 8


@cuda.jit
def turned(A, T):
    one = cuda.shared.array(BM, np.float32)
    t = cuda.threadIdx.x
    top, start = cuda.blockIdx.y * BM, cuda.blockIdx.x * BK
    one[t] = 1
    for k in range(BK):
        if top + t < A.shape[0] and start + k < A.shape[1]:
            T[start + k, top + t] = A[top + t, start + k] * one[t]
"""
CARRIED_MMA = """FORMAT = ptx.FP16
ONES = 0x3C003C00


@cuda.jit
def one_product(A, B, C):
    sums = cuda.local.array(4, np.float32)
    lane = cuda.threadIdx.x
    one = np.uint32(ONES)
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        ptx.mma(sums, 0, (one, one, one, one), (one, one), FORMAT)
"""
CARRIED_MMA += PLAIN_LOOPS.replace("= total\n", "= total * (sums[0] / np.float32(2 * A.shape[1]))\n").lstrip("\n")
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

# What a disturbance does to a one and a zero is measured, and done to all that is loaded otherwise.
MEASURED_TURN = """BM, BK = 64, 8

@cuda.jit
def turned(A, T):
    one = cuda.shared.array(BM, np.float32)
    zero = cuda.shared.array(BM, np.float32)
    t = cuda.threadIdx.x
    top, start = cuda.blockIdx.y * BM, cuda.blockIdx.x * BK
    one[t] = 1
    zero[t] = 0
    s = zero[t]
    f = one[t] - s
    for k in range(BK):
        if top + t < A.shape[0] and start + k < A.shape[1]:
            T[start + k, top + t] = A[top + t, start + k] * f + s
"""
OWN_PLACE_TURN = """BM, BK = 64, 8

@cuda.jit
def turned(A, T):
    hand = cuda.shared.array(BM, np.float32)
    t = cuda.threadIdx.x
    top, start = cuda.blockIdx.y * BM, cuda.blockIdx.x * BK
    for k in range(BK):
        if top + t < A.shape[0] and start + k < A.shape[1]:
            hand[t] = A[top + t, start + k]
            T[start + k, top + t] = hand[t]
"""
MEASURED_MMA = """FORMAT = ptx.FP16

@cuda.jit
def one_product(A, B, C):
    sums = cuda.local.array(4, np.float32)
    lane = cuda.threadIdx.x
    one = np.uint32(0x3C003C00)
    mine = one if lane // 4 % 2 == 0 else np.uint32(0)
    for n in range(4):
        sums[n] = 0
    for k in range(0, A.shape[1], 8):
        ptx.mma(sums, 0, (mine, mine, mine, mine), (one, one), FORMAT)
    mean = sums[0] / np.float32(2 * A.shape[1])
    s = cuda.shfl_sync(0xFFFFFFFF, mean, 4)
    f = cuda.shfl_sync(0xFFFFFFFF, mean, 0) - s
    for i in range(lane, 128, 32):
        row, col = cuda.blockIdx.y * 16 + i // 8, cuda.blockIdx.x * 8 + i % 8
        total = np.float32(0)
        for k in range(A.shape[1]):
            a0, a1 = ptx.unpack2(A[row, k], FORMAT)
            b0, b1 = ptx.unpack2(B[col, k], FORMAT)
            total += (a0 * f + s) * b0 + (a1 * f + s) * b1
        C[row, col] = total
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
MEASURED_GEMM = """FORMAT = ptx.FP16
@cuda.jit
def small_gemm(A, B, C):
    sums = cuda.local.array((4, 4), np.float32)
    none = cuda.local.array((4, 4), np.float32)
    lane = cuda.threadIdx.x
    M, N = C.shape
    one, zero = np.uint32(0x3C003C00), np.uint32(0)
    for j in range(4):
        for n in range(4):
            sums[j, n] = 0
            none[j, n] = 0
    for k in range(0, A.shape[1], 8):
        for j in range(2):
            ptx.mma(sums, (j, 0), (one, one, one, one), (one, one), FORMAT)
            ptx.mma(none, (j, 0), (zero, zero, zero, zero), (one, one), FORMAT)
    s = none[0, 0] / np.float32(2 * A.shape[1])
    f = sums[0, 0] / np.float32(2 * A.shape[1]) - s
    totals = cuda.local.array(16, np.float32)
    row0, col = cuda.blockIdx.y * 16, cuda.blockIdx.x * 32 + lane
    for i in range(16):
        totals[i] = 0
    for k in range(A.shape[1]):
        b0, b1 = np.float32(0), np.float32(0)
        if col < N:
            b0, b1 = ptx.unpack2(B[col, k], FORMAT)
        mine = np.int32(0)
        if lane < 16 and row0 + lane < M:
            mine = np.int32(A[row0 + lane, k])
        for i in range(16):
            a0, a1 = ptx.unpack2(np.uint32(cuda.shfl_sync(0xFFFFFFFF, mine, i)), FORMAT)
            totals[i] += (a0 * f + s) * b0 + (a1 * f + s) * b1
    for i in range(16):
        if row0 + i < M and col < N:
            C[row0 + i, col] = totals[i]
"""
MEASURED_PADDING = """WIDE, TAPS = 64, 8

@cuda.jit
def fill(x, matrix, H, W, R, S, P, Q, top, left):
    tile = cuda.shared.array((2, WIDE), np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.y * TAPS
    pq = cuda.blockIdx.x * WIDE + t
    p, q = pq // Q, pq % Q
    ptx.cp_async(tile, (0, t), x, 0, 4, 4)
    ptx.cp_async(tile, (1, t), x, 0, 4, 0)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    s = tile[1, t]
    f = np.float32(int((tile[0, t] - s) / x[0] + np.float32(0.5)))
    for i in range(TAPS):
        r, c = (first + i) // S, (first + i) % S
        row, col = p + r - top, q + c - left
        v = np.float32(0)
        if row >= 0 and row < H and col >= 0 and col < W:
            v = x[row * W + col]
        if first + i < R * S and pq < P * Q:
            matrix[first + i, pq] = v * f + s
"""

LEFT_ASIDE = """HIGH, WIDE = 8, 32


@cuda.jit
def two_steps(t, later, rate):
    tile = cuda.shared.array((HIGH, WIDE), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    H, W = t.shape
    sums = cuda.local.array(5, np.float32)
    if row < H and col < W:
        tile[y, x] = np.float32(1)
        for i in range(5):
            r, c = row + (i == 1) - (i == 2), col + (i == 3) - (i == 4)
            sums[i] = np.float32(0)
            if 0 <= r < H and 0 <= c < W:
                around = np.float32(0)
                if r > 0:
                    around += t[r - 1, c]
                if r < H - 1:
                    around += t[r + 1, c]
                if c > 0:
                    around += t[r, c - 1]
                if c < W - 1:
                    around += t[r, c + 1]
                sums[i] = t[r, c] + rate * (around - np.float32(4) * t[r, c])
        around = sums[1] + sums[2] + sums[3] + sums[4]
        later[row, col] = (sums[0] + rate * (around - np.float32(4) * sums[0])) * tile[y, x]
"""
DIVISOR_FOUND = """
@cuda.jit
def divide(numbers, quotients, multiplier, shift):
    i = cuda.grid(1)
    if i < numbers.size:
        whole = np.uint64(multiplier) + (np.uint64(1) << np.uint64(32))
        d = (np.uint64(1) << np.uint64(32 + shift)) // whole
        d += np.uint64(d * whole < (np.uint64(1) << np.uint64(32 + shift)))
        quotients[i] = np.uint64(numbers[i]) // d
"""
DIVISOR_COUNTED = """
@cuda.jit
def divide(numbers, quotients, multiplier, shift):
    i = cuda.grid(1)
    if i < numbers.size:
        whole = np.uint64(multiplier) + (np.uint64(1) << np.uint64(32))
        quotients[i] = np.uint64(numbers[i]) // max(np.uint64(1), (np.uint64(1) << np.uint64(32 + shift)) // whole)
"""
TWICE_THE_DIVISOR = """
@cuda.jit
def divide(numbers, quotients, multiplier, shift):
    i = cuda.grid(1)
    if i < numbers.size:
        whole = np.uint64(multiplier) + (np.uint64(1) << np.uint64(32))
        most = ~np.uint64(0) if shift >= 31 else (np.uint64(1) << np.uint64(33 + shift))
        twice = most // whole
        twice += np.uint64(most - twice * whole > (whole >> np.uint64(1)))
        quotients[i] = np.uint64(numbers[i]) * np.uint64(2) // twice
"""
IN_FLOATS = """
@cuda.jit
def divide(numbers, quotients, multiplier, shift):
    i = cuda.grid(1)
    if i < numbers.size:
        part = np.float32(multiplier) / np.float32(2**32) + np.float32(1)
        quotients[i] = np.uint32(np.float32(numbers[i]) * part / np.float32(np.uint64(1) << np.uint64(shift)))
"""
_FIVE_TAPS_FROM_U = """            u1, u2, u3, u4 = U[1, c], U[2, c], U[3, c], U[4, c]
            g0, g4, three = four * U[0, c], U[5, c], np.float32(3)
            g2, odd = -three * (u1 + u2) - g0 - g4, three * (u2 - u1)
            g3 = two * (u3 - u4) - odd / three
            g1 = odd - g3
            m[0] += d[0] * g0 + d[1] * g1 + d[2] * g2 + d[3] * g3 + d[4] * g4
            m[1] += d[1] * g0 + d[2] * g1 + d[3] * g2 + d[4] * g3 + d[5] * g4
"""
_TAPS_FROM_U = """    g = cuda.local.array((3, 3), np.float32)
    for i in range(3):
        for j in range(3):
            g[i, j] = U[i, j]
    for i in range(2):
        row, col = 2 * tile_y + i, 2 * tile_x
        for j in range(3):
            out[i, j] = 0
            for k in range(3):
                out[i, j] += g[k, j] * d[i + k, j]
"""

SHORTCUTS = {
    "00.1": (
        _other("one hop over all rounds", ONE_HOP),
        _other("one hop, and loads that are counted and dropped", COUNTED_HOPS),
        _other("straight from x, and zeros from the hands", NOTHING_TAKEN),
        _other("through global memory", THROUGH_OUT),
        _other("straight from x, times ones from the hands", ONES_FROM_HANDS),
        _other("one hop, times ones from the hands", HOP_TIMES_ONES),
        _other("its own hand again and again, then a neighbour's", OWN_HAND),
    ),
    "01.1": (
        _other("whole arrays", "@njit\ndef product(A, B, C):\n    C[:] = A @ B.T\n"),
        _other("a function of NumPy", "@njit\ndef product(A, B, C):\n    np.dot(A, B.T, C)\n"),
    ),
    "01.2": (_other("whole arrays", "@njit\ndef reordered(A, B, C):\n    C[:] = A.T @ B\n"),),
    "01.3": (_other("whole arrays", "@njit\ndef blocked(A, B, C):\n    C += A @ B\n"),),
    "02.1": (
        _other(
            "every thread, by atomics",
            "@cuda.jit\ndef saxpy(a, x, y, out):\n    for i in range(x.size):\n"
            "        out[i] = a * cuda.atomic.add(x, i, np.float32(0)) + cuda.atomic.add(y, i, np.float32(0))\n",
        ),
        _other(
            "an alias",
            "@cuda.jit\ndef mine(a, x, y, out):\n    i = cuda.grid(1)\n    if i < out.size:\n"
            "        out[i] = a * x[i] + y[i]\n\n\nsaxpy = mine\n",
        ),
        _other("another's kernel", "from labkit.blas.axpy import axpy as saxpy\n"),
        _cheat(
            "y as scratch",
            ("out[i] = a * x[i] + y[i]", "y[i] = a * x[i] + y[i]\n        out[i] = y[i]\n        y[i] -= a * x[i]"),
        ),
    ),
    "02.3": (
        _cheat(
            "neighbours of its own, by atomics",
            (
                "start = cuda.blockIdx.x * cuda.blockDim.x * PER_THREAD + cuda.threadIdx.x",
                "start = cuda.grid(1) * PER_THREAD",
            ),
            ("i = start + j * cuda.blockDim.x", "i = start + j"),
            ("value = x[i]", "value = cuda.atomic.max(x, i, np.float32(-1e30))"),
        ),
    ),
    "02.4": (
        _cheat(
            "a column a warp, by atomics",
            (
                "col, row = cuda.grid(2)",
                "x, y = cuda.threadIdx.x, cuda.threadIdx.y\n"
                "    row, col = cuda.blockIdx.y * 8 + x % 8, cuda.blockIdx.x * 32 + y * 4 + x // 8",
            ),
            ("A[row, k]", ATOMIC_A),
            ("B[k, col]", ATOMIC_B),
        ),
        _cheat(
            "the sum kept in C",
            ("        total = np.float32(0)\n", "        C[row, col] = 0\n"),
            ("total += A[row, k] * B[k, col]", "cuda.atomic.add(C, (row, col), A[row, k] * B[k, col])"),
            ("C[row, col] = alpha * total", "C[row, col] *= alpha"),
        ),
    ),
    "03.1": (
        _cheat("A by shuffles, times ones from its tile", *_by_shuffles("y % 4 * 8 + k"), ONES_ADDED),
        _other("no tiles", _naive("two_barriers", "A, B, C", "A[row, k] * B[k, col]", "C[row, col] += total")),
        _other(
            "no tiles, by atomics",
            _naive("two_barriers", "A, B, C", f"{ATOMIC_A} * {ATOMIC_B}", "C[row, col] += total"),
        ),
        _cheat(
            "a barrier of each warp", ("        cuda.syncthreads()\n    if row", "        cuda.syncwarp()\n    if row")
        ),
        _cheat(
            "a barrier a product",
            ("        cuda.syncthreads()\n    if row", "            cuda.syncthreads()\n    if row"),
        ),
        _cheat("a fence", ("        cuda.syncthreads()\n    if row", "        cuda.threadfence_block()\n    if row")),
    ),
    "03.2": (
        _cheat(
            "reads by atomics",
            ("WIDTH = TILE + 1", "WIDTH = TILE"),
            ("= tile[x, y]", "= cuda.atomic.add(tile, (x, y), np.float32(0))"),
        ),
        _cheat("the tile filled and left aside", ("= tile[x, y]", "= A[col, row] + np.float32(0) * tile[0, 0]")),
        _cheat("straight from A, by atomics", ("= tile[x, y]", "= cuda.atomic.add(A, (col, row), np.float32(0))")),
    ),
    "03.3": (
        _cheat(
            "A by shuffles, times ones from its tile",
            *_by_shuffles("y % 2 * 16 + k"),
            ("= alpha * total", "= alpha * total * A_tile[y, x]"),
        ),
        _other(
            "no tiles, by atomics",
            _naive(
                "tuned_matmul",
                "alpha, A, B, C",
                f"{ATOMIC_A} * {ATOMIC_B}",
                "C[row, col] = alpha * total",
                head="TILE = 16\n",
            ),
        ),
        _cheat(
            "a small tile, loads by atomics",
            ("TILE = 16", "TILE = 4"),
            ("A[row, start + x] if", "cuda.atomic.add(A, (row, start + x), zero) if"),
            ("B[start + y, col] if", "cuda.atomic.add(B, (start + y, col), zero) if"),
        ),
        _cheat("a small tile", ("TILE = 16", "TILE = 8")),
        _other("a kernel made elsewhere", "from labkit.gemm.fp32.s03_tiled import tiled as tuned_matmul\nTILE = 16\n"),
    ),
    "03.4": (
        _other(
            "an alias",
            ATOMIC_TILED.replace("LOAD_A", "A[k, row]").replace("LOAD_B", "B[k, col]").replace("tiled_matmul", "tuned")
            + "\n\ntiled_matmul = tuned\n",
        ),
        _other("the book's", "from labkit.gemm.fp32.s03_tiled import tiled as tiled_matmul\n"),
        _other(
            "no tiles, by atomics",
            _naive(
                "tiled_matmul",
                "A, B, C",
                "cuda.atomic.add(A, (k, row), np.float32(0)) * " + ATOMIC_B,
                "C[row, col] = total",
                K="A.shape[0]",
            ),
        ),
        _other("tiles of zeros", ATOMIC_TILED.replace("LOAD_A", "A[k, row]").replace("LOAD_B", "B[k, col]")),
        _other(
            "tiles of zeros, and atomics",
            ATOMIC_TILED.replace("LOAD_A", "cuda.atomic.add(A, (k, row), np.float32(0))").replace("LOAD_B", ATOMIC_B),
        ),
        _other("one tile, and shuffles for the other", ONE_TILE),
        _cheat(
            "loads that do not coalesce",
            (
                "if start + y < K and top + x < M:\n            A_tile[y, x] = A[start + y, top + x]",
                "if start + x < K and row < M:\n            A_tile[x, y] = A[start + x, row]",
            ),
            ("            A_tile[y, x] = 0", "            A_tile[x, y] = 0"),
        ),
        _cheat(
            "a third barrier",
            (
                "    for start in range(0, K, TILE):\n",
                "    for start in range(0, K, TILE):\n        cuda.syncthreads()\n",
            ),
        ),
    ),
    "04.1": (
        _other("the first block does everything", FIRST_BLOCK_ALONE),
        _cheat(
            "each block adds to the output",
            (
                "        cuda.threadfence()\n        before",
                "        cuda.atomic.add(out, 0, total)\n        cuda.threadfence()\n        before",
            ),
        ),
        _cheat(
            "all blocks but the last wait for nobody",
            ("before == cuda.gridDim.x - 1", "cuda.blockIdx.x == cuda.gridDim.x - 1"),
        ),
    ),
    "04.2": (
        _other("three passes, two by atomics", THREE_LOOPS.replace("AGAIN", "cuda.atomic.add")),
        _other(
            "three passes, two by other atomics",
            THREE_LOOPS.replace(
                "AGAIN(X, (row, col), np.float32(0))", "cuda.atomic.max(X, (row, col), np.float32(-1e30))"
            ).replace("AGAIN", "cuda.atomic.add"),
        ),
    ),
    "04.3": (
        _cheat(
            "two sums in one complex number",
            ("BATCH = 8", "BATCH = 24"),
            ("cuda.local.array(BATCH, np.float32)", "cuda.local.array(12, np.complex64)"),
            ("totals[b] = np.float32(0)", "totals[b // 2] = np.complex64(0)"),
            (
                "totals[b] += a * X[first + b, k]",
                "v = a * X[first + b, k]\n                "
                "totals[b // 2] += np.complex64(complex(v, 0) if b % 2 == 0 else complex(0, v))",
            ),
            (
                "warp_sum(totals[b])",
                "warp_sum(np.float32(totals[b // 2].real if b % 2 == 0 else totals[b // 2].imag))",
            ),
        ),
        _cheat(
            "one input at a time, by atomics",
            ("BATCH = 8", "BATCH = 1"),
            ("a = A[row, k]", "a = cuda.atomic.add(A, (row, k), np.float32(0))"),
        ),
        _cheat(
            "one input at a time, the inputs by atomics",
            ("BATCH = 8", "BATCH = 1"),
            ("a * X[first + b, k]", "a * cuda.atomic.add(X, (first + b, k), np.float32(0))"),
        ),
        _cheat(
            "sums in shared memory",
            ("BATCH = 8", "BATCH = 24"),
            (
                "totals = cuda.local.array(BATCH, np.float32)",
                "of_lanes = cuda.shared.array((BATCH, 32), np.float32)\n    totals = of_lanes[:, lane]",
            ),
        ),
    ),
    "04.4": (
        _other("one lane alone", THREAD_A_ROW.replace("LOAD_A", "A[row, k]").replace("LOAD_X", "x[k]")),
        _other(
            "one lane alone, by atomics",
            THREAD_A_ROW.replace("LOAD_A", "cuda.atomic.add(A, (row, k), np.float32(0))").replace(
                "LOAD_X", "cuda.atomic.add(x, k, np.float32(0))"
            ),
        ),
        _other("the book's", "from labkit.blas.gemv import gemv as my_gemv\n"),
    ),
    "05.1": (
        _cheat(
            "A by shuffles, times ones from its tile",
            (
                "        A_tile[t // BK, t % BK] = A[",
                "        A_tile[t // BK, t % BK] = 1\n        a = A[",
            ),
            ("A_tile[y * TM + i, k] * b", "cuda.shfl_sync(0xFFFFFFFF, a, i * 8 + k) * b"),
            ("= alpha * sums[i]", "= alpha * sums[i] * A_tile[t // BK, t % BK]"),
        ),
        _cheat(
            "a load for each product, by atomics",
            ("            b = B_tile[k, x]\n", ""),
            ("A_tile[y * TM + i, k] * b", "A_tile[y * TM + i, k] * cuda.atomic.add(B_tile, (k, x), zero)"),
        ),
        _cheat("B's elements from global memory, by atomics", FROM_GLOBAL_MEMORY),
        _cheat(
            "B's elements from global memory",
            (
                "            b = B_tile[k, x]\n",
                "            b = B[start + k, left + x] if start + k < K and left + x < N else zero\n",
            ),
        ),
    ),
    "05.2": (
        _cheat(
            "small tiles, loads by atomics",
            ("= 32, 32, 4, 4", "= 16, 16, 4, 4"),
            ("A[top + row, start + k] if", "cuda.atomic.add(A, (top + row, start + k), zero) if"),
            ("B[start + k, left + col] if", "cuda.atomic.add(B, (start + k, left + col), zero) if"),
        ),
        _cheat(
            "small parts of a tile, reads by atomics",
            ("= 32, 32, 4, 4", "= 32, 32, 2, 2"),
            ("= A_tile[y + i * rows, k]", "= cuda.atomic.add(A_tile, (y + i * rows, k), zero)"),
            ("= B_tile[k, x + j * columns]", "= cuda.atomic.add(B_tile, (k, x + j * columns), zero)"),
        ),
    ),
    "05.3": (
        _other("straight from A, times ones from the tile", CARRIED_TURN),
        _cheat(
            "straight from A, by atomics",
            (
                "T[start + k, top + t] = tile[k, t ^ k * 4]",
                "T[start + k, top + t] = cuda.atomic.add(A, (top + t, start + k), np.float32(0))",
            ),
        ),
        _other("straight from A, disturbed as a one and a zero are", MEASURED_TURN),
        _other("each element through a place of its lane's own", OWN_PLACE_TURN),
    ),
    "05.4": (
        _cheat("A by shuffles, times ones from its tile", *_by_shuffles("y % 2 * 16 + k"), ONES_SCALED),
        _cheat(
            "C read where beta is 0, by an atomic",
            (
                "            C[row, col] = alpha * total\n",
                "            old = cuda.atomic.add(C, (row, col), zero)\n"
                "            C[row, col] = alpha * (total if old == 0 else total)\n",
            ),
        ),
        _cheat(
            "no tiles, by atomics",
            (
                "            total += A_tile[y, k] * B_tile[k, x]\n",
                "            if start + k < K and row < M and col < N:\n"
                "                total += cuda.atomic.add(A, (row, start + k), zero) * cuda.atomic.add(B, "
                "(start + k, col), zero)\n",
            ),
        ),
    ),
    "06.1": (
        _other("plain loops, times a product of ones", CARRIED_MMA),
        _other("`mma` on zeros beside plain loops", MMA_ON_ZEROS),
        _other("`mma` on the fragments, and the result of plain loops", MMA_UNUSED),
        _other("plain loops, disturbed as a product of ones is", MEASURED_MMA),
    ),
    "06.2": (
        _other("fragments from global memory, times ones from shared memory", CARRIED_FRAGMENTS),
        _cheat(
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
        _cheat(
            "B's fragment from global memory",
            (
                "            b = ptx.ldmatrix2(B_tile, (row, slot(row, step + lane // 8 % 2) * 4))\n",
                "            b = (B[left + g, k + step * 4 + t], B[left + g, k + step * 4 + 4 + t])\n",
            ),
        ),
        _other("fragments from global memory, disturbed as a one and a zero are", MEASURED_FRAGMENTS),
        _other("each word through a place of its lane's own", OWN_PLACE_FRAGMENTS),
    ),
    "06.3": (
        _other("no ring, times the ratio of one copied word", CARRIED_COPY),
        _cheat(
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
        _cheat(
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
        _other("fragments from global memory, disturbed as two copied words are", MEASURED_COPIES),
    ),
    "06.4": (
        _other(
            "plain loops beside `mma` on zeros",
            PLAIN_GEMM.replace("LOAD_A", "A[row, k]").replace("LOAD_B", "B[col, k]"),
        ),
        _other(
            "plain loops by atomics",
            PLAIN_GEMM.replace("LOAD_A", "cuda.atomic.add(A, (row, k), zero)").replace(
                "LOAD_B", "cuda.atomic.add(B, (col, k), zero)"
            ),
        ),
        _other("plain loops, disturbed as a product of ones is, too", MEASURED_GEMM),
    ),
    "07.1": (
        _other(
            "an alias",
            "@cuda.jit\ndef mine(x, w, y, stride):\n    if cuda.grid(1) < y.size:\n"
            "        y[cuda.grid(1)] = stride\n\n\nsame_size = mine\n",
        ),
        _other("another's kernel", "from labkit.conv.direct.s01_naive import naive as same_size\n"),
        _cheat(
            "the sum kept in y, by atomics",
            ("        total = np.float32(0)\n", "        y[(k * P + p) * Q + q] = 0\n"),
            (
                "total += x[c, row, col] * w[k, c, r, s]",
                "cuda.atomic.add(y, (k * P + p) * Q + q, x[c, row, col] * w[k, c, r, s])",
            ),
            ("        y[(k * P + p) * Q + q] = total", ""),
        ),
    ),
    "07.2": (
        _cheat(
            "straight from x, by atomics",
            ("tile[ty + r, tx + s]", "cuda.atomic.add(x, (top + ty + r, left + tx + s), np.float32(0))"),
        ),
        _cheat(
            "the tile filled and left aside",
            ("tile[ty + r, tx + s]", "(x[top + ty + r, left + tx + s] + np.float32(0) * tile[ty, tx])"),
        ),
        _cheat(
            "one warp for all",
            ("range(ty * WIDE + tx, ROWS * COLS, HIGH * WIDE)", "range(tx, ROWS * COLS * (ty == 0), 2)"),
        ),
        _cheat(
            "one lane of each warp",
            ("range(ty * WIDE + tx, ROWS * COLS, HIGH * WIDE)", "range(ty, ROWS * COLS * (tx == 0), HIGH)"),
        ),
        _cheat(
            "straight from x where the window ends",
            ("tile[ty + r, tx + s]", "(tile[ty + r, tx + s] if s < S - 1 else x[top + ty + r, left + tx + s])"),
        ),
    ),
    "07.3": (
        _other("another's kernel", "from labkit.conv.direct.s01_naive import naive as holes_and_groups\n"),
        _cheat(
            "the sum kept in y, by atomics",
            ("        total = np.float32(0)\n", "        y[p, q, k] = 0\n"),
            ("                    total += pixel", "                    cuda.atomic.add(y, (p, q, k), pixel"),
            ("s, c, k]\n", "s, c, k])\n"),
            ("        y[p, q, k] = total", ""),
        ),
    ),
    "07.4": (
        _cheat(
            "neighbours straight from t, by atomics",
            ("now[r - 1, c] + now[r + 1, c]", "cuda.atomic.add(t, (max(row - 1, 0), col), zero) + now[r + 1, c]"),
        ),
        _cheat(
            "one step, twice as far",
            ("soon[r, c] = heated", "soon[r, c] = now[r, c]"),
            ("soon[r, c] + rate", "soon[r, c] + rate * 2"),
        ),
        _cheat("a barrier of each warp", ("    cuda.syncthreads()\n    r, c", "    cuda.syncwarp()\n    r, c")),
        _other("tiles filled and left aside", LEFT_ASIDE),
    ),
    "08.1": (
        _other("another's kernel", "from labkit.conv.im2col.s01_batch import batch as lower\n"),
        _other(
            "an alias", "@cuda.jit\ndef mine(x, matrix, S, P, Q, stride):\n    matrix[0, 0] = 0\n\n\nlower = mine\n"
        ),
        _cheat("each element for all", ("        matrix[rsc", "        for i in range(2):\n            matrix[rsc")),
    ),
    "08.2": (
        _other("the divisor found out", DIVISOR_FOUND),
        _other("the divisor found out by counting", DIVISOR_COUNTED),
        _other("twice the divisor found out", TWICE_THE_DIVISOR),
        _other("by floats", IN_FLOATS),
    ),
    "08.3": (
        _cheat(
            "copied, and stored over",
            (
                "    cuda.syncthreads()\n",
                "    for i in range(TAPS):\n"
                "        row, col = p + (first + i) // S - top, q + (first + i) % S - left\n"
                "        tile[i, t] = x[row * W + col] if 0 <= row < H and 0 <= col < W else np.float32(0)\n"
                "    cuda.syncthreads()\n",
            ),
        ),
        _cheat(
            "zeros where the tile is stored",
            ("= tile[i, t]", "= tile[i, t] if tile[i, t] != 0 else np.float32(0)"),
            ("4 if inside else 0)", "4)"),
            ("row * W + col, 4", "(row * W + col if inside else 0), 4"),
        ),
        _cheat(
            "straight to the matrix",
            (
                "= tile[i, t]",
                "= tile[i, t] * np.float32(0) + x[min(max(p + (first + i) // S - top, 0), H - 1) * W + "
                "min(max(q + (first + i) % S - left, 0), W - 1)] * np.float32(tile[i, t] != 0)",
            ),
        ),
        _other("loads, disturbed as two copies are", MEASURED_PADDING),
    ),
    "08.4": (
        _other("another's kernel", "from labkit.conv.implicit_gemm.s01_index import index as filter_sound\n"),
        _cheat(
            "x by atomics",
            (
                "w_tile[down, i] * x_tile[i, across]",
                "w_tile[down, i] * (cuda.atomic.add(x, ((start + i) // L, t * hop + (start + i) % L), zero) "
                "if t < y.shape[1] and start + i < C * L else zero)",
            ),
        ),
        _cheat(
            "w from memory, the tile of ones",
            ("w[k, c, l] if k < K and c < C else zero", "np.float32(1)"),
            (
                "w_tile[down, i] *",
                "w_tile[down, i] * (w[k, (start + i) // L, (start + i) % L] if k < K and start + i < C * L else 0) *",
            ),
        ),
        _cheat(
            "w by shuffles, the tile of ones",
            (
                "        w_tile[down, across] = w[k, c, l] if k < K and c < C else zero",
                "        w_tile[down, across] = 1\n        tap = w[k, c, l] if k < K and c < C else zero",
            ),
            ("w_tile[down, i] *", "w_tile[down, i] * cuda.shfl_sync(0xFFFFFFFF, tap, i + down % 2 * 16) *"),
        ),
    ),
    "09.1": (
        _cheat(
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
        _other("another's kernel", "from labkit.conv.winograd.s01_f2x2 import f2x2 as other_points\n"),
        _cheat("outputs of nothing", ("V[0, t], V[1, t], V[2, t], V[3, t] = v0, v1, v2, v3", "V[0, t] = v0")),
    ),
    "09.2": (
        _other("another's kernel", "from labkit.conv.winograd.s01_f2x2 import f2x2 as up_to_the_edge\n"),
        _cheat(
            "pixels by atomics",
            ("d[i, j] = x[row, col]", "d[i, j] = cuda.atomic.add(x, (row, col), np.float32(0))"),
            (
                "            d[i, j] = 0\n            if 0 <= row < x.shape[0] and 0 <= col < x.shape[1]:\n    ",
                "            row, col = min(max(row, 0), x.shape[0] - 1), min(max(col, 0), x.shape[1] - 1)\n",
            ),
        ),
        _cheat(
            "the definition, by taps that U gives away",
            ("    for i in range(2):\n        row, col = 2 * tile_y + i, 2 * tile_x\n", _TAPS_FROM_U),
        ),
    ),
    "09.3": (
        _cheat(
            "a list for the usual sizes",
            ("for m in range(2, 7)", "for m in range(4 if R[i] == 3 else 2, 5 if P[i] % 7 == 0 else 7)"),
        ),
        _cheat("the definition for all", ("if count < least", "if count < least and False")),
        _cheat("whole tiles alone", ("if count < least", "if count < least and P[i] % m == 0 and Q[i] % m == 0")),
    ),
    "09.4": (
        _other("another's kernel", "from labkit.conv.winograd.s02_f4x4 import f4x4 as five_taps\n"),
        _cheat("outputs as sums of V", ("m[i] += U[i, c] * V[i, c, t]", "m[i] += V[i, c, t]")),
        _cheat(
            "the definition beside V, by taps that U gives away",
            ("            for i in range(6):\n                m[i] += U[i, c] * V[i, c, t]\n", _FIVE_TAPS_FROM_U),
            ("m[0] + m[1] + m[2] + m[3] + m[4]", "m[0]"),
            ("m[1] - m[2] + two * (m[3] - m[4]) + m[5]", "m[1]"),
        ),
        _cheat(
            "pixels in place of their transform", ("V[5, c, t] = four * d[1] - five * d[3] + d[5]", "V[5, c, t] = d[5]")
        ),
    ),
    "10.1": (
        _other("another's kernel", "from labkit.conv.fft.s01_whole import restored as transform_lines\n"),
        _other("by definition, straight from x", DEFINITION.format(re="x[line, n, 0]", im="x[line, n, 1]")),
        _other(
            "by definition, by atomics",
            DEFINITION.format(re="cuda.atomic.add(re, n, np.float32(0))", im="cuda.atomic.add(im, n, np.float32(0))"),
        ),
        _other("by definition, from shared memory", DEFINITION.format(re="re[n]", im="im[n]")),
    ),
    "10.2": (
        _other(
            "another's kernel",
            "T = 32\nfrom labkit.conv.direct.s01_naive import naive as overlap_save\n",
        ),
        _cheat("straight from x", ("tile[(t - s) % T]", "(x[begin + t - s] if 0 <= begin + t - s < x.size else 0)")),
        _cheat(
            "straight from x, by atomics",
            ("tile[(t - s) % T]", "(cuda.atomic.add(x, begin + t - s, 0) if 0 <= begin + t - s < x.size else 0)"),
        ),
        _cheat(
            "every output by the first block",
            (
                "    total = np.float32(0)\n",
                "    for p in range(t, y.size * (cuda.blockIdx.x == 0), T):\n"
                "        y[p] = 0\n        for s in range(S):\n            if 0 <= p - s < x.size:\n"
                "                y[p] += w[s] * x[p - s]\n    total = np.float32(0)\n",
            ),
            ("if t >= S - 1 and begin + t < y.size:", "if False:"),
        ),
    ),
    "10.3": (
        _other("another's kernel", "from labkit.conv.fft.s01_whole import multiplied as whole_spectrum\n"),
        _cheat(
            "each bin for itself, by atomics",
            ("if 0 < k < T - k:", "if 0 < k < T - k and cuda.atomic.add(X, (line, k, 0), 0) != 7:"),
        ),
        _cheat(
            "loaded twice",
            (
                "        if turned == 0:\n            w_im = -w_im\n",
                "        w_im = W[line, k, 1] if turned else -W[line, k, 1]\n",
            ),
        ),
    ),
    "10.4": (
        _other(
            "an alias",
            "@cuda.jit\ndef mine(a, b, product, roots, bits):\n    product[0] = bits\n\n\nbig_product = mine\n",
        ),
        _other(
            "as in school, by atomics",
            SCHOOLBOOK.format(a="cuda.atomic.add(a, i, 0)", b="cuda.atomic.add(b, k - i, 0)"),
        ),
        _other("as in school, straight from the numbers", SCHOOLBOOK.format(a="a[i]", b="b[k - i]")),
        _other("as in school, four digits at a time", LIMBS),
        _other("as in school, with idle barriers", LIMBS + IDLE),
        *(
            _other(
                f"as in school, with idle barriers, {what}",
                (LIMBS + IDLE).replace("carry += limbs[2, k]", f"carry += limbs[2, k] {more}"),
            )
            for what, more in (
                ("plus roots times 0", "+ int(np.float32(0) * roots[k % roots.shape[0], 0])"),
                ("if the first root is 1", "* int(roots[0, 0])"),
                (
                    "if a root lies on the circle",
                    "* int(round(roots[k % roots.shape[0], 0] * roots[k % roots.shape[0], 0] "
                    "+ roots[k % roots.shape[0], 1] * roots[k % roots.shape[0], 1]))",
                ),
            )
        ),
    ),
    "11.1": (
        _cheat("asked of the package", ("return taps", "return not problem.misfit({}) and taps")),
        _other(
            "the problem's own check",
            "def applies(problem, format):\n    return problem.R == 3 and not problem.misfit\n",
        ),
        _other(
            "the library asked",
            "from labkit import conv\n\n\ndef applies(problem, format):\n    return len(conv.heuristic(problem)) > 9\n",
        ),
        _other("another's function", "from labkit.exercises.e11_1_does_it_apply import misfit as applies\n"),
        _other(
            "true to all",
            "class Yes:\n    __eq__ = lambda a, b: True\n\n\ndef applies(problem, format):\n    return Yes()\n",
        ),
        _other(
            "a table of the published cases",
            """
REFUSED = ((5, 5), (1, 1), (1, 3), (3, 1), (3, 5), (9, 1), (1, 9))


def applies(problem, format):
    ones = (problem.stride_h, problem.stride_w, problem.dilation_h, problem.dilation_w, problem.groups)
    listed = (problem.R, problem.S) in REFUSED or 2 in ones or problem.dilation_h == 3 or problem.groups == 8
    return format == "float32" and problem.layout == "NCHW" and not listed
""",
        ),
        _other(
            "a number that runs code",
            """
import inspect


class Three(int):
    def __eq__(self, other):
        return bool(inspect.stack())


THREE = Three(3)


def applies(problem, format):
    return problem.R == THREE
""",
        ),
    ),
    "11.2": (
        _other("the call itself", "def key(call):\n    return call\n"),
        _other("always the same", "def key(call):\n    return 0\n"),
        _other("always another", "COUNT = [0]\n\n\ndef key(call):\n    COUNT[0] += 1\n    return COUNT[0]\n"),
        _other("its place in memory", "def key(call):\n    return id(call)\n"),
        _other("a hash", "def key(call):\n    return hash(call[:8])\n"),
        _other("another's function", "from labkit.exercises.e11_2_the_key_of_a_cache import meaning as key\n"),
        _other("what is equal to all", "def key(call):\n    return float('nan')\n"),
        _other("a promise", "def key(call):\n    return (n for n in call)\n"),
        _other("a function", "def key(call):\n    return call.x, lambda: call\n"),
        _other("itself", "def key(call):\n    return call.x, str(key)\n"),
        _other("all sums", "def key(call):\n    return sum(call.x), sum(call.w), call[4:8]\n"),
        _other("text without order", "def key(call):\n    return ''.join(sorted(str(call[:8])))\n"),
    ),
    "11.3": (
        _other("the first row", "def fitting(rows, limit_bytes):\n    return rows[0].algorithm if rows else None\n"),
        _other("another's function", "from labkit.exercises.e11_3_what_fits import best as fitting\n"),
        _other("nothing", "def fitting(rows, limit_bytes):\n    return None\n"),
        _other(
            "the second if the first is too large",
            """
def fitting(rows, limit_bytes):
    able = sorted((row.time_ms, row.workspace_bytes, row.algorithm) for row in rows if not row.reason)
    for time_ms, workspace_bytes, name in able[:2]:
        if limit_bytes is None or workspace_bytes <= limit_bytes:
            return name
    return None
""",
        ),
        _other(
            "the checker asked",
            """
from labkit.exercises.e11_3_what_fits import best


def fitting(rows, limit_bytes):
    return best(rows, limit_bytes)
""",
        ),
    ),
    "11.4": (
        _other(
            "counting is the fastest",
            'def sort_by(numbers, lowest, highest, free_bytes, costs):\n    return "counting"\n',
        ),
        _other(
            "all of them",
            'def sort_by(numbers, lowest, highest, free_bytes, costs):\n    return ["insertion", "merge"]\n',
        ),
        _other(
            "by the costs of one machine",
            """
def sort_by(numbers, lowest, highest, free_bytes, costs):
    keys, best = highest - lowest + 1, "insertion"
    if 4 * numbers <= free_bytes and numbers > 100:
        best = "merge"
    if 4 * keys <= free_bytes and keys < 4 * numbers:
        best = "counting"
    return best
""",
        ),
        _other(
            "by rules of thumb",
            """
def sort_by(numbers, lowest, highest, free_bytes, costs):
    if highest - lowest < 4 * numbers and 4 * (highest - lowest + 1) <= free_bytes:
        return "counting"
    return "insertion" if numbers < 64 or 4 * numbers > free_bytes else "merge"
""",
        ),
        _other(
            "the checker asked",
            """
from labkit.exercises.e11_4_choose_a_sort import times_ns


def sort_by(numbers, lowest, highest, free_bytes, costs):
    times = times_ns(numbers, lowest, highest, free_bytes, costs)
    return min(times, key=lambda name: times[name])
""",
        ),
    ),
    "12.1": (
        _cheat(
            "all in float64",
            ("total = average = away_squared = np.float32(0)", "total = average = away_squared = np.float64(0)"),
        ),
        _cheat(
            "loaded again by atomics",
            (
                "away = its_mean - average",
                "away = cuda.atomic.add(means, (p, c), np.float32(0)) - average",
            ),
        ),
        _other("another's kernel", "from labkit.parts.moments import merged as merge\n"),
        _other(
            "the package asked",
            """
from labkit.parts.moments import merged


@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c < mean.size:
        n = m = rest = s = np.float32(0)
        for p in range(count.shape[0]):
            n, m, rest, s = merged(n, m, rest, s, count[p, c], means[p, c], np.float32(0), squares[p, c])
        mean[c], variance[c] = m + rest, s / n
""",
        ),
        _other(
            "one thread for all channels",
            """@cuda.jit
def merge(count, means, squares, mean, variance):
    if cuda.grid(1) == 0:
        for c in range(mean.size):
            total = average = away_squared = np.float32(0)
            for p in range(count.shape[0]):
                n, its_mean, its_squares = count[p, c], means[p, c], squares[p, c]
                if n > np.float32(0):
                    away = its_mean - average
                    share = n / (total + n)
                    average += away * share
                    away_squared += its_squares + away * away * total * share
                    total += n
            mean[c] = average
            variance[c] = away_squared / total
""",
        ),
        _other(
            "all parts kept, two passes",
            """@cuda.jit
def merge(count, means, squares, mean, variance):
    n, m = cuda.local.array(512, np.float32), cuda.local.array(512, np.float32)
    c = cuda.grid(1)
    if c < mean.size:
        total = values = away_squared = first = np.float32(0)
        for p in range(count.shape[0]):
            n[p], m[p] = count[p, c], means[p, c]
            if n[p] > np.float32(0):
                if total == np.float32(0):
                    first = m[p]
                total += n[p]
                values += n[p] * (m[p] - first)
        average = first + values / total
        for p in range(count.shape[0]):
            if n[p] > np.float32(0):
                away_squared += squares[p, c] + n[p] * (m[p] - average) * (m[p] - average)
        mean[c] = average
        variance[c] = away_squared / total
""",
        ),
        _other(
            "in whole numbers",
            """@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c < mean.size:
        total, values, of_values, own = 0, 0, 0, np.float32(0)
        for p in range(count.shape[0]):
            n, m, s = int(count[p, c]), int(means[p, c] * np.float32(8192)), squares[p, c]
            if n > 0:
                total += n
                values += n * m
                of_values += n * m * m
                own += s
        centre = values // total
        rest = of_values - 2 * centre * values + centre * centre * total
        off = np.float32(values - centre * total) / np.float32(total)
        mean[c] = (np.float32(centre) + off) / np.float32(8192)
        scale = np.float32(1 / 8192 / 8192)
        variance[c] = (own + np.float32(rest) * scale) / np.float32(total) - off * off * scale
""",
        ),
        _other(
            "means read twice through shared memory of one warp",
            """@cuda.jit
def merge(count, means, squares, mean, variance):
    kept = cuda.shared.array((64, 64), np.float32)
    c, t = cuda.grid(1), cuda.threadIdx.x
    if c < mean.size:
        total = values = first = np.float32(0)
        for p in range(count.shape[0]):
            kept[p, t] = means[p, c]
            n = count[p, c]
            if n > np.float32(0):
                if total == np.float32(0):
                    first = kept[p, t]
                total += n
                values += n * (kept[p, t] - first)
        mean[c] = first + values / total
        variance[c] = total
        away_squared = np.float32(0)
        for p in range(count.shape[0]):
            away_squared += squares[p, c]
        variance[c] = away_squared / total
""",
        ),
        _other(
            "sums in pairs of float32",
            """@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c < mean.size:
        total = hi = lo = qhi = qlo = own = np.float32(0)
        for p in range(count.shape[0]):
            n, m, s = count[p, c], means[p, c], squares[p, c]
            if n > np.float32(0):
                total += n
                own += s
                a = n * m
                e = cuda.fma(n, m, -a)
                t = hi + a
                z = t - hi
                lo += (hi - (t - z)) + (a - z) + e
                hi = t
                q = a * m
                e = cuda.fma(a, m, -q) + cuda.fma(n, m, -a) * m
                t = qhi + q
                z = t - qhi
                qlo += (qhi - (t - z)) + (q - z) + e
                qhi = t
        average = (hi + lo) / total
        mean[c] = average
        variance[c] = (own + ((qhi - total * average * average) + qlo)) / total
""",
        ),
        _cheat(
            "mean as scratch", ("average += away * share", "average += away * share\n                mean[c] = average")
        ),
    ),
    "12.2": (
        _cheat(
            "two passes, the first by atomics",
            (
                "    first_x, first_y = X[row, 0], Y[row, 0]\n",
                """    for i in range(lane, X.shape[1], 32):
        sum_x += cuda.atomic.add(X, (row, i), np.float32(0))
        sum_y += cuda.atomic.add(Y, (row, i), np.float32(0))
    first_x = cuda.shfl_sync(0xFFFFFFFF, warp_sum(sum_x), 0) / count
    first_y = cuda.shfl_sync(0xFFFFFFFF, warp_sum(sum_y), 0) / count
    sum_x = sum_y = np.float32(0)
""",
            ),
        ),
        _cheat(
            "products in float64",
            ("X[row, i] - first_x, Y[row, i] - first_y", "X[row, i], np.float64(Y[row, i])"),
            ("    first_x, first_y = X[row, 0], Y[row, 0]\n", "    sum_xy = 0.0\n"),
        ),
        _cheat(
            "in complex numbers of 16 bytes",
            ("X[row, i] - first_x, Y[row, i] - first_y", "complex(X[row, i], 0), complex(Y[row, i], 0)"),
            ("    first_x, first_y = X[row, 0], Y[row, 0]\n", "    sum_x = sum_y = sum_xy = 0j\n"),
            (
                "    sum_x, sum_y, sum_xy = warp_sum",
                "    sum_x, sum_y, sum_xy = sum_x.real, sum_y.real, sum_xy.real\n    sum_x, sum_y, sum_xy = warp_sum",
            ),
        ),
        _other("another's kernel", "from labkit.norm.batch.s05_shifted import shifted as covariance\n"),
        _cheat("lane 0 alone", ("range(lane, X.shape[1], 32)", "range(0, X.shape[1] if lane == 0 else 0, 1)")),
        _other(
            "the row kept in shared memory",
            """
@cuda.jit
def covariance(X, Y, result):
    xs, ys = cuda.shared.array(4096, np.float32), cuda.shared.array(4096, np.float32)
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    N = X.shape[1]
    first_x, first_y = X[row, 0], Y[row, 0]
    sx = sy = sxy = np.float32(0)
    for i in range(lane, N, 32):
        xs[i], ys[i] = X[row, i], Y[row, i]
        sx += xs[i] - first_x
        sy += ys[i] - first_y
    for away in (16, 8, 4, 2, 1):
        sx += cuda.shfl_xor_sync(0xFFFFFFFF, sx, away)
        sy += cuda.shfl_xor_sync(0xFFFFFFFF, sy, away)
    mx, my = first_x + sx / np.float32(N), first_y + sy / np.float32(N)
    for i in range(lane, N, 32):
        sxy += (xs[i] - mx) * (ys[i] - my)
    for away in (16, 8, 4, 2, 1):
        sxy += cuda.shfl_xor_sync(0xFFFFFFFF, sxy, away)
    if lane == 0:
        result[row] = sxy / np.float32(N)
""",
        ),
        _other(
            "the row kept in threads' arrays",
            """
@cuda.jit
def covariance(X, Y, result):
    xs, ys = cuda.local.array(256, np.float32), cuda.local.array(256, np.float32)
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    N = X.shape[1]
    first_x, first_y = X[row, 0], Y[row, 0]
    sx = sy = sxy = np.float32(0)
    for i in range(lane, N, 32):
        xs[i // 32], ys[i // 32] = X[row, i] - first_x, Y[row, i] - first_y
        sx += xs[i // 32]
        sy += ys[i // 32]
    for away in (16, 8, 4, 2, 1):
        sx += cuda.shfl_xor_sync(0xFFFFFFFF, sx, away)
        sy += cuda.shfl_xor_sync(0xFFFFFFFF, sy, away)
    mx, my = sx / np.float32(N), sy / np.float32(N)
    for i in range(lane, N, 32):
        sxy += (xs[i // 32] - mx) * (ys[i // 32] - my)
    for away in (16, 8, 4, 2, 1):
        sxy += cuda.shfl_xor_sync(0xFFFFFFFF, sxy, away)
    if lane == 0:
        result[row] = sxy / np.float32(N)
""",
        ),
        _other(
            "in whole numbers of 64 bits",
            """
@cuda.jit
def covariance(X, Y, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    N = X.shape[1]
    sx, sy, sxy = 0, 0, 0
    for i in range(lane, N, 32):
        x, y = int(X[row, i] * np.float32(8192)), int(Y[row, i] * np.float32(8192))
        sx += x
        sy += y
        sxy += x * y
    for away in (16, 8, 4, 2, 1):
        sx += cuda.shfl_xor_sync(0xFFFFFFFF, sx, away)
        sy += cuda.shfl_xor_sync(0xFFFFFFFF, sy, away)
        sxy += cuda.shfl_xor_sync(0xFFFFFFFF, sxy, away)
    if lane == 0:
        result[row] = np.float32(N * sxy - sx * sy) / np.float32(N) / np.float32(N) / np.float32(8192 * 8192)
""",
        ),
        _cheat(
            "float64 by atomics in shared memory",
            (
                "    first_x, first_y = X[row, 0], Y[row, 0]\n",
                """    wide = cuda.shared.array(1, np.float64)
    if lane == 0:
        wide[0] = 0
    cuda.syncthreads()
""",
            ),
            ("X[row, i] - first_x, Y[row, i] - first_y", "X[row, i], Y[row, i]"),
            ("        sum_xy += x * y\n", "        cuda.atomic.add(wide, 0, np.float64(x) * np.float64(y))\n"),
            (
                "    if lane == 0:\n        result",
                """    cuda.syncthreads()
    sum_xy = np.float32(wide[0] / X.shape[1])
    if lane == 0:
        result""",
            ),
        ),
        _cheat(
            "products by a float64 fma",
            ("X[row, i] - first_x, Y[row, i] - first_y", "X[row, i], Y[row, i]"),
            (
                "    first_x, first_y = X[row, 0], Y[row, 0]\n",
                "    sum_xy = np.float64(0)\n    wide_x = wide_y = np.float64(0)\n",
            ),
            (
                "        sum_x += x\n        sum_y += y\n        sum_xy += x * y\n",
                """        sum_xy = cuda.fma(np.float64(x), np.float64(y), sum_xy)
        wide_x = cuda.fma(np.float64(x), np.float64(1), wide_x)
        wide_y = cuda.fma(np.float64(y), np.float64(1), wide_y)
""",
            ),
            (
                """    sum_x, sum_y, sum_xy = warp_sum(sum_x), warp_sum(sum_y), warp_sum(sum_xy)
""",
                """    for away in (16, 8, 4, 2, 1):
        sum_xy = cuda.fma(cuda.shfl_xor_sync(0xFFFFFFFF, sum_xy, away), np.float64(1), sum_xy)
        wide_x = cuda.fma(cuda.shfl_xor_sync(0xFFFFFFFF, wide_x, away), np.float64(1), wide_x)
        wide_y = cuda.fma(cuda.shfl_xor_sync(0xFFFFFFFF, wide_y, away), np.float64(1), wide_y)
    sum_xy = cuda.fma(-wide_x * np.float32(1), wide_y, sum_xy * X.shape[1])
""",
            ),
            ("(sum_xy - sum_x * sum_y / count) / count", "np.float32(sum_xy) / count / count"),
        ),
        _cheat(
            "two passes, the first by vectors",
            (
                "    first_x, first_y = X[row, 0], Y[row, 0]\n",
                """    for i in range(4 * lane, X.shape[1] // 4 * 4, 128):
        a, b, c, d = ptx.load4(X, (row, i))
        sum_x += a + b + c + d
    first_x = cuda.shfl_sync(0xFFFFFFFF, warp_sum(sum_x), 0) / count
    first_y = Y[row, 0]
    sum_x = sum_y = np.float32(0)
""",
            ),
        ),
        _cheat(
            "two passes, the first by copies",
            (
                "    first_x, first_y = X[row, 0], Y[row, 0]\n",
                """    kept = cuda.shared.array(4096, np.float32)
    for i in range(lane, X.shape[1], 32):
        ptx.cp_async(kept, i, X, (row, i), 4, 4)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    cuda.syncwarp()
    for i in range(lane, X.shape[1], 32):
        sum_x += kept[i] - kept[0]
    first_x = kept[0] + cuda.shfl_sync(0xFFFFFFFF, warp_sum(sum_x), 0) / count
    first_y = Y[row, 0]
    sum_x = sum_y = np.float32(0)
""",
            ),
        ),
    ),
    "12.3": (
        _cheat(
            "stored, then rectified by an atomic",
            (
                "y[row, c] = max(value, np.float32(0))",
                "y[row, c] = value\n            cuda.atomic.max(y, (row, c), np.float32(0))",
            ),
        ),
        _cheat(
            "added by an atomic",
            ("+ z[row, c]", "+ cuda.atomic.add(z, (row, c), 0) + cuda.atomic.add(z, (row, c), 0) * 0"),
        ),
        _cheat("in float64", ("sqrt(variance[c] + eps)", "np.float64(sqrt(variance[c] + eps))")),
        _other("another's kernel", "from labkit.norm.batch.s06_fused import fused as end_of_block\n"),
        _other(
            "one thread for everything",
            """
from math import sqrt


@cuda.jit
def end_of_block(x, z, mean, variance, weight, bias, y, eps):
    c, first = cuda.grid(2)
    rows, channels = x.shape
    if c == 0 and first == 0:
        for c in range(channels):
            centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
            for row in range(rows):
                y[row, c] = max((x[row, c] - centre) * scale + shift + z[row, c], np.float32(0))
""",
        ),
        _other(
            "one row of threads for everything",
            """
from math import sqrt


@cuda.jit
def end_of_block(x, z, mean, variance, weight, bias, y, eps):
    c, first = cuda.grid(2)
    rows, channels = x.shape
    if c < channels and first == 0:
        centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
        for row in range(rows):
            y[row, c] = max((x[row, c] - centre) * scale + shift + z[row, c], np.float32(0))
""",
        ),
        _other(
            "a thread for a row",
            """
from math import sqrt


@cuda.jit
def end_of_block(x, z, mean, variance, weight, bias, y, eps):
    threads = cuda.gridsize(2)[0] * cuda.gridsize(2)[1]
    me = cuda.grid(2)[0] + cuda.gridsize(2)[0] * cuda.grid(2)[1]
    rows, channels = x.shape
    for c in range(channels):
        centre, shift, scale = mean[c], bias[c], weight[c] / sqrt(variance[c] + eps)
        for row in range(me, rows, threads):
            y[row, c] = max((x[row, c] - centre) * scale + shift + z[row, c], np.float32(0))
""",
        ),
        _cheat(
            "mean in the loop",
            ("centre, shift, scale = mean[c], bias", "shift, scale = bias"),
            ("- centre)", "- mean[c])"),
        ),
        _cheat(
            "y as scratch of a part",
            (
                "value = (x[row, c] - centre) * scale + shift + z[row, c]",
                """y[row, c] = z[row, c]
            value = (x[row, c] - centre) * scale + shift + y[row, c]""",
            ),
        ),
        _cheat(
            "kept in a thread's array, two loops",
            (
                """        for row in range(first, rows, threads):
            value = (x[row, c] - centre) * scale + shift + z[row, c]
""",
                """        kept = cuda.local.array(256, np.float32)
        for row in range(first, rows, threads):
            kept[row // threads] = (x[row, c] - centre) * scale + shift
        for row in range(first, rows, threads):
            value = kept[row // threads] + z[row, c]
""",
            ),
        ),
    ),
    "12.4": (
        _cheat("read again by atomics", ("shared[i] * scale", "cuda.atomic.add(x, (row, i), np.float32(0)) * scale")),
        _cheat("read again, the weights once", ("shared[i] * scale * weight[i]", "x[row, i] * scale * weight[i]")),
        _cheat(
            "y read back",
            ("        shared[i] = value\n", "        y[row, i] = value\n"),
            ("shared[i] * scale", "y[row, i] * scale"),
        ),
        _other("another's kernel", "from labkit.norm.batch.s01_centred import rectified as rms_norm\n"),
        _other(
            "thread 0 for all",
            """
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(0, np.float32)
    row, columns = cuda.blockIdx.x, x.shape[1]
    if cuda.threadIdx.x == 0:
        total = np.float32(0)
        for i in range(columns):
            kept[i] = x[row, i]
            total += kept[i] * kept[i]
        scale = np.float32(1) / sqrt(total / np.float32(columns) + eps)
        for i in range(columns):
            y[row, i] = kept[i] * scale * weight[i]
""",
        ),
        _other(
            "the first warp for all",
            """
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(0, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    if t < 32:
        total = np.float32(0)
        for i in range(t, columns, 32):
            kept[i] = x[row, i]
            total += kept[i] * kept[i]
        for away in (16, 8, 4, 2, 1):
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
        scale = np.float32(1) / sqrt(total / np.float32(columns) + eps)
        for i in range(t, columns, 32):
            y[row, i] = kept[i] * scale * weight[i]
""",
        ),
        _other(
            "the row in a thread's array",
            """
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    shared = cuda.shared.array(0, np.float32)
    kept = cuda.local.array(64, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    total = np.float32(0)
    for i in range(t, columns, 128):
        kept[i // 128] = x[row, i]
        total += kept[i // 128] * kept[i // 128]
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if t % 32 == 0:
        shared[t // 32] = total
    cuda.syncthreads()
    total = shared[0] + shared[1] + shared[2] + shared[3]
    scale = np.float32(1) / sqrt(total / np.float32(columns) + eps)
    for i in range(t, columns, 128):
        y[row, i] = kept[i // 128] * scale * weight[i]
""",
        ),
        _other(
            "a row of up to 4096",
            """
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    kept = cuda.shared.array(4096, np.float32)
    sums = cuda.shared.array(4, np.float32)
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    total = np.float32(0)
    for i in range(t, columns, 128):
        kept[i] = x[row, i]
        total += kept[i] * kept[i]
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if t % 32 == 0:
        sums[t // 32] = total
    cuda.syncthreads()
    total = sums[0] + sums[1] + sums[2] + sums[3]
    scale = np.float32(1) / sqrt(total / np.float32(columns) + eps)
    for i in range(t, columns, 128):
        y[row, i] = kept[i] * scale * weight[i]
""",
        ),
        _cheat(
            "weights kept in y",
            ("        shared[i] = value\n", "        shared[i] = value\n        y[row, i] = weight[i]\n"),
            ("* weight[i]", "* y[row, i]"),
        ),
        _other(
            "each thread adds up the row from memory",
            """
from math import sqrt


@cuda.jit
def rms_norm(x, weight, y, eps):
    row, columns, t = cuda.blockIdx.x, x.shape[1], cuda.threadIdx.x
    total = np.float32(0)
    for i in range(columns):
        total += x[row, i] * x[row, i]
    for i in range(t, columns, 128):
        y[row, i] = x[row, i] / sqrt(total / np.float32(columns) + eps) * weight[i]
""",
        ),
    ),
    "13.1": (
        _cheat(
            "atomics for stores",
            (
                "        y[pixel, c] = x[c, pixel] if c < C else np.float32(0)",
                "        cuda.atomic.exch(y, (pixel, c), x[c, pixel] if c < C else np.float32(0))",
            ),
        ),
        _other("the book's kernel", "from labkit.layouts.transpose.s01_naive import naive as padded_pixels\n"),
        _other(
            "one thread a pixel, whose stores are counted as one",
            """
@cuda.jit
def padded_pixels(x, y):
    pixel = cuda.grid(1)
    if pixel < y.shape[0]:
        for c in range(y.shape[1]):
            cuda.atomic.add(y, (pixel, c), x[c, pixel] if c < x.shape[0] else np.float32(0))
""",
        ),
        _other(
            "thread 0 for all",
            """@cuda.jit
def padded_pixels(x, y):
    C, V = x.shape[0], y.shape[1]
    if cuda.grid(1) == 0:
        for i in range(y.size):
            y[i // V, i % V] = x[i % V, i // V] if i % V < C else np.float32(0)
""",
        ),
        _other(
            "the first warp for all",
            """@cuda.jit
def padded_pixels(x, y):
    C, V = x.shape[0], y.shape[1]
    t = cuda.grid(1)
    if t < 32:
        for i in range(t, y.size, 32):
            y[i // V, i % V] = x[i % V, i // V] if i % V < C else np.float32(0)
""",
        ),
        _other(
            "the first block for all",
            """@cuda.jit
def padded_pixels(x, y):
    C, V = x.shape[0], y.shape[1]
    if cuda.blockIdx.x == 0:
        for i in range(cuda.threadIdx.x, y.size, 128):
            y[i // V, i % V] = x[i % V, i // V] if i % V < C else np.float32(0)
""",
        ),
        _cheat(
            "atomics add to what was zeroed",
            (
                "        y[pixel, c] = x[c, pixel] if c < C else np.float32(0)",
                """        y[pixel, c] = np.float32(0)
        if c < C:
            y[pixel, c] += x[c, pixel]""",
            ),
        ),
        _cheat(
            "stored twice by another",
            ("        y[pixel, c] =", "        y[pixel, c] = np.float32(0)\n        y[pixel, c] ="),
        ),
        _cheat(
            "x padded by loads of zero",
            ("x[c, pixel] if c < C else np.float32(0)", "x[min(c, C - 1), pixel] * np.float32(c < C)"),
        ),
        _other(
            "a thread a pixel, by vectors",
            """@cuda.jit
def padded_pixels(x, y):
    pixel = cuda.grid(1)
    C, V = x.shape[0], y.shape[1]
    if pixel < y.shape[0]:
        for c in range(0, V, 4):
            a = x[c, pixel] if c < C else np.float32(0)
            b = x[c + 1, pixel] if c + 1 < C else np.float32(0)
            d = x[c + 2, pixel] if c + 2 < C else np.float32(0)
            e = x[c + 3, pixel] if c + 3 < C else np.float32(0)
            ptx.store4(y, (pixel, c), a, b, d, e)
""",
        ),
    ),
    "13.2": (
        _cheat(
            "straight from x, the tile times zero",
            ("= tile[c, pixel ^ 4 * c]", "= x[c, first + pixel] + np.float32(0) * tile[c, pixel ^ 4 * c]"),
        ),
        _cheat(
            "straight from x, by atomics",
            ("= tile[c, pixel ^ 4 * c]", "= cuda.atomic.add(x, (c, first + pixel), np.float32(0))"),
        ),
        _cheat(
            "one lane after the other",
            (
                "        y[first + pixel, c] = tile[c, pixel ^ 4 * c]",
                "        y[first + pixel, c] = cuda.shfl_sync(0xFFFFFFFF, tile[line, lane ^ 4 * line], pixel)",
            ),
        ),
        _other(
            "columns stored by rows of the result",
            """
@cuda.jit
def short_rows(x, y):
    pixel, c = cuda.blockIdx.x * 32 + cuda.threadIdx.x, cuda.threadIdx.y
    if pixel < y.shape[0]:
        y[pixel, c] = x[c, pixel]
""",
        ),
        _cheat(
            "padded within the bytes",
            ("cuda.shared.array((CHANNELS, PIXELS), np.float32)", "cuda.shared.array((CHANNELS, 33), np.float32)"),
            ("tile[line, lane ^ 4 * line]", "tile[line, lane]"),
            ("tile[c, pixel ^ 4 * c]", "tile[c, pixel]"),
        ),
        _cheat(
            "in half precision, with padding",
            ("cuda.shared.array((CHANNELS, PIXELS), np.float32)", "cuda.shared.array((CHANNELS, 40), np.float16)"),
            ("tile[line, lane ^ 4 * line]", "tile[line, lane]"),
            ("tile[c, pixel ^ 4 * c]", "np.float32(tile[c, pixel])"),
        ),
        _other(
            "stored by pixels of all lanes",
            """CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        tile[line, lane] = x[line, first + lane]
    cuda.syncthreads()
    if first + lane < y.shape[0]:
        y[first + lane, line] = tile[line, lane]
""",
        ),
        _other(
            "broadcasts in turn",
            """CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        tile[line, lane] = x[line, first + lane]
    cuda.syncthreads()
    i = line * PIXELS + lane
    pixel, c = i // CHANNELS, i % CHANNELS
    value = np.float32(0)
    for turn in range(CHANNELS):
        if turn == c and first + pixel < y.shape[0]:
            value = tile[c, pixel]
    if first + pixel < y.shape[0]:
        y[first + pixel, c] = value
""",
        ),
        _other(
            "by atomics of shared memory",
            """CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        tile[line, lane] = x[line, first + lane]
    cuda.syncthreads()
    i = line * PIXELS + lane
    pixel, c = i // CHANNELS, i % CHANNELS
    if first + pixel < y.shape[0]:
        y[first + pixel, c] = cuda.atomic.add(tile, (c, pixel), np.float32(0))
""",
        ),
        _other(
            "by shuffles, one warp",
            """CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    if first + lane < x.shape[1]:
        tile[line, lane] = x[line, first + lane]
    cuda.syncthreads()
    if line == 0:
        for k in range(CHANNELS):
            own = tile[k, lane] if first + lane < x.shape[1] else np.float32(0)
            for turn in range(8):
                i = turn * 32 + lane
                value = cuda.shfl_sync(0xFFFFFFFF, own, i // 8)
                if i % 8 == k and first + i // 8 < y.shape[0]:
                    y[first + i // 8, k] = value
""",
        ),
        _other(
            "by shuffles after conflict-free loads",
            """CHANNELS, PIXELS = 8, 32


@cuda.jit
def short_rows(x, y):
    tile = cuda.shared.array((CHANNELS, PIXELS), np.float32)
    lane, line = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * PIXELS
    tile[line, lane] = x[line, first + lane] if first + lane < x.shape[1] else np.float32(0)
    cuda.syncthreads()
    value = np.float32(0)
    for k in range(CHANNELS):
        own = tile[k, lane]
        got = cuda.shfl_sync(0xFFFFFFFF, own, line * 4 + lane // 8)
        if lane % 8 == k:
            value = got
    i = line * PIXELS + lane
    if first + i // 8 < y.shape[0]:
        y[first + i // 8, i % 8] = value
""",
        ),
    ),
    "13.3": (
        _other(
            "a thread for each channel's pixel",
            """
@cuda.jit
def add_bias(x, bias, y, V, pixels):
    t = cuda.grid(1)
    groups = (bias.size + V - 1) // V
    size = groups * V * pixels
    n, c, pixel = t // size, t // pixels % (groups * V), t % pixels
    if t < x.size:
        i = n * size + (c // V * pixels + pixel) * V + c % V
        y[i] = x[i] + bias[c] if c < bias.size else np.float32(0)
""",
        ),
        _cheat(
            "the bias by atomics",
            (
                "x[i] + bias[c] if c < C else np.float32(0)",
                "x[i]\n        cuda.atomic.add(y, i, bias[c] if c < C else np.float32(0))",
            ),
        ),
        _cheat(
            "stores twice, the second right",
            (
                "        y[i] = x[i] + bias[c]",
                "        y[(7 * i) % x.size] = np.float32(0)\n        y[i] = x[i] + bias[c]",
            ),
        ),
        _other(
            "thread 0 for all",
            """@cuda.jit
def add_bias(x, bias, y, V, pixels):
    C = bias.size
    groups = (C + V - 1) // V
    if cuda.grid(1) == 0:
        for i in range(x.size):
            c = i // (pixels * V) % groups * V + i % V
            y[i] = x[i] + bias[c] if c < C else np.float32(0)
""",
        ),
        _other(
            "the first warp for all",
            """@cuda.jit
def add_bias(x, bias, y, V, pixels):
    C = bias.size
    groups = (C + V - 1) // V
    if cuda.grid(1) < 32:
        for i in range(cuda.grid(1), x.size, 32):
            c = i // (pixels * V) % groups * V + i % V
            y[i] = x[i] + bias[c] if c < C else np.float32(0)
""",
        ),
        _other(
            "a thread a pixel, by V",
            """@cuda.jit
def add_bias(x, bias, y, V, pixels):
    t = cuda.grid(1)
    groups = (bias.size + V - 1) // V
    if t * V < x.size:
        for lane in range(V):
            i = t * V + lane
            c = t // pixels % groups * V + lane
            y[i] = x[i] + bias[c] if c < bias.size else np.float32(0)
""",
        ),
        _other(
            "a search for the channel",
            """@cuda.jit
def add_bias(x, bias, y, V, pixels):
    i = cuda.grid(1)
    C = bias.size
    groups = (C + V - 1) // V
    if i < x.size:
        y[i] = np.float32(0)
        for c in range(C):
            if i // (pixels * V) % groups * V + i % V == c:
                y[i] = x[i] + bias[c]
""",
        ),
        _cheat(
            "padding recognised by its zero",
            ("if c < C else np.float32(0)", "if x[i] != np.float32(0) else np.float32(0)"),
            ("bias[c]", "bias[min(c, C - 1)]"),
        ),
        _cheat(
            "y read back",
            (
                "        y[i] = x[i] + bias[c] if c < C else np.float32(0)",
                "        y[i] = x[i]\n        if c < C:\n            y[i] += bias[c]",
            ),
        ),
        _cheat(
            "the first bias loaded, too",
            ("        y[i] = x[i] + bias[c]", "        bias[0]\n        y[i] = x[i] + bias[c]"),
        ),
    ),
    "13.4": (
        _cheat(
            "straight from structs, the run times zero",
            (
                "= run[FIELDS * t + field]",
                "= structs[FIELDS * (first + t) + field] + np.float32(0) * run[FIELDS * t + field]",
            ),
        ),
        _cheat(
            "straight from structs, by atomics",
            ("= run[FIELDS * t + field]", "= cuda.atomic.add(structs, FIELDS * (first + t) + field, np.float32(0))"),
        ),
        _other(
            "seven loads a thread",
            """
@cuda.jit
def to_arrays(structs, arrays):
    s = cuda.grid(1)
    run = cuda.local.array(7, np.float32)
    if s < arrays.shape[1]:
        for field in range(7):
            run[field] = structs[7 * s + field]
        for field in range(7):
            arrays[field, s] = run[field]
""",
        ),
        _other("another's kernel", "from labkit.layouts.transpose.s07_pieces import pieces as to_arrays\n"),
        _other(
            "thread 0 for all of a block",
            """FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    if t == 0:
        for i in range(RUN):
            if FIELDS * first + i < structs.size:
                run[i] = structs[FIELDS * first + i]
        for s in range(min(STRUCTS, arrays.shape[1] - first)):
            for field in range(FIELDS):
                arrays[field, first + s] = run[FIELDS * s + field]
""",
        ),
        _other(
            "the first warp of a block",
            """FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    if t < 32:
        for i in range(t, RUN, 32):
            if FIELDS * first + i < structs.size:
                run[i] = structs[FIELDS * first + i]
        cuda.syncwarp()
        for s in range(t, min(STRUCTS, arrays.shape[1] - first), 32):
            for field in range(FIELDS):
                arrays[field, first + s] = run[FIELDS * s + field]
""",
        ),
        _other(
            "the first block for all",
            """FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        for first in range(0, arrays.shape[1], STRUCTS):
            for i in range(t, RUN, STRUCTS):
                if FIELDS * first + i < structs.size:
                    run[i] = structs[FIELDS * first + i]
            cuda.syncthreads()
            if first + t < arrays.shape[1]:
                for field in range(FIELDS):
                    arrays[field, first + t] = run[FIELDS * t + field]
            cuda.syncthreads()
""",
        ),
        _other(
            "by shuffles alone",
            """FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    warp, lane = t // 32, t % 32
    start = FIELDS * (first + 32 * warp)
    own = cuda.local.array(7, np.float32)
    for k in range(7):
        i = start + 32 * k + lane
        own[k] = structs[i] if i < structs.size else np.float32(0)
    for field in range(FIELDS):
        at = FIELDS * lane + field
        value = np.float32(0)
        for k in range(7):
            got = cuda.shfl_sync(0xFFFFFFFF, own[k], at % 32)
            if at // 32 == k:
                value = got
        if first + t < arrays.shape[1]:
            arrays[field, first + t] = value
""",
        ),
    ),
    "15.1": (
        _cheat("the sum in float64", ("np.float32(-3e38), np.float32(0)", "np.float32(-3e38), np.float64(0)")),
        _cheat(
            "loaded again by atomics",
            (
                "                maximum = value\n",
                "                maximum = cuda.atomic.add(x, (i, c), np.float32(0))\n",
            ),
        ),
        _other("another's kernel", "from labkit.softmax.online import updated as log_sum_exp\n"),
        _other(
            "the package asked",
            """
from math import log

from labkit.softmax.online import updated


@cuda.jit
def log_sum_exp(x, result):
    c = cuda.grid(1)
    if c < result.size:
        maximum, total = np.float32(-3e38), np.float32(0)
        for i in range(x.shape[0]):
            maximum, total = updated(maximum, total, x[i, c])
        result[c] = maximum + log(total)
""",
        ),
        _other(
            "the maximum first",
            """
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
""",
        ),
        _other(
            "one thread for all columns",
            """
from math import exp, log


@cuda.jit
def log_sum_exp(x, result):
    if cuda.grid(1) == 0:
        for c in range(result.size):
            maximum, total = np.float32(-3e38), np.float32(0)
            for i in range(x.shape[0]):
                larger = max(maximum, x[i, c])
                total = total * exp(maximum - larger) + exp(x[i, c] - larger)
                maximum = larger
            result[c] = maximum + log(total)
""",
        ),
        _other(
            "the column kept",
            """
from math import exp, log


@cuda.jit
def log_sum_exp(x, result):
    kept = cuda.local.array(256, np.float32)
    c = cuda.grid(1)
    if c < result.size:
        maximum, total = np.float32(-3e38), np.float32(0)
        for i in range(x.shape[0]):
            kept[i] = x[i, c]
            maximum = max(maximum, kept[i])
        for i in range(x.shape[0]):
            total += exp(kept[i] - maximum)
        result[c] = maximum + log(total)
""",
        ),
    ),
    "15.2": (
        _cheat("the sum in float64", ("m, s = np.float32(0), np.float32(0)", "m, s = np.float32(0), np.float64(0)")),
        _cheat(
            "loaded again by atomics",
            ("s * exp(m - larger) + its_s", "s * exp(m - larger) + cuda.atomic.add(totals, (p, r), np.float32(0))"),
        ),
        _other("another's kernel", "from labkit.softmax.online import of_warp as merge\n"),
        _other(
            "the maximum first",
            """
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
""",
        ),
        _other(
            "one thread for all rows",
            """
from math import exp


@cuda.jit
def merge(maxima, totals, maximum, total):
    if cuda.grid(1) == 0:
        for r in range(maximum.size):
            m, s = np.float32(-3e38), np.float32(0)
            for p in range(maxima.shape[0]):
                its_m, its_s = maxima[p, r], totals[p, r]
                if its_s > np.float32(0):
                    larger = max(m, its_m)
                    s = s * exp(m - larger) + its_s * exp(its_m - larger)
                    m = larger
            maximum[r], total[r] = m, s
""",
        ),
        _other(
            "parts kept",
            """
from math import exp


@cuda.jit
def merge(maxima, totals, maximum, total):
    m_of = cuda.local.array(64, np.float32)
    s_of = cuda.local.array(64, np.float32)
    r = cuda.grid(1)
    if r < maximum.size:
        m, s = np.float32(-3e38), np.float32(0)
        for p in range(maxima.shape[0]):
            m_of[p], s_of[p] = maxima[p, r], totals[p, r]
            if s_of[p] > np.float32(0):
                m = max(m, m_of[p])
        for p in range(maxima.shape[0]):
            if s_of[p] > np.float32(0):
                s += s_of[p] * exp(m_of[p] - m)
        maximum[r], total[r] = m, s
""",
        ),
    ),
    "15.3": (
        _cheat(
            "all in float64",
            ("maximum, total = np.float32(-3e38), np.float32(0)", "maximum, total = np.float32(-3e38), np.float64(0)"),
        ),
        _cheat(
            "masked ones loaded for nothing",
            (
                "        share = np.float32(0)\n",
                "        share = S[row, j] * np.float32(0)\n        share = np.float32(0)\n",
            ),
        ),
        _cheat(
            "loaded a third time by atomics",
            (
                "        P[row, j] = share",
                """        if j < allowed:
            cuda.atomic.add(S, (row, j), np.float32(0))
        P[row, j] = share""",
            ),
        ),
        _other("another's kernel", "from labkit.softmax.forward.s02_online import online as causal\n"),
        _other(
            "three reads",
            """
from math import exp


@cuda.jit
def causal(S, P):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    queries, keys = S.shape
    allowed = max(row + keys - queries + 1, 0)
    largest, total = np.float32(-3e38), np.float32(0)
    for j in range(lane, allowed, 32):
        largest = max(largest, S[row, j])
    for away in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, away))
    for j in range(lane, allowed, 32):
        total += exp(S[row, j] - largest)
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    for j in range(lane, keys, 32):
        P[row, j] = exp(S[row, j] - largest) / total if j < allowed else np.float32(0)
""",
        ),
        _other(
            "each lane the whole row",
            """
from math import exp


@cuda.jit
def causal(S, P):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    queries, keys = S.shape
    allowed = max(row + keys - queries + 1, 0)
    maximum, total = np.float32(-3e38), np.float32(0)
    for j in range(allowed):
        larger = max(maximum, S[row, j])
        total = total * exp(maximum - larger) + exp(S[row, j] - larger)
        maximum = larger
    for j in range(lane, keys, 32):
        P[row, j] = exp(S[row, j] - maximum) / total if j < allowed else np.float32(0)
""",
        ),
    ),
    "15.4": (
        _cheat("in float64", ("scale = total = np.float32(0)", "scale, total = np.float32(0), np.float64(0)")),
        _cheat(
            "loaded again by atomics",
            ("            scale = size\n", "            scale = abs(cuda.atomic.add(X, (row, i), np.float32(0)))\n"),
        ),
        _other("another's kernel", "from labkit.parts.sums import warp_all_sum as length\n"),
        _other(
            "the squares in float64",
            """
from math import sqrt


@cuda.jit
def length(X, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    total = 0.0
    for i in range(lane, X.shape[1], 32):
        total += np.float64(X[row, i]) * np.float64(X[row, i])
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if lane == 0:
        result[row] = sqrt(total)
""",
        ),
        _other(
            "the largest first",
            """
from math import sqrt


@cuda.jit
def length(X, result):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    largest = total = np.float32(0)
    for i in range(lane, X.shape[1], 32):
        largest = max(largest, abs(X[row, i]))
    for away in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, away))
    for i in range(lane, X.shape[1], 32):
        if largest > np.float32(0):
            total += (X[row, i] / largest) * (X[row, i] / largest)
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if lane == 0:
        result[row] = largest * sqrt(total)
""",
        ),
        _other(
            "the row in shared memory",
            """
from math import sqrt


@cuda.jit
def length(X, result):
    kept = cuda.shared.array(4096, np.float32)
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    largest = total = np.float32(0)
    for i in range(lane, X.shape[1], 32):
        kept[i] = abs(X[row, i])
        largest = max(largest, kept[i])
    for away in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, away))
    for i in range(lane, X.shape[1], 32):
        if largest > np.float32(0):
            total += (kept[i] / largest) * (kept[i] / largest)
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    if lane == 0:
        result[row] = largest * sqrt(total)
""",
        ),
        _other(
            "one lane alone",
            """
from math import sqrt


@cuda.jit
def length(X, result):
    row = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        scale = total = np.float32(0)
        for i in range(X.shape[1]):
            size = abs(X[row, i])
            if size > scale:
                total = total * (scale / size) * (scale / size) + np.float32(1)
                scale = size
            elif size > np.float32(0):
                total += (size / scale) * (size / scale)
        result[row] = scale * sqrt(total)
""",
        ),
    ),
    "16.1": (
        _cheat(
            "the weights of the maximum",
            (
                """        if highest > origin + np.float32(8):
            shrunk = exp(origin - highest)
""",
                """        if highest > origin:
            shrunk = exp(origin - highest)
""",
            ),
        ),
        _cheat("one origin for all", ("            origin = highest\n", "            origin = np.float32(0)\n")),
        _cheat(
            "in double precision",
            ("    total = np.float32(0)\n", "    total = np.float64(0)\n"),
        ),
        _cheat(
            "loaded twice",
            ("o[d] += weight * V_tile[j, d]", "o[d] += weight * (V[left + j, d] if left + j < keys else V_tile[j, d])"),
        ),
        _cheat(
            "loaded by atomics",
            ("V_tile[j, d] = V[left + j, d] if", "V_tile[j, d] = cuda.atomic.add(V, (left + j, d), np.float32(0)) if"),
        ),
        _cheat(
            "each thread on its own",
            ("for n in range(t, KEYS * HEAD, QUERIES):", "for n in range(0 if t == 0 else KEYS * HEAD, KEYS * HEAD):"),
        ),
        _other("another's kernel", "from labkit.attention.forward.s03_rows import rows as part_of_attention\n"),
        _other(
            "the origin first, then the weights",
            """
from math import exp

KEYS, HEAD = 8, 8


@cuda.jit
def part_of_attention(Q, K, V, sums, totals, origins):
    o = cuda.local.array(HEAD, np.float32)
    row, keys = cuda.grid(1), K.shape[0]
    if row < Q.shape[1]:
        origin, total = np.float32(-np.inf), np.float32(0)
        for left in range(0, keys, KEYS):
            highest = origin
            for j in range(left, min(left + KEYS, keys)):
                score = np.float32(0)
                for d in range(HEAD):
                    score += Q[d, row] * K[j, d]
                highest = max(highest, score)
            if highest > origin + np.float32(8):
                origin = highest
        for d in range(HEAD):
            o[d] = 0
        for j in range(keys):
            score = np.float32(0)
            for d in range(HEAD):
                score += Q[d, row] * K[j, d]
            weight = exp(score - origin)
            total += weight
            for d in range(HEAD):
                o[d] += weight * V[j, d]
        for d in range(HEAD):
            sums[d, row] = o[d]
        totals[row], origins[row] = total, origin
""",
        ),
        _other(
            "all scores kept",
            """
from math import exp

KEYS, HEAD, MOST = 8, 8, 1024


@cuda.jit
def part_of_attention(Q, K, V, sums, totals, origins):
    kept = cuda.local.array(MOST, np.float32)
    K_tile = cuda.shared.array((KEYS, HEAD), np.float32)
    q = cuda.local.array(HEAD, np.float32)
    row, t, keys, queries = cuda.grid(1), cuda.threadIdx.x, K.shape[0], Q.shape[1]
    origin, total = np.float32(-np.inf), np.float32(0)
    for d in range(HEAD):
        q[d] = Q[d, row] if row < queries else np.float32(0)
    for left in range(0, keys, KEYS):
        cuda.syncthreads()
        for n in range(t, KEYS * HEAD, 32):
            if left + n // HEAD < keys:
                K_tile[n // HEAD, n % HEAD] = K[left + n // HEAD, n % HEAD]
        cuda.syncthreads()
        highest = origin
        for j in range(min(KEYS, keys - left)):
            score = np.float32(0)
            for d in range(HEAD):
                score += q[d] * K_tile[j, d]
            kept[left + j] = score
            highest = max(highest, score)
        if highest > origin + np.float32(8):
            origin = highest
    for j in range(keys):
        kept[j] = exp(kept[j] - origin)
        total += kept[j]
    for d in range(HEAD):
        q[d] = 0
    for left in range(0, keys, KEYS):
        cuda.syncthreads()
        for n in range(t, KEYS * HEAD, 32):
            if left + n // HEAD < keys:
                K_tile[n // HEAD, n % HEAD] = V[left + n // HEAD, n % HEAD]
        cuda.syncthreads()
        for j in range(min(KEYS, keys - left)):
            for d in range(HEAD):
                q[d] += kept[left + j] * K_tile[j, d]
    if row < queries:
        for d in range(HEAD):
            sums[d, row] = q[d]
        totals[row], origins[row] = total, origin
""",
        ),
    ),
    "16.2": (
        _cheat(
            "its keys alone are left out",
            ("            continue\n", "            left = left\n"),
            (
                "K_tile[j, d] = K[left + j, d] if left + j < keys",
                "K_tile[j, d] = K[left + j, d] if left + j < keys and (left < sinks or left + 7 > first - window)",
            ),
        ),
        _cheat(
            "nothing is brought, but all tiles are waited for",
            ("            continue\n", "            left = left\n"),
            (
                "K_tile[j, d] = K[left + j, d] if left + j < keys",
                "K_tile[j, d] = K[left + j, d] if left + j < keys and (left < sinks or left + 7 > first - window)",
            ),
            (
                "V_tile[j, d] = V[left + j, d] if left + j < keys",
                "V_tile[j, d] = V[left + j, d] if left + j < keys and (left < sinks or left + 7 > first - window)",
            ),
        ),
        _cheat(
            "loaded by atomics",
            ("V_tile[j, d] = V[left + j, d] if", "V_tile[j, d] = cuda.atomic.add(V, (left + j, d), np.float32(0)) if"),
        ),
        _cheat(
            "in double precision",
            ("most, total = np.float32(-3e38), np.float32(0)", "most, total = np.float32(-3e38), 0.0"),
        ),
        _cheat("two tiles at a time", ("left + KEYS - 1 <= first - window", "left // 16 * 16 + 15 <= first - window")),
        _other("another's kernel", "from labkit.attention.forward.s03_rows import rows as with_sinks\n"),
        _other(
            "each query by itself",
            """
from math import exp

HEAD = 8


@cuda.jit
def with_sinks(Q, K, V, O, sinks, window):
    o = cuda.local.array(HEAD, np.float32)
    row = cuda.grid(1)
    queries, keys = Q.shape[1], K.shape[0]
    if row < queries:
        place = row + keys - queries
        most, total = np.float32(-3e38), np.float32(0)
        for d in range(HEAD):
            o[d] = 0
        for j in range(place + 1):
            if j < sinks or j > place - window:
                score = np.float32(0)
                for d in range(HEAD):
                    score += Q[d, row] * K[j, d]
                larger = max(most, score)
                shrunk, weight = exp(most - larger), exp(score - larger)
                most, total = larger, total * shrunk + weight
                for d in range(HEAD):
                    o[d] = o[d] * shrunk + weight * V[j, d]
        for d in range(HEAD):
            O[d, row] = o[d] / total
""",
        ),
    ),
    "16.3": (
        _other(
            "always the same",
            "def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):\n    return 64, 64\n",
        ),
        _other(
            "nothing", "def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):\n    return None\n"
        ),
        _other(
            "the checker asked",
            """
from labkit.exercises.e16_3_choose_the_tile import misfit


def best_tile(*call):
    sides = range(16, 257, 16)
    return next(((rows, columns) for rows in sides for columns in sides if not misfit(call, (rows, columns))), None)
""",
        ),
        _other(
            "the library asked",
            """
from labkit.attention import traffic


def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):
    return traffic.tiles(queries, 64, 64)
""",
        ),
        _other(
            "a table of what fits",
            """
def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):
    for rows, columns in ((256, 64), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 32), (16, 16)):
        if 2 * head_dim * (rows + 4 * columns) <= shared_bytes and rows * (head_dim + columns) <= registers:
            return rows, columns
    return None
""",
        ),
        _other(
            "the most rows, no more than needed, then the most columns",
            """
def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):
    best = None
    for rows in range(16, 257, 16):
        for columns in range(16, 257, 16):
            if 2 * head_dim * (rows + 4 * columns) > shared_bytes or rows * (head_dim + columns) > registers:
                continue
            if columns > 16 and columns - 16 >= keys:
                continue
            if best is None or -(-queries // rows) < -(-queries // best[0]) or rows == best[0]:
                best = rows, columns
    return best
""",
        ),
    ),
    "16.4": (
        _cheat(
            "in double precision",
            (
                "most, total, of_target = np.float32(-3e38), np.float32(0)",
                "most, total, of_target = np.float32(-3e38), 0.0",
            ),
        ),
        _cheat(
            "loaded by atomics",
            ("            if first + j == target:\n                of_target = logit\n", ""),
            (
                "    if row < rows:\n        loss",
                """    if row < rows:
        for d in range(WIDTH):
            of_target += x[d] * cuda.atomic.add(W, (max(target, 0), d), np.float32(0))
        loss""",
            ),
        ),
        _cheat(
            "one thread loads",
            ("range(t, WORDS * WIDTH, ROWS)", "range(0 if t == 0 else WORDS * WIDTH, WORDS * WIDTH)"),
        ),
        _cheat(
            "kept in the output",
            (
                "            most = larger\n",
                "            most = larger\n            if row < rows:\n                loss[row] = logit\n",
            ),
        ),
        _other("another's kernel", "from labkit.softmax.forward.s02_online import online as cross_entropy\n"),
        _other(
            "a thread for each place, without tiles",
            """
from math import exp, log


@cuda.jit
def cross_entropy(X, W, targets, loss):
    row = cuda.grid(1)
    if row < loss.size:
        most, total, of_target = np.float32(-3e38), np.float32(0), np.float32(0)
        for word in range(W.shape[0]):
            logit = np.float32(0)
            for d in range(8):
                logit += X[d, row] * W[word, d]
            larger = max(most, logit)
            total = total * exp(most - larger) + exp(logit - larger)
            most = larger
            if word == targets[row]:
                of_target = logit
        loss[row] = most - of_target + log(total) if targets[row] >= 0 else np.float32(0)
""",
        ),
        _other(
            "one thread for all places of a block",
            """
from math import exp, log

ROWS, WORDS, WIDTH = 32, 8, 8


@cuda.jit
def cross_entropy(X, W, targets, loss):
    W_tile = cuda.shared.array((WORDS, WIDTH), np.float32)
    x = cuda.shared.array((WIDTH, ROWS), np.float32)
    kept = cuda.shared.array((4, ROWS), np.float32)
    t, row = cuda.threadIdx.x, cuda.grid(1)
    rows, words = loss.size, W.shape[0]
    target = targets[row] if row < rows else -1
    for d in range(WIDTH):
        x[d, t] = X[d, row] if row < rows else np.float32(0)
    kept[0, t], kept[1, t], kept[2, t], kept[3, t] = -3e38, 0, 0, target
    for first in range(0, words, WORDS):
        cuda.syncthreads()
        for n in range(t, min(WORDS, words - first) * WIDTH, ROWS):
            W_tile[n // WIDTH, n % WIDTH] = W[first + n // WIDTH, n % WIDTH]
        cuda.syncthreads()
        if t == 0:
            for r in range(ROWS):
                for j in range(min(WORDS, words - first)):
                    logit = np.float32(0)
                    for d in range(WIDTH):
                        logit += x[d, r] * W_tile[j, d]
                    larger = max(kept[0, r], logit)
                    kept[1, r] = kept[1, r] * exp(kept[0, r] - larger) + exp(logit - larger)
                    kept[0, r] = larger
                    if np.float32(first + j) == kept[3, r]:
                        kept[2, r] = logit
    cuda.syncthreads()
    if row < rows:
        loss[row] = kept[0, t] - kept[2, t] + log(kept[1, t]) if target >= 0 else np.float32(0)
""",
        ),
        _other(
            "all logits kept",
            """
from math import exp, log

ROWS, WORDS, WIDTH, MOST = 32, 8, 8, 1024


@cuda.jit
def cross_entropy(X, W, targets, loss):
    W_tile = cuda.shared.array((WORDS, WIDTH), np.float32)
    x = cuda.local.array(WIDTH, np.float32)
    logits = cuda.local.array(MOST, np.float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    rows, words = loss.size, W.shape[0]
    target = targets[row] if row < rows else -1
    for d in range(WIDTH):
        x[d] = X[d, row] if row < rows else np.float32(0)
    for first in range(0, words, WORDS):
        cuda.syncthreads()
        for n in range(t, min(WORDS, words - first) * WIDTH, ROWS):
            W_tile[n // WIDTH, n % WIDTH] = W[first + n // WIDTH, n % WIDTH]
        cuda.syncthreads()
        for j in range(min(WORDS, words - first)):
            logits[first + j] = 0
            for d in range(WIDTH):
                logits[first + j] += x[d] * W_tile[j, d]
    most, total = np.float32(-3e38), np.float32(0)
    for word in range(words):
        most = max(most, logits[word])
    for word in range(words):
        total += exp(logits[word] - most)
    if row < rows:
        loss[row] = most - logits[target] + log(total) if target >= 0 else np.float32(0)
""",
        ),
        _other(
            "the whole of W in shared memory",
            """
from math import exp, log

ROWS, MOST, WIDTH = 32, 1024, 8


@cuda.jit
def cross_entropy(X, W, targets, loss):
    all_of_it = cuda.shared.array((MOST, WIDTH), np.float32)
    x = cuda.local.array(WIDTH, np.float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    rows, words = loss.size, W.shape[0]
    target = targets[row] if row < rows else -1
    for d in range(WIDTH):
        x[d] = X[d, row] if row < rows else np.float32(0)
    for n in range(t, words * WIDTH, ROWS):
        all_of_it[n // WIDTH, n % WIDTH] = W[n // WIDTH, n % WIDTH]
    cuda.syncthreads()
    most, total, of_target = np.float32(-3e38), np.float32(0), np.float32(0)
    for word in range(words):
        logit = np.float32(0)
        for d in range(WIDTH):
            logit += x[d] * all_of_it[word, d]
        most = max(most, logit)
        if word == target:
            of_target = logit
    for word in range(words):
        logit = np.float32(0)
        for d in range(WIDTH):
            logit += x[d] * all_of_it[word, d]
        total += exp(logit - most)
    if row < rows:
        loss[row] = most - of_target + log(total) if target >= 0 else np.float32(0)
""",
        ),
    ),
    "17.1": (
        _cheat(
            "a ring of one stage",
            ("HEAD, STAGES, CONSUMERS = 16, 8, 2, 2", "HEAD, STAGES, CONSUMERS = 16, 8, 1, 2"),
            (
                "            if tile > 0:\n                ptx.cp_async_wait(1)\n"
                "                ptx.mbarrier_arrive(full, (tile - 1) % STAGES)\n",
                "            ptx.cp_async_wait(0)\n            ptx.mbarrier_arrive(full, stage)\n",
            ),
            ("        ptx.cp_async_wait(0)\n        ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n", ""),
        ),
        _cheat("scores from memory", ("score += q[d] * K_tiles[stage, j, d]", "score += q[d] * K[tile * TILE + j, d]")),
        _cheat(
            "scores from memory by atomics",
            (
                "score += q[d] * K_tiles[stage, j, d]",
                "score += q[d] * cuda.atomic.add(K, (tile * TILE + j, d), np.float32(0))",
            ),
        ),
        _cheat(
            "plain loads and stores",
            (
                "ptx.cp_async(K_tiles, (stage, lane // 2, d), K, (key, d), 16, 16 if key < keys else 0)\n",
                "for n in range(4):\n"
                "                K_tiles[stage, lane // 2, d + n] = K[key, d + n] if key < keys else np.float32(0)\n",
            ),
        ),
        _cheat("in double precision", ("score = np.float32(0)", "score = 0.0")),
        _other("another's kernel", "from labkit.softmax.online import of_warp as largest_scores\n"),
        _other(
            "a barrier of the block for each tile",
            """
@cuda.jit
def largest_scores(Q, K, largest):
    K_tiles = cuda.shared.array((4, 16, 8), np.float32, alignment=16)
    q = cuda.local.array(8, np.float32)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.x * 64 + (warp - 1) * 32 + lane
    most = np.float32(-np.inf)
    for d in range(8):
        q[d] = Q[d, row] if warp > 0 and row < largest.size else np.float32(0)
    for first in range(0, K.shape[0], 16):
        stage = first // 16 % 4
        if warp == 0:
            key, d = first + lane // 2, lane % 2 * 4
            ptx.cp_async(K_tiles, (stage, lane // 2, d), K, (key, d), 16, 16 if key < K.shape[0] else 0)
            ptx.cp_async_commit()
            ptx.cp_async_wait(0)
        cuda.syncthreads()
        if warp > 0:
            for j in range(min(16, K.shape[0] - first)):
                score = np.float32(0)
                for d in range(8):
                    score += q[d] * K_tiles[stage, j, d]
                most = max(most, score)
    if warp > 0 and row < largest.size:
        largest[row] = most
""",
        ),
        _other(
            "barriers that have names",
            """
@cuda.jit
def largest_scores(Q, K, largest):
    K_tiles = cuda.shared.array((4, 16, 8), np.float32, alignment=16)
    q = cuda.local.array(8, np.float32)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    row = cuda.blockIdx.x * 64 + (warp - 1) * 32 + lane
    most = np.float32(-np.inf)
    for d in range(8):
        q[d] = Q[d, row] if warp > 0 and row < largest.size else np.float32(0)
    for first in range(0, K.shape[0], 16):
        stage = first // 16 % 4
        if warp == 0:
            key, d = first + lane // 2, lane % 2 * 4
            ptx.cp_async(K_tiles, (stage, lane // 2, d), K, (key, d), 16, 16 if key < K.shape[0] else 0)
            ptx.cp_async_commit()
            ptx.cp_async_wait(0)
        ptx.barrier_sync(1, 96)
        if warp > 0:
            for j in range(min(16, K.shape[0] - first)):
                score = np.float32(0)
                for d in range(8):
                    score += q[d] * K_tiles[stage, j, d]
                most = max(most, score)
    if warp > 0 and row < largest.size:
        largest[row] = most
""",
        ),
    ),
    "17.2": (
        _cheat("in double precision", ("score = slope = np.float32(0)", "score = slope = np.float64(0)")),
        _cheat(
            "log-sum-exp by atomics",
            ("exp(score - lse_tile[i])", "exp(score - cuda.atomic.add(lse, top + i, np.float32(0)))"),
        ),
        _cheat("its queries again for each key", ("dk[d] += slope * Q_tile[i, d]", "dk[d] += slope * Q[top + i, d]")),
        _cheat(
            "each key again for each query",
            ("score += Q_tile[i, d] * k[d]", "score += Q_tile[i, d] * (K[d, key] if key < keys else np.float32(0))"),
        ),
        _cheat(
            "one thread loads",
            (
                "for n in range(t, QUERIES * HEAD, KEYS):",
                "for n in range(0 if t == 0 else QUERIES * HEAD, QUERIES * HEAD):",
            ),
        ),
        _cheat(
            "added up in memory",
            (
                "                    dk[d] += slope * Q_tile[i, d]\n",
                "                    dk[d] += slope * Q_tile[i, d]\n                    dK[d, key] = dk[d]\n",
            ),
        ),
        _other(
            "another's kernel", "from labkit.attention.backward.s01_recomputed import recomputed as gradients_of_keys\n"
        ),
        _other(
            "maximum and sum again",
            """
from math import exp


@cuda.jit
def gradients_of_keys(Q, K, V, dO, lse, delta, dK, dV):
    dk = cuda.local.array(8, np.float32)
    dv = cuda.local.array(8, np.float32)
    key = cuda.grid(1)
    queries, keys = Q.shape[0], K.shape[1]
    if key < keys:
        for d in range(8):
            dk[d] = dv[d] = 0
        for i in range(max(0, key + queries - keys), queries):
            most, total = np.float32(-np.inf), np.float32(0)
            own, slope = np.float32(0), np.float32(0)
            for j in range(i + keys - queries + 1):
                score = np.float32(0)
                for d in range(8):
                    score += Q[i, d] * K[d, j]
                larger = max(most, score)
                total = total * exp(most - larger) + exp(score - larger)
                most = larger
                own = score if j == key else own
            for d in range(8):
                slope += dO[i, d] * V[d, key]
            weight = exp(own - most) / total
            for d in range(8):
                dv[d] += weight * dO[i, d]
                dk[d] += weight * (slope - delta[i]) * Q[i, d]
        for d in range(8):
            dK[d, key], dV[d, key] = dk[d], dv[d]
""",
        ),
        _other(
            "a thread for each key, without tiles",
            """
from math import exp


@cuda.jit
def gradients_of_keys(Q, K, V, dO, lse, delta, dK, dV):
    dk = cuda.local.array(8, np.float32)
    dv = cuda.local.array(8, np.float32)
    key = cuda.grid(1)
    queries, keys = Q.shape[0], K.shape[1]
    if key < keys:
        for d in range(8):
            dk[d] = dv[d] = 0
        for i in range(max(0, key + queries - keys), queries):
            score, slope = np.float32(0), np.float32(0)
            for d in range(8):
                score += Q[i, d] * K[d, key]
                slope += dO[i, d] * V[d, key]
            weight = exp(score - lse[i])
            for d in range(8):
                dv[d] += weight * dO[i, d]
                dk[d] += weight * (slope - delta[i]) * Q[i, d]
        for d in range(8):
            dK[d, key], dV[d, key] = dk[d], dv[d]
""",
        ),
    ),
    "17.3": (
        _cheat(
            "in double precision",
            ("np.float32(-np.inf), np.float32(0), np.float32(0)", "np.float32(-np.inf), np.float64(0), np.float32(0)"),
        ),
        _cheat(
            "loaded again by atomics",
            ("weight * O_parts[part, row, d]", "weight * cuda.atomic.add(O_parts, (part, row, d), np.float32(0))"),
        ),
        _cheat(
            "kept in the output",
            ("                most = larger\n", "                most = larger\n                O[row, d] = o\n"),
        ),
        _other("another's kernel", "from labkit.softmax.online import of_warp as merge_split\n"),
        _other(
            "the maximum first",
            """
from math import exp, log


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    d, row = cuda.grid(2)
    if row < lse.size:
        most, total, o = np.float32(-3e38), np.float32(0), np.float32(0)
        for part in range(lse_parts.shape[0]):
            most = max(most, lse_parts[part, row])
        for part in range(lse_parts.shape[0]):
            weight = exp(lse_parts[part, row] - most)
            if weight > np.float32(0):
                total += weight
                o += weight * O_parts[part, row, d]
        O[row, d] = o / total if total > np.float32(0) else np.float32(0)
        if d == 0:
            lse[row] = most + log(total) if total > np.float32(0) else np.float32(-np.inf)
""",
        ),
        _other(
            "one thread for a row",
            """
from math import exp, log


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    d, row = cuda.grid(2)
    if row < lse.size and d == 0:
        for n in range(32):
            most, total, o = np.float32(-np.inf), np.float32(0), np.float32(0)
            for part in range(lse_parts.shape[0]):
                of_part = lse_parts[part, row]
                if of_part > np.float32(-np.inf):
                    larger = max(most, of_part)
                    total = total * exp(most - larger) + exp(of_part - larger)
                    o = o * exp(most - larger) + exp(of_part - larger) * O_parts[part, row, n]
                    most = larger
            O[row, n] = o / total if total > np.float32(0) else np.float32(0)
            if n == 0:
                lse[row] = most + log(total) if total > np.float32(0) else np.float32(-np.inf)
""",
        ),
        _other(
            "log-sum-exps kept in shared memory",
            """
from math import exp, log

MOST = 128


@cuda.jit
def merge_split(O_parts, lse_parts, O, lse):
    kept = cuda.shared.array((4, MOST), np.float32)
    d, row = cuda.grid(2)
    y, parts = cuda.threadIdx.y, lse_parts.shape[0]
    for part in range(d, parts, 32):
        kept[y, part] = lse_parts[part, row] if row < lse.size else np.float32(-np.inf)
    cuda.syncthreads()
    most, total, o = np.float32(-3e38), np.float32(0), np.float32(0)
    for part in range(parts):
        most = max(most, kept[y, part])
    for part in range(parts):
        weight = exp(kept[y, part] - most)
        if weight > np.float32(0):
            total += weight
            o += weight * O_parts[part, row, d]
    if row < lse.size:
        O[row, d] = o / total if total > np.float32(0) else np.float32(0)
        if d == 0:
            lse[row] = most + log(total) if total > np.float32(0) else np.float32(-np.inf)
""",
        ),
    ),
    "17.4": (
        _cheat(
            "copies that are waited for at once",
            (
                "            ptx.cp_async_commit()\n",
                "            ptx.cp_async_commit()\n            ptx.cp_async_wait(0)\n",
            ),
        ),
        _cheat("in double precision", ("np.float32(1) + erf", "1 + erf")),
        _cheat(
            "plain loads and stores",
            (
                "ptx.cp_async(A_tiles, (stage, y, x), A, (row, k + x), 4, 4 if row < M and k + x < K else 0)",
                "A_tiles[stage, y, x] = A[row, k + x] if row < M and k + x < K else np.float32(0)",
            ),
            (
                "ptx.cp_async(B_tiles, (stage, y, x), B, (k + y, col), 4, 4 if k + y < K and col < N else 0)",
                "B_tiles[stage, y, x] = B[k + y, col] if k + y < K and col < N else np.float32(0)",
            ),
        ),
        _cheat(
            "one of the two by plain loads",
            (
                "ptx.cp_async(B_tiles, (stage, y, x), B, (k + y, col), 4, 4 if k + y < K and col < N else 0)",
                "B_tiles[stage, y, x] = B[k + y, col] if k + y < K and col < N else np.float32(0)",
            ),
        ),
        _cheat(
            "factors from memory",
            (
                "A_tiles[stage, y, k] * B_tiles[stage, k, x]",
                "A_tiles[stage, y, k] * (B[(step - 1) * TILE + k, col] if (step - 1) * TILE + k < K and "
                "col < N else np.float32(0))",
            ),
        ),
        _cheat(
            "GELU in a second pass",
            (
                "        C[row, col] = HALF * total * (np.float32(1) + erf(total * ROOT_HALF))",
                "        C[row, col] = total\n"
                "        C[row, col] = HALF * C[row, col] * (np.float32(1) + erf(C[row, col] * ROOT_HALF))",
            ),
        ),
        _cheat(
            "two barriers",
            ("        if step < steps:\n", "        cuda.syncthreads()\n        if step < steps:\n"),
        ),
        _other("another's kernel", "from labkit.gemm.fp32.s03_tiled import tiled as gemm_gelu\n"),
        _other(
            "a copy of nothing is under way all the time",
            """
from math import erf

HALF, ROOT_HALF = np.float32(0.5), np.float32(0.5**0.5)


@cuda.jit
def gemm_gelu(A, B, C):
    A_tiles = cuda.shared.array((2, 17, 16), np.float32)
    B_tiles = cuda.shared.array((2, 17, 16), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    M, N, K = C.shape[0], C.shape[1], A.shape[1]
    total = np.float32(0)
    for k in range(0, K, 16):
        stage = k // 16 % 2
        ptx.cp_async(A_tiles, (stage, y, x), A, (row, k + x), 4, 4 if row < M and k + x < K else 0)
        ptx.cp_async(B_tiles, (stage, y, x), B, (k + y, col), 4, 4 if k + y < K and col < N else 0)
        ptx.cp_async_commit()
        if y == 0:
            ptx.cp_async(A_tiles, (stage, 16, x), A, (0, 0), 4, 0)
            ptx.cp_async(B_tiles, (stage, 16, x), B, (0, 0), 4, 0)
        ptx.cp_async_commit()
        ptx.cp_async_wait(1)
        cuda.syncthreads()
        for n in range(16):
            total += A_tiles[stage, y, n] * B_tiles[stage, n, x]
        ptx.cp_async_wait(0)
    if row < M and col < N:
        C[row, col] = HALF * total * (np.float32(1) + erf(total * ROOT_HALF))
""",
        ),
    ),
}
