"""Other answers to exercise 17.1."""

from . import Variant

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
    Variant("a first maximum that some scores do not reach", "result", (("np.float32(-np.inf)", "np.float32(-1e4)"),)),
    Variant("the stub", "deadlock", ((TAIL, ""), (BACK, ""), (FULL, FULL + BACK))),
    Variant("the missing one alone", "race", ((BACK, ""), (FULL, FULL + BACK))),
    Variant("the early one alone", "deadlock", ((TAIL, ""),)),
    Variant("the last tile announced before it is there", "in-flight", ((TAIL, TAIL.replace("wait(0)", "wait(1)")),)),
    Variant("no wait for the last tile", "in-flight", ((TAIL, TAIL.split("\n", 1)[1]),)),
    Variant("the last tile announced, then waited for", "race", ((TAIL, "\n".join(TAIL.split("\n")[1::-1]) + "\n"),)),
    Variant("the stage behind the last", "deadlock", ((TAIL, TAIL.replace("tiles - 1", "tiles")),)),
    Variant("announced in the round of its copy", "in-flight", ((TAIL, ""), (BEFORE, AT_ONCE.split("\n", 1)[1]))),
    Variant("announced twice", "deadlock", ((TAIL, ""), (BEFORE, BEFORE + AT_ONCE))),
    Variant(
        "the last tile announced by one thread",
        "deadlock",
        ((TAIL, TAIL.replace("ptx.mb", "if lane == 0:\n            ptx.mb")),),
    ),
    Variant("given back for each key", "deadlock", ((BACK, ""), (READ, READ + "    " + BACK))),
    Variant(
        "given back at the first key",
        "race",
        (
            (BACK, ""),
            (READ, READ + "                if j == 0:\n                    ptx.mbarrier_arrive(empty, stage)\n"),
        ),
    ),
    Variant(
        "given back at the sixteenth key, of which the last tile may have none",
        "solved",
        (
            (BACK, ""),
            (READ, READ + "                if j == TILE - 1:\n                    ptx.mbarrier_arrive(empty, stage)\n"),
        ),
    ),
    Variant(
        "given back by one thread of a warp",
        "deadlock",
        ((BACK, BACK.replace("ptx.", "if lane == 0:\n                ptx.")),),
    ),
    Variant(
        "given back by the first consumer alone",
        "race",
        (
            (COUNT, COUNT.replace(" * CONSUMERS", "")),
            (BACK, BACK.replace("ptx.", "if warp == 1:\n                ptx.")),
        ),
    ),
    Variant("never given back", "deadlock", ((BACK, ""),)),
    Variant("the stage before given back", "deadlock", ((BACK, BACK.replace("stage", "(tile + 1) % STAGES")),)),
    Variant("the producer waits for no stage", "deadlock", ((EMPTY, ""),)),
    Variant("the stages begin full", "deadlock", ((EMPTY, EMPTY.replace("turn + 1", "turn")),)),
    Variant("consumers of the phase before", "deadlock", ((FULL, FULL.replace("turn % 2", "(turn + 1) % 2")),)),
    Variant("barriers of the block", "deadlock", ((BACK, "            cuda.syncthreads()\n"),)),
    Variant(
        "a ring of five stages", "budget", (("STAGES, CONSUMERS = 16, 8, 2, 2", "STAGES, CONSUMERS = 16, 8, 5, 2"),)
    ),
    Variant(
        "a ring of three stages", "solved", (("STAGES, CONSUMERS = 16, 8, 2, 2", "STAGES, CONSUMERS = 16, 8, 3, 2"),)
    ),
    Variant("a copy at a time", "budget", ((TAIL, ""), (BEFORE, AT_ONCE))),
    Variant(
        "a copy at a time, all into one stage",
        "budget",
        (
            (TAIL, ""),
            (BEFORE, AT_ONCE),
            (EMPTY, EMPTY.replace("            ", "            stage, turn = 0, tile\n            ", 1)),
            (FULL, FULL.replace("            ", "            stage, turn = 0, tile\n            ", 1)),
        ),
    ),
    Variant(
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
    Variant(
        "given back by one thread, once its warp has read",
        "solved",
        (
            (COUNT, COUNT.replace("32 * ", "")),
            (BACK, "            cuda.syncwarp()\n" + BACK.replace("ptx.", "if lane == 0:\n                ptx.")),
        ),
    ),
    Variant(
        "given back by one thread, before its warp has read",
        "race",
        (
            (COUNT, COUNT.replace("32 * ", "")),
            (BACK, BACK.replace("ptx.mb", BY_ONE.format(""))),
        ),
    ),
    Variant(
        "given back by the last thread, before its warp has read",
        "race",
        (
            (COUNT, COUNT.replace("32 * ", "")),
            (BACK, BACK.replace("ptx.mb", BY_ONE.format("").replace("0", "31"))),
        ),
    ),
    Variant(
        "announced by one thread, before its warp has waited for its copies",
        "race",
        (
            (COUNT_OF_FULL, COUNT_OF_FULL.replace("32", "1")),
            (BEFORE, BEFORE.replace("ptx.mb", BY_ONE.format("    "))),
            (TAIL, TAIL.replace("ptx.mb", BY_ONE.format(""))),
        ),
    ),
    Variant(
        "announced by one thread, once its warp has waited for its copies",
        "solved",
        (
            (COUNT_OF_FULL, COUNT_OF_FULL.replace("32", "1")),
            (BEFORE, BEFORE.replace("ptx.mb", "cuda.syncwarp()\n                " + BY_ONE.format("    "))),
            (TAIL, TAIL.replace("ptx.mb", "cuda.syncwarp()\n        " + BY_ONE.format(""))),
        ),
    ),
)
