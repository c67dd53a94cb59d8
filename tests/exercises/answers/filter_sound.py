"""Other answers to filter-sound."""

from . import Answer, right, shortcut, wrong

_BARRIER = "        cuda.syncthreads()\n"

_TAP = "c, l = (start + down) // L, (start + down) % L"

_SAMPLE = "x[c, t * hop + l] if t < y.shape[1] and c < C else zero"

_NO_TILES = """
@cuda.jit
def filter_sound(x, w, y, hop):
    t, k = cuda.grid(2)
    if k < y.shape[0] and t < y.shape[1]:
        total = np.float32(0)
        for c in range(w.shape[1]):
            for l in range(w.shape[2]):
                total += w[k, c, l] * x[c, t * hop + l]
        y[k, t] = total
"""

_BY_CHANNEL = """TILE = 16


@cuda.jit
def filter_sound(x, w, y, hop):
    w_tile = cuda.shared.array((TILE, TILE), np.float32)
    x_tile = cuda.shared.array((TILE, TILE), np.float32)
    t, k = cuda.grid(2)
    across, down = cuda.threadIdx.x, cuda.threadIdx.y
    C, L = w.shape[1:]
    taps = C * L
    total = np.float32(0)
    cl_across, cl_down = across, down
    while cl_across - across < taps:
        w_tile[down, across] = 0
        if k < w.shape[0] and cl_across < taps:
            w_tile[down, across] = w[k, cl_across // L, cl_across % L]
        x_tile[down, across] = 0
        if t < y.shape[1] and cl_down < taps:
            x_tile[down, across] = x[cl_down // L, t * hop + cl_down % L]
        cuda.syncthreads()
        for i in range(min(TILE, taps - cl_across + across)):
            total = cuda.fma(w_tile[down, i], x_tile[i, across], total)
        cuda.syncthreads()
        cl_across += TILE
        cl_down += TILE
    if k < w.shape[0] and t < y.shape[1]:
        y[k, t] = total
"""

VARIANTS = (
    Answer("no tiles", "budget", cell=_NO_TILES),
    Answer("no barrier before the products", "race", ((_BARRIER + "        for i", "        for i"),)),
    Answer("no barrier behind them", "race", ((_BARRIER + "    if k", "    if k"),)),
    Answer("a hop of one", "result", (("t * hop + l", "t + l"),), mistake="the hop were 1"),
    Answer(
        "one channel",
        "result",
        (("c < C else zero\n        cuda", "c < 1 else zero\n        cuda"),),
        mistake="only the first channel were filtered",
    ),
    Answer(
        "channels fastest",
        "result",
        ((_TAP, "c, l = (start + down) % C, (start + down) // C"),),
        mistake="samples were counted over channels first",
    ),
    Answer("no guard of the taps", "bounds", ((_SAMPLE, "x[c, t * hop + l] if t < y.shape[1] else zero"),)),
    Answer("no guard of the outputs", "bounds", ((_SAMPLE, "x[c, t * hop + l] if c < C else zero"),)),
    Answer("turned taps", "result", (("w[k, c, l]", "w[k, c, L - 1 - l]"),), mistake="the taps were turned"),
    Answer(
        "the tile of x turned",
        "result",
        (("x_tile[i, across]", "x_tile[across, i]"),),
        mistake="each tile of x were transposed",
    ),
    Answer(
        "sums in float64",
        "budget",
        (("zero = np.float32(0)\n    total = zero", "zero = np.float32(0)\n    total = 0.0"),),
    ),
    Answer(
        "x straight from memory",
        "budget",
        (
            (
                "w_tile[down, i] * x_tile[i, across]",
                "w_tile[down, i] * "
                "(x[(start + i) // L, t * hop + (start + i) % L] if t < y.shape[1] and start + i < C * L else zero)",
            ),
        ),
    ),
    Answer("by while, and fused", "solved", cell=_BY_CHANNEL),
)

RIGHT = (
    right(
        "taps counted over channels first, in both tiles",
        ("c, l = (start + across) // L, (start + across) % L", "l, c = (start + across) // C, (start + across) % C"),
        ("w[k, c, l] if k < K and c < C", "w[k, c, l] if k < K and l < L"),
        (_TAP, "l, c = (start + down) // C, (start + down) % C"),
        (_SAMPLE, "x[c, t * hop + l] if t < y.shape[1] and l < L else zero"),
    ),
    right(
        "a tile that is padded",
        ("x_tile = cuda.shared.array((TILE, TILE)", "x_tile = cuda.shared.array((TILE, 17)"),
    ),
    right("constants", ("start in range(0, C * L, TILE)", "start in range(0, C * L, 16)")),
    right(
        "fused",
        (
            "total += w_tile[down, i] * x_tile[i, across]",
            "total = cuda.fma(w_tile[down, i], x_tile[i, across], total)",
        ),
    ),
)

