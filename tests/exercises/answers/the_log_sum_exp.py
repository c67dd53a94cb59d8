"""Other answers to the-log-sum-exp."""

from . import Answer, right, shortcut, wrong

SEEN = "if key <= top + i + keys - queries:"

WEIGHT = "weight = exp(score - lse_tile[i])"

SLOPE = "slope = weight * (slope - delta_tile[i])"

OF_VALUE = "dv[d] += weight * dO_tile[i, d]"

OF_KEY = "dk[d] += slope * Q_tile[i, d]"

BARRIER = "        cuda.syncthreads()\n"

VARIANTS = (
    Answer("no log-sum-exp", "result", ((WEIGHT, "weight = exp(score)"),)),
    Answer("log-sum-exp the wrong way round", "result", ((WEIGHT, "weight = exp(lse_tile[i] - score)"),)),
    Answer("a quotient of exponentials", "result", ((WEIGHT, "weight = exp(score) / exp(lse_tile[i])"),)),
    Answer("a product of exponentials", "result", ((WEIGHT, "weight = exp(score) * exp(-lse_tile[i])"),)),
    Answer("no delta", "result", ((SLOPE, "slope = weight * slope"),), mistake="delta were left out"),
    Answer(
        "delta not weighed",
        "result",
        ((SLOPE, "slope = weight * slope - delta_tile[i]"),),
        mistake="delta were not multiplied by P",
    ),
    Answer("delta added", "result", ((SLOPE, SLOPE.replace(" - ", " + ")),), mistake="delta were added"),
    Answer(
        "the gradient of weights", "result", ((SLOPE, "slope = slope - delta_tile[i]"),), mistake="dS had no factor P"
    ),
    Answer(
        "dS for P", "result", ((OF_VALUE, OF_VALUE.replace("weight", "slope")),), mistake="dV were made of dS, not of P"
    ),
    Answer(
        "P for dS", "result", ((OF_KEY, OF_KEY.replace("slope", "weight")),), mistake="dK were made of P, not of dS"
    ),
    Answer(
        "Q for dO",
        "result",
        ((OF_VALUE, OF_VALUE.replace("dO_tile", "Q_tile")),),
        mistake="dV were made of Q, not of dO",
    ),
    Answer(
        "the sum of O * V",
        "result",
        (("slope += dO_tile[i, d] * v[d]", "slope += dO_tile[i, d] * k[d]"),),
        mistake="dP were made of K, not of V",
    ),
    Answer("no mask", "result", ((SEEN, "if True:"),)),
    Answer("a mask from the first key on", "result", ((SEEN, "if key <= top + i:"),)),
    Answer("one key too few", "result", ((SEEN, SEEN.replace("<=", "<")),)),
    Answer("one key too many", "result", ((SEEN, SEEN.replace("- queries:", "- queries + 1:")),)),
    Answer(
        "weights that are multiplied by 0",
        "result",
        ((SEEN, "if True:"), (WEIGHT, f"{WEIGHT} * np.float32(1 if key <= top + i + keys - queries else 0)")),
    ),
    Answer(
        "queries without keys by their log-sum-exp alone", "result", ((SEEN, "if lse_tile[i] > np.float32(-np.inf):"),)
    ),
    Answer("stored for each query", "result", ((OF_VALUE, OF_VALUE.replace("+=", "=")),)),
    Answer("no barrier before the next tile", "race", ((BARRIER + "        for n", "        for n"),)),
    Answer(
        "no barrier behind the loads", "race", ((BARRIER + "        for i in range(min", "        for i in range(min"),)
    ),
    Answer("its queries from memory", "budget", ((OF_KEY, OF_KEY.replace("Q_tile[i, d]", "Q[top + i, d]")),)),
    Answer("its log-sum-exp from memory", "budget", ((WEIGHT, WEIGHT.replace("lse_tile[i]", "lse[top + i]")),)),
    Answer("in float64", "budget", (("score = slope = np.float32(0)", "score = slope = 0.0"),)),
    Answer(
        "a weight of 0 where nothing is seen",
        "solved",
        ((SEEN, "if True:"), (WEIGHT, f"{WEIGHT} if key <= top + i + keys - queries else np.float32(0)")),
    ),
    Answer(
        "values first, then keys",
        "solved",
        ((OF_VALUE + "\n", OF_VALUE + "\n                for d in range(HEAD):\n"),),
    ),
)

RIGHT = (
    right(
        "no weight, no gradient",
        (
            "            if key <= top + i + keys - queries:\n                score",
            "            if True:\n                score",
        ),
        (
            "weight = exp(score - lse_tile[i])",
            "weight = np.float32(0)\n                if top + i - queries >= key - keys:\n"
            "                    weight = exp(score - lse_tile[i])",
        ),
    ),
    right(
        "queries that see none of the block's keys are not brought",
        (
            "range(0, queries, QUERIES)",
            "range(max(0, cuda.blockIdx.x * KEYS + queries - keys) // QUERIES * QUERIES, queries, QUERIES)",
        ),
    ),
    right(
        "by powers of 2",
        ("from math import exp\n", "from math import exp2\n\nLOG2_E = np.float32(1.4426950408889634)\n"),
        ("exp(score - lse_tile[i])", "exp2((score - lse_tile[i]) * LOG2_E)"),
    ),
    right(
        "delta first",
        ("score = slope = np.float32(0)\n", "score, slope = -lse_tile[i], -delta_tile[i]\n"),
        ("weight = exp(score - lse_tile[i])", "weight = exp(score)"),
        ("slope = weight * (slope - delta_tile[i])", "slope *= weight"),
    ),
    right(
        "from the last query on",
        (
            "for i in range(min(QUERIES, queries - top)):",
            "for i in range(min(QUERIES, queries - top) - 1, -1, -1):",
        ),
    ),
    right("larger where it is seen", ("if key <= top + i + keys - queries:", "if not key > top + i + keys - queries:")),
)

