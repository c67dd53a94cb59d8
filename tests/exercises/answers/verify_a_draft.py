"""Other answers to verify-a-draft."""

from . import Answer, right, shortcut, wrong

MASK = "if key > i + keys - queries:"

MAXIMUM = "part_max = max(part_max, cuda.shfl_xor_sync(ALL_LANES, part_max, 1 << step))"

WEIGHT = "p = exp(score - part_max) if found else np.float32(0)"

ROW_SUM = "row_sum += cuda.shfl_xor_sync(ALL_LANES, row_sum, 1 << step)"

STORED = "O[part, i, d] = o / row_sum if found else np.float32(0)"

LSE = "lse[part, i] = part_max + log(row_sum) if found else np.float32(-np.inf)"

VARIANTS = (
    Answer("no mask", "result", ((MASK, "if key >= keys:"),)),
    Answer("a mask one key too far", "result", ((MASK, "if key > i + keys - queries + 1 or key >= keys:"),)),
    Answer("a mask one key too short", "result", ((MASK, "if key >= i + keys - queries:"),)),
    Answer("a mask of positions from the first key on", "result", ((MASK, "if key > i or key >= keys:"),)),
    Answer("all queries at the last position", "result", ((MASK, "if key > keys - 1:"),)),
    Answer("no maximum", "result", ((MAXIMUM, "part_max = max(part_max, np.float32(0))"),)),
    Answer("a maximum of two lanes", "result", ((MAXIMUM, MAXIMUM.replace("1 << step", "1")),)),
    Answer("a sum of two lanes", "result", ((ROW_SUM, ROW_SUM.replace("1 << step", "1")),)),
    Answer(
        "a part without keys like any other", "result", (("found = part_max > np.float32(-np.inf)", "found = True"),)
    ),
    Answer("a weight of NaN that nothing takes", "solved", ((WEIGHT, "p = exp(score - part_max)"),)),
    Answer(
        "a finite score of keys that are not seen",
        "result",
        (("score = np.float32(-np.inf)", "score = np.float32(-3e38)"),),
        mistake="a query that sees no key of a part weighed all of its keys alike",
    ),
    Answer(
        "not divided",
        "result",
        ((STORED, "O[part, i, d] = o"),),
        mistake="O were not divided by the sum of the weights",
    ),
    Answer("divided by what is nothing", "result", ((STORED, "O[part, i, d] = o / row_sum"),)),
    Answer(
        "the maximum for a log-sum-exp",
        "result",
        ((LSE, "lse[part, i] = part_max"),),
        mistake="the maximum were the log-sum-exp",
    ),
    Answer(
        "without the maximum",
        "result",
        ((LSE, "lse[part, i] = log(row_sum) if found else np.float32(-np.inf)"),),
        mistake="the maximum were left out of the log-sum-exp",
    ),
    Answer(
        "a log-sum-exp of 0 where there is nothing",
        "result",
        ((LSE, LSE.replace("np.float32(-np.inf)", "np.float32(0)")),),
    ),
    Answer(
        "no guard of the keys", "bounds", (("k[d] = K[d, key] if key < keys else np.float32(0)", "k[d] = K[d, key]"),)
    ),
    Answer("a log-sum-exp by each lane", "budget", (("if lane == 0:", "if lane >= 0:"),)),
    Answer(
        "a key loaded for each query",
        "budget",
        (("score += Q[i, d] * k[d]", "score += Q[i, d] * K[d, min(key, keys - 1)]"),),
    ),
    Answer("-inf by itself", "solved", ((LSE, "lse[part, i] = part_max + log(row_sum)"),)),
)

RIGHT = (
    right("downwards", ("for i in range(queries):", "for i in range(queries - 1, -1, -1):")),
    right(
        "a least number for a masked score",
        ("score = np.float32(-np.inf)", "score = np.float32(-3e38)"),
        (
            "found = part_max > np.float32(-np.inf)",
            "found = part_max > np.float32(-3e38)",
        ),
    ),
    right(
        "the query in registers, sums by halves",
        cell="""
from math import exp, log

HEAD_DIM, ALL_LANES = 8, 0xFFFFFFFF


@cuda.jit
def verify(Q, K, V, O, lse):
    key_of_lane = cuda.local.array(HEAD_DIM, np.float32)
    value = cuda.local.array(HEAD_DIM, np.float32)
    query = cuda.local.array(HEAD_DIM, np.float32)
    lane, part = cuda.threadIdx.x, cuda.blockIdx.x
    key = part * 32 + lane
    queries, keys = Q.shape[0], K.shape[1]
    if key < keys:
        for d in range(HEAD_DIM):
            key_of_lane[d], value[d] = K[d, key], V[d, key]
    else:
        for d in range(HEAD_DIM):
            key_of_lane[d] = value[d] = 0
    for i in range(queries):
        for d in range(HEAD_DIM):
            query[d] = Q[i, d]
        sees = key <= i + keys - queries
        score = np.float32(-np.inf)
        if sees:
            score = np.float32(0)
            for d in range(HEAD_DIM):
                score += query[d] * key_of_lane[d]
        most = score
        away = 16
        while away > 0:
            most = max(most, cuda.shfl_xor_sync(ALL_LANES, most, away))
            away //= 2
        p = np.float32(0)
        if sees:
            p = exp(score - most)
        total = p
        away = 16
        while away > 0:
            total += cuda.shfl_xor_sync(ALL_LANES, total, away)
            away //= 2
        for d in range(HEAD_DIM):
            o = p * value[d]
            away = 16
            while away > 0:
                o += cuda.shfl_xor_sync(ALL_LANES, o, away)
                away //= 2
            if lane == 0:
                O[part, i, d] = o / total if total > np.float32(0) else np.float32(0)
        if lane == 0:
            lse[part, i] = most + log(total) if total > np.float32(0) else np.float32(-np.inf)
""",
    ),
)

