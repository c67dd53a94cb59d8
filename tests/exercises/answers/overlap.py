"""Other answers to overlap."""

from . import Answer, right, shortcut, wrong

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
    Answer("no overlap", "unwritten", ((_BEGIN, "cuda.blockIdx.x * T - (S - 1)"),), mistake="tiles did not overlap"),
    Answer("the first tile begins with the line", "unwritten", ((_BEGIN, "cuda.blockIdx.x * (T - S + 1)"),)),
    Answer("one point too much overlap", "unwritten", ((_BEGIN, "cuda.blockIdx.x * (T - S) - (S - 1)"),)),
    Answer("one point too little", "unwritten", ((_BEGIN, "cuda.blockIdx.x * (T - S + 2) - (S - 1)"),)),
    Answer("S in front, not S - 1", "race", ((_BEGIN, "cuda.blockIdx.x * (T - S + 1) - S"),)),
    Answer("the stain is kept", "race", ((_KEPT, "0 <= begin + t < y.size"),)),
    Answer("the other end is thrown away", "result", ((_KEPT, "t < T - S + 1 and 0 <= begin + t < y.size"),)),
    Answer(
        "one clean point is thrown away, too",
        "unwritten",
        ((_KEPT, "t >= S and begin + t < y.size"),),
        mistake="one valid output of each tile were left out",
    ),
    Answer("one stained point is kept", "race", ((_KEPT, "t >= S - 2 and 0 <= begin + t < y.size"),)),
    Answer("no guard at the end", "bounds", ((_KEPT, "t >= S - 1"),)),
    Answer(
        "the guard of x", "unwritten", ((_KEPT, "t >= S - 1 and begin + t < x.size"),), mistake="y ended where x ends"
    ),
    Answer("correlation", "result", (("tile[(t - s) % T]", "tile[(t + s) % T]"),)),
    Answer("sums in float64", "budget", (("total = np.float32(0)", "total = 0.0"),)),
    Answer(
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
    Answer("only the taps that there are", "solved", cell=IN_Y),
)

RIGHT = (
    right("only the taps that there are", cell=IN_Y),
    right(
        "turned while loading",
        ("taps[t] = w[t] if t < S", "taps[t] = w[S - 1 - t] if t < S"),
        ("tile[(t - s) % T]", "tile[(t + s + 1 - S) % T]"),
    ),
    right(
        "a sum by fma",
        ("total += taps[s] * tile[(t - s) % T]", "total = cuda.fma(taps[s], tile[(t - s) % T], total)"),
    ),
    right(
        "T - S + 1 under a name",
        (
            "    begin = cuda.blockIdx.x * (T - S + 1) - (S - 1)\n",
            "    stained = S - 1\n    begin = cuda.blockIdx.x * (T - stained) - stained\n",
        ),
    ),
)

WRONG = (
    wrong(
        "two taps at least",
        ("cuda.threadIdx.x, w.size\n", "cuda.threadIdx.x, max(w.size, 2)\n"),
        ("w[t] if t < S", "w[t] if t < w.size"),
    ),
    wrong("the taps that are published", ("taps[t] = w[t] if t < S", "taps[t] = w[t] if t < min(S, 12)")),
    wrong("fewer taps than a tile has points", ("taps[t] = w[t] if t < S", "taps[t] = w[t] if t < min(S, T - 1)")),
    wrong("at least two taps", ("t, S = cuda.threadIdx.x, w.size", "t, S = cuda.threadIdx.x, max(w.size, 2)")),
    wrong("the first point left out", ("0 <= begin + t < x.size", "0 < begin + t < x.size")),
    wrong("the last point left out", ("0 <= begin + t < x.size", "0 <= begin + t < x.size - 1")),
    wrong("the outputs that are published", ("begin + t < y.size", "begin + t < min(y.size, 104)")),
    wrong("a filter of at most half a tile", ("if t < S else", "if t < min(S, T // 2) else")),
    wrong("no barrier", ("    cuda.syncthreads()\n", "")),
    wrong("an even number of taps", ("T - S + 1", "T - S // 2 * 2")),
)

SHORTCUTS = (
    shortcut(
        "another's kernel",
        cell="T = 32\nfrom labkit.conv.direct.s01_naive import naive as overlap_save\n",
    ),
    shortcut("straight from x", ("tile[(t - s) % T]", "(x[begin + t - s] if 0 <= begin + t - s < x.size else 0)")),
    shortcut(
        "straight from x, by atomics",
        ("tile[(t - s) % T]", "(cuda.atomic.add(x, begin + t - s, 0) if 0 <= begin + t - s < x.size else 0)"),
    ),
    shortcut(
        "every output by the first block",
        (
            "    total = np.float32(0)\n",
            "    for p in range(t, y.size * (cuda.blockIdx.x == 0), T):\n"
            "        y[p] = 0\n        for s in range(S):\n            if 0 <= p - s < x.size:\n"
            "                y[p] += w[s] * x[p - s]\n    total = np.float32(0)\n",
        ),
        ("if t >= S - 1 and begin + t < y.size:", "if False:"),
    ),
    shortcut(
        "one thread per tile",
        cell="""T = 32


@cuda.jit
def overlap_save(x, w, y):
    tile, taps = cuda.local.array(T, np.float32), cuda.local.array(T, np.float32)
    S = w.size
    begin = cuda.blockIdx.x * (T - S + 1) - (S - 1)
    for t in range(T * (cuda.threadIdx.x == 0)):
        tile[t] = x[begin + t] if 0 <= begin + t < x.size else np.float32(0)
        taps[t] = w[t] if t < S else np.float32(0)
    for t in range(S - 1, T * (cuda.threadIdx.x == 0)):
        total = np.float32(0)
        for s in range(S):
            total += taps[s] * tile[t - s]
        if begin + t < y.size:
            y[begin + t] = total
""",
    ),
)
