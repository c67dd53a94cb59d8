"""Other answers to structs-to-arrays."""

from . import Answer, right, shortcut, wrong

_STORE = "arrays[field, first + t] = run[FIELDS * t + field]"

_DIRECT = """
@cuda.jit
def to_arrays(structs, arrays):
    s = cuda.grid(1)
    if s < arrays.shape[1]:
        for field in range(7):
            arrays[field, s] = structs[7 * s + field]
"""

_BY_ELEMENT = """
FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    for i in range(t, RUN, STRUCTS):
        if FIELDS * first + i < structs.size:
            run[i] = structs[FIELDS * first + i]
    cuda.syncthreads()
    for i in range(t, RUN, STRUCTS):
        s, field = i // FIELDS, i % FIELDS
        if first + s < arrays.shape[1]:
            arrays[field, first + s] = run[i]
"""

_TURNED = """
FIELDS, STRUCTS = 7, 128


@cuda.jit
def to_arrays(structs, arrays):
    tile = cuda.shared.array((FIELDS, STRUCTS), np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    for i in range(t, FIELDS * STRUCTS, STRUCTS):
        if FIELDS * first + i < structs.size:
            tile[i % FIELDS, i // FIELDS] = structs[FIELDS * first + i]
    cuda.syncthreads()
    if first + t < arrays.shape[1]:
        for field in range(FIELDS):
            arrays[field, first + t] = tile[field, t]
"""

VARIANTS = (
    Answer("straight from structs", "budget", cell=_DIRECT),
    Answer("stored in the order of the run", "budget", cell=_BY_ELEMENT),
    Answer("turned as it is stored into the tile", "budget", cell=_TURNED),
    Answer("no barrier", "race", (("    cuda.syncthreads()\n", ""),)),
    Answer(
        "no guard of structs",
        "bounds",
        (("        if FIELDS * first + i < structs.size:\n    ", "        if True:\n    "),),
    ),
    Answer("no guard of arrays", "bounds", (("if first + t < arrays.shape[1]:", "if True:"),)),
    Answer("one round alone", "uninitialised", (("range(t, RUN, STRUCTS)", "range(t, STRUCTS, STRUCTS)"),)),
    Answer(
        "six fields",
        "unwritten",
        (("for field in range(FIELDS)", "for field in range(FIELDS - 1)"),),
        mistake="the last field were not stored",
    ),
    Answer("structs eight apart", "bounds", (("run[FIELDS * t + field]", "run[8 * t + field]"),)),
    Answer(
        "the first block's structs again",
        "result",
        (("structs[FIELDS * first + i]", "structs[i]"),),
        mistake="all blocks loaded the structs of the first",
    ),
    Answer(
        "fields from the last to the first",
        "solved",
        (("for field in range(FIELDS)", "for field in range(FIELDS - 1, -1, -1)"),),
    ),
)