WRONG = (
    wrong(
        "a mask that multiplies",
        ("            if key <= top + i + keys - queries:\n", "            if lse_tile[i] > -np.inf:\n"),
        (
            "weight = exp(score - lse_tile[i])",
            "weight = exp(score - lse_tile[i]) * np.float32(key <= top + i + keys - queries)",
        ),
    ),
    wrong(
        "the keys that are published",
        ("queries, keys = Q.shape[0], K.shape[1]", "queries, keys = Q.shape[0], min(K.shape[1], 120)"),
    ),
    wrong("the queries that are published", ("range(0, queries, QUERIES)", "range(0, min(queries, 72), QUERIES)")),
    wrong(
        "whole tiles of queries",
        (
            "range(min(QUERIES, queries - top))",
            "range(QUERIES if queries - top >= QUERIES or top == 0 and queries < QUERIES else 0)",
        ),
    ),
    wrong(
        "no fewer keys than queries",
        ("if key <= top + i + keys - queries:", "if key <= top + i + max(keys - queries, 0):"),
    ),
    wrong("as many keys as queries", ("if key <= top + i + keys - queries:", "if key <= top + i:")),
    wrong("the diagonal left out", ("if key <= top + i + keys - queries:", "if key < top + i + keys - queries:")),
    wrong("powers of 2", ("weight = exp(score - lse_tile[i])", "weight = np.float32(2) ** (score - lse_tile[i])")),
    wrong(
        "scores up to 800",
        ("weight = exp(score - lse_tile[i])", "weight = exp(min(score, np.float32(800)) - lse_tile[i])"),
    ),
    wrong(
        "scores above -600",
        ("weight = exp(score - lse_tile[i])", "weight = exp(max(score, np.float32(-600)) - lse_tile[i])"),
    ),
    wrong(
        "small weights left out",
        (
            "slope = weight * (slope - delta_tile[i])",
            "weight = weight if weight > np.float32(0.001) else np.float32(0)\n"
            "                slope = weight * (slope - delta_tile[i])",
        ),
    ),
    wrong(
        "weights below a half",
        (
            "slope = weight * (slope - delta_tile[i])",
            "slope = min(weight, np.float32(0.5)) * (slope - delta_tile[i])",
        ),
    ),
    wrong(
        "weights in half precision",
        ("dv[d] += weight * dO_tile[i, d]", "dv[d] += np.float32(np.float16(weight)) * dO_tile[i, d]"),
    ),
    wrong("delta of the tile's first query", ("slope - delta_tile[i]", "slope - delta_tile[0]")),
    wrong("log-sum-exp of the query before", ("lse_tile[t] = lse[top + t]", "lse_tile[t] = lse[max(top + t - 1, 0)]")),
    wrong(
        "the size of a slope",
        ("slope = weight * (slope - delta_tile[i])", "slope = weight * abs(slope - delta_tile[i])"),
    ),
    wrong(
        "the last number left out",
        (
            "                    dk[d] += slope * Q_tile[i, d]\n",
            "                    if d < HEAD - 1:\n                        dk[d] += slope * Q_tile[i, d]\n",
        ),
    ),
    wrong(
        "a scale that nobody asked for",
        ("dk[d] += slope * Q_tile[i, d]", "dk[d] += slope * Q_tile[i, d] * np.float32(0.35355339)"),
    ),
    wrong(
        "a weight of one where nothing is seen",
        (
            "            if key <= top + i + keys - queries:\n",
            "            if lse_tile[i] == np.float32(-np.inf):\n                for d in range(HEAD):\n"
            "                    dv[d] += dO_tile[i, d]\n            if key <= top + i + keys - queries:\n",
        ),
    ),
)

SHORTCUTS = (
    shortcut("in double precision", ("score = slope = np.float32(0)", "score = slope = np.float64(0)")),
    shortcut(
        "log-sum-exp by atomics",
        ("exp(score - lse_tile[i])", "exp(score - cuda.atomic.add(lse, top + i, np.float32(0)))"),
    ),
    shortcut("its queries again for each key", ("dk[d] += slope * Q_tile[i, d]", "dk[d] += slope * Q[top + i, d]")),
    shortcut(
        "each key again for each query",
        ("score += Q_tile[i, d] * k[d]", "score += Q_tile[i, d] * (K[d, key] if key < keys else np.float32(0))"),
    ),
    shortcut(
        "one thread loads",
        (
            "for n in range(t, QUERIES * HEAD, KEYS):",
            "for n in range(0 if t == 0 else QUERIES * HEAD, QUERIES * HEAD):",
        ),
    ),
    shortcut(
        "added up in memory",
        (
            "                    dk[d] += slope * Q_tile[i, d]\n",
            "                    dk[d] += slope * Q_tile[i, d]\n                    dK[d, key] = dk[d]\n",
        ),
    ),
    shortcut(
        "another's kernel",
        cell="from labkit.attention.backward.s01_recomputed import recomputed as gradients_of_keys\n",
    ),
    shortcut(
        "maximum and sum again",
        cell="""
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
    shortcut(
        "a thread for each key, without tiles",
        cell="""
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
)