WRONG = (
    wrong(
        "no part with a single key",
        ("part_max > np.float32(-np.inf)", "part_max > np.float32(-np.inf) and (part * 32 + 1 != keys or keys == 1)"),
    ),
    wrong(
        "a maximum over keys that the query does not see",
        (
            "            score = np.float32(-np.inf)\n        part_max = score\n",
            "            score = score if key < keys else np.float32(-np.inf)\n        part_max = score\n",
        ),
        (
            "p = exp(score - part_max) if found else np.float32(0)",
            "p = exp(score - part_max) if key <= i + keys - queries else np.float32(0)\n"
            "        found = part * 32 <= i + keys - queries",
        ),
    ),
    wrong("the queries that are published", ("for i in range(queries):", "for i in range(min(queries, 37)):")),
    wrong(
        "weights below e^-12 left out", (WEIGHT, WEIGHT.replace("found", "found and score > part_max - np.float32(12)"))
    ),
    wrong("at most 32 queries", (MASK, "if key > i % 32 + keys - queries or key >= keys:")),
    wrong("never before the first key", (MASK, "if key > max(i + keys - queries, 0):")),
    wrong("keys of whole parts", (MASK, "if key > i + keys - queries or part >= 3 and part >= keys // 32:")),
    wrong(
        "scores above -500", (WEIGHT, "p = exp(max(score, np.float32(-500)) - part_max) if found else np.float32(0)")
    ),
    wrong(
        "weights relative to at most 80",
        ("found = part_max >", "part_max = min(part_max, np.float32(80))\n        found = part_max >"),
    ),
    wrong(
        "weights relative to the smallest score",
        (
            "        part_max = score\n",
            "        part_max = score if score > np.float32(-np.inf) else np.float32(3e38)\n",
        ),
        (
            "part_max = max(part_max, cuda.shfl_xor_sync(ALL_LANES, part_max, 1 << step))\n",
            "part_max = min(part_max, cuda.shfl_xor_sync(ALL_LANES, part_max, 1 << step))\n",
        ),
        ("found = part_max > np.float32(-np.inf)", "found = part_max < np.float32(2e38)"),
    ),
    wrong("the logarithm of 2", (LSE, LSE.replace("log(row_sum)", "log(row_sum) / np.float32(0.6931472)"))),
    wrong("powers of 2", (WEIGHT, "p = np.float32(2) ** (score - part_max) if found else np.float32(0)")),
)

SHORTCUTS = (
    shortcut("in double precision", ("        score = np.float32(0)\n", "        score = 0.0\n")),
    shortcut("a key loaded for each query", ("o = p * v[d]", "o = p * (V[d, key] if key < keys else np.float32(0))")),
    shortcut("another's kernel", cell="from labkit.softmax.online import warp_max_and_sum as verify\n"),
    shortcut(
        "scores kept for a fixed number of queries",
        cell="""
from math import exp, log

HEAD_DIM, ALL_LANES, MOST = 8, 0xFFFFFFFF, 128


@cuda.jit
def verify(Q, K, V, O, lse):
    scores = cuda.local.array(MOST, np.float32)
    lane, part, key = cuda.threadIdx.x, cuda.blockIdx.x, cuda.grid(1)
    queries, keys = Q.shape[0], K.shape[1]
    for i in range(queries):
        scores[i] = 0
    for d in range(HEAD_DIM):
        k = K[d, key] if key < keys else np.float32(0)
        for i in range(queries):
            scores[i] += Q[i, d] * k
    for i in range(queries):
        score = scores[i] if key <= i + keys - queries else np.float32(-np.inf)
        most = score
        for step in range(5):
            most = max(most, cuda.shfl_xor_sync(ALL_LANES, most, 1 << step))
        scores[i] = exp(score - most) if most > np.float32(-np.inf) else np.float32(0)
        total = scores[i]
        for step in range(5):
            total += cuda.shfl_xor_sync(ALL_LANES, total, 1 << step)
        scores[i] = scores[i] / total if total > np.float32(0) else np.float32(0)
        if lane == 0:
            lse[part, i] = most + log(total) if total > np.float32(0) else np.float32(-np.inf)
    for d in range(HEAD_DIM):
        v = V[d, key] if key < keys else np.float32(0)
        for i in range(queries):
            o = scores[i] * v
            for step in range(5):
                o += cuda.shfl_xor_sync(ALL_LANES, o, 1 << step)
            if lane == 0:
                O[part, i, d] = o
""",
    ),
)
