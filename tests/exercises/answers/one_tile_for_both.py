"""Other answers to one-tile-for-both."""

from . import Answer, right, shortcut, wrong

_SYNC = "        cuda.syncthreads()\n"
_K_LOAD = "K[k0 + n // HEAD, n % HEAD] if k0 + n // HEAD < keys else np.float32(0)"
_V_LOAD = "V[k0 + n // HEAD, n % HEAD] if k0 + n // HEAD < keys else np.float32(0)"
_LOAD_V = "        for n in range(t, KEYS * HEAD, QUERIES):\n            tile[n // HEAD, n % HEAD] = V"
_LOAD_K = _LOAD_V.replace("= V", "= K")
_VALUES_READY = "        alpha = exp(row_max - new_max)\n"
_SCORES_READ = "            new_max = max(new_max, scores[j])\n" + _SYNC
_MASK = "0 if k0 + j < keys and k0 + j <= position else -np.inf"
_RESCALE = "        for d in range(HEAD):\n            acc[d] *= alpha\n"
_PER_TILE = (
    _VALUES_READY
    + "        row_max, row_sum = new_max, row_sum * alpha\n"
    + _RESCALE
    + """        for j in range(KEYS):
            weight = exp(scores[j] - row_max)
            row_sum += weight
            for d in range(HEAD):
                acc[d] += weight * tile[j, d]
"""
)
_PER_KEY = """        for j in range(KEYS):
            larger = max(row_max, scores[j])
            alpha, weight = exp(row_max - larger), exp(scores[j] - larger)
            row_max, row_sum = larger, row_sum * alpha + weight
            for d in range(HEAD):
                acc[d] = acc[d] * alpha + weight * tile[j, d]
"""
_PER_VISIBLE_KEY = """        for j in range(KEYS):
            if row < queries and k0 + j <= position:
                larger = max(row_max, scores[j])
                alpha, weight = exp(row_max - larger), exp(scores[j] - larger)
                row_max, row_sum = larger, row_sum * alpha + weight
                for d in range(HEAD):
                    acc[d] = acc[d] * alpha + weight * tile[j, d]
"""
_LAZY = """        if new_max > row_max:
            alpha = exp(row_max - new_max)
            row_sum *= alpha
            for d in range(HEAD):
                acc[d] *= alpha
            row_max = new_max
        for j in range(KEYS):
            weight = exp(scores[j] - row_max)
            row_sum += weight
            for d in range(HEAD):
                acc[d] += weight * tile[j, d]
"""
_WEIGHTS_KEPT = _PER_TILE.replace(
    "            weight = exp(scores[j] - row_max)\n            row_sum += weight\n",
    "            scores[j] = exp(scores[j] - row_max)\n            row_sum += scores[j]\n",
).replace("weight * tile", "scores[j] * tile")
_TILE = "    tile = cuda.shared.array((KEYS, HEAD), np.float32)\n"
_MASKED_WEIGHT = """weight = np.float32(0)
            if k0 + j < keys and k0 + j <= position:
                weight = exp(scores[j] - row_max)"""

