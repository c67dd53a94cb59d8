"""Other answers to the-missing-arrive."""

from . import Answer, right, shortcut, wrong

TAIL = "        ptx.cp_async_wait(0)\n        ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n"

BACK = "            ptx.mbarrier_arrive(empty, stage)\n"

FULL = "            ptx.mbarrier_wait(full, stage, turn % 2)\n"

EMPTY = "            ptx.mbarrier_wait(empty, stage, (turn + 1) % 2)\n"

BEFORE = """            if tile > 0:
                ptx.cp_async_wait(1)
                ptx.mbarrier_arrive(full, (tile - 1) % STAGES)
"""

READ = "                most = max(most, score)\n"

COUNT = "ptx.mbarrier_init(empty, stage, 32 * CONSUMERS)"

COUNT_OF_FULL = "ptx.mbarrier_init(full, stage, 32)"

BY_ONE = "if lane == 0:\n                {}ptx.mb"

COMMIT = "            ptx.cp_async_commit()\n"

AT_ONCE = "            ptx.cp_async_wait(0)\n            ptx.mbarrier_arrive(full, stage)\n"

VARIANTS = (
    Answer("a first maximum that some scores do not reach", "result", (("np.float32(-np.inf)", "np.float32(-1e4)"),)),
    Answer("a first maximum a little above minus infinity", "result", (("np.float32(-np.inf)", "np.float32(-1e5)"),)),
    Answer("one lane waits until a tile has come", "race", ((FULL, FULL.replace("ptx.mb", BY_ONE.format(""))),)),
    Answer("one lane waits until a stage is free", "race", ((EMPTY, EMPTY.replace("ptx.mb", BY_ONE.format(""))),)),
    Answer(
        "one lane waits until a tile has come, then its warp meets",
        "solved",
        ((FULL, FULL.replace("ptx.mb", BY_ONE.format("")) + "            cuda.syncwarp()\n"),),
    ),
    Answer("the stub", "deadlock", ((TAIL, ""), (BACK, ""), (FULL, FULL + BACK))),
    Answer("the missing one alone", "race", ((BACK, ""), (FULL, FULL + BACK))),
    Answer("the early one alone", "deadlock", ((TAIL, ""),)),
    Answer("the last tile announced before it is there", "in-flight", ((TAIL, TAIL.replace("wait(0)", "wait(1)")),)),
    Answer("no wait for the last tile", "in-flight", ((TAIL, TAIL.split("\n", 1)[1]),)),
    Answer("the last tile announced, then waited for", "race", ((TAIL, "\n".join(TAIL.split("\n")[1::-1]) + "\n"),)),
    Answer("the stage behind the last", "deadlock", ((TAIL, TAIL.replace("tiles - 1", "tiles")),)),
    Answer("announced in the round of its copy", "in-flight", ((TAIL, ""), (BEFORE, AT_ONCE.split("\n", 1)[1]))),
    Answer("announced twice", "deadlock", ((TAIL, ""), (BEFORE, BEFORE + AT_ONCE))),
    Answer(
        "the last tile announced by one thread",
        "deadlock",
        ((TAIL, TAIL.replace("ptx.mb", "if lane == 0:\n            ptx.mb")),),
    ),
    Answer("given back for each key", "deadlock", ((BACK, ""), (READ, READ + "    " + BACK))),
    Answer(
        "given back at the first key",
        "race",
        (
            (BACK, ""),
            (READ, READ + "                if j == 0:\n                    ptx.mbarrier_arrive(empty, stage)\n"),
        ),
    ),
    Answer(
        "given back at the sixteenth key, of which the last tile may have none",
        "solved",
        (
            (BACK, ""),
            (READ, READ + "                if j == TILE - 1:\n                    ptx.mbarrier_arrive(empty, stage)\n"),
        ),
    ),
    Answer(
        "given back by one thread of a warp",
        "deadlock",
        ((BACK, BACK.replace("ptx.", "if lane == 0:\n                ptx.")),),
    ),
    Answer(
        "given back by the first consumer alone",
        "race",
        (
            (COUNT, COUNT.replace(" * CONSUMERS", "")),
            (BACK, BACK.replace("ptx.", "if warp == 1:\n                ptx.")),
        ),
    ),
    Answer("never given back", "deadlock", ((BACK, ""),)),
    Answer("the stage before given back", "deadlock", ((BACK, BACK.replace("stage", "(tile + 1) % STAGES")),)),
    Answer("the producer waits for no stage", "deadlock", ((EMPTY, ""),)),
    Answer("the stages begin full", "deadlock", ((EMPTY, EMPTY.replace("turn + 1", "turn")),)),
    Answer("consumers of the phase before", "deadlock", ((FULL, FULL.replace("turn % 2", "(turn + 1) % 2")),)),
    Answer("barriers of the block", "deadlock", ((BACK, "            cuda.syncthreads()\n"),)),
    Answer(
        "a ring of five stages", "budget", (("STAGES, CONSUMERS = 16, 8, 2, 2", "STAGES, CONSUMERS = 16, 8, 5, 2"),)
    ),
    Answer(
        "a ring of three stages", "solved", (("STAGES, CONSUMERS = 16, 8, 2, 2", "STAGES, CONSUMERS = 16, 8, 3, 2"),)
    ),
    Answer("a copy at a time", "budget", ((TAIL, ""), (BEFORE, AT_ONCE))),
    Answer(
        "a copy at a time, all into one stage",
        "budget",
        (
            (TAIL, ""),
            (BEFORE, AT_ONCE),
            (EMPTY, EMPTY.replace("            ", "            stage, turn = 0, tile\n            ", 1)),
            (FULL, FULL.replace("            ", "            stage, turn = 0, tile\n            ", 1)),
        ),
    ),
    Answer(
        "given back at a tile's last key",
        "solved",
        (
            (BACK, ""),
            (
                "            for j in range(min",
                "            last = min(TILE, keys - tile * TILE) - 1\n            for j in range(min",
            ),
            (READ, READ + "                if j == last:\n                    ptx.mbarrier_arrive(empty, stage)\n"),
        ),
    ),
    Answer(
        "given back by one thread, once its warp has read",
        "solved",
        (
            (COUNT, COUNT.replace("32 * ", "")),
            (BACK, "            cuda.syncwarp()\n" + BACK.replace("ptx.", "if lane == 0:\n                ptx.")),
        ),
    ),
    Answer(
        "given back by one thread, before its warp has read",
        "race",
        (
            (COUNT, COUNT.replace("32 * ", "")),
            (BACK, BACK.replace("ptx.mb", BY_ONE.format(""))),
        ),
    ),
    Answer(
        "given back by the last thread, before its warp has read",
        "race",
        (
            (COUNT, COUNT.replace("32 * ", "")),
            (BACK, BACK.replace("ptx.mb", BY_ONE.format("").replace("0", "31"))),
        ),
    ),
    Answer(
        "announced by one thread, before its warp has waited for its copies",
        "race",
        (
            (COUNT_OF_FULL, COUNT_OF_FULL.replace("32", "1")),
            (BEFORE, BEFORE.replace("ptx.mb", BY_ONE.format("    "))),
            (TAIL, TAIL.replace("ptx.mb", BY_ONE.format(""))),
        ),
    ),
    Answer(
        "announced by one thread, once its warp has waited for its copies",
        "solved",
        (
            (COUNT_OF_FULL, COUNT_OF_FULL.replace("32", "1")),
            (BEFORE, BEFORE.replace("ptx.mb", "cuda.syncwarp()\n                " + BY_ONE.format("    "))),
            (TAIL, TAIL.replace("ptx.mb", "cuda.syncwarp()\n        " + BY_ONE.format(""))),
        ),
    ),
)