WRONG = (
    wrong(
        "as many outputs as fit into the sound",
        ("    K, C, L = w.shape\n", "    K, C, L = w.shape\n    T = (x.shape[1] - L) // hop + 1\n"),
        ("if t < y.shape[1] and c < C else zero", "if t < T and c < C else zero"),
        ("if k < K and t < y.shape[1]:", "if k < K and t < T:"),
    ),
    wrong("no tile with a single tap", ("range(0, C * L, TILE)", "range(0, max(C * L - 1, 1), TILE)")),
    wrong(
        "a rounded reciprocal",
        (_TAP, "c = int(np.float32(start + down) * (np.float32(1) / np.float32(L)))\n        l = start + down - c * L"),
    ),
    wrong("hops of up to the length of a filter", ("t * hop + l", "t * min(hop, L) + l")),
    wrong("the taps that are published", ("range(0, C * L, TILE)", "range(0, min(C * L, 48), TILE)")),
    wrong("whole tiles of taps", ("range(0, C * L, TILE)", "range(0, max(C * L // TILE, 1) * TILE, TILE)")),
    wrong("the outputs that are published", ("if k < K and t < y.shape[1]:", "if k < K and t < min(y.shape[1], 70):")),
    wrong("the filters that are published", ("if k < K and t < y.shape[1]:", "if k < min(K, 33) and t < y.shape[1]:")),
    wrong("hops of up to three", ("t * hop + l", "t * min(hop, 3) + l")),
    wrong("three channels", ("c < C else zero\n        cuda", "c < min(C, 3) else zero\n        cuda")),
    wrong(
        "a barrier of each warp",
        ("        cuda.syncthreads()\n        for", "        cuda.syncwarp()\n        for"),
    ),
    wrong(
        "an even number of outputs",
        ("if k < K and t < y.shape[1]:", "if k < K and t < max(y.shape[1] // 2 * 2, 1):"),
    ),
)

SHORTCUTS = (
    shortcut("another's kernel", cell="from labkit.conv.implicit_gemm.s01_index import index as filter_sound\n"),
    shortcut(
        "x by atomics",
        (
            "w_tile[down, i] * x_tile[i, across]",
            "w_tile[down, i] * (cuda.atomic.add(x, ((start + i) // L, t * hop + (start + i) % L), zero) "
            "if t < y.shape[1] and start + i < C * L else zero)",
        ),
    ),
    shortcut(
        "w from memory, the tile of ones",
        ("w[k, c, l] if k < K and c < C else zero", "np.float32(1)"),
        (
            "w_tile[down, i] *",
            "w_tile[down, i] * (w[k, (start + i) // L, (start + i) % L] if k < K and start + i < C * L else 0) *",
        ),
    ),
    shortcut(
        "w by shuffles, the tile of ones",
        (
            "        w_tile[down, across] = w[k, c, l] if k < K and c < C else zero",
            "        w_tile[down, across] = 1\n        tap = w[k, c, l] if k < K and c < C else zero",
        ),
        ("w_tile[down, i] *", "w_tile[down, i] * cuda.shfl_sync(0xFFFFFFFF, tap, i + down % 2 * 16) *"),
    ),
    shortcut(
        "one warp of each block multiplies",
        (
            "    total = zero\n",
            """    sums = cuda.local.array(8, np.float32)
    for i in range(8):
        sums[i] = zero
""",
        ),
        (
            """        for i in range(TILE):
            total += w_tile[down, i] * x_tile[i, across]
""",
            """        for n in range(8 * (down < 2)):
            for i in range(TILE):
                sums[n] += w_tile[down + 2 * n, i] * x_tile[i, across]
""",
        ),
        (
            "    if k < K and t < y.shape[1]:\n        y[k, t] = total",
            """    for n in range(8 * (down < 2)):
        k = cuda.blockIdx.y * TILE + down + 2 * n
        if k < K and t < y.shape[1]:
            y[k, t] = sums[n]""",
        ),
    ),
)