VARIANTS = (
    Answer(
        "no barrier before the keys",
        "race",
        (("    for k0 in range(0, keys, KEYS):\n" + _SYNC, "    for k0 in range(0, keys, KEYS):\n"),),
    ),
    Answer(
        "no barrier after the keys", "race", ((_SYNC + "        new_max = row_max\n", "        new_max = row_max\n"),)
    ),
    Answer("V over K while it is read", "race", ((_SCORES_READ, _SCORES_READ.removesuffix(_SYNC)),)),
    Answer("no barrier after the values", "race", ((_SYNC + _VALUES_READY, _VALUES_READY),)),
    Answer("a rescaling for each key", "budget", ((_PER_TILE, _PER_KEY),)),
    Answer("a rescaling for each key that is seen", "budget", ((_PER_TILE, _PER_VISIBLE_KEY),)),
    Answer(
        "the sum is not rescaled",
        "result",
        (("new_max, row_sum * alpha", "new_max, row_sum"),),
        mistake="the sum of the weights were not rescaled",
    ),
    Answer("the values are not rescaled", "result", ((_RESCALE, ""),), mistake="the sums of values were not rescaled"),
    Answer("the factor the wrong way round", "result", (("exp(row_max - new_max)", "exp(new_max - row_max)"),)),
    Answer(
        "the maximum of this tile alone",
        "result",
        (("        new_max = row_max\n", "        new_max = np.float32(-np.inf)\n"),),
    ),
    Answer(
        "without a maximum",
        "result",
        (("            new_max = max(new_max, scores[j])\n", "            new_max = np.float32(0)\n"),),
    ),
    Answer("without the mask", "result", ((" and k0 + j <= position", ""),), mistake="each query saw all keys"),
    Answer("a key too few", "result", (("k0 + j <= position", "k0 + j < position"),)),
    Answer(
        "keys counted from the first query",
        "result",
        (("k0 + j <= position", "k0 + j <= row"),),
        mistake="the first query stood at the first key",
    ),
    Answer(
        "O undivided",
        "result",
        (("acc[d] / row_sum", "acc[d]"),),
        mistake="O were not divided by the sum of the weights",
    ),
    Answer(
        "the maximum left out of lse",
        "result",
        (("row_max + log(row_sum)", "log(row_sum)"),),
        mistake="the maximum were left out of the log-sum-exp",
    ),
    Answer("past the last key", "bounds", ((_K_LOAD, "K[k0 + n // HEAD, n % HEAD]"),)),
    Answer("past the last value", "bounds", ((_V_LOAD, "V[k0 + n // HEAD, n % HEAD]"),)),
    Answer(
        "stores without a guard",
        "bounds",
        (("    if row < queries:\n        for d", "    if row >= 0:\n        for d"),),
    ),
    Answer(
        "the ragged tile left out", "result", (("range(0, keys, KEYS)", "range(0, max(keys // KEYS, 1) * KEYS, KEYS)"),)
    ),
    Answer(
        "a tile for V as well",
        "budget",
        (
            (_TILE, _TILE + _TILE.replace("tile", "values")),
            ("tile[n // HEAD, n % HEAD] = V", "values[n // HEAD, n % HEAD] = V"),
            ("weight * tile[j, d]", "weight * values[j, d]"),
        ),
    ),
    Answer(
        "values from global memory",
        "budget",
        (("weight * tile[j, d]", "weight * (V[k0 + j, d] if k0 + j < keys else np.float32(0))"),),
    ),
    Answer("only where the maximum grew", "solved", ((_PER_TILE, _LAZY),)),
    Answer("weights in place of the scores", "solved", ((_PER_TILE, _WEIGHTS_KEPT),)),
)