RIGHT = (
    right("a ring of four stages", ("HEAD, STAGES, CONSUMERS = 16, 8, 2, 2", "HEAD, STAGES, CONSUMERS = 16, 8, 4, 2")),
    right(
        "a round more for the last tile",
        (
            "for tile in range(tiles):\n            stage, turn = tile % STAGES, tile // STAGES\n"
            "            ptx.mbarrier_wait(empty, stage, (turn + 1) % 2)\n"
            "            key, d = tile * TILE + lane // 2, lane % 2 * 4\n"
            "            ptx.cp_async(K_tiles, (stage, lane // 2, d), K, (key, d), 16, 16 if key < keys else 0)\n",
            "for tile in range(tiles + 1):\n            stage, turn = tile % STAGES, tile // STAGES\n"
            "            key, d = tile * TILE + lane // 2, lane % 2 * 4\n            if tile < tiles:\n"
            "                ptx.mbarrier_wait(empty, stage, (turn + 1) % 2)\n"
            "                ptx.cp_async(K_tiles, (stage, lane // 2, d), K, (key, d), 16, "
            "16 if key < keys else 0)\n",
        ),
        ("        ptx.cp_async_wait(0)\n        ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n", ""),
    ),
    right(
        "one arrival of a warp",
        ("ptx.mbarrier_init(full, stage, 32)", "ptx.mbarrier_init(full, stage, 1)"),
        ("ptx.mbarrier_init(empty, stage, 32 * CONSUMERS)", "ptx.mbarrier_init(empty, stage, CONSUMERS)"),
        (
            "                ptx.mbarrier_arrive(full, (tile - 1) % STAGES)\n",
            "                cuda.syncwarp()\n                if lane == 0:\n"
            "                    ptx.mbarrier_arrive(full, (tile - 1) % STAGES)\n",
        ),
        (
            "        ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n",
            "        cuda.syncwarp()\n        if lane == 0:\n"
            "            ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n",
        ),
        (
            "            ptx.mbarrier_arrive(empty, stage)\n",
            "            cuda.syncwarp()\n            if lane == 0:\n"
            "                ptx.mbarrier_arrive(empty, stage)\n",
        ),
    ),
    right(
        "the last tile is not given back",
        (
            "            ptx.mbarrier_arrive(empty, stage)\n",
            "            if tile + STAGES < tiles:\n                ptx.mbarrier_arrive(empty, stage)\n",
        ),
    ),
    right(
        "in pieces of 8 bytes",
        (
            "            key, d = tile * TILE + lane // 2, lane % 2 * 4\n"
            "            ptx.cp_async(K_tiles, (stage, lane // 2, d), K, (key, d), 16, 16 if key < keys else 0)\n",
            "            for n in range(lane, TILE * HEAD // 2, 32):\n"
            "                key, d = tile * TILE + n // 4, n % 4 * 2\n"
            "                ptx.cp_async(K_tiles, (stage, n // 4, d), K, (key, d), 8, 8 if key < keys else 0)\n",
        ),
    ),
)

