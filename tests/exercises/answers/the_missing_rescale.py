"""Other answers to the-missing-rescale."""

from . import Answer, right, shortcut, wrong

FACTOR = "alpha = exp(origin - highest)"

TOTAL = "            total *= alpha\n"

SUMS = "            for d in range(HEAD):\n                o[d] *= alpha\n"

MOVED = "            origin = highest\n"

LATE = "if highest > origin + np.float32(8):"

VARIANTS = (
    Answer("the stub", "result", ((FACTOR, "alpha = exp(most - highest)"), (SUMS, ""))),
    Answer("the sums rescaled as the total is", "result", ((FACTOR, "alpha = exp(most - highest)"),)),
    Answer("the sums not rescaled", "result", ((SUMS, ""),)),
    Answer("the total not rescaled", "result", ((TOTAL, ""),), mistake="the totals were not rescaled"),
    Answer("half of the sums", "result", ((SUMS, SUMS.replace("range(HEAD)", "range(HEAD // 2)")),)),
    Answer("the other way round", "result", ((FACTOR, "alpha = exp(highest - origin)"),)),
    Answer("moved first", "result", ((MOVED, ""), (FACTOR, f"origin = highest\n            {FACTOR}"))),
    Answer("never moved again", "result", ((LATE, "if left == 0:"),)),
    Answer(
        "moved at once", "result", ((LATE, "if highest > origin:"),), mistake="the origin were the largest score of all"
    ),
    Answer("moved at 8 as well", "result", ((LATE, LATE.replace(">", ">=")),)),
    Answer(
        "relative to the maximum",
        "result",
        (("origins[row] = total, origin", "origins[row] = total, most"),),
        mistake="the origin that is stored were the largest score",
    ),
    Answer(
        "to the maximum in the end",
        "result",
        (
            (
                "    if row < queries:\n",
                """    alpha = exp(origin - most)
    total *= alpha
    for d in range(HEAD):
        o[d] *= alpha
    origin = most
    if row < queries:
""",
            ),
        ),
        mistake="the origin were the largest score of all",
    ),
    Answer(
        "divided",
        "result",
        (("sums[d, row] = o[d]", "sums[d, row] = o[d] / total"),),
        mistake="the sums were divided by the totals",
    ),
    Answer("rescaled twice", "result", ((TOTAL, TOTAL * 2),), mistake="the totals were rescaled twice"),
    Answer(
        "in the loop over keys", "result", ((SUMS, ""), ("o[d] += weight", "o[d] = o[d] * exp(most - origin) + weight"))
    ),
    Answer("weights in float64", "budget", (("total = np.float32(0)", "total = 0.0"),)),
    Answer("no barrier before a tile", "race", (("        cuda.syncthreads()\n        for n", "        for n"),)),
    Answer("the sums first", "solved", ((TOTAL + SUMS, SUMS + TOTAL),)),
    Answer(
        "without the maximum so far",
        "solved",
        (
            ("most = origin = ", "origin = "),
            ("highest = most\n", "highest = origin\n"),
            ("        most = highest\n", ""),
        ),
    ),
)

RIGHT = (
    right(
        "from a least number on",
        ("most = origin = np.float32(-np.inf)", "most = origin = np.float32(-3e38)"),
    ),
    right("a difference", ("if highest > origin + np.float32(8):", "if highest - origin > np.float32(8):")),
    right(
        "always multiplied",
        (
            """        if highest > origin + np.float32(8):
            alpha = exp(origin - highest)
            total *= alpha
            for d in range(HEAD):
                o[d] *= alpha
            origin = highest
""",
            """        moved = highest if highest > origin + np.float32(8) else origin
        alpha = exp(origin - moved)
        total *= alpha
        for d in range(HEAD):
            o[d] *= alpha
        origin = moved
""",
        ),
    ),
    right(
        "with the first weights",
        (
            """            total *= alpha
            for d in range(HEAD):
                o[d] *= alpha
            origin = highest
""",
            "            origin = highest\n        else:\n            alpha = np.float32(1)\n",
        ),
        ("            total += weight\n", "            total = total * alpha + weight\n"),
        ("o[d] += weight * V_tile[j, d]", "o[d] = o[d] * alpha + weight * V_tile[j, d]"),
        (
            "            weight = exp(",
            "            if j > 0:\n                alpha = np.float32(1)\n            weight = exp(",
        ),
    ),
    right(
        "a quotient",
        ("alpha = exp(origin - highest)", "alpha = np.float32(1) / exp(min(highest - origin, np.float32(88)))"),
        ("most = origin = np.float32(-np.inf)", "most = origin = np.float32(-1e4)"),
    ),
    right(
        "the total beside the sums",
        ("HEAD = 32, 8, 8\n", "HEAD = 32, 8, 8\nALL = HEAD + 1\n"),
        ("o = cuda.local.array(HEAD, np.float32)", "o = cuda.local.array(ALL, np.float32)"),
        ("        o[d] = 0\n", "        o[d] = 0\n    o[HEAD] = 0\n"),
        ("            total *= alpha\n            for d in range(HEAD):", "            for d in range(HEAD + 1):"),
        ("            total += weight\n", "            o[HEAD] += weight\n"),
        ("    total = np.float32(0)\n", ""),
        ("= total, origin", "= o[HEAD], origin"),
    ),
    right(
        "by powers of 2",
        ("from math import exp\n", "from math import exp2\n\nLOG2_E = np.float32(1.4426950408889634)\n"),
        ("exp(origin - highest)", "exp2((origin - highest) * LOG2_E)"),
        ("exp(scores[j] - origin)", "exp2((scores[j] - origin) * LOG2_E)"),
    ),
    right(
        "at once, and moved back in the end",
        (
            """        if highest > origin + np.float32(8):
            alpha = exp(origin - highest)
            total *= alpha
            for d in range(HEAD):
                o[d] *= alpha
            origin = highest
        most = highest
""",
            """        alpha = exp(most - highest)
        total *= alpha
        for d in range(HEAD):
            o[d] *= alpha
        if highest > origin + np.float32(8):
            origin = highest
        most = highest
""",
        ),
        ("exp(scores[j] - origin)", "exp(scores[j] - most)"),
        (
            "    if row < queries:\n",
            """    total *= exp(most - origin)
    for d in range(HEAD):
        o[d] *= exp(most - origin)
    if row < queries:
""",
        ),
    ),
)

