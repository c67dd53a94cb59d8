"""Other answers to the-ring-goes-on."""

from . import Answer, right, shortcut, wrong

_USED = "    used = 0  # stages since the kernel began\n"
_EMPTY = "                    ptx.mbarrier_wait(empty, stage, (phase + 1) % 2)\n"
_EXPECT = "                    ptx.mbarrier_expect(full, stage, CONSUMERS * 8 * 128)\n"
_LOAD = "ptx.tma_load(tiles, (stage, box, 0, 0), A_map, (tile * 8, box * 32), full, stage)"
_FULL = "                ptx.mbarrier_wait(full, stage, phase % 2)\n"
_READ = """                for row in range(8):
                    most = max(most, tiles[stage, warp - 1, row, at(row, lane)])
"""
_MEET = "                cuda.syncwarp()\n"
_BACK = "                if lane == 0:\n                    ptx.mbarrier_arrive(empty, stage)\n"
_PRODUCED = "                    used += 1\n    else:\n"
_CONSUMED = "                used += 1\n            largest"
_CONSUMER = "            most = np.float32(-np.inf)\n"
_PRODUCER = "                for tile in range(begins[job], begins[job + 1]):\n"
_CONSUMER_LOOP = "            for _ in range(begins[job], begins[job + 1]):\n"
_JOBS = "range(cuda.blockIdx.x, jobs, cuda.gridDim.x)"
_ALL_JOBS = "range(jobs if cuda.blockIdx.x else 0, jobs)"
_PRODUCED_JOBS = f"            for job in {_JOBS}:\n{_PRODUCER}"
_CONSUMED_JOBS = f"        for job in {_JOBS}:\n{_CONSUMER}"

VARIANTS = (
    Answer(
        "the count begins again with each job",
        "deadlock",
        ((_PRODUCER, "                used = 0\n" + _PRODUCER), (_CONSUMER, "            used = 0\n" + _CONSUMER)),
    ),
    Answer(
        "the number of the tile is the count",
        "in-flight",
        (
            (_PRODUCER, _PRODUCER + "                    used = tile\n"),
            (_CONSUMER_LOOP, _CONSUMER_LOOP.replace("_", "used")),
        ),
    ),
    Answer("the producer waits for no stage", "deadlock", ((_EMPTY, ""),)),
    Answer("the stages begin full", "deadlock", ((_EMPTY, _EMPTY.replace("(phase + 1)", "phase")),)),
    Answer("consumers of the phase before", "deadlock", ((_FULL, _FULL.replace("phase", "(phase + 1)")),)),
    Answer("the bytes of one box", "deadlock", ((_EXPECT, _EXPECT.replace("CONSUMERS * ", "")),)),
    Answer("no bytes expected", "deadlock", ((_EXPECT, ""),)),
    Answer(
        "bytes expected for each box",
        "mbarrier",
        ((_EXPECT, ""), (_LOAD, "ptx.mbarrier_expect(full, stage, 8 * 128)\n                        " + _LOAD)),
    ),
    Answer("never given back", "deadlock", ((_MEET + _BACK, ""),)),
    Answer("given back by each lane", "mbarrier", ((_BACK, "                ptx.mbarrier_arrive(empty, stage)\n"),)),
    Answer("given back before it is read", "race", ((_READ + _MEET + _BACK, _MEET + _BACK + _READ),)),
    Answer("given back before the warp has met", "race", ((_MEET, ""),)),
    Answer(
        "given back by the first consumer, for both",
        "race",
        (
            (
                _BACK,
                _BACK.replace("lane == 0:", "lane == 0 and warp == 1:")
                + "                    ptx.mbarrier_arrive(empty, stage)\n",
            ),
        ),
    ),
    Answer("no wait for the tile", "deadlock", ((_FULL, ""),)),
    Answer("one lane waits", "race", ((_FULL, "                if lane == 0:\n    " + _FULL),)),
    Answer("a copy at a time", "budget", (("RING, CONSUMERS = 3, 2", "RING, CONSUMERS = 1, 2"),)),
    Answer("a ring of four stages", "budget", (("RING, CONSUMERS = 3, 2", "RING, CONSUMERS = 4, 2"),)),
    Answer("a ring of two stages", "solved", (("RING, CONSUMERS = 3, 2", "RING, CONSUMERS = 2, 2"),)),
    Answer(
        "all threads meet after each job",
        "barrier",
        (("            largest[job", "            cuda.syncthreads()\n            largest[job"),),
    ),
    Answer(
        "the last tile left out",
        "result",
        (
            (_PRODUCER, _PRODUCER.replace("begins[job + 1]", "begins[job + 1] - 1")),
            (_CONSUMER_LOOP, _CONSUMER_LOOP.replace("begins[job + 1]", "begins[job + 1] - 1")),
        ),
        mistake="the last tile of each job were left out",
    ),
    Answer("from zero", "result", ((_CONSUMER, _CONSUMER.replace("-np.inf", "0")),), mistake="0 were in every job"),
    Answer("as if not swizzled", "result", (("row, at(row, lane)]", "row, lane]"),), mistake="rows were not swizzled"),
    Answer(
        "the left box twice",
        "result",
        (("A_map, (tile * 8, box * 32)", "A_map, (tile * 8, 0)"),),
        mistake="both boxes were the left one",
    ),
    Answer(
        "neighbouring tiles",
        "result",
        (("(tile * 8, box", "(tile, box"),),
        mistake="tile n began in row n of A",
    ),
    Answer(
        "a tile too many",
        "result",
        (
            (_PRODUCER, _PRODUCER.replace("begins[job + 1]", "begins[job + 1] + 1")),
            (_CONSUMER_LOOP, _CONSUMER_LOOP.replace("begins[job + 1]", "begins[job + 1] + 1")),
        ),
        mistake="each job had the tile after it, too",
    ),
    Answer(
        "one maximum for all jobs",
        "result",
        (
            (
                "        for job in range(cuda.blockIdx.x, jobs, cuda.gridDim.x):\n" + _CONSUMER,
                _CONSUMER[4:] + "        for job in range(cuda.blockIdx.x, jobs, cuda.gridDim.x):\n",
            ),
        ),
        mistake="each job held the jobs that its block had before",
    ),
    Answer(
        "jobs without tiles are left out",
        "unwritten",
        (
            (
                "            largest[job, (warp - 1) * 32 + lane] = most",
                "            if begins[job] < begins[job + 1]:\n"
                "                largest[job, (warp - 1) * 32 + lane] = most",
            ),
        ),
    ),
)

