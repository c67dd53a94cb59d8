"""Other answers to exercise 10.2."""

from . import Variant

_BEGIN = "cuda.blockIdx.x * (T - S + 1) - (S - 1)"
_KEPT = "t >= S - 1 and begin + t < y.size"
_STORE = f"    if {_KEPT}:\n        y[begin + t] = total"

IN_Y = """
T = 32


@cuda.jit
def overlap_save(x, w, y):
    tile, taps = cuda.shared.array(T, np.float32), cuda.shared.array(T, np.float32)
    t, S = cuda.threadIdx.x, w.size
    first = cuda.blockIdx.x * (T + 1 - S)
    place = first + t - S + 1
    tile[t] = x[max(0, min(place, x.size - 1))] if place >= 0 and place < x.size else np.float32(0)
    if t < S:
        taps[t] = w[t]
    cuda.syncthreads()
    out = first + t - (S - 1)
    if out >= first and out < y.size:
        total = np.float32(0)
        for s in range(S):
            total += tile[t - s] * taps[s]
        y[out] = total
"""

VARIANTS = (
    Variant("no overlap", "unwritten", ((_BEGIN, "cuda.blockIdx.x * T - (S - 1)"),)),
    Variant("the first tile begins with the line", "unwritten", ((_BEGIN, "cuda.blockIdx.x * (T - S + 1)"),)),
    Variant("one point too much overlap", "budget", ((_BEGIN, "cuda.blockIdx.x * (T - S) - (S - 1)"),)),
    Variant("one point too little", "unwritten", ((_BEGIN, "cuda.blockIdx.x * (T - S + 2) - (S - 1)"),)),
    Variant("S in front, not S - 1", "race", ((_BEGIN, "cuda.blockIdx.x * (T - S + 1) - S"),)),
    Variant("the stain is kept", "race", ((_KEPT, "0 <= begin + t < y.size"),)),
    Variant("the other end is thrown away", "result", ((_KEPT, "t < T - S + 1 and 0 <= begin + t < y.size"),)),
    Variant("one clean point is thrown away, too", "unwritten", ((_KEPT, "t >= S and begin + t < y.size"),)),
    Variant("one stained point is kept", "race", ((_KEPT, "t >= S - 2 and 0 <= begin + t < y.size"),)),
    Variant("no guard at the end", "bounds", ((_KEPT, "t >= S - 1"),)),
    Variant("the guard of x", "unwritten", ((_KEPT, "t >= S - 1 and begin + t < x.size"),)),
    Variant("correlation", "result", (("tile[(t - s) % T]", "tile[(t + s) % T]"),)),
    Variant("sums in float64", "budget", (("total = np.float32(0)", "total = 0.0"),)),
    Variant(
        "places counted in y",
        "solved",
        (
            (
                _STORE,
                "    p = cuda.blockIdx.x * (T - S + 1) + t - S + 1\n"
                "    if S <= t + 1 and p < x.size + S - 1:\n        y[p] = total",
            ),
        ),
    ),
    Variant("only the taps that there are", "solved", cell=IN_Y),
)
