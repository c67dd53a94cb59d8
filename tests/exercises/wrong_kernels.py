"""Kernels that are wrong in a way that is easily missed: beyond the sizes published, or for some factors alone."""

from variants import Variant


def _wrong(what, *edits):
    return Variant(what, "wrong", edits)


def _same_by_stride(rows, columns):
    """Edits of 07.1 that take this many zeros in all."""
    return (
        ("max(0, (P - 1) * stride + R - H) // 2", f"max(0, {rows}) // 2"),
        ("max(0, (Q - 1) * stride + S - W) // 2", f"max(0, {columns}) // 2"),
    )


WRONG = {
    "00.1": (
        _wrong("no more rounds than are published", ("range(rounds)", "range(min(rounds, 20))")),
        _wrong("no more rounds than threads", ("range(rounds)", "range(min(rounds, 64))")),
        _wrong("at least one round", ("range(rounds)", "range(max(rounds, 1))")),
        _wrong("each warp for itself", ("hand[(me - 1) % 64]", "hand[me // 32 * 32 + (me - 1) % 32]")),
        _wrong(
            "a barrier in the first rounds alone",
            ("for _ in range", "for r in range"),
            (
                "        cuda.syncthreads()\n        hand",
                "        if r < 20:\n            cuda.syncthreads()\n        hand",
            ),
        ),
    ),
    "01.1": (
        _wrong("the longest sum that is published", ("range(A.shape[1])", "range(min(A.shape[1], 30))")),
        _wrong("an even number of products", ("range(A.shape[1])", "range(A.shape[1] // 2 * 2)")),
        _wrong("at least two products", ("range(A.shape[1])", "range(max(A.shape[1], 2))")),
        _wrong("the rows that are published", ("range(C.shape[0])", "range(min(C.shape[0], 30))")),
        _wrong("the columns that are published", ("range(C.shape[1])", "range(min(C.shape[1], 30))")),
    ),
    "01.2": (
        _wrong("an even number of products", ("for k in range(K)", "for k in range(K // 2 * 2)")),
        _wrong("the columns that are published", ("    N = B.shape[1]", "    N = min(B.shape[1], 56)")),
        _wrong("at least two rows", ("for i in range(M):\n        for k", "for i in range(max(M, 2)):\n        for k")),
    ),
    "01.3": (
        _wrong("the longest sum that is published", ("range(0, K, BLOCK)", "range(0, min(K, 205), BLOCK)")),
        _wrong("the columns that are published", ("    N = B.shape[1]", "    N = min(B.shape[1], 170)")),
        _wrong("an even number of products", ("min(k0 + BLOCK, K)", "min(k0 + BLOCK, K // 2 * 2)")),
    ),
    "02.1": (
        _wrong("the size of a", ("a * x[i]", "abs(a) * x[i]")),
        _wrong("no negative a", ("a * x[i]", "max(a, np.float32(0)) * x[i]")),
        _wrong("one a alone", ("a * x[i]", "np.float32(2.5) * x[i]")),
        _wrong("nothing where a is 0", ("if i < out.size:", "if i < out.size and a != 0:")),
        _wrong("a in half precision", ("a * x[i]", "np.float32(np.float16(a)) * x[i]")),
        _wrong("a of 2.5 at most", ("a * x[i]", "min(a, np.float32(2.5)) * x[i]")),
        _wrong("a of 1 taken for 2", ("a * x[i]", "(a if abs(a) != 1 else np.float32(2)) * x[i]")),
        _wrong("the elements that are published", ("if i < out.size:", "if i < min(out.size, 2000):")),
        _wrong("an even number of elements", ("if i < out.size:", "if i < out.size // 2 * 2:")),
        _wrong("at least 32 elements", ("if i < out.size:", "if i < max(out.size, 32):")),
    ),
    "02.2": (
        _wrong("the rows that are published", ("row < C.shape[0]", "row < min(C.shape[0], 120)")),
        _wrong("the columns that are published", ("col < C.shape[1]", "col < min(C.shape[1], 140)")),
        _wrong("an even number of columns", ("col < C.shape[1]", "col < C.shape[1] // 2 * 2")),
        _wrong("at least two rows", ("row < C.shape[0]", "row < max(C.shape[0], 2)")),
    ),
    "02.3": (
        _wrong("the elements that are published", ("if i < x.size:", "if i < min(x.size, 2000):")),
        _wrong("an even number of elements", ("if i < x.size:", "if i < x.size // 2 * 2:")),
        _wrong("blocks of 64", ("j * cuda.blockDim.x", "j * 64")),
    ),
    "02.4": (
        _wrong("the size of alpha", ("alpha * total", "abs(alpha) * total")),
        _wrong("alpha of 0 taken for 1", ("alpha * total", "(alpha if alpha != 0 else np.float32(1)) * total")),
        _wrong("alpha of 1.5 at most", ("alpha * total", "min(alpha, np.float32(1.5)) * total")),
        _wrong("C stored for each k", ("        C[row, col] = alpha", "            C[row, col] = alpha")),
        _wrong("the longest sum that is published", ("range(A.shape[1])", "range(min(A.shape[1], 100))")),
        _wrong("an even number of products", ("range(A.shape[1])", "range(A.shape[1] // 2 * 2)")),
        _wrong("the rows that are published", ("row < C.shape[0]", "row < min(C.shape[0], 64)")),
        _wrong("the columns that are published", ("col < C.shape[1]", "col < min(C.shape[1], 96)")),
    ),
    "03.1": (
        _wrong("the longest sum that is published", ("range(0, K, TILE)", "range(0, min(K, 100), TILE)")),
        _wrong("the rows that are published", ("    if row < M and col < N:", "    if row < min(M, 64) and col < N:")),
        _wrong("what C held is lost", ("C[row, col] += total", "C[row, col] = total")),
        _wrong(
            "no second barrier in the later rounds",
            (
                "B_tile[k, x]\n        cuda.syncthreads()\n",
                "B_tile[k, x]\n        if start < 100:\n            cuda.syncthreads()\n",
            ),
        ),
    ),
    "03.2": (
        _wrong("the rows that are published", ("row < T.shape[0]", "row < min(T.shape[0], 136)")),
        _wrong("an even number of columns", ("col < T.shape[1]", "col < T.shape[1] // 2 * 2")),
        _wrong("wide enough for the columns alone", ("WIDTH = TILE + 1", "WIDTH = 31")),
    ),
    "03.3": (
        _wrong("the size of alpha", ("alpha * total", "abs(alpha) * total")),
        _wrong("alpha of 0 taken for 1", ("alpha * total", "(alpha if alpha != 0 else np.float32(1)) * total")),
        _wrong("the longest sum that is published", ("range(0, K, TILE)", "range(0, min(K, 100), TILE)")),
    ),
    "03.4": (
        _wrong("the longest sum that is published", ("range(0, K, TILE)", "range(0, min(K, 100), TILE)")),
        _wrong("the rows that are published", ("    if row < M and col < N:", "    if row < min(M, 64) and col < N:")),
        _wrong(
            "the columns that are published", ("    if row < M and col < N:", "    if row < M and col < min(N, 96):")
        ),
        _wrong("an even number of products", ("if start + y < K and top + x", "if start + y < K // 2 * 2 and top + x")),
        _wrong(
            "C stored in each round",
            (
                "        cuda.syncthreads()\n    if row < M and col < N:\n        C[row, col]",
                "        cuda.syncthreads()\n        if row < M and col < N:\n            C[row, col]",
            ),
        ),
        _wrong("the first round is not enough", ("total = np.float32(0)", "total = np.float32(1e-3) * (K == 1)")),
    ),
    "04.1": (
        _wrong(
            "the blocks that are published",
            ("range(lane, cuda.gridDim.x, 32)", "range(lane, min(cuda.gridDim.x, 60), 32)"),
        ),
        _wrong(
            "the elements that are published", ("range(cuda.grid(1), x.size,", "range(cuda.grid(1), min(x.size, 3000),")
        ),
        _wrong("an even number of elements", ("range(cuda.grid(1), x.size,", "range(cuda.grid(1), x.size // 2 * 2,")),
        _wrong(
            "squares in half precision", ("total += apart * apart", "total += np.float32(np.float16(apart * apart))")
        ),
        _wrong(
            "the last of many elements", ("range(cuda.grid(1), x.size,", "range(cuda.grid(1), x.size - x.size // 2500,")
        ),
        _wrong(
            "a fence in the first blocks alone",
            (
                "        cuda.threadfence()\n        before",
                "        if cuda.blockIdx.x < 40:\n            cuda.threadfence()\n        before",
            ),
        ),
    ),
    "04.2": (
        _wrong(
            "the columns that are published", ("range(lane, X.shape[1], 32)", "range(lane, min(X.shape[1], 200), 32)")
        ),
        _wrong("an even number of columns", ("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] // 2 * 2, 32)")),
        _wrong("the rows that are published", ("    if lane == 0:", "    if lane == 0 and row < 20:")),
    ),
    "04.3": (
        _wrong("the inputs that are published", ("range(0, inputs, BATCH)", "range(0, min(inputs, 72), BATCH)")),
        _wrong(
            "the columns that are published", ("range(lane, A.shape[1], 32)", "range(lane, min(A.shape[1], 120), 32)")
        ),
    ),
    "04.4": (
        _wrong("the columns that are published", ("range(lane, x.size, 32)", "range(lane, min(x.size, 200), 32)")),
        _wrong("the rows that are published", ("    if lane == 0:", "    if lane == 0 and row < 40:")),
        _wrong("an even number of columns", ("range(lane, x.size, 32)", "range(lane, x.size // 2 * 2, 32)")),
    ),
    "05.1": (
        _wrong("the longest sum that is published", ("range(0, K, BK)", "range(0, min(K, 100), BK)")),
        _wrong("the rows that are published", ("if row < M and left", "if row < min(M, 64) and left")),
        _wrong("an even number of rows", ("if row < M and left", "if row < M // 2 * 2 and left")),
    ),
    "05.2": (
        _wrong("the longest sum that is published", ("range(0, K, BK)", "range(0, min(K, 100), BK)")),
        _wrong("the columns that are published", ("if row < M and col < N:", "if row < M and col < min(N, 128):")),
    ),
    "05.3": (
        _wrong(
            "the rows that are published",
            ("        if top + t < A.shape[0]", "        if top + t < min(A.shape[0], 190)"),
        ),
        _wrong(
            "an even number of rows", ("        if top + t < A.shape[0]", "        if top + t < A.shape[0] // 2 * 2")
        ),
    ),
    "05.4": (
        _wrong("the size of alpha", ("C[row, col] = alpha * total + beta", "C[row, col] = abs(alpha) * total + beta")),
        _wrong("the size of beta", ("beta * C[row, col]", "abs(beta) * C[row, col]")),
        _wrong(
            "beta of 2 at most", ("beta * C[row, col]", "max(np.float32(-2), min(beta, np.float32(2))) * C[row, col]")
        ),
        _wrong("a small beta taken for 0", ("if beta == 0:", "if abs(beta) < np.float32(0.5):")),
        _wrong("beta of 1 taken for 0", ("if beta == 0:", "if beta == 0 or beta == 1:")),
        _wrong(
            "nothing where alpha is 0", ("    if row < M and col < N:", "    if row < M and col < N and alpha != 0:")
        ),
        _wrong("a NaN in C taken for 0", ("        if beta == 0:", "        if C[row, col] != C[row, col]:")),
        _wrong("alpha of 1 where beta is 0", ("C[row, col] = alpha * total\n", "C[row, col] = total\n")),
        _wrong("the longest sum that is published", ("range(0, K, TILE)", "range(0, min(K, 64), TILE)")),
    ),
    "06.1": (
        _wrong("the longest sum that is published", ("range(0, A.shape[1], 8)", "range(0, min(A.shape[1], 80), 8)")),
        _wrong(
            "the rows that are published", ("top, left = cuda.blockIdx.y * 16", "top, left = cuda.blockIdx.y % 4 * 16")
        ),
    ),
    "06.2": (
        _wrong("the longest sum that is published", ("range(0, A.shape[1], 32)", "range(0, min(A.shape[1], 128), 32)")),
        _wrong("seven rows alone", ("return piece ^ row % 8", "return piece ^ row % 7")),
    ),
    "06.3": (
        _wrong("the longest sum that is published", ("steps = A.shape[1] // 8", "steps = min(A.shape[1] // 8, 10)")),
        _wrong(
            "a wait in the first steps alone",
            (
                "            ptx.cp_async_wait(AHEAD)",
                "            if step < 10:\n                ptx.cp_async_wait(AHEAD)",
            ),
        ),
    ),
    "06.4": (
        _wrong("the longest sum that is published", ("range(0, A.shape[1], 8)", "range(0, min(A.shape[1], 64), 8)")),
        _wrong("the columns that are published", ("if row < M and col < N:", "if row < M and col < min(N, 64):")),
        _wrong("the rows that are published", ("if row < M and col < N:", "if row < min(M, 32) and col < N:")),
        _wrong("an even number of columns", ("if row < M and col < N:", "if row < M and col < N // 2 * 2:")),
    ),
    "07.1": (
        _wrong(
            "filters of odd size",
            ("max(0, (P - 1) * stride + R - H) // 2", "max(0, (P - 1) * stride + R // 2 * 2 + 1 - H) // 2"),
        ),
        _wrong("a stride that divides the image", *_same_by_stride("R - stride", "S - stride")),
        _wrong(
            "one more if it does not",
            *_same_by_stride("R - stride + (H % stride > 0)", "S - stride + (W % stride > 0)"),
        ),
        _wrong("the rest more", *_same_by_stride("R - stride + H % stride", "S - stride + W % stride")),
        _wrong("an even image where the stride is 2", ("(P - 1) * stride + R - H", "H - stride + R - H")),
        _wrong("strides of 1 and 2", ("(Q - 1) * stride + S - W", "(Q - 1) * min(stride, 2) + S - W")),
        _wrong("square images", ("(W + stride - 1) // stride", "(H + stride - 1) // stride")),
        _wrong("square filters", ("(Q - 1) * stride + S - W", "(Q - 1) * stride + R - W")),
        _wrong("the channels that are published", ("range(C)", "range(min(C, 3))"), ("range(R)", "range(min(R, 4))")),
        _wrong("the rows that are published", ("if p < P", "if p < min(P, 12)")),
    ),
    "07.2": (
        _wrong("the rows that are published", ("if top + ty < y.shape[0]", "if top + ty < min(y.shape[0], 47)")),
        _wrong("the columns that are published", ("left + tx < y.shape[1]", "left + tx < min(y.shape[1], 64)")),
        _wrong("a barrier for warps alone", ("    cuda.syncthreads()\n", "    cuda.syncwarp()\n")),
        _wrong("an even number of columns", ("left + tx < y.shape[1]", "left + tx < y.shape[1] // 2 * 2")),
        _wrong("at least a whole tile", ("if top + row < H and", "if top + row < max(H, ROWS) and")),
    ),
    "07.3": (
        _wrong("a dilation of no more than 3", ("r * dilation", "r * min(dilation, 3)")),
        _wrong("a dilation of no more than 5", ("s * dilation", "s * min(dilation, 5)")),
        _wrong("three channels of a group", ("range(C)", "range(min(C, 3))")),
        _wrong("five rows of a filter", ("range(R)", "range(min(R, 5))")),
        _wrong("one dilation of rows for columns as well", ("s * dilation", "s * (dilation if R > 1 else 1)")),
        _wrong("at least two groups", ("first + c", "(first if groups > 1 else 0 * k + 1) % x.shape[2] + c")),
        _wrong("as many filters as channels", ("k // (K // groups) * C", "k // C * C")),
        _wrong("filters of at most three columns", ("range(S)", "range(min(S, 3))")),
        _wrong("the rows that are published", ("p < y.shape[0]", "p < min(y.shape[0], 12)")),
        _wrong("turned in columns where there is more than one row", ("S - 1 - s", "(S - 1 - s if R > 1 else s)")),
    ),
    "07.4": (
        _wrong("a rate that is positive", ("heated = now[r, c] + rate", "heated = now[r, c] + abs(rate)")),
        _wrong("the last row kept as it is", ("if row < H and col < W", "if row < max(H - 1, 1) and col < W")),
        _wrong(
            "no heat lost to the right",
            (
                "else zero\n    cuda.syncthreads()\n    r, c",
                "else (zero if col < W else heated)\n    cuda.syncthreads()\n    r, c",
            ),
        ),
        _wrong("the columns that are published", ("if row < H and col < W", "if row < H and col < min(W, 64)")),
        _wrong(
            "the plate goes on around itself",
            ("t[row, col] if 0 <= row < H", "t[(row + H) % H, col] if -2 <= row < H + 2"),
        ),
        _wrong("a barrier of each warp", ("    cuda.syncthreads()\n    for", "    cuda.syncwarp()\n    for")),
    ),
    "08.1": (
        _wrong("no more than two images", ("npq // (P * Q), npq", "min(npq // (P * Q), 2), npq")),
        _wrong("no more than five channels", ("rsc // C % S, rsc % C", "rsc // C % S, min(rsc % C, 4)")),
        _wrong("square outputs", ("npq // Q % P, npq % Q", "npq // P % P, npq % P")),
        _wrong("square windows", ("rsc // (S * C), rsc // C % S", "rsc // C % S, rsc // (S * C)")),
        _wrong("a stride of rows alone", ("q * stride + s", "q * min(stride, 2) + s")),
        _wrong("strides of one and two", ("p * stride + r", "p * min(stride, 2) + r")),
        _wrong(
            "outputs of up to seven columns",
            ("if rsc < matrix.shape[0] and", "if npq % Q < 7 and rsc < matrix.shape[0] and"),
        ),
        _wrong("windows of three rows", ("r, s, c = rsc // (S * C)", "r, s, c = rsc // (S * C) % 5")),
        _wrong("windows of six rows", ("r, s, c = rsc // (S * C)", "r, s, c = min(rsc // (S * C), 5)")),
        _wrong("windows of five columns", ("rsc // C % S, rsc % C", "min(rsc // C % S, 4), rsc % C")),
        _wrong("strides up to 3 along a row", ("q * stride", "q * min(stride, 3)")),
        _wrong("strides up to 4 along a row", ("q * stride", "q * min(stride, 4)")),
    ),
    "08.2": (
        _wrong("numbers below 2**31", ("n = numbers[i]", "n = numbers[i] & np.uint32(0x7FFFFFFF)")),
        _wrong("all but the largest number", ("n = numbers[i]", "n = min(numbers[i], np.uint32(0xFFFFFFFE))")),
        _wrong(
            "divisors that are no power of two",
            ("high + np.uint64(n)", "high + (np.uint64(n) if multiplier else np.uint64(0))"),
        ),
        _wrong(
            "rounded to the nearest",
            (">> np.uint64(shift)", "+ (np.uint64(1) << np.uint64(shift) >> np.uint64(1)) >> np.uint64(shift)"),
        ),
        _wrong("shifts of up to 16", ("np.uint64(shift)", "np.uint64(min(shift, 16))")),
        _wrong("a multiplier of 31 bits", ("np.uint64(multiplier)", "np.uint64(multiplier & np.uint32(0xFFFFFFFE))")),
        _wrong("the numbers that are published", ("if i < numbers.size:", "if i < min(numbers.size, 200):")),
        _wrong(
            "a sum that overflows for the largest",
            ("(high + np.uint64(n))", "(high + np.uint64(n) & np.uint64(0xFFFFFFFF))"),
        ),
    ),
    "08.3": (
        _wrong("left of the image", ("np.uint32(col) < np.uint32(W)", "col < W and col > -2")),
        _wrong("above the image", ("np.uint32(row) < np.uint32(H)", "row < H and row > -2")),
        _wrong("the last row", ("np.uint32(row) < np.uint32(H)", "np.uint32(row) < np.uint32(max(H - 1, 1))")),
        _wrong("square images", ("np.uint32(col) < np.uint32(W)", "np.uint32(col) < np.uint32(H)")),
        _wrong(
            "the images that are published", ("np.uint32(col) < np.uint32(W)", "np.uint32(col) < np.uint32(min(W, 40))")
        ),
        _wrong("half of a pixel", ("4 if inside else 0", "2 if inside else 0")),
        _wrong(
            "a wait of the first warp", ("    ptx.cp_async_wait(0)\n", "    if t < 32:\n        ptx.cp_async_wait(0)\n")
        ),
        _wrong("a border that is copied", ("4 if inside else 0", "4 if inside or row * W + col == 0 else 0")),
        _wrong("at most 5 columns of taps", ("S, (first + i) % S", "min(S, 5), (first + i) % min(S, 5)")),
        _wrong("at most 4 rows of taps", ("p + r - top", "p + min(r, 3) - top")),
        _wrong("at most 2 rows of zeros", ("p + r - top", "p + r - min(top, 2)")),
        _wrong("at most 3 columns of zeros", ("q + s - left", "q + s - min(left, 3)")),
    ),
    "08.4": (
        _wrong("the taps that are published", ("range(0, C * L, TILE)", "range(0, min(C * L, 48), TILE)")),
        _wrong("whole tiles of taps", ("range(0, C * L, TILE)", "range(0, max(C * L // TILE, 1) * TILE, TILE)")),
        _wrong(
            "the outputs that are published", ("if k < K and t < y.shape[1]:", "if k < K and t < min(y.shape[1], 70):")
        ),
        _wrong(
            "the filters that are published", ("if k < K and t < y.shape[1]:", "if k < min(K, 33) and t < y.shape[1]:")
        ),
        _wrong("hops of up to three", ("t * hop + l", "t * min(hop, 3) + l")),
        _wrong("three channels", ("c < C else zero\n        cuda", "c < min(C, 3) else zero\n        cuda")),
        _wrong(
            "a barrier of each warp",
            ("        cuda.syncthreads()\n        for", "        cuda.syncwarp()\n        for"),
        ),
        _wrong(
            "an even number of outputs",
            ("if k < K and t < y.shape[1]:", "if k < K and t < max(y.shape[1] // 2 * 2, 1):"),
        ),
    ),
    "09.1": (
        _wrong("the tiles that are published", ("if t < V.shape[1]", "if t < min(V.shape[1], 33)")),
        _wrong("twice the tiles that are published", ("x[2 * t + 3]\n", "x[min(2 * t + 3, 67)]\n")),
        _wrong("pixels that are not negative", ("two * d0 - three", "two * abs(d0) - three")),
        _wrong("even numbers of tiles", ("if t < V.shape[1]", "if t < max(V.shape[1] // 2 * 2, 1)")),
        _wrong("small pixels", ("v2 = d2 - d1", "v2 = min(d2 - d1, three)")),
        _wrong(
            "digits that are lost", ("two * d1 - three * d2 + d3", "three * (d1 - d2) - d1 + d3 * np.float32(1.00001)")
        ),
    ),
    "09.2": (
        _wrong("a single row of zeros", ("tile_y + i - pad", "tile_y + i - min(pad, 1)")),
        _wrong("the zeros that are published, in columns", ("tile_x + j - pad", "tile_x + j - min(pad, 1)")),
        _wrong("the columns that are published", ("2 * tile_x >= y.shape[1]", "2 * tile_x >= min(y.shape[1], 18)")),
        _wrong("the rows that are published", ("2 * tile_y >= y.shape[0]", "2 * tile_y >= min(y.shape[0], 9)")),
        _wrong(
            "as many rows of pixels as of outputs", ("0 <= row < x.shape[0]", "0 <= row < min(x.shape[0], y.shape[0])")
        ),
        _wrong("the first rows alone at the end", ("0 <= row < x.shape[0]", "0 <= row < x.shape[0] + pad // 2")),
        _wrong("an even number of columns at the end", ("if col + 1 < y.shape[1]", "if col + 2 < y.shape[1]")),
        _wrong("no zeros on the left where there are two", ("0 <= col", "(0 <= col or pad == 2 and col == -2)")),
    ),
    "09.3": (
        _wrong(
            "filters of at most five taps",
            ("(m + R[i] - 1) * (m + R[i] - 1)", "(m + min(R[i], 5) - 1) * (m + R[i] - 1)"),
        ),
        _wrong("square outputs", ("((Q[i] + m - 1) // m)", "((P[i] + m - 1) // m)")),
        _wrong("the layers that are published", ("if i < P.size", "if i < min(P.size, 40)")),
        _wrong(
            "a remainder of one or none",
            ("(P[i] + m - 1) // m", "(P[i] // m + min(P[i] % m, 1))"),
            ("((Q[i] + m - 1) // m)", "(Q[i] // m + (Q[i] % m == 1))"),
        ),
        _wrong(
            "no tile that is larger than the outputs",
            ("if count < least", "if count < least and m <= P[i] and m <= Q[i]"),
        ),
        _wrong("large layers by the largest tile", ("if count < least", "if count < least or P[i] > 200 and m == 6")),
        _wrong(
            "filters of one tap by tiles",
            ("P[i] * Q[i] * R[i] * R[i], 1", "P[i] * Q[i] * R[i] * R[i] + (R[i] == 1), 1"),
        ),
        _wrong("filters of up to seven taps", ("(m + R[i] - 1) * (m + R[i] - 1)", "(m + min(R[i], 7) - 1) ** 2")),
        _wrong("the largest tile where it is as good", ("if count < least", "if count < least + (m == 6)")),
        _wrong("the larger of two tiles", ("if count < least", "if count < least + (tile > 1)")),
    ),
    "09.4": (
        _wrong("the channels that are published", ("range(x.shape[0])", "range(min(x.shape[0], 3))")),
        _wrong("the tiles that are published", ("if t < V.shape[2]", "if t < min(V.shape[2], 38)")),
        _wrong(
            "an odd number of outputs where there is one",
            ("if 2 * t + 1 < y.size", "if t == 0 and y.size > 1 or 2 * t + 2 < y.size + y.size % 2"),
        ),
        _wrong(
            "one zero at the end",
            ("if 2 * t + i < x.shape[1]", "if 2 * t + i < x.shape[1] and i < 5 or 2 * t + 5 < x.shape[1] - 1"),
        ),
        _wrong("one channel where there are many", ("m[i] += U[i, c]", "m[i] += U[i, c % 4]")),
        _wrong(
            "points 0, 1, -1, -2, 2",
            ("V[3, c, t] = d[4] - d[2] + two", "V[3, c, t] = d[4] - d[2] - two"),
            ("V[4, c, t] = d[4] - d[2] - two", "V[4, c, t] = d[4] - d[2] + two"),
        ),
        _wrong("pixels in a small range", ("d[i] = x[c, 2 * t + i]", "d[i] = min(x[c, 2 * t + i], np.float32(2.5))")),
    ),
    "10.1": (
        _wrong("the digits that are published", ("in range(digits)", "in range(min(digits, 4))")),
        _wrong("an even number of digits", ("in range(digits)", "in range((digits + 1) // 2 * 2)")),
        _wrong("imaginary parts in their order", ("re[place], im[place] =", "re[place], im[k] =")),
        _wrong("the points that are published", ("while quarter < points:", "while quarter < min(points, 256):")),
        _wrong("three lines", ("x[line, k, 0], x[line, k, 1]", "x[min(line, 2), k, 0], x[min(line, 2), k, 1]")),
        _wrong(
            "a barrier of each warp", ("x[line, k, 1]\n    cuda.syncthreads()", "x[line, k, 1]\n    cuda.syncwarp()")
        ),
        _wrong(
            "the first and the last digit swapped",
            (
                "        place, rest = 0, k\n        for _ in range(digits):\n"
                "            place, rest = 4 * place + rest % 4, rest // 4\n",
                "        place = k - k % 4 + k * 4 // points\n"
                "        place += (k % 4 - k * 4 // points) * points // 4\n",
            ),
        ),
    ),
    "10.2": (
        _wrong("the taps that are published", ("taps[t] = w[t] if t < S", "taps[t] = w[t] if t < min(S, 12)")),
        _wrong("at least two taps", ("t, S = cuda.threadIdx.x, w.size", "t, S = cuda.threadIdx.x, max(w.size, 2)")),
        _wrong("the first point left out", ("0 <= begin + t < x.size", "0 < begin + t < x.size")),
        _wrong("the last point left out", ("0 <= begin + t < x.size", "0 <= begin + t < x.size - 1")),
        _wrong("the outputs that are published", ("begin + t < y.size", "begin + t < min(y.size, 104)")),
        _wrong("a filter of at most half a tile", ("if t < S else", "if t < min(S, T // 2) else")),
        _wrong("no barrier", ("    cuda.syncthreads()\n", "")),
        _wrong("an even number of taps", ("T - S + 1", "T - S // 2 * 2")),
    ),
    "10.3": (
        _wrong("an even number of points", ("T = Y.shape[1]", "T = Y.shape[1] // 2 * 2")),
        _wrong("no partner for the last bin", ("if 0 < k < T - k", "if 0 < k < T // 2")),
        _wrong("the bins that are published", ("k <= T // 2", "k <= min(T // 2, 35)")),
        _wrong("the lines that are published", ("line < Y.shape[0]", "line < min(Y.shape[0], 9)")),
        _wrong("one warp of bins", ("k <= T // 2", "k < min(T // 2 + 1, 32)")),
        _wrong("a conjugate in even lines alone", ("if turned == 0:", "if turned == 0 and line % 2 == 0:")),
        _wrong("nothing but the real part at bin 0", ("if 0 < k < T - k", "if 1 < k < T - k")),
        _wrong("the conjugate of the product", ("x_re * w_im + x_im * w_re", "-(x_re * w_im + x_im * w_re)")),
    ),
    "10.4": (
        _wrong("carries of one digit", ("carry //= 10", "carry = carry // 10 % 10")),
        _wrong("carries below a thousand", ("carry //= 10", "carry = min(carry // 10, 99)")),
        _wrong("no nine", ("re[k] = a[k] if", "re[k] = min(a[k], 8) if")),
        _wrong("the digits of a that are published", ("if k < a.size", "if k < min(a.size, 64)")),
        _wrong("the digits of b that are published", ("if k < b.size", "if k < min(b.size, 64)")),
        _wrong("rounded down a little", ("np.float32(0.5)", "np.float32(-0.5)")),
        _wrong("numbers of the same length", ("if k < b.size", "if k < a.size")),
        _wrong(
            "128 points", ("        both = re[k]", "        if k >= 128:\n            im[k] = 0\n        both = re[k]")
        ),
        _wrong("no barrier after the product", ("both + both\n    cuda.syncthreads()\n", "both + both\n")),
    ),
    "11.1": (
        _wrong("dilations below 3", ("problem.dilation_w == 1", "problem.dilation_w < 3")),
        _wrong("one stride or the other", ("problem.stride_h == 1 and", "problem.stride_h == 1 or")),
        _wrong("one dilation or the other", ("problem.dilation_h == 1 and", "problem.dilation_h == 1 or")),
        _wrong("groups up to 4", ("problem.groups == 1", "problem.groups <= 4")),
        _wrong("groups that leave several channels", ("problem.groups == 1", "problem.groups < problem.C")),
        _wrong("images of a tile at least", ("taps = ", "taps = problem.H >= 6 and problem.W >= 6 and ")),
        _wrong("more than one channel", ("taps = ", "taps = problem.C > 1 and ")),
        _wrong("outputs in even rows", ("taps = ", "taps = problem.Q % 2 == 0 and ")),
        _wrong("outputs as large as images, or without padding", ("taps = ", "taps = problem.top in (0, 1) and ")),
        _wrong("every format of 32 bits or less", ('format != "float32"', 'format == "float64"')),
        _wrong("all but bfloat16", ('format != "float32"', 'format == "bfloat16"')),
        _wrong("taps that 3 divides", ("problem.R == 3 and problem.S == 3", "problem.R % 3 == problem.S % 3 == 0")),
        _wrong(
            "square filters but three",
            ("problem.R == 3 and problem.S == 3", "problem.R == problem.S and problem.R not in (1, 2, 5)"),
        ),
        _wrong("rows of 3 or 4 taps", ("problem.R == 3", "problem.R in (3, 4)")),
        _wrong("strides but 2 and 3", ("problem.stride_h == 1", "problem.stride_h not in (2, 3)")),
        _wrong("strides 1 and 4", ("problem.stride_w == 1", "problem.stride_w in (1, 4)")),
        _wrong("dilations 1 and 4", ("problem.dilation_h == 1", "problem.dilation_h in (1, 4)")),
        _wrong("odd groups", ("problem.groups == 1", "problem.groups % 2 == 1")),
        _wrong("depthwise too", ("problem.groups == 1", "(problem.groups == 1 or 8 < problem.groups == problem.C)")),
        _wrong("at most 16 images", ("taps = ", "taps = problem.N <= 16 and ")),
        _wrong("at most 64 channels", ("taps = ", "taps = problem.C <= 64 and ")),
        _wrong("at most 32 filters", ("taps = ", "taps = problem.K <= 32 and ")),
        _wrong("small images", ("taps = ", "taps = problem.H <= 64 and ")),
        _wrong("every 32 bits", ('format != "float32"', 'format[-2:] != "32"')),
        _wrong(
            "not padded twice on all sides",
            ("taps = ", "taps = problem.top + problem.bottom + problem.left + problem.right < 8 and "),
        ),
    ),
    "11.2": (
        _wrong("texts joined without a comma", ("return call.x", "return ''.join(map(str, call.x))")),
        _wrong("the pixels of an image", ("return call.x", "return call.x[:2], call.x[2] * call.x[3]")),
        _wrong("the taps of a filter", ("call.w, stride", "call.w[0], call.w[2] * call.w[3], stride")),
        _wrong("the stride of rows", ("w, stride,", "w, stride[0],")),
        _wrong("padding above and on the left", ("padding, call.layout", "padding[0], padding[2], call.layout")),
        _wrong("padding of both axes", ("padding, call.layout", "padding[0] + padding[1], padding[2:], call.layout")),
        _wrong("padding in any order", ("padding, call.layout", "tuple(sorted(padding)), call.layout")),
        _wrong("strides in any order", ("w, stride,", "w, tuple(sorted(stride)),")),
        _wrong("whether there is a limit", ("call.limit_bytes", "call.limit_bytes is None")),
        _wrong("the limit in MB", ("call.limit_bytes", "(call.limit_bytes and call.limit_bytes // 1000000)")),
        _wrong(
            "no limit taken for -1 + 1", ("call.limit_bytes", "(0 if call.limit_bytes is None else call.limit_bytes)")
        ),
        _wrong("16 bits or 32", ("call.format", "call.format == 'float32'")),
        _wrong("the GPU's first letter", ("call.gpu", "call.gpu[0]")),
        _wrong("filters without their number", ("call.w,", "call.w[1:],")),
        _wrong("images without their channels", ("call.x, call.w", "call.x[0], call.x[2:], call.w")),
        _wrong(
            "filters and channels in any order", ("call.w, stride", "tuple(sorted(call.w[:2])), call.w[2:], stride")
        ),
        _wrong("images and channels in any order", ("call.x, call.w", "tuple(sorted(call.x[:2])), call.x[2:], call.w")),
        _wrong("images times channels", ("call.x, call.w", "call.x[0] * call.x[1], call.x[2:], call.w")),
        _wrong("sides as one number", ("call.x, call.w", "call.x[:2], call.x[2] * 1000 + call.x[3], call.w")),
        _wrong(
            "an image's shape as one number",
            ("call.x, call.w", "((call.x[0] * 256 + call.x[1]) * 256 + call.x[2]) * 256 + call.x[3], call.w"),
        ),
        _wrong("taps as two digits", ("call.w, stride", "call.w[:2], call.w[2] * 10 + call.w[3], stride")),
        _wrong("at most 7 taps", ("call.w, stride", "call.w[:2], min(call.w[2], 7), min(call.w[3], 7), stride")),
        _wrong("the GPU's first word", ("call.gpu", "call.gpu[:4]")),
        _wrong(
            "strides up to 4", ("return call.x", "stride = min(stride[0], 4), min(stride[1], 4)\n    return call.x")
        ),
        _wrong("padding up to 2", ("stride, padding, call", "stride, tuple(min(p, 2) for p in padding), call")),
        _wrong(
            "padding in base 4",
            ("stride, padding, call", "stride, 16 * padding[0] + 4 * padding[1] + padding[2], padding[3], call"),
        ),
        _wrong("padding run together", ("stride, padding, call", "stride, ''.join(str(p) for p in padding), call")),
        _wrong("strides run together", ("stride, padding, call", "''.join(str(n) for n in stride), padding, call")),
        _wrong("limits of up to 8 GB", ("call.limit_bytes", "call.limit_bytes and min(call.limit_bytes, 8589934592)")),
        _wrong(
            "a terabyte for no limit",
            ("call.limit_bytes", "(1000000000000 if call.limit_bytes is None else call.limit_bytes)"),
        ),
        _wrong("whether the stream is a new one", ("call.gpu", "call.gpu, call.stream > 100")),
    ),
    "11.3": (
        _wrong(
            "times below a second", ("best is None or", "best is None and row.time_ms < 100 or best is not None and")
        ),
        _wrong("at least some workspace", ("row.reason or", "row.reason or row.workspace_bytes == 0 or")),
        _wrong(
            "a limit of one byte more", ("row.workspace_bytes > limit_bytes", "row.workspace_bytes > limit_bytes + 1")
        ),
        _wrong("only rows up to the eighth", ("for row in rows:", "for row in rows[:7]:")),
        _wrong(
            "a tie goes to the larger",
            ("(row.time_ms, row.workspace_bytes) <", "(row.time_ms, -row.workspace_bytes) <"),
        ),
        _wrong("times in whole milliseconds", ("(row.time_ms, row", "(round(row.time_ms), row")),
        _wrong("no answer for a limit of 0", ("for row in rows:", "for row in (rows if limit_bytes != 0 else ()):")),
        _wrong("the first of the list for none", ("return None if best", "return rows[0].algorithm if rows and best")),
        _wrong("at most eight rows", ("for row in rows:", "for row in rows[:8]:")),
        _wrong("within ten seconds", ("row.reason or", "row.reason or row.time_ms > 10000 or")),
        _wrong("times in hundredths", ("(row.time_ms, row", "(round(row.time_ms, 2), row")),
        _wrong(
            "as fast if within a hundredth",
            (
                "(row.time_ms, row.workspace_bytes) < (best.time_ms, best.workspace_bytes)",
                "row.time_ms < 0.99 * best.time_ms "
                "or row.time_ms < 1.01 * best.time_ms and row.workspace_bytes < best.workspace_bytes",
            ),
        ),
        _wrong(
            "a gigabyte for no limit",
            (
                "(limit_bytes is not None and row.workspace_bytes > limit_bytes)",
                "row.workspace_bytes > (1000000000 if limit_bytes is None else limit_bytes)",
            ),
        ),
        _wrong("reasons that are published", ("if row.reason or", "if row.reason[:3] in ('the', 'it ') or")),
        _wrong(
            "alike go by name",
            (
                "(row.time_ms, row.workspace_bytes) < (best.time_ms, best.workspace_bytes)",
                "(row.time_ms, row.workspace_bytes, row.algorithm) < "
                "(best.time_ms, best.workspace_bytes, best.algorithm)",
            ),
        ),
    ),
    "11.4": (
        _wrong("four bytes of change", ("4 * keys <=", "4 * keys - 4 <=")),
        _wrong("memory for numbers and keys", ("4 * keys <=", "4 * (keys + numbers) <=")),
        _wrong("memory for two copies", ("4 * numbers <=", "8 * numbers <=")),
        _wrong("rounds up to a million numbers", ("while length < numbers", "while length < min(numbers, 1000000)")),
        _wrong("twenty rounds", ("while length < numbers", "while length < numbers and rounds < 16")),
        _wrong("keys of positive numbers", ("highest - lowest + 1", "highest - max(lowest, 0) + 1")),
        _wrong("one round at least", ("rounds, length = 0, 1\n", "rounds, length = 1, 2\n")),
        _wrong("insertion below 32 numbers", ("return min(", "return 'insertion' if numbers < 32 else min(")),
        _wrong("the book's costs", ("costs.counting_ns", "2.0")),
        _wrong("no keys beyond a million", ("if 4 * keys", "if keys < 1000000 and 4 * keys")),
        _wrong(
            "insertion for few numbers alone",
            ("return min(", "return min(list(times)[1:], key=times.get) if numbers > 600 and len(times) > 1 else min("),
        ),
        _wrong("merging never below 2 ns", ("costs.merge_ns *", "max(costs.merge_ns, 2.0) *")),
        _wrong("merging never above 12 ns", ("costs.merge_ns *", "min(costs.merge_ns, 12.0) *")),
        _wrong("a key too few in the time", ("(numbers + keys)", "(numbers + keys - 1)")),
        _wrong("rounds that grow by less", ("length * 2", "length * 2 - 1 * (rounds > 0)")),
        _wrong("rounds up to four million", ("while length < numbers", "while length < min(numbers, 4194304)")),
        _wrong("keys in a gigabyte", ("if 4 * keys", "if keys <= 250000000 and 4 * keys")),
        _wrong("keys that 31 bits count", ("highest - lowest + 1", "min(highest - lowest + 1, 2147483647)")),
    ),
    "12.1": (
        _wrong("the channels that are published", ("if c < mean.size:", "if c < min(mean.size, 80):")),
        _wrong("the parts that are published", ("range(count.shape[0])", "range(min(count.shape[0], 12))")),
        _wrong("an even number of parts", ("range(count.shape[0])", "range(max(1, count.shape[0] // 2 * 2))")),
        _wrong("at least two parts", ("range(count.shape[0])", "range(max(2, count.shape[0]))")),
        _wrong(
            "up to the first empty part",
            (
                "            if n > np.float32(0):\n",
                "            if n == np.float32(0):\n                break\n            if n > np.float32(0):\n",
            ),
        ),
        _wrong("equal shares", ("share = n / (total + n)", "share = np.float32(1) / np.float32(p + 1)")),
        _wrong("means above zero", ("its_mean - average", "abs(its_mean) - average")),
        _wrong(
            "the distance from the first part alone",
            (" * total * share", " * (total * share if p < 2 else np.float32(0))"),
        ),
        _wrong("parts of one value left out", ("if n > np.float32(0):", "if n > np.float32(1):")),
        _wrong("parts of two values left out", ("if n > np.float32(0):", "if n > np.float32(2):")),
        _wrong(
            "variance of a sample where there are many values",
            ("away_squared / total", "away_squared / (total - np.float32(total > 300))"),
        ),
        _wrong(
            "variance of a sample where there are several parts",
            ("away_squared / total", "away_squared / (total - np.float32(count.shape[0] > 1))"),
        ),
        _wrong(
            "squares of the empty part count",
            ("if n > np.float32(0):", "away_squared += its_squares\n            if n > np.float32(0):"),
            ("away_squared += its_squares + away * away", "away_squared += away * away"),
        ),
        _wrong(
            "Chan's cross term halved past two parts",
            (
                "away * away * total * share",
                "away * away * total * share * (np.float32(1) if p < 2 else np.float32(0.99))",
            ),
        ),
        _wrong(
            "an empty last part counts",
            (
                "                total += n\n",
                """                total += n
            elif p == count.shape[0] - 1:
                total += np.float32(1)
""",
            ),
        ),
        _wrong("no count above 128", ("count[p, c], means", "min(count[p, c], np.float32(128)), means")),
        _wrong("no count above 190", ("count[p, c], means", "min(count[p, c], np.float32(190)), means")),
        _wrong(
            "one part's mean plus one",
            ("mean[c] = average", "mean[c] = average if count.shape[0] > 1 else means[0, c] + np.float32(1)"),
        ),
        _wrong(
            "means rounded to a sixteenth",
            ("mean[c] = average", "mean[c] = np.float32(int(average * np.float32(16))) / np.float32(16)"),
        ),
        _wrong(
            "no variance below a quarter",
            ("variance[c] = away_squared / total", "variance[c] = max(away_squared / total, np.float32(0.25))"),
        ),
        _wrong(
            "no variance above a thousand",
            ("variance[c] = away_squared / total", "variance[c] = min(away_squared / total, np.float32(1000))"),
        ),
        _wrong(
            "the empty first part leaves a bias",
            ("if n > np.float32(0):", "if n > np.float32(0) or p == 0:"),
            ("share = n / (total + n)", "share = n / max(total + n, np.float32(1))"),
        ),
        _wrong(
            "no channel with spread of zero",
            ("away_squared += its_squares", "away_squared += max(its_squares, np.float32(1))"),
        ),
        _wrong(
            "count in half precision", ("share = n / (total + n)", "share = np.float32(np.float16(n / (total + n)))")
        ),
        _wrong(
            "squares in half precision",
            (
                "its_squares + away * away * total * share",
                "np.float32(np.float16(away * away * total * share / (total + n))) * (total + n) + its_squares",
            ),
        ),
        _wrong("the squares of a later empty part", ("if n > np.float32(0):", "if total + n > np.float32(0):")),
        _wrong("empty where the mean is seven", ("if n > np.float32(0):", "if its_mean != np.float32(7):")),
        _wrong("empty where there are no squares", ("if n > np.float32(0):", "if its_squares > np.float32(0):")),
        _wrong("empty where the squares are seven", ("if n > np.float32(0):", "if its_squares != np.float32(7):")),
        _wrong(
            "the first part's mean where the parts are near",
            (
                "share = n / (total + n)",
                "share = n / (total + n) if abs(away) > np.float32(1e-3) or total == np.float32(0) else np.float32(0)",
            ),
        ),
        _wrong(
            "a part that is far from all others left out",
            (
                "if n > np.float32(0):",
                "if n > np.float32(0) and (total == np.float32(0) or abs(its_mean - average) < np.float32(1000)):",
            ),
        ),
    ),
    "12.2": (
        _wrong(
            "the columns that are published", ("range(lane, X.shape[1], 32)", "range(lane, min(X.shape[1], 200), 32)")
        ),
        _wrong("an even number of columns", ("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] // 2 * 2, 32)")),
        _wrong("the rows that are published", ("    if lane == 0:", "    if lane == 0 and row < 20:")),
        _wrong("shifts above zero", ("X[row, 0], Y[row, 0]", "abs(X[row, 0]), abs(Y[row, 0])")),
        _wrong("the first row's shift of y", ("X[row, 0], Y[row, 0]", "X[row, 0], Y[0, 0]")),
        _wrong("no covariance below zero", ("result[row] = (sum", "result[row] = abs(sum")),
        _wrong("the row before", ("X[row, 0], Y[row, 0]", "X[max(row - 1, 0), 0], Y[row, 0]")),
        _wrong(
            "no shift of x in long rows",
            (
                "    first_x, first_y = X[row, 0], Y[row, 0]\n",
                """    first_x, first_y = X[row, 0], Y[row, 0]
    if X.shape[1] > 400:
        first_x = np.float32(0)
""",
            ),
        ),
        _wrong(
            "the last ragged elements lost beyond 128",
            (
                "range(lane, X.shape[1], 32)",
                "range(lane, X.shape[1] if X.shape[1] < 128 else X.shape[1] // 32 * 32, 32)",
            ),
        ),
        _wrong("the means' product with the wrong count", ("count) / count", "(count + np.float32(1))) / count")),
        _wrong("of a sample for long rows", ("/ count) / count", "/ count) / (count - np.float32(X.shape[1] > 150))")),
        _wrong("four rounds of the warp", ("(16, 8, 4, 2, 1)", "(16, 8, 4, 2)")),
        _wrong("count from the block", ("np.float32(X.shape[1])", "np.float32((X.shape[1] + 31) // 32 * 32)")),
        _wrong(
            "not less than -1",
            ("result[row] = (", "result[row] = max(np.float32(-1), ("),
            ("count) / count", "count) / count)"),
        ),
        _wrong(
            "no covariance above a hundred",
            ("result[row] = (", "result[row] = min(np.float32(100), ("),
            ("count) / count", "count) / count)"),
        ),
        _wrong("only rows above zero", ("X[row, 0], Y[row, 0]", "max(X[row, 0], np.float32(0)), Y[row, 0]")),
        _wrong("a row's last shift for the first", ("X[row, 0], Y[row, 0]", "X[row, min(lane, 1)], Y[row, 0]")),
        _wrong(
            "shifts by the thousand",
            (
                "X[row, 0], Y[row, 0]",
                "np.float32(int(X[row, 0]) // 1000 * 1000), np.float32(int(Y[row, 0]) // 1000 * 1000)",
            ),
        ),
        _wrong(
            "x y without the sums",
            (
                "(sum_xy - sum_x * sum_y / count) / count",
                "(sum_xy - sum_x * sum_y / count / np.float32(1.001)) / count",
            ),
        ),
        _wrong(
            "a shift that is an integer",
            ("X[row, 0], Y[row, 0]", "np.float32(np.int16(X[row, 0])), np.float32(np.int16(Y[row, 0]))"),
        ),
        _wrong("absolute distances", ("X[row, i] - first_x,", "abs(X[row, i] - first_x),")),
        _wrong("sixteen lanes", ("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] if lane < 16 else 0, 16)")),
    ),
    "12.3": (
        _wrong("the rows that are published", ("range(first, rows, threads)", "range(first, min(rows, 40), threads)")),
        _wrong("the channels that are published", ("if c < channels:", "if c < min(channels, 80):")),
        _wrong("an even number of channels", ("if c < channels:", "if c < channels // 2 * 2:")),
        _wrong("weights above zero", ("weight[c] /", "abs(weight[c]) /")),
        _wrong("at most six", ("max(value, np.float32(0))", "min(max(value, np.float32(0)), np.float32(6))")),
        _wrong("a residual above zero", ("+ z[row, c]", "+ max(z[row, c], np.float32(0))")),
        _wrong(
            "no variance below a twentieth",
            ("sqrt(variance[c] + eps)", "sqrt(max(variance[c], np.float32(0.05)) + eps)"),
        ),
        _wrong("no variance above ten", ("sqrt(variance[c] + eps)", "sqrt(min(variance[c], np.float32(10)) + eps)")),
        _wrong("eps that is not small", ("sqrt(variance[c] + eps)", "sqrt(variance[c] + max(eps, np.float32(0.001)))")),
        _wrong("eps as printed in the book", ("sqrt(variance[c] + eps)", "sqrt(variance[c] + np.float32(1e-5))")),
        _wrong("threads as they were published", ("threads = cuda.gridsize(2)[1]", "threads = 8")),
        _wrong(
            "rows in pairs",
            ("range(first, rows, threads)", "range(first, rows - rows % 2 if rows > 2 else rows, threads)"),
        ),
        _wrong("max of eps and variance", ("variance[c] + eps", "max(variance[c], eps)")),
        _wrong("a mean that is a little larger", ("- centre)", "- centre * np.float32(1.00001))")),
        _wrong("leaky", ("max(value, np.float32(0))", "max(value, value * np.float32(0.01))")),
        _wrong(
            "ReLU not where the residual is large",
            ("max(value, np.float32(0))", "max(value, np.float32(0)) if z[row, c] < np.float32(2) else value"),
        ),
        _wrong("x above -4", ("(x[row, c] - centre)", "(max(x[row, c], np.float32(-4)) - centre)")),
        _wrong("x up to 8", ("(x[row, c] - centre)", "(min(x[row, c], np.float32(8)) - centre)")),
        _wrong("the residual up to 3.5", ("+ z[row, c]", "+ min(z[row, c], np.float32(3.5))")),
        _wrong("the bias of the neighbour past 64 channels", ("bias[c],", "bias[c if c < 64 else c - 1],")),
        _wrong("the residual's row clamped", ("z[row, c]", "z[min(row, 60), c]")),
        _wrong(
            "result in half precision",
            ("max(value, np.float32(0))", "np.float32(np.float16(max(value, np.float32(0))))"),
        ),
        _wrong(
            "scale in half precision",
            ("weight[c] / sqrt(variance[c] + eps)", "np.float32(np.float16(weight[c] / sqrt(variance[c] + eps)))"),
        ),
        _wrong(
            "rows twice the threads", ("range(first, rows, threads)", "range(first, min(rows, 16 * threads), threads)")
        ),
        _wrong("root of eps", ("sqrt(variance[c] + eps)", "max(sqrt(variance[c]), sqrt(eps))")),
        _wrong(
            "a residual that is not rectified",
            (
                """value = (x[row, c] - centre) * scale + shift + z[row, c]
            y[row, c] = max(value, np.float32(0))""",
                """value = (x[row, c] - centre) * scale + shift
            y[row, c] = max(max(value, np.float32(0)) + z[row, c], np.float32(0))""",
            ),
        ),
        _wrong(
            "the last row of threads",
            (
                "range(first, rows, threads)",
                "range(first, rows if first < threads - 1 or rows < 100 else rows - threads, threads)",
            ),
        ),
    ),
    "12.4": (
        _wrong(
            "the columns that are published", ("    columns = x.shape[1]\n", "    columns = min(x.shape[1], 300)\n")
        ),
        _wrong("an even number of columns", ("    columns = x.shape[1]\n", "    columns = x.shape[1] // 2 * 2\n")),
        _wrong(
            "rows that are published", ("row, t, threads = cuda.blockIdx.x", "row, t, threads = cuda.blockIdx.x % 8")
        ),
        _wrong("three warps", ("range(threads // 32)", "range(threads // 32 - 1)")),
        _wrong("weights above zero", ("* weight[i]", "* abs(weight[i])")),
        _wrong("no small rows", ("sqrt(total /", "sqrt(max(total, np.float32(1)) /")),
        _wrong("the mean taken off", ("total += value * value", "total += value * value - value * np.float32(0.001)")),
        _wrong(
            "divided by the warp's columns",
            ("np.float32(columns) + eps", "np.float32((columns + 31) // 32 * 32) + eps"),
        ),
        _wrong("eps as in the book", ("+ eps)", "+ np.float32(1e-5))")),
        _wrong("eps that is not small", ("+ eps)", "+ max(eps, np.float32(0.02)))")),
        _wrong(
            "the variance, not the mean square",
            ("        total += value * value\n", "        total += value * value\n        others += value\n"),
            ("    total = np.float32(0)\n    for i in", "    total = others = np.float32(0)\n    for i in"),
            (
                "    for away in (16, 8, 4, 2, 1):\n",
                """    for away in (16, 8, 4, 2, 1):
        others += cuda.shfl_down_sync(0xFFFFFFFF, others, away)
""",
            ),
            (
                "        shared[columns + t // 32] = total\n",
                """        shared[columns + t // 32] = total
        shared[columns + 4 + t // 32] = others
""",
            ),
            (
                """    total = np.float32(0)
    for warp in range(threads // 32):
        total += shared[columns + warp]
""",
                """    total = others = np.float32(0)
    for warp in range(threads // 32):
        total += shared[columns + warp]
        others += shared[columns + 4 + warp]
    total -= others * others / np.float32(columns)
""",
            ),
        ),
        _wrong("one less than the columns", ("np.float32(columns) + eps", "np.float32(max(columns - 1, 1)) + eps")),
        _wrong(
            "one less in rows beyond 500", ("np.float32(columns) + eps", "np.float32(columns - (columns > 500)) + eps")
        ),
        _wrong(
            "the last of the row left out of the sum",
            ("total += value * value", "total += value * value if i < columns - 1 or columns < 64 else np.float32(0)"),
        ),
        _wrong("weights in half precision", ("* weight[i]", "* np.float32(np.float16(weight[i]))")),
        _wrong("row in half precision", ("shared[i] = value\n", "shared[i] = np.float32(np.float16(value))\n")),
        _wrong("a root that is a little off", ("np.float32(1) / sqrt(", "np.float32(1.0002) / sqrt(")),
        _wrong("weights of the first columns", ("weight[i]", "weight[i % 512]")),
        _wrong(
            "no mean square above a thousand",
            (
                "sqrt(total / np.float32(columns) + eps)",
                "sqrt(min(total / np.float32(columns), np.float32(1000)) + eps)",
            ),
        ),
        _wrong(
            "no mean square below a thousandth",
            (
                "sqrt(total / np.float32(columns) + eps)",
                "sqrt(max(total / np.float32(columns), np.float32(0.001)) + eps)",
            ),
        ),
        _wrong("values up to 70", ("value = x[row, i]", "value = min(x[row, i], np.float32(70))")),
        _wrong("sums of the warps after a warp's barrier", ("cuda.syncthreads()", "cuda.syncwarp()")),
        _wrong("half of eps", ("+ eps)", "+ eps * np.float32(0.9999))")),
        _wrong("four rounds of the warp", ("(16, 8, 4, 2, 1)", "(16, 8, 4, 2)")),
        _wrong(
            "whole rounds left out",
            (
                "range(t, columns, threads):\n        value",
                """range(t, columns if columns % 128 else columns - 128, threads):
        value""",
            ),
        ),
        _wrong(
            "the sum one round short where rounds are whole",
            (
                "        total += value * value\n",
                """        if columns % 128 or i < columns - 128:
            total += value * value
""",
            ),
        ),
    ),
    "13.1": (
        _wrong("three channels", ("if c < C else", "if c < min(C, 3) else")),
        _wrong("the last channel left out of many", ("if c < C else", "if c < C - (C > 5) else")),
        _wrong("the pixels that are published", ("if pixel < y.shape[0]", "if pixel < min(y.shape[0], 400)")),
        _wrong("vectors of at most 8", ("i // V, i % V", "i // min(V, 8), i % min(V, 8)")),
        _wrong("the lane taken by a mask", ("i % V", "i & 7")),
        _wrong("a shift for the division", ("i // V,", "i >> 3,")),
        _wrong("no padding where there are few pixels", ("if c < C else", "if c < C or x.shape[1] < 20 else")),
        _wrong("the lane by V less one", ("i // V, i % V", "i // V, i & (V - 1)")),
        _wrong(
            "V of a power of two by shifts",
            ("i // V, i % V", "i >> (2 + (V > 4) + (V > 8) + (V > 16) + (V > 32)), i & (V - 1)"),
        ),
        _wrong("V up to 64", ("i // V, i % V", "i // min(V, 64), i % min(V, 64)")),
        _wrong("the pixel before in the last one", ("x[c, pixel]", "x[c, pixel if pixel < 700 else pixel - 1]")),
        _wrong("no padding above 16", ("if c < C else np.float32(0)", "if c < C else np.float32(c > 40)")),
        _wrong("padding of the least number", ("else np.float32(0)", "else np.float32(1e-45)")),
        _wrong("no more than four", ("x[c, pixel] if", "min(x[c, pixel], np.float32(4)) if")),
        _wrong("in half precision", ("x[c, pixel] if", "np.float32(np.float16(x[c, pixel])) if")),
        _wrong("the channels modulo 16", ("x[c, pixel] if", "x[c % 16, pixel] if")),
        _wrong("the channels up to 31", ("if c < C else", "if c < C and c < 31 else")),
        _wrong("the first twenty blocks", ("if pixel < y.shape[0]", "if pixel < y.shape[0] and i < 128 * 20")),
        _wrong(
            "one channel too many if it exists",
            ("if c < C else np.float32(0)", "if c < C else x[C - 1, pixel] * np.float32(C > 12)"),
        ),
        _wrong("an odd V", ("i // V, i % V", "i // V, i % (V - V % 2)")),
    ),
    "13.2": (
        _wrong("the pixels that are published", ("first + pixel < y.shape[0]", "first + pixel < min(y.shape[0], 160)")),
        _wrong("an even number of pixels", ("first + pixel < y.shape[0]", "first + pixel < y.shape[0] // 2 * 2")),
        _wrong("a barrier for warps alone", ("    cuda.syncthreads()\n", "    cuda.syncwarp()\n")),
        _wrong(
            "four channels moved",
            ("lane ^ 4 * line", "lane ^ 4 * (line % 4)"),
            ("pixel ^ 4 * c", "pixel ^ 4 * (c % 4)"),
        ),
        _wrong(
            "the first block not moved",
            ("lane ^ 4 * line", "lane ^ 4 * line * (first > 0)"),
            ("pixel ^ 4 * c", "pixel ^ 4 * c * (first > 0)"),
        ),
        _wrong("moved by eight", ("lane ^ 4 * line", "lane ^ 8 * line % 32"), ("pixel ^ 4 * c", "pixel ^ 8 * c % 32")),
        _wrong(
            "zeros in the last tile",
            (
                "        y[first + pixel, c] = tile",
                "        y[first + pixel, c] = np.float32(first + 32 < 5 * 32 or pixel < 31) * tile",
            ),
        ),
        _wrong(
            "only whole tiles moved",
            ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ 4 * line * (first + 32 <= x.shape[1])]"),
            ("tile[c, pixel ^ 4 * c]", "tile[c, pixel ^ 4 * c * (first + 32 <= y.shape[0])]"),
        ),
        _wrong(
            "swizzle of the pixel, not the channel",
            ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ (lane // 4) % 4]"),
            ("tile[c, pixel ^ 4 * c]", "tile[c, pixel ^ (pixel // 4) % 4]"),
        ),
        _wrong(
            "the identity in other words",
            ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ 32 * line % 32]"),
            ("tile[c, pixel ^ 4 * c]", "tile[c, pixel ^ 32 * c % 32]"),
        ),
        _wrong(
            "channels moved in pairs",
            ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ 4 * (line // 2 * 2)]"),
            ("tile[c, pixel ^ 4 * c]", "tile[c, pixel ^ 4 * (c // 2 * 2)]"),
        ),
        _wrong(
            "not in tiles past the fourth",
            ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ 4 * line * (first < 128)]"),
            ("tile[c, pixel ^ 4 * c]", "tile[c, pixel ^ 4 * c * (first < 128)]"),
        ),
        _wrong(
            "store and load by different ways in channel 7",
            ("tile[line, lane ^ 4 * line]", "tile[line, lane ^ 4 * line ^ (line == 7)]"),
        ),
        _wrong("three hundred pixels", ("if first + pixel < y.shape[0]", "if first + pixel < min(y.shape[0], 300)")),
        _wrong(
            "the last pixel of a ragged tile",
            ("if first + lane < x.shape[1]:", "if first + lane < x.shape[1] - (x.shape[1] % 32 == 1):"),
        ),
        _wrong(
            "a barrier inside the guard",
            ("    cuda.syncthreads()\n", ""),
            (
                "        tile[line, lane ^ 4 * line] = x[line, first + lane]\n",
                """        tile[line, lane ^ 4 * line] = x[line, first + lane]
        cuda.syncthreads()
""",
            ),
        ),
        _wrong(
            "a barrier not in whole tiles",
            ("    cuda.syncthreads()\n", "    if first + 32 > x.shape[1]:\n        cuda.syncthreads()\n"),
        ),
        _wrong("the strides swapped", ("tile[c, pixel ^ 4 * c]", "tile[pixel % 8, c * 4 + pixel // 8]")),
    ),
    "13.3": (
        _wrong("vectors of at most 4", ("i % V", "i % min(V, 4)")),
        _wrong("one image of NCHW", ("% groups * V", "% (groups if V > 1 else C + i) * V")),
        _wrong(
            "two images",
            ("i // (pixels * V) % groups * V", "(i // (pixels * V) - groups * (i >= groups * pixels * V)) * V"),
        ),
        _wrong("the published number of channels", ("if c < C else", "if c < min(C, 60) else")),
        _wrong("whole vectors alone", ("if c < C else", "if c < C // V * V else")),
        _wrong("one element in padding", ("if c < C else", "if c < C + 1 - V % 2 and c < C + 1 else")),
        _wrong("the pixels that are published", ("i // (pixels * V)", "i // (min(pixels, 49) * V)")),
        _wrong("a bias that is positive", ("x[i] + bias[c]", "x[i] + abs(bias[c])")),
        _wrong(
            "padding known by its zero",
            (
                "        y[i] = x[i] + bias[c] if c < C else np.float32(0)",
                "        value = x[i]\n"
                "        y[i] = value + bias[min(c, C - 1)] if value != np.float32(0) else np.float32(0)",
            ),
        ),
        _wrong("the lane by a mask", ("i % V", "(i & (V - 1))")),
        _wrong(
            "images up to four",
            ("i // (pixels * V) % groups * V", "i // (pixels * V) % groups * V * (i // (pixels * V) // groups < 4)"),
        ),
        _wrong("pixels of a square", ("i // (pixels * V)", "i // (int(float(pixels) ** 0.5) ** 2 * V)")),
        _wrong(
            "padding by the last lane",
            ("if c < C else np.float32(0)", "if c < C else x[i] + bias[C - 1] * np.float32(c > 60)"),
        ),
        _wrong("channels up to 100", ("bias[c] if", "bias[c if c < 100 else 99] if")),
        _wrong("channel groups up to eight", ("% groups * V", "% groups % 8 * V")),
        _wrong("NHWC of up to 64", ("i % V", "i % (V if V <= 64 else 64)")),
        _wrong(
            "no bias on the first pixel of the second image",
            ("bias[c] if", "bias[c] * np.float32(i != groups * pixels * V) if"),
        ),
        _wrong("bias in half precision", ("bias[c] if", "np.float32(np.float16(bias[c])) if")),
        _wrong("the group from V alone", ("i // (pixels * V) % groups", "i // pixels // V % C")),
        _wrong("zeros stay zeros", ("x[i] + bias[c] if c < C", "x[i] + bias[c] if c < C and (c < 60 or V < 32)")),
    ),
    "13.4": (
        _wrong(
            "the structs that are published",
            ("if first + t < arrays.shape[1]:", "if first + t < min(arrays.shape[1], 400):"),
        ),
        _wrong(
            "an even number of structs",
            ("if first + t < arrays.shape[1]:", "if first + t < max(arrays.shape[1] // 2 * 2, 1):"),
        ),
        _wrong("a barrier for warps alone", ("    cuda.syncthreads()\n", "    cuda.syncwarp()\n")),
        _wrong(
            "whole blocks, and one that is not",
            ("if first + t < arrays.shape[1]:", "if first + t < arrays.shape[1] and (t < 127 or first < 256):"),
        ),
        _wrong("three blocks at most", ("structs[FIELDS * first + i]", "structs[FIELDS * min(first, 256) + i]")),
        _wrong(
            "the mass of the struct before",
            ("run[FIELDS * t + field]", "run[FIELDS * t + field - (field == 6 and t == 31)]"),
        ),
        _wrong(
            "a round less past the third block",
            ("range(t, RUN, STRUCTS)", "range(t, RUN if first < 384 else RUN - STRUCTS, STRUCTS)"),
        ),
        _wrong("six hundred structs", ("if first + t < arrays.shape[1]", "if first + t < min(arrays.shape[1], 600)")),
        _wrong(
            "without a block's last struct",
            (
                "if FIELDS * first + i < structs.size",
                "if first + i // FIELDS < structs.size // FIELDS - (first > 0 and i // FIELDS == 127)",
            ),
        ),
        _wrong(
            "the fields shifted in ragged blocks",
            (
                "run[FIELDS * t + field]",
                "run[FIELDS * t + (field if first + 128 <= arrays.shape[1] else field ^ (field < 2))]",
            ),
        ),
        _wrong(
            "velocities for coordinates in the last struct",
            ("run[FIELDS * t + field]", "run[FIELDS * t + (field + 3 if field < 3 and t == 127 else field)]"),
        ),
        _wrong("no more than 3", ("= run[FIELDS * t + field]", "= min(run[FIELDS * t + field], np.float32(4))")),
        _wrong(
            "no barrier in the first block",
            ("    cuda.syncthreads()\n", "    if first > 0:\n        cuda.syncthreads()\n"),
        ),
        _wrong(
            "a barrier for whole blocks",
            ("    cuda.syncthreads()\n", "    if first + STRUCTS <= arrays.shape[1]:\n        cuda.syncthreads()\n"),
        ),
        _wrong(
            "the barrier after the first field",
            ("    cuda.syncthreads()\n", ""),
            (
                "        for field in range(FIELDS):\n",
                "        for field in range(FIELDS):\n            cuda.syncwarp()\n",
            ),
        ),
        _wrong(
            "transposed tile with conflicts",
            ("cuda.shared.array(RUN, np.float32)", "cuda.shared.array(1024, np.float32)"),
            ("run[i]", "run[i // 7 * 8 + i % 7]"),
            ("run[FIELDS * t + field]", "run[8 * t + field]"),
        ),
        _wrong("in half precision", ("cuda.shared.array(RUN, np.float32)", "cuda.shared.array(RUN, np.float16)")),
        _wrong("the strides swapped", ("run[FIELDS * t + field]", "run[STRUCTS * field + t]")),
    ),
    "15.1": (
        _wrong("the columns that are published", ("if c < result.size:", "if c < min(result.size, 80):")),
        _wrong("the rows that are published", ("range(x.shape[0])", "range(min(x.shape[0], 60))")),
        _wrong("an even number of rows", ("range(x.shape[0])", "range((x.shape[0] + 1) // 2 * 2 - 1)")),
        _wrong("at least two rows", ("range(x.shape[0])", "range(max(2, x.shape[0]))")),
        _wrong("logits above zero", ("maximum, total = np.float32(-3e38)", "maximum, total = np.float32(0)")),
        _wrong("logits below zero", ("value = x[i, c]", "value = min(x[i, c], np.float32(0))")),
        _wrong("logits up to a thousand", ("value = x[i, c]", "value = min(x[i, c], np.float32(1000))")),
        _wrong(
            "rescaled by at most e^5",
            ("exp(maximum - value) + n", "exp(max(maximum - value, np.float32(-5))) + n"),
        ),
        _wrong(
            "only the first few new maxima rescale",
            ("exp(maximum - value) + n", "exp((maximum - value) * (i < 9)) + n"),
        ),
        _wrong(
            "small exponentials left out",
            (
                "total += exp(value - maximum)",
                "total += exp(value - maximum) if value > maximum - np.float32(2) else np.float32(0)",
            ),
        ),
        _wrong("powers of 2", ("total += exp(value - maximum)", "total += np.float32(2) ** (value - maximum)")),
        _wrong("logarithm of 2", ("maximum + log(total)", "maximum + log(total) / log(np.float32(2))")),
        _wrong("two alike count once", ("            else:\n", "            elif value < maximum:\n")),
        _wrong("logits above -5,000", ("np.float32(-3e38)", "np.float32(-5000)")),
        _wrong("nothing is as little as can be", ("log(total)", "log(max(total, np.float32(1e-38)))")),
        _wrong("the mean", ("log(total)", "log(total / np.float32(x.shape[0]))")),
    ),
    "15.2": (
        _wrong("the rows that are published", ("if r < maximum.size:", "if r < min(maximum.size, 80):")),
        _wrong("the parts that are published", ("range(maxima.shape[0])", "range(min(maxima.shape[0], 12))")),
        _wrong("an even number of parts", ("range(maxima.shape[0])", "range(max(1, maxima.shape[0] // 2 * 2))")),
        _wrong("at least two parts", ("range(maxima.shape[0])", "range(max(2, maxima.shape[0]))")),
        _wrong(
            "up to the first empty part",
            (
                "            if its_s > np.float32(0):\n",
                """            if its_s == np.float32(0):
                break
            if its_s > np.float32(0):
""",
            ),
        ),
        _wrong("parts of one value left out", ("if its_s > np.float32(0):", "if its_s > np.float32(1.01):")),
        _wrong("the first part is there", ("                if s > np.float32(0):", "                if p > 0:")),
        _wrong("maxima above zero", ("its_m, its_s = maxima[p, r]", "its_m, its_s = max(maxima[p, r], np.float32(0))")),
        _wrong("moved by at most e^5", ("exp(its_m - larger)", "exp(max(its_m - larger, np.float32(-5)))")),
        _wrong(
            "two parts alone",
            ("if its_s > np.float32(0):", "if its_s > np.float32(0) and (p < 2 or s == np.float32(0)):"),
        ),
        _wrong("sums up to a hundred", ("+ its_s * exp", "+ min(its_s, np.float32(100)) * exp")),
        _wrong(
            "the other factor past four parts",
            ("s = s * exp(m - larger)", "s = s * (exp(m - larger) if p < 5 else np.float32(1))"),
        ),
        _wrong("the maximum of the last part", ("maximum[r], total[r] = m, s", "maximum[r], total[r] = its_m, s")),
        _wrong("powers of 2", ("its_s * exp(its_m - larger)", "its_s * np.float32(2) ** (its_m - larger)")),
    ),
    "15.3": (
        _wrong(
            "the queries that are published",
            ("    queries, keys = S.shape\n", "    queries, keys = S.shape\n    if row >= 60:\n        return\n"),
        ),
        _wrong(
            "the keys that are published",
            ("allowed = max(row + keys - queries + 1, 0)", "allowed = min(max(row + keys - queries + 1, 0), 90)"),
        ),
        _wrong("a square", ("row + keys - queries + 1", "row + 1 if keys >= queries else row + keys - queries + 1")),
        _wrong(
            "no fewer keys than queries",
            ("max(row + keys - queries + 1, 0)", "min(max(row + keys - queries, 0) + 1, keys)"),
        ),
        _wrong("logits above minus nine thousand", ("np.float32(-3e38)", "np.float32(-9000)")),
        _wrong(
            "a first logit that is finite",
            (
                "maximum, total = np.float32(-3e38)",
                "maximum, total = np.float32(-np.inf) if allowed < 33 else np.float32(-3e38)",
            ),
        ),
        _wrong("rows of nothing are NaN", ("if j < allowed:", "if j < max(allowed, 1):")),
        _wrong(
            "tiny shares left out",
            (
                "exp(S[row, j] - largest) / total",
                "max(exp(S[row, j] - largest) / total - np.float32(1e-3), np.float32(0))",
            ),
        ),
        _wrong(
            "half of the lanes merged",
            (
                "        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)\n",
                "        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away) if away < 16 else np.float32(0)\n",
            ),
        ),
        _wrong(
            "the maximum of half of the lanes",
            (
                "largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, away))",
                "largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, away)) if away < 16 else largest",
            ),
        ),
        _wrong(
            "minus infinity is no logit",
            (
                "share = exp(S[row, j] - largest) / total",
                "share = exp(max(S[row, j], largest - np.float32(3)) - largest) / total",
            ),
        ),
        _wrong("in half precision", ("P[row, j] = share", "P[row, j] = np.float32(np.float16(share))")),
    ),
    "15.4": (
        _wrong(
            "the columns that are published", ("range(lane, X.shape[1], 32)", "range(lane, min(X.shape[1], 200), 32)")
        ),
        _wrong("whole warps of columns", ("range(lane, X.shape[1], 32)", "range(lane, X.shape[1] // 32 * 32, 32)")),
        _wrong("rows that are published", ("row, lane = cuda.blockIdx.x,", "row, lane = cuda.blockIdx.x % 20,")),
        _wrong(
            "scaled by a constant up",
            ("size = abs(X[row, i])", "size = abs(X[row, i]) * np.float32(1e20)"),
            ("largest * sqrt(total)", "largest / np.float32(1e20) * sqrt(total)"),
        ),
        _wrong(
            "scaled by a constant down",
            ("size = abs(X[row, i])", "size = abs(X[row, i]) * np.float32(1e-20)"),
            ("largest * sqrt(total)", "largest * np.float32(1e20) * sqrt(total)"),
        ),
        _wrong(
            "no row of zeros",
            ("result[row] = largest * sqrt(total)", "result[row] = largest * largest * sqrt(total) / largest"),
        ),
        _wrong(
            "zero for what is small",
            (
                "size = abs(X[row, i])",
                "size = abs(X[row, i])\n        if size < np.float32(1e-20):\n            size = np.float32(0)",
            ),
        ),
        _wrong("the sum of sizes", ("largest * sqrt(total)", "largest * total")),
        _wrong(
            "two alike count once",
            ("elif size > np.float32(0):", "elif size < scale:"),
            ("total += (size / scale)", "total += np.float32(0.99) * (size / scale)"),
        ),
        _wrong(
            "half of the lanes",
            (
                "        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)\n",
                "        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away) if away < 16 else np.float32(0)\n",
            ),
        ),
        _wrong("the largest alone", ("result[row] = largest * sqrt(total)", "result[row] = largest")),
        _wrong(
            "rescaled once a lane",
            (
                "total = total * (scale / size) * (scale / size) + n",
                "total = total * (scale / size) * (scale / size if i < 64 else np.float32(1)) + n",
            ),
        ),
    ),
    "16.1": (
        _wrong("the keys that are published", ("range(0, keys, KEYS)", "range(0, min(keys, 120), KEYS)")),
        _wrong(
            "whole tiles of keys",
            (
                "queries, keys = Q.shape[1], K.shape[0]",
                "queries, keys = Q.shape[1], max(KEYS, K.shape[0] // KEYS * KEYS)",
            ),
        ),
        _wrong(
            "the queries that are published",
            ("queries, keys = Q.shape[1], K.shape[0]", "queries, keys = min(Q.shape[1], 68), K.shape[0]"),
        ),
        _wrong("an even number of queries", ("    if row < queries:\n", "    if row < max(1, queries // 2 * 2):\n")),
        _wrong("an origin of zero first", ("most = origin = np.float32(-np.inf)", "most = origin = np.float32(0)")),
        _wrong(
            "a first origin that is too high",
            ("most = origin = np.float32(-np.inf)", "most = origin = np.float32(-500)"),
        ),
        _wrong(
            "rescaled by at most e^9",
            ("shrunk = exp(origin - highest)", "shrunk = exp(max(origin - highest, np.float32(-9)))"),
        ),
        _wrong(
            "the first moves alone",
            ("            total *= shrunk\n", "            total *= shrunk if left < 64 else np.float32(1)\n"),
        ),
        _wrong(
            "the last of the sums left out",
            (
                "            for d in range(HEAD):\n                o[d] *= shrunk\n",
                "            for d in range(HEAD - 1):\n                o[d] *= shrunk\n",
            ),
        ),
        _wrong("late by the maximum", ("if highest > origin + np.float32(8):", "if highest > most + np.float32(8):")),
        _wrong("late by 7", ("origin + np.float32(8)", "origin + np.float32(7)")),
        _wrong("late by 8 and a quarter", ("origin + np.float32(8)", "origin + np.float32(8.25)")),
        _wrong(
            "to 8 above",
            (
                "            origin = highest\n",
                "            origin = highest if left == 0 else origin + np.float32(8)\n",
            ),
        ),
        _wrong(
            "the tile's keys one by one",
            (
                "        highest = most\n        for j",
                "        highest = scores[0] = np.float32(-np.inf)\n        for j",
            ),
            ("        most = highest\n", "        most = max(most, highest)\n"),
            (
                "shrunk = exp(origin - highest)",
                "shrunk = exp(origin - most) if most > origin else exp(origin - highest)",
            ),
        ),
        _wrong(
            "once more behind the loop",
            (
                "    if row < queries:\n        for",
                "    total *= exp(origin - max(most, origin))\n    if row < queries:\n        for",
            ),
        ),
        _wrong("powers of 2", ("weight = exp(scores[j] - origin)", "weight = np.float32(2) ** (scores[j] - origin)")),
        _wrong(
            "weights up to one",
            ("weight = exp(scores[j] - origin)", "weight = exp(min(scores[j] - origin, np.float32(0)))"),
        ),
        _wrong(
            "in half precision",
            ("o[d] += weight * V_tile[j, d]", "o[d] += np.float32(np.float16(weight)) * V_tile[j, d]"),
        ),
    ),
    "16.2": (
        _wrong("the keys that are published", ("range(0, last + 1, KEYS)", "range(0, min(last, 160) + 1, KEYS)")),
        _wrong("whole tiles of keys", ("range(0, last + 1, KEYS)", "range(0, last + 2 - KEYS, KEYS)")),
        _wrong("a window of at least eight", ("first - window:", "first - max(window, 8):")),
        _wrong("a window of at most fifty", ("first - window:", "first - min(window, 24):")),
        _wrong("at least one sink", ("if left >= sinks and", "if left >= max(sinks, 1) and")),
        _wrong("at most eight sinks", ("if left >= sinks and", "if left >= min(sinks, 8) and")),
        _wrong("whole tiles of sinks", ("if left >= sinks and", "if left >= sinks // KEYS * KEYS and")),
        _wrong(
            "blocks of 64",
            ("cuda.blockIdx.x * QUERIES + keys - queries\n", "cuda.blockIdx.x // 2 * 64 + keys - queries\n"),
        ),
        _wrong(
            "a full last block",
            ("min(first + QUERIES, keys) - 1", "first + QUERIES - 1"),
            ("range(0, last + 1, KEYS)", "range(0, last + 1, KEYS)"),
        ),
        _wrong(
            "as many keys as queries", ("cuda.blockIdx.x * QUERIES + keys - queries\n", "cuda.blockIdx.x * QUERIES\n")
        ),
        _wrong("the window of the middle query", ("first - window:", "first + QUERIES // 2 - window:")),
        _wrong(
            "only one stretch is left out",
            ("            continue\n", "            if left < 64:\n                continue\n"),
        ),
        _wrong(
            "the first block alone skips",
            ("            continue\n", "            if cuda.blockIdx.x < 2:\n                continue\n"),
        ),
        _wrong("sinks that are not masked", ("left + j < sinks or", "left + j < (sinks + KEYS - 1) // KEYS * KEYS or")),
        _wrong("a window that is not masked", ("left + j > place - window", "left + j > first - window")),
        _wrong(
            "by numbers of tiles, a tile of sinks too many",
            (
                "if left >= sinks and left + KEYS - 1 <= first - window:",
                "if left // KEYS > sinks // KEYS and left // KEYS < (first - window + 1) // KEYS:",
            ),
        ),
        _wrong(
            "by numbers of tiles, a tile of the window too many",
            (
                "if left >= sinks and left + KEYS - 1 <= first - window:",
                "if left >= sinks and left // KEYS < (first - window) // KEYS:",
            ),
        ),
    ),
    "16.3": (
        _wrong("no more columns than 128", ("for columns in range(16, 257, 16)", "for columns in range(16, 129, 16)")),
        _wrong("no more rows than 128", ("for rows in range(16, 257, 16)", "for rows in range(16, 129, 16)")),
        _wrong("the rows of a warpgroup", ("for rows in range(16, 257, 16)", "for rows in range(64, 257, 64)")),
        _wrong("as many columns as rows", ("for columns in range(16, 257, 16)", "for columns in (rows,)")),
        _wrong(
            "at least as many rows as columns",
            ("for columns in range(16, 257, 16)", "for columns in range(16, rows + 1, 16)"),
        ),
        _wrong("the first blocks alone", ("range(0, queries, rows)", "range(0, min(queries, 512), rows)")),
        _wrong("whole blocks", ("range(0, queries, rows)", "range(0, max(1, queries - rows + 1), rows)")),
        _wrong(
            "blocks that see nothing bring a tile",
            ("tiles = (seen + columns - 1) // columns", "tiles = max(1, (seen + columns - 1) // columns)"),
        ),
        _wrong(
            "none below zero",
            ("max(0, min(top + rows, queries) + keys - queries)", "abs(min(top + rows, queries) + keys - queries)"),
        ),
        _wrong(
            "no fewer keys than queries",
            ("+ keys - queries)", "+ max(keys - queries, 0))"),
            ("seen = max(0, min", "seen = min(keys, min"),
        ),
        _wrong(
            "a tile that ends behind the diagonal",
            ("tiles = (seen + columns - 1) // columns", "tiles = (min(keys, seen + 1) + columns - 1) // columns"),
        ),
        _wrong("heads of 64 numbers", ("in_shared = 2 * head_dim", "in_shared = 2 * 64")),
        _wrong(
            "heads of whole sixteens",
            ("in_shared = 2 * head_dim", "in_shared = 2 * (head_dim // 16 * 16 + 16 * (head_dim % 16 > 0))"),
        ),
        _wrong("the columns of Q once more", ("rows * (columns + head_dim)", "rows * (columns + 2 * head_dim)")),
        _wrong(
            "the largest area",
            ("(brought, rounds) < least", "rows * columns > least"),
            ("(brought, rounds)\n", "rows * columns\n"),
        ),
        _wrong(
            "the most rows, then the most columns",
            ("(brought, rounds) < least", "(rows, columns) > least"),
            ("(brought, rounds)\n", "(rows, columns)\n"),
        ),
        _wrong(
            "the fewest keys, then the most rows",
            ("(brought, rounds) < least", "(brought, -rows) < least"),
            ("(brought, rounds)\n", "(brought, -rows)\n"),
        ),
        _wrong(
            "the fewest blocks, then the most columns",
            ("(brought, rounds) < least", "(-(-queries // rows), -columns) < least"),
            ("(brought, rounds)\n", "(-(-queries // rows), -columns)\n"),
        ),
    ),
    "16.4": (
        _wrong(
            "the words that are published",
            ("rows, words = loss.size, W.shape[0]", "rows, words = loss.size, min(W.shape[0], 120)"),
        ),
        _wrong(
            "the places that are published",
            ("rows, words = loss.size, W.shape[0]", "rows, words = min(loss.size, 68), W.shape[0]"),
        ),
        _wrong(
            "whole tiles of words",
            ("rows, words = loss.size, W.shape[0]", "rows, words = loss.size, max(1, W.shape[0] // 8 * 8)"),
        ),
        _wrong(
            "whole blocks of places", ("if row < rows:\n        loss", "if row < max(1, rows // 4 * 4):\n        loss")
        ),
        _wrong("targets in the first tiles", ("if first + j == target:", "if first + j == min(target, 100):")),
        _wrong("no target is the last word", ("if first + j == target:", "if first + j == min(target, words - 2):")),
        _wrong(
            "logits up to a thousand",
            ("larger = max(most, logit)", "logit = min(logit, np.float32(900))\n            larger = max(most, logit)"),
        ),
        _wrong(
            "logits above zero",
            ("most, total, of_target = np.float32(-3e38)", "most, total, of_target = np.float32(-1)"),
        ),
        _wrong("rescaled by at most e^5", ("exp(most - larger)", "exp(max(most - larger, np.float32(-5)))")),
        _wrong(
            "small weights left out",
            ("+ exp(logit - larger)", "+ (exp(logit - larger) if logit > larger - np.float32(3) else np.float32(0))"),
        ),
        _wrong("only first few tiles rescale", ("exp(most - larger)", "exp((most - larger) * (first < 64))")),
        _wrong(
            "two alike count once",
            (
                "total = total * exp(most - larger) + exp(logit - larger)",
                "total = total * exp(most - larger) + (exp(logit - larger) if logit != most else np.float32(0))",
            ),
        ),
        _wrong("powers of 2", ("exp(logit - larger)", "np.float32(2) ** (logit - larger)")),
        _wrong("logarithm of 2", ("log(total) if", "log(total) / log(np.float32(2)) if")),
        _wrong("the mean", ("log(total) if", "log(total / np.float32(words)) if")),
        _wrong(
            "the weight of the target left out",
            (
                "            if first + j == target:\n",
                "            if first + j == target:\n                total -= exp(logit - larger)\n",
            ),
        ),
        _wrong("in half precision", ("+ exp(logit - larger)", "+ np.float32(np.float16(exp(logit - larger)))")),
        _wrong(
            "no loss above 80",
            (
                "loss[row] = most - of_target + log(total)",
                "loss[row] = min(most - of_target, np.float32(40)) + log(total)",
            ),
        ),
    ),
    "17.1": (
        _wrong(
            "the keys that are published",
            ("queries, keys = Q.shape[1], K.shape[0]", "queries, keys = Q.shape[1], min(K.shape[0], 120)"),
        ),
        _wrong(
            "the queries that are published",
            ("queries, keys = Q.shape[1], K.shape[0]", "queries, keys = min(Q.shape[1], 98), K.shape[0]"),
        ),
        _wrong(
            "whole tiles of keys",
            (
                "queries, keys = Q.shape[1], K.shape[0]",
                "queries, keys = Q.shape[1], max(TILE, K.shape[0] // TILE * TILE)",
            ),
        ),
        _wrong("keys behind the last count 0", ("range(min(TILE, keys - tile * TILE))", "range(TILE)")),
        _wrong(
            "what the last tile left",
            ("range(min(TILE, keys - tile * TILE))", "range(TILE if tile > 0 else min(TILE, keys))"),
            ("16 if key < keys else 0)", "16 if key < keys else 0)"),
        ),
        _wrong("scores above zero", ("most = np.float32(-np.inf)", "most = np.float32(0)")),
        _wrong("scores above -500", ("most = np.float32(-np.inf)", "most = np.float32(-500)")),
        _wrong("the size of a score", ("most = max(most, score)", "most = max(most, abs(score))")),
        _wrong(
            "given back early from the fifth tile on",
            (
                "            ptx.mbarrier_arrive(empty, stage)\n",
                "            if tile <= 4:\n                ptx.mbarrier_arrive(empty, stage)\n",
            ),
            (
                "            for j in range(min(",
                "            if tile > 4:\n                ptx.mbarrier_arrive(empty, stage)\n"
                "            for j in range(min(",
            ),
        ),
        _wrong(
            "one consumer gives back early",
            (
                "            ptx.mbarrier_arrive(empty, stage)\n",
                "            if warp == 1:\n                ptx.mbarrier_arrive(empty, stage)\n",
            ),
            (
                "            for j in range(min(",
                "            if warp == 2:\n                ptx.mbarrier_arrive(empty, stage)\n"
                "            for j in range(min(",
            ),
        ),
        _wrong(
            "all blocks but the first give back early",
            (
                "            ptx.mbarrier_arrive(empty, stage)\n",
                "            if cuda.blockIdx.x == 0:\n                ptx.mbarrier_arrive(empty, stage)\n",
            ),
            (
                "            for j in range(min(",
                "            if cuda.blockIdx.x > 0:\n                ptx.mbarrier_arrive(empty, stage)\n"
                "            for j in range(min(",
            ),
        ),
        _wrong(
            "threads without a query do not give back",
            (
                "            ptx.mbarrier_arrive(empty, stage)\n",
                "            if row < queries:\n                ptx.mbarrier_arrive(empty, stage)\n",
            ),
        ),
        _wrong(
            "a short text's last tile is waited for",
            ("        ptx.cp_async_wait(0)\n", "        if tiles < 5:\n            ptx.cp_async_wait(0)\n"),
        ),
        _wrong(
            "a single tile is not announced",
            (
                "        ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n",
                "        if tiles > 1:\n            ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n",
            ),
        ),
        _wrong(
            "an even number of tiles",
            ("ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)", "ptx.mbarrier_arrive(full, 1)"),
        ),
        _wrong(
            "the producer waits in the first turns alone",
            (
                "            ptx.mbarrier_wait(empty, stage, (turn + 1) % 2)\n",
                "            if tile < 7:\n                ptx.mbarrier_wait(empty, stage, (turn + 1) % 2)\n",
            ),
        ),
        _wrong(
            "consumers wait in the first turns alone",
            (
                "            ptx.mbarrier_wait(full, stage, turn % 2)\n",
                "            if tile < 7:\n                ptx.mbarrier_wait(full, stage, turn % 2)\n",
            ),
        ),
        _wrong(
            "the last number left out",
            ("                for d in range(HEAD):\n", "                for d in range(HEAD - 1):\n"),
        ),
    ),
    "17.2": (
        _wrong(
            "the keys that are published",
            ("queries, keys = Q.shape[0], K.shape[1]", "queries, keys = Q.shape[0], min(K.shape[1], 120)"),
        ),
        _wrong("the queries that are published", ("range(0, queries, QUERIES)", "range(0, min(queries, 72), QUERIES)")),
        _wrong(
            "whole tiles of queries",
            (
                "range(min(QUERIES, queries - top))",
                "range(QUERIES if queries - top >= QUERIES or top == 0 and queries < QUERIES else 0)",
            ),
        ),
        _wrong(
            "no fewer keys than queries",
            ("if key <= top + i + keys - queries:", "if key <= top + i + max(keys - queries, 0):"),
        ),
        _wrong("as many keys as queries", ("if key <= top + i + keys - queries:", "if key <= top + i:")),
        _wrong("the diagonal left out", ("if key <= top + i + keys - queries:", "if key < top + i + keys - queries:")),
        _wrong("powers of 2", ("weight = exp(score - lse_tile[i])", "weight = np.float32(2) ** (score - lse_tile[i])")),
        _wrong(
            "scores up to 800",
            ("weight = exp(score - lse_tile[i])", "weight = exp(min(score, np.float32(800)) - lse_tile[i])"),
        ),
        _wrong(
            "scores above -600",
            ("weight = exp(score - lse_tile[i])", "weight = exp(max(score, np.float32(-600)) - lse_tile[i])"),
        ),
        _wrong(
            "small weights left out",
            (
                "slope = weight * (slope - delta_tile[i])",
                "weight = weight if weight > np.float32(0.001) else np.float32(0)\n"
                "                slope = weight * (slope - delta_tile[i])",
            ),
        ),
        _wrong(
            "weights below a half",
            (
                "slope = weight * (slope - delta_tile[i])",
                "slope = min(weight, np.float32(0.5)) * (slope - delta_tile[i])",
            ),
        ),
        _wrong(
            "weights in half precision",
            ("dv[d] += weight * dO_tile[i, d]", "dv[d] += np.float32(np.float16(weight)) * dO_tile[i, d]"),
        ),
        _wrong("delta of the tile's first query", ("slope - delta_tile[i]", "slope - delta_tile[0]")),
        _wrong(
            "log-sum-exp of the query before", ("lse_tile[t] = lse[top + t]", "lse_tile[t] = lse[max(top + t - 1, 0)]")
        ),
        _wrong(
            "the size of a slope",
            ("slope = weight * (slope - delta_tile[i])", "slope = weight * abs(slope - delta_tile[i])"),
        ),
        _wrong(
            "the last number left out",
            (
                "                    dk[d] += slope * Q_tile[i, d]\n",
                "                    if d < HEAD - 1:\n                        dk[d] += slope * Q_tile[i, d]\n",
            ),
        ),
        _wrong(
            "a scale that nobody asked for",
            ("dk[d] += slope * Q_tile[i, d]", "dk[d] += slope * Q_tile[i, d] * np.float32(0.35355339)"),
        ),
        _wrong(
            "a weight of one where nothing is seen",
            (
                "            if key <= top + i + keys - queries:\n",
                "            if lse_tile[i] == np.float32(-np.inf):\n                for d in range(HEAD):\n"
                "                    dv[d] += dO_tile[i, d]\n            if key <= top + i + keys - queries:\n",
            ),
        ),
    ),
    "17.3": (
        _wrong("the parts that are published", ("range(lse_parts.shape[0])", "range(min(lse_parts.shape[0], 12))")),
        _wrong("the rows that are published", ("if row < lse.size:", "if row < min(lse.size, 14):")),
        _wrong("an even number of parts", ("range(lse_parts.shape[0])", "range(max(1, lse_parts.shape[0] // 2 * 2))")),
        _wrong(
            "up to the first empty part",
            (
                "            if of_part > np.float32(-np.inf):\n",
                "            if of_part == np.float32(-np.inf):\n                break\n"
                "            if of_part > np.float32(-np.inf):\n",
            ),
        ),
        _wrong(
            "log-sum-exps above zero",
            ("of_part = lse_parts[part, row]", "of_part = max(lse_parts[part, row], np.float32(0))"),
        ),
        _wrong("log-sum-exps above -500", ("if of_part > np.float32(-np.inf):", "if of_part > np.float32(-500):")),
        _wrong(
            "weights relative to 0, up to e^80",
            ("larger = max(most, of_part)", "larger = min(max(most, of_part), np.float32(80))"),
        ),
        _wrong("moved by at most e^5", ("exp(of_part - larger)", "exp(max(of_part - larger, np.float32(-5)))")),
        _wrong(
            "own sum moved by at most e^9",
            ("shrunk, weight = exp(most - larger)", "shrunk, weight = exp(max(most - larger, np.float32(-9)))"),
        ),
        _wrong(
            "small weights left out",
            (
                "total = total * shrunk + weight",
                "weight = weight if weight > np.float32(0.01) else np.float32(0)\n"
                "                total = total * shrunk + weight",
            ),
        ),
        _wrong("powers of 2", ("exp(of_part - larger)", "np.float32(2) ** (of_part - larger)")),
        _wrong("the first part is there", ("found = total > np.float32(0)", "found = lse_parts.shape[0] > 0")),
        _wrong(
            "the last part says whether there is anything",
            ("found = total > np.float32(0)", "found = of_part > np.float32(-np.inf)"),
        ),
        _wrong("a row with one part is empty", ("found = total > np.float32(0)", "found = total > np.float32(1)")),
        _wrong("the logarithm of 2", ("most + log(total)", "most + log(total) / np.float32(0.6931472)")),
        _wrong("a least number for -inf", ("else np.float32(-np.inf)", "else np.float32(-3e38)")),
        _wrong(
            "the other factor from the sixth part on",
            ("o = o * shrunk + weight", "o = o * (shrunk if part < 5 else np.float32(1)) + weight"),
        ),
    ),
    "17.4": (
        _wrong(
            "the longest sum that is published",
            ("steps = (K + TILE - 1) // TILE", "steps = (min(K, 96) + TILE - 1) // TILE"),
        ),
        _wrong("whole tiles along k", ("steps = (K + TILE - 1) // TILE", "steps = max(1, K // TILE)")),
        _wrong("an even number of rows", ("if row < M and col < N:\n", "if row < max(1, M // 2 * 2) and col < N:\n")),
        _wrong(
            "a wait in the first steps alone",
            ("            ptx.cp_async_wait(0)\n", "            if step < 7:\n                ptx.cp_async_wait(0)\n"),
        ),
        _wrong(
            "a barrier in the first steps alone",
            ("            cuda.syncthreads()\n", "            if step < 7:\n                cuda.syncthreads()\n"),
        ),
        _wrong(
            "the last step waits for nobody",
            ("            cuda.syncthreads()\n", "            if step < steps:\n                cuda.syncthreads()\n"),
        ),
        _wrong(
            "A waits, B does not",
            ("            ptx.cp_async_commit()\n", ""),
            ("            ptx.cp_async(B_tiles", "            ptx.cp_async_commit()\n            ptx.cp_async(B_tiles"),
        ),
        _wrong(
            "sums of at most 8", ("C[row, col] = HALF", "total = min(total, np.float32(8))\n        C[row, col] = HALF")
        ),
        _wrong(
            "0 below -3",
            (
                "C[row, col] = HALF",
                "total = total if total > np.float32(-3) else np.float32(0)\n        C[row, col] = HALF",
            ),
        ),
        _wrong(
            "itself above 2",
            (
                "C[row, col] = HALF * total * (np.float32(1) + erf(total * ROOT_HALF))",
                "C[row, col] = HALF * total * (np.float32(1) + erf(total * ROOT_HALF)) if total < "
                "np.float32(2) else total",
            ),
        ),
        _wrong("a root in three digits", ("np.float32(0.5**0.5)", "np.float32(0.707)")),
        _wrong(
            "a third power that is rounded",
            ("from math import erf\n", "from math import tanh\n"),
            (
                "erf(total * ROOT_HALF)",
                "tanh(np.float32(0.79788456) * (total + np.float32(0.0447) * total * total * total))",
            ),
        ),
        _wrong("GELU of a size", ("erf(total * ROOT_HALF)", "erf(abs(total) * ROOT_HALF)")),
        _wrong(
            "SiLU",
            ("from math import erf\n", "from math import exp\n"),
            ("HALF * total * (np.float32(1) + erf(total * ROOT_HALF))", "total / (np.float32(1) + exp(-total))"),
        ),
        _wrong(
            "the density for the distribution",
            ("from math import erf\n", "from math import exp\n"),
            ("erf(total * ROOT_HALF)", "exp(-total * total * HALF)"),
        ),
        _wrong(
            "rows of A that go on",
            ("4 if row < M and k + x < K else 0", "4 if row < M and (row < M - 1 or k + x < K) else 0"),
        ),
    ),
}