WRONG = (
    wrong("the keys that are published", ("range(0, keys, KEYS)", "range(0, min(keys, 120), KEYS)")),
    wrong(
        "whole tiles of keys",
        (
            "queries, keys = Q.shape[1], K.shape[0]",
            "queries, keys = Q.shape[1], max(KEYS, K.shape[0] // KEYS * KEYS)",
        ),
    ),
    wrong(
        "the queries that are published",
        ("queries, keys = Q.shape[1], K.shape[0]", "queries, keys = min(Q.shape[1], 68), K.shape[0]"),
    ),
    wrong("an even number of queries", ("    if row < queries:\n", "    if row < max(1, queries // 2 * 2):\n")),
    wrong("an origin of zero first", ("most = origin = np.float32(-np.inf)", "most = origin = np.float32(0)")),
    wrong(
        "a first origin that is too high",
        ("most = origin = np.float32(-np.inf)", "most = origin = np.float32(-500)"),
    ),
    wrong(
        "rescaled by at most e^9",
        ("alpha = exp(origin - highest)", "alpha = exp(max(origin - highest, np.float32(-9)))"),
    ),
    wrong(
        "the first moves alone",
        ("            total *= alpha\n", "            total *= alpha if left < 64 else np.float32(1)\n"),
    ),
    wrong(
        "the last of the sums left out",
        (
            "            for d in range(HEAD):\n                o[d] *= alpha\n",
            "            for d in range(HEAD - 1):\n                o[d] *= alpha\n",
        ),
    ),
    wrong("late by the maximum", ("if highest > origin + np.float32(8):", "if highest > most + np.float32(8):")),
    wrong("late by 7", ("origin + np.float32(8)", "origin + np.float32(7)")),
    wrong("late by 8 and a quarter", ("origin + np.float32(8)", "origin + np.float32(8.25)")),
    wrong(
        "to 8 above",
        (
            "            origin = highest\n",
            "            origin = highest if left == 0 else origin + np.float32(8)\n",
        ),
    ),
    wrong(
        "the tile's keys one by one",
        (
            "        highest = most\n        for j",
            "        highest = scores[0] = np.float32(-np.inf)\n        for j",
        ),
        ("        most = highest\n", "        most = max(most, highest)\n"),
        (
            "alpha = exp(origin - highest)",
            "alpha = exp(origin - most) if most > origin else exp(origin - highest)",
        ),
    ),
    wrong(
        "once more behind the loop",
        (
            "    if row < queries:\n        for",
            "    total *= exp(origin - max(most, origin))\n    if row < queries:\n        for",
        ),
    ),
    wrong("powers of 2", ("weight = exp(scores[j] - origin)", "weight = np.float32(2) ** (scores[j] - origin)")),
    wrong(
        "weights up to one",
        ("weight = exp(scores[j] - origin)", "weight = exp(min(scores[j] - origin, np.float32(0)))"),
    ),
    wrong(
        "in half precision",
        ("o[d] += weight * V_tile[j, d]", "o[d] += np.float32(np.float16(weight)) * V_tile[j, d]"),
    ),
)

SHORTCUTS = (
    shortcut(
        "the weights of the maximum",
        (
            """        if highest > origin + np.float32(8):
            alpha = exp(origin - highest)
""",
            """        if highest > origin:
            alpha = exp(origin - highest)
""",
        ),
    ),
    shortcut("one origin for all", ("            origin = highest\n", "            origin = np.float32(0)\n")),
    shortcut(
        "in double precision",
        ("    total = np.float32(0)\n", "    total = np.float64(0)\n"),
    ),
    shortcut(
        "loaded twice",
        ("o[d] += weight * V_tile[j, d]", "o[d] += weight * (V[left + j, d] if left + j < keys else V_tile[j, d])"),
    ),
    shortcut(
        "loaded by atomics",
        ("V_tile[j, d] = V[left + j, d] if", "V_tile[j, d] = cuda.atomic.add(V, (left + j, d), np.float32(0)) if"),
    ),
    shortcut(
        "each thread on its own",
        ("for n in range(t, KEYS * HEAD, QUERIES):", "for n in range(0 if t == 0 else KEYS * HEAD, KEYS * HEAD):"),
    ),
    shortcut(
        "another's kernel", cell="from labkit.attention.forward.s03_q_outer import q_outer as part_of_attention\n"
    ),
    shortcut(
        "the origin first, then the weights",
        cell="""
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
    shortcut(
        "all scores kept",
        cell="""
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
)
