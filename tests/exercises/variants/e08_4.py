"""Other answers to exercise 08.4."""

from . import Variant

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
    Variant("no tiles", "budget", cell=_NO_TILES),
    Variant("no barrier before the products", "race", ((_BARRIER + "        for i", "        for i"),)),
    Variant("no barrier behind them", "race", ((_BARRIER + "    if k", "    if k"),)),
    Variant("a hop of one", "result", (("t * hop + l", "t + l"),)),
    Variant("one channel", "result", (("c < C else zero\n        cuda", "c < 1 else zero\n        cuda"),)),
    Variant("channels fastest", "result", ((_TAP, "c, l = (start + down) % C, (start + down) // C"),)),
    Variant("no guard of the taps", "bounds", ((_SAMPLE, "x[c, t * hop + l] if t < y.shape[1] else zero"),)),
    Variant("no guard of the outputs", "bounds", ((_SAMPLE, "x[c, t * hop + l] if c < C else zero"),)),
    Variant("turned taps", "result", (("w[k, c, l]", "w[k, c, L - 1 - l]"),)),
    Variant("the tile of x turned", "result", (("x_tile[i, across]", "x_tile[across, i]"),)),
    Variant(
        "sums in float64",
        "budget",
        (("zero = np.float32(0)\n    total = zero", "zero = np.float32(0)\n    total = 0.0"),),
    ),
    Variant(
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
    Variant("by while, and fused", "solved", cell=_BY_CHANNEL),
)