RIGHT = (
    right(
        "by while",
        ("    for i in range(t, RUN, STRUCTS):\n", "    i = t\n    while i < RUN:\n"),
        (
            "            run[i] = structs[FIELDS * first + i]\n",
            "            run[i] = structs[FIELDS * first + i]\n        i += STRUCTS\n",
        ),
    ),
    right(
        "round by round",
        (
            "    for i in range(t, RUN, STRUCTS):\n",
            "    for turn in range(FIELDS):\n        i = turn * STRUCTS + t\n",
        ),
    ),
    right(
        "a tile of two axes",
        ("cuda.shared.array(RUN, np.float32)", "cuda.shared.array((STRUCTS, FIELDS), np.float32)"),
        ("run[i]", "run[i // FIELDS, i % FIELDS]"),
        ("run[FIELDS * t + field]", "run[t, field]"),
    ),
    right(
        "a run with a little room",
        ("RUN = FIELDS * STRUCTS", "RUN = FIELDS * STRUCTS  # a whole block"),
        ("cuda.shared.array(RUN,", "cuda.shared.array(1024,"),
    ),
    right(
        "each warp for itself",
        cell="""FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    warp, lane = t // 32, t % 32
    for i in range(224 * warp + lane, 224 * warp + 224, 32):
        if FIELDS * first + i < structs.size:
            run[i] = structs[FIELDS * first + i]
    cuda.syncwarp()
    if first + t < arrays.shape[1]:
        for field in range(FIELDS):
            arrays[field, first + t] = run[FIELDS * t + field]
""",
    ),
    right(
        "zeros behind the last struct",
        (
            """        if FIELDS * first + i < structs.size:
            run[i] = structs[FIELDS * first + i]
""",
            """        at = FIELDS * first + i
        run[i] = structs[at] if at < structs.size else np.float32(0)
""",
        ),
    ),
    right(
        "the fields in another order by each warp",
        (
            "            arrays[field, first + t] = run[FIELDS * t + field]",
            """            f = (field + t // 32) % FIELDS
            arrays[f, first + t] = run[FIELDS * t + f]""",
        ),
    ),
    right(
        "by the number of arrays",
        cell="""FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t, block = cuda.threadIdx.x, cuda.blockIdx.x
    left = structs.size - RUN * block
    i = t
    while i < min(RUN, left):
        run[i] = structs[RUN * block + i]
        i += cuda.blockDim.x
    cuda.syncthreads()
    s = block * STRUCTS + t
    if s >= arrays.shape[1]:
        return
    for field in range(arrays.shape[0]):
        arrays[field, s] = run[t * FIELDS + field]
""",
    ),
    right(
        "copied past the registers",
        cell="""FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    for i in range(t, RUN, STRUCTS):
        if FIELDS * first + i < structs.size:
            ptx.cp_async(run, i, structs, FIELDS * first + i, 4, 4)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    cuda.syncthreads()
    if first + t < arrays.shape[1]:
        for field in range(FIELDS):
            arrays[field, first + t] = run[FIELDS * t + field]
""",
    ),
)

WRONG = (
    wrong(
        "zeros left out",
        (
            "            arrays[field, first + t] = run[FIELDS * t + field]",
            """            number = run[FIELDS * t + field]
            if number != 0:
                arrays[field, first + t] = number""",
        ),
    ),
    wrong(
        "the structs that are published",
        ("if first + t < arrays.shape[1]:", "if first + t < min(arrays.shape[1], 400):"),
    ),
    wrong(
        "an even number of structs",
        ("if first + t < arrays.shape[1]:", "if first + t < max(arrays.shape[1] // 2 * 2, 1):"),
    ),
    wrong("a barrier for warps alone", ("    cuda.syncthreads()\n", "    cuda.syncwarp()\n")),
    wrong(
        "whole blocks, and one that is not",
        ("if first + t < arrays.shape[1]:", "if first + t < arrays.shape[1] and (t < 127 or first < 256):"),
    ),
    wrong("three blocks at most", ("structs[FIELDS * first + i]", "structs[FIELDS * min(first, 256) + i]")),
    wrong(
        "the mass of the struct before",
        ("run[FIELDS * t + field]", "run[FIELDS * t + field - (field == 6 and t == 31)]"),
    ),
    wrong(
        "a round less past the third block",
        ("range(t, RUN, STRUCTS)", "range(t, RUN if first < 384 else RUN - STRUCTS, STRUCTS)"),
    ),
    wrong("six hundred structs", ("if first + t < arrays.shape[1]", "if first + t < min(arrays.shape[1], 600)")),
    wrong(
        "without a block's last struct",
        (
            "if FIELDS * first + i < structs.size",
            "if first + i // FIELDS < structs.size // FIELDS - (first > 0 and i // FIELDS == 127)",
        ),
    ),
    wrong(
        "the fields shifted in ragged blocks",
        (
            "run[FIELDS * t + field]",
            "run[FIELDS * t + (field if first + 128 <= arrays.shape[1] else field ^ (field < 2))]",
        ),
    ),
    wrong(
        "velocities for coordinates in the last struct",
        ("run[FIELDS * t + field]", "run[FIELDS * t + (field + 3 if field < 3 and t == 127 else field)]"),
    ),
    wrong("no more than 3", ("= run[FIELDS * t + field]", "= min(run[FIELDS * t + field], np.float32(4))")),
    wrong(
        "no barrier in the first block",
        ("    cuda.syncthreads()\n", "    if first > 0:\n        cuda.syncthreads()\n"),
    ),
    wrong(
        "a barrier for whole blocks",
        ("    cuda.syncthreads()\n", "    if first + STRUCTS <= arrays.shape[1]:\n        cuda.syncthreads()\n"),
    ),
    wrong(
        "the barrier after the first field",
        ("    cuda.syncthreads()\n", ""),
        (
            "        for field in range(FIELDS):\n",
            "        for field in range(FIELDS):\n            cuda.syncwarp()\n",
        ),
    ),
    wrong(
        "transposed tile with conflicts",
        ("cuda.shared.array(RUN, np.float32)", "cuda.shared.array(1024, np.float32)"),
        ("run[i]", "run[i // 7 * 8 + i % 7]"),
        ("run[FIELDS * t + field]", "run[8 * t + field]"),
    ),
    wrong("in half precision", ("cuda.shared.array(RUN, np.float32)", "cuda.shared.array(RUN, np.float16)")),
    wrong("the strides swapped", ("run[FIELDS * t + field]", "run[STRUCTS * field + t]")),
)