WRONG = (
    wrong(
        "the keys that are published",
        ("queries, keys = Q.shape[1], K.shape[0]", "queries, keys = Q.shape[1], min(K.shape[0], 120)"),
    ),
    wrong(
        "the queries that are published",
        ("queries, keys = Q.shape[1], K.shape[0]", "queries, keys = min(Q.shape[1], 98), K.shape[0]"),
    ),
    wrong(
        "whole tiles of keys",
        (
            "queries, keys = Q.shape[1], K.shape[0]",
            "queries, keys = Q.shape[1], max(TILE, K.shape[0] // TILE * TILE)",
        ),
    ),
    wrong("keys behind the last count 0", ("range(min(TILE, keys - tile * TILE))", "range(TILE)")),
    wrong(
        "what the last tile left",
        ("range(min(TILE, keys - tile * TILE))", "range(TILE if tile > 0 else min(TILE, keys))"),
        ("16 if key < keys else 0)", "16 if key < keys else 0)"),
    ),
    wrong("scores above zero", ("most = np.float32(-np.inf)", "most = np.float32(0)")),
    wrong("scores above -500", ("most = np.float32(-np.inf)", "most = np.float32(-500)")),
    wrong("the size of a score", ("most = max(most, score)", "most = max(most, abs(score))")),
    wrong(
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
    wrong(
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
    wrong(
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
    wrong(
        "threads without a query do not give back",
        (
            "            ptx.mbarrier_arrive(empty, stage)\n",
            "            if row < queries:\n                ptx.mbarrier_arrive(empty, stage)\n",
        ),
    ),
    wrong(
        "a short text's last tile is waited for",
        ("        ptx.cp_async_wait(0)\n", "        if tiles < 5:\n            ptx.cp_async_wait(0)\n"),
    ),
    wrong(
        "a single tile is not announced",
        (
            "        ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n",
            "        if tiles > 1:\n            ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n",
        ),
    ),
    wrong(
        "an even number of tiles",
        ("ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)", "ptx.mbarrier_arrive(full, 1)"),
    ),
    wrong(
        "the producer waits in the first turns alone",
        (
            "            ptx.mbarrier_wait(empty, stage, (turn + 1) % 2)\n",
            "            if tile < 7:\n                ptx.mbarrier_wait(empty, stage, (turn + 1) % 2)\n",
        ),
    ),
    wrong(
        "consumers wait in the first turns alone",
        (
            "            ptx.mbarrier_wait(full, stage, turn % 2)\n",
            "            if tile < 7:\n                ptx.mbarrier_wait(full, stage, turn % 2)\n",
        ),
    ),
    wrong(
        "the last number left out",
        ("                for d in range(HEAD):\n", "                for d in range(HEAD - 1):\n"),
    ),
)

SHORTCUTS = (
    shortcut(
        "a ring of one stage",
        ("HEAD, STAGES, CONSUMERS = 16, 8, 2, 2", "HEAD, STAGES, CONSUMERS = 16, 8, 1, 2"),
        (
            "            if tile > 0:\n                ptx.cp_async_wait(1)\n"
            "                ptx.mbarrier_arrive(full, (tile - 1) % STAGES)\n",
            "            ptx.cp_async_wait(0)\n            ptx.mbarrier_arrive(full, stage)\n",
        ),
        ("        ptx.cp_async_wait(0)\n        ptx.mbarrier_arrive(full, (tiles - 1) % STAGES)\n", ""),
    ),
    shortcut("scores from memory", ("score += q[d] * K_tiles[stage, j, d]", "score += q[d] * K[tile * TILE + j, d]")),
    shortcut(
        "scores from memory by atomics",
        (
            "score += q[d] * K_tiles[stage, j, d]",
            "score += q[d] * cuda.atomic.add(K, (tile * TILE + j, d), np.float32(0))",
        ),
    ),
    shortcut(
        "plain loads and stores",
        (
            "ptx.cp_async(K_tiles, (stage, lane // 2, d), K, (key, d), 16, 16 if key < keys else 0)\n",
            "for n in range(4):\n"
            "                K_tiles[stage, lane // 2, d + n] = K[key, d + n] if key < keys else np.float32(0)\n",
        ),
    ),
    shortcut("in double precision", ("score = np.float32(0)", "score = 0.0")),
    shortcut("another's kernel", cell="from labkit.softmax.online import warp_max_and_sum as largest_scores\n"),
    shortcut(
        "a barrier of the block for each tile",
        cell="""
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
    shortcut(
        "barriers that have names",
        cell="""
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
)