RIGHT = (
    right(
        "stage and parity carried along",
        (_USED, "    stage = phase = 0\n"),
        ("                    stage, phase = used % RING, used // RING\n" + _EMPTY, _EMPTY),
        ("                stage, phase = used % RING, used // RING\n" + _FULL, _FULL),
        (
            _PRODUCED,
            "                    stage += 1\n                    if stage == RING:\n"
            "                        stage, phase = 0, 1 - phase\n    else:\n",
        ),
        (
            _CONSUMED,
            "                stage += 1\n                if stage == RING:\n"
            "                    stage, phase = 0, 1 - phase\n            largest",
        ),
    ),
    right(
        "each lane gives back",
        ("ptx.mbarrier_init(empty, stage, CONSUMERS)", "ptx.mbarrier_init(empty, stage, 32 * CONSUMERS)"),
        (_MEET + _BACK, "                ptx.mbarrier_arrive(empty, stage)\n"),
    ),
    right("in any order of rows", ("for row in range(8):", "for row in range(7, -1, -1):")),
    right("the last lane gives back", (_BACK, _BACK.replace("lane == 0", "lane == 31"))),
    right("the barrier of the warp after its wait", (_FULL, _FULL + _MEET)),
)

WRONG = (
    wrong(
        "a row too few of a job's last tile",
        (_CONSUMER_LOOP, _CONSUMER_LOOP.replace("_", "tile")),
        (
            "range(8):\n                    most",
            "range(8 if tile + 1 < begins[job + 1] else 7):\n                    most",
        ),
    ),
    wrong("the jobs that are published", (_USED, "    jobs = min(jobs, 9)\n" + _USED)),
    wrong("phases of the first tiles", (_FULL, "                if used < 9:\n    " + _FULL)),
    wrong("stages of the first tiles", (_EMPTY, "                    if used < 8:\n    " + _EMPTY)),
    wrong(
        "given back early from the sixth tile on",
        (
            _READ + _MEET + _BACK,
            "                if used < 6:\n"
            + "".join("    " + line + "\n" for line in (_READ + _MEET + _BACK).splitlines())
            + "                else:\n"
            + "".join("    " + line + "\n" for line in (_MEET + _BACK + _READ).splitlines()),
        ),
    ),
    *(
        wrong(
            f"a count that begins again at {count}",
            (_PRODUCED, _PRODUCED.replace("used += 1", f"used = (used + 1) % {count}")),
            (_CONSUMED, _CONSUMED.replace("used += 1", f"used = (used + 1) % {count}")),
        )
        for count in (33, 63, 255)  # each an odd number of phases
    ),
    wrong("above -4", (_CONSUMER, _CONSUMER.replace("-np.inf", "-4"))),
)

SHORTCUTS = (
    shortcut(
        "the first block takes all jobs",
        (_PRODUCED_JOBS, _PRODUCED_JOBS.replace(_JOBS, _ALL_JOBS)),
        (_CONSUMED_JOBS, _CONSUMED_JOBS.replace(_JOBS, _ALL_JOBS)),
    ),
    shortcut("a ring of one stage", ("RING, CONSUMERS = 3, 2", "RING, CONSUMERS = 1, 2")),
    shortcut(
        "the ring is emptied after each job",
        (
            _PRODUCED,
            "                    used += 1\n                if begins[job + 1] > begins[job]:\n"
            "                    last = used - 1\n"
            "                    ptx.mbarrier_wait(empty, last % RING, last // RING % 2)\n    else:\n",
        ),
    ),
)