BY_SHUFFLES = """FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    warp, lane = t // 32, t % 32
    start = FIELDS * (first + 32 * warp)
    own = cuda.local.array(7, np.float32)
    for k in range(7):
        i = start + 32 * k + lane
        own[k] = structs[i] if i < structs.size else np.float32(0)
    for field in range(FIELDS):
        at = FIELDS * lane + field
        value = np.float32(0)
        for k in range(7):
            got = cuda.shfl_sync(0xFFFFFFFF, own[k], at % 32)
            if at // 32 == k:
                value = got
        if first + t < arrays.shape[1]:
            arrays[field, first + t] = value
"""

SHORTCUTS = (
    shortcut(
        "straight from structs, the run times zero",
        (
            "= run[FIELDS * t + field]",
            "= structs[FIELDS * (first + t) + field] + np.float32(0) * run[FIELDS * t + field]",
        ),
    ),
    shortcut(
        "straight from structs, by atomics",
        ("= run[FIELDS * t + field]", "= cuda.atomic.add(structs, FIELDS * (first + t) + field, np.float32(0))"),
    ),
    shortcut(
        "seven loads a thread",
        cell="""
@cuda.jit
def to_arrays(structs, arrays):
    s = cuda.grid(1)
    run = cuda.local.array(7, np.float32)
    if s < arrays.shape[1]:
        for field in range(7):
            run[field] = structs[7 * s + field]
        for field in range(7):
            arrays[field, s] = run[field]
""",
    ),
    shortcut("another's kernel", cell="from labkit.layouts.transpose.s07_pieces import pieces as to_arrays\n"),
    shortcut(
        "thread 0 for all of a block",
        cell="""FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    if t == 0:
        for i in range(RUN):
            if FIELDS * first + i < structs.size:
                run[i] = structs[FIELDS * first + i]
        for s in range(min(STRUCTS, arrays.shape[1] - first)):
            for field in range(FIELDS):
                arrays[field, first + s] = run[FIELDS * s + field]
""",
    ),
    shortcut(
        "the first warp of a block",
        cell="""FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * STRUCTS
    if t < 32:
        for i in range(t, RUN, 32):
            if FIELDS * first + i < structs.size:
                run[i] = structs[FIELDS * first + i]
        cuda.syncwarp()
        for s in range(t, min(STRUCTS, arrays.shape[1] - first), 32):
            for field in range(FIELDS):
                arrays[field, first + s] = run[FIELDS * s + field]
""",
    ),
    shortcut(
        "the first block for all",
        cell="""FIELDS, STRUCTS = 7, 128
RUN = FIELDS * STRUCTS


@cuda.jit
def to_arrays(structs, arrays):
    run = cuda.shared.array(RUN, np.float32)
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        for first in range(0, arrays.shape[1], STRUCTS):
            for i in range(t, RUN, STRUCTS):
                if FIELDS * first + i < structs.size:
                    run[i] = structs[FIELDS * first + i]
            cuda.syncthreads()
            if first + t < arrays.shape[1]:
                for field in range(FIELDS):
                    arrays[field, first + t] = run[FIELDS * t + field]
            cuda.syncthreads()
""",
    ),
    shortcut(
        "by shuffles alone",
        cell=BY_SHUFFLES,
    ),
    shortcut(
        "by shuffles, then through a place of the thread's own",
        ("    t, first =", "    hand = cuda.shared.array(STRUCTS, np.float32)\n    t, first ="),
        ("arrays[field, first + t] = value", "hand[t] = value\n            arrays[field, first + t] = hand[t]"),
        cell=BY_SHUFFLES,
    ),
)