RIGHT = (
    right(
        "values wait in registers",
        cell="""
from math import exp, log

QUERIES, KEYS, HEAD, MINE = 32, 16, 8, 4


@cuda.jit
def flash(Q, K, V, O, lse):
    tile = cuda.shared.array((KEYS, HEAD), np.float32)
    q = cuda.local.array(HEAD, np.float32)
    acc = cuda.local.array(HEAD, np.float32)
    scores = cuda.local.array(KEYS, np.float32)
    mine = cuda.local.array(MINE, np.float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    queries, keys = Q.shape[1], K.shape[0]
    position = row + keys - queries
    row_max, row_sum = np.float32(-np.inf), np.float32(0)
    for d in range(HEAD):
        q[d] = Q[d, row] if row < queries else np.float32(0)
        acc[d] = 0
    for k0 in range(0, keys, KEYS):
        cuda.syncthreads()
        for n in range(t, KEYS * HEAD, QUERIES):
            tile[n // HEAD, n % HEAD] = K[k0 + n // HEAD, n % HEAD] if k0 + n // HEAD < keys else np.float32(0)
        for i in range(MINE):
            n = t + i * QUERIES
            mine[i] = V[k0 + n // HEAD, n % HEAD] if k0 + n // HEAD < keys else np.float32(0)
        cuda.syncthreads()
        new_max = row_max
        for j in range(KEYS):
            scores[j] = 0 if k0 + j < keys and k0 + j <= position else -np.inf
            for d in range(HEAD):
                scores[j] += q[d] * tile[j, d]
            new_max = max(new_max, scores[j])
        cuda.syncthreads()
        for n in range(t, KEYS * HEAD, QUERIES):
            tile[n // HEAD, n % HEAD] = mine[n // QUERIES]
        cuda.syncthreads()
        alpha = exp(row_max - new_max)
        row_max, row_sum = new_max, row_sum * alpha
        for d in range(HEAD):
            acc[d] *= alpha
        for j in range(KEYS):
            weight = exp(scores[j] - row_max)
            row_sum += weight
            for d in range(HEAD):
                acc[d] += weight * tile[j, d]
    if row < queries:
        for d in range(HEAD):
            O[d, row] = acc[d] / row_sum
        lse[row] = row_max + log(row_sum)
""",
    ),
    right(
        "tiles past the last query are skipped",
        ("range(0, keys, KEYS)", "range(0, min(row - t + QUERIES, queries) + keys - queries, KEYS)"),
    ),
    right(
        "one division",
        (
            "        for d in range(HEAD):\n            O[d, row] = acc[d] / row_sum",
            "        f = np.float32(1) / row_sum\n        for d in range(HEAD):\n            O[d, row] = acc[d] * f",
        ),
    ),
    right("a number that is low enough", ("np.float32(-np.inf), np.float32(0)", "np.float32(-3e38), np.float32(0)")),
    right(
        "the last barrier at the end",
        ("    for k0 in range(0, keys, KEYS):\n" + _SYNC, "    for k0 in range(0, keys, KEYS):\n"),
        ("                acc[d] += weight * tile[j, d]\n", "                acc[d] += weight * tile[j, d]\n" + _SYNC),
    ),
    right(
        "row by row",
        (
            _LOAD_V,
            "        for n in range(QUERIES - 1 - t, KEYS * HEAD, QUERIES):\n            tile[n // HEAD, n % HEAD] = V",
        ),
    ),
)

WRONG = (
    wrong(
        "a maximum from -9000 on", ("row_max, row_sum = np.float32(-np.inf)", "row_max, row_sum = np.float32(-9000)")
    ),
    wrong("no tile with a single key", ("range(0, keys, KEYS)", "range(0, max(keys - 1, 1), KEYS)")),
    wrong("scores above -1,000", ("row_max, row_sum = np.float32(-np.inf)", "row_max, row_sum = np.float32(-1000)")),
    wrong("the keys that are published", ("range(0, keys, KEYS)", "range(0, min(keys, 192), KEYS)")),
    wrong(
        "scores below 1000",
        (
            "            new_max = max(new_max, scores[j])\n",
            "            new_max = max(new_max, min(scores[j], np.float32(800)))\n",
        ),
    ),
    wrong(
        "weights below e^-12 left out",
        (
            "weight = exp(scores[j] - row_max)",
            "weight = exp(scores[j] - row_max) if scores[j] > row_max - np.float32(12) else np.float32(0)",
        ),
    ),
    wrong("the mask on the weight alone", (_MASK, "0"), ("weight = exp(scores[j] - row_max)", _MASKED_WEIGHT)),
    wrong("the first block's position", ("position = row + keys - queries", "position = t + keys - queries")),
)

SHORTCUTS = (
    shortcut(
        "keys and values from global memory",
        ("q[d] * tile[j, d]", "q[d] * (K[k0 + j, d] if k0 + j < keys else np.float32(0))"),
        ("weight * tile[j, d]", "weight * (V[k0 + j, d] if k0 + j < keys else np.float32(0))"),
    ),
    shortcut(
        "all scores first",
        (
            "    scores = cuda.local.array(KEYS, np.float32)\n",
            "    scores = cuda.local.array(KEYS, np.float32)\n    every = cuda.local.array(4096, np.float32)\n",
        ),
        (
            "            new_max = max(new_max, scores[j])\n",
            "            every[k0 + j] = scores[j]\n            new_max = max(new_max, every[k0 + j])\n",
        ),
    ),
    shortcut("a rescaling for each key", (_PER_TILE, _PER_KEY)),
)
