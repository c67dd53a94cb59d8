"""Other answers to a-split-in-pages."""

from . import Answer, right, shortcut, wrong

_FACTOR = "exp(row_max - part_max) if found else np.float32(0)"
_LOOP = "    for key in range(part * KEYS + lane, end, 32):\n"
_ZERO = "o / row_sum if found else np.float32(0)"
_Q = "q[sequence, d] *"
_ONE_LANE = "    for key in range(part * KEYS, end if lane == 0 else 0):\n"
_OWN_QUERY = """    own = cuda.local.array(HEAD_DIM, np.float32)
    for d in range(HEAD_DIM):
        acc[d] = 0
        own[d] = q[sequence, d]
"""

VARIANTS = (
    Answer(
        "pages in order",
        "result",
        (("page, slot = table[sequence, key // PAGE], key % PAGE", "page, slot = key // PAGE, key % PAGE"),),
    ),
    Answer("the table of the first sequence", "result", (("table[sequence, key", "table[0, key"),)),
    Answer(
        "the query of the first sequence",
        "result",
        ((_Q, "q[0, d] *"),),
        mistake="all sequences had the query of the first",
    ),
    Answer("slots as wide as a warp", "bounds", (("key % PAGE", "key % 32"),)),
    Answer("one page per part", "result", (("table[sequence, key // PAGE]", "table[sequence, part * 4]"),)),
    Answer(
        "past the length", "bounds", (("end = min((part + 1) * KEYS, lengths[sequence])", "end = (part + 1) * KEYS"),)
    ),
    Answer(
        "to the end of the last page",
        "result",
        (("lengths[sequence])", "(lengths[sequence] + PAGE - 1) // PAGE * PAGE)"),),
    ),
    Answer(
        "half a part",
        "result",
        (("(part + 1) * KEYS", "part * KEYS + 32"),),
        mistake="only the first 32 keys of a part were taken",
    ),
    Answer("the next part as well", "result", (("(part + 1) * KEYS", "(part + 2) * KEYS"),)),
    Answer(
        "no factor for the sum",
        "result",
        (("    row_sum *= alpha\n", ""),),
        mistake="each lane's sum of weights kept its own maximum",
    ),
    Answer("no factor for the values", "result", (("o = acc[d] * alpha", "o = acc[d]"),)),
    Answer("no care for parts without keys", "result", ((_FACTOR, "exp(row_max - part_max)"), (_ZERO, "o / row_sum"))),
    Answer("undivided", "result", ((_ZERO, "o"),), mistake="O were not divided by the sum of the weights"),
    Answer(
        "lse without the maximum",
        "result",
        (("part_max + log(row_sum)", "log(row_sum)"),),
        mistake="the maximum were left out of the log-sum-exp",
    ),
    Answer(
        "maxima of half the lanes",
        "result",
        (("    for step in range(5):\n        part_max", "    for step in range(4):\n        part_max"),),
    ),
    Answer(
        "only parts with keys are stored", "unwritten", (("        if lane == d:", "        if lane == d and found:"),)
    ),
    Answer(
        "parts without keys return", "unwritten", ((_LOOP, "    if part * KEYS >= end:\n        return\n" + _LOOP),)
    ),
    Answer("one lane for all keys", "budget", ((_LOOP, _ONE_LANE),)),
    Answer(
        "values loaded twice",
        "budget",
        (("p * V[page, slot, d]", "p * (V[page, slot, d] + V[page, slot, d]) / np.float32(2)"),),
    ),
    Answer(
        "the query in registers",
        "solved",
        (("    for d in range(HEAD_DIM):\n        acc[d] = 0\n", _OWN_QUERY), (_Q, "own[d] *")),
    ),
)

RIGHT = (
    right("a lane stores all", ("        if lane == d:", "        if lane == 0:")),
    right(
        "an if in place of a choice",
        (
            f"    alpha = {_FACTOR}\n",
            "    alpha = np.float32(0)\n    if found:\n        alpha = exp(row_max - part_max)\n",
        ),
    ),
    right(
        "whether by the length",
        ("    found = part_max > np.float32(-np.inf)\n", "    found = part * KEYS < lengths[sequence]\n"),
    ),
    right(
        "shifts down the lanes",
        (
            "        for step in range(5):\n            o += cuda.shfl_xor_sync(ALL_LANES, o, 1 << step)\n",
            "        for step in (16, 8, 4, 2, 1):\n            o += cuda.shfl_xor_sync(ALL_LANES, o, step)\n",
        ),
    ),
    right(
        "a low number",
        (
            "row_max, row_sum = np.float32(-np.inf), np.float32(0)",
            "row_max, row_sum = np.float32(-3e38), np.float32(0)",
        ),
        ("found = part_max > np.float32(-np.inf)", "found = part_max > np.float32(-1e38)"),
    ),
)

WRONG = (
    wrong(
        "no part with a single key",
        ("part_max > np.float32(-np.inf)", "part_max > np.float32(-np.inf) and (part * KEYS + 1 != end or part == 0)"),
    ),
    wrong(
        "scores above -1,000",
        (
            "row_max, row_sum = np.float32(-np.inf), np.float32(0)",
            "row_max, row_sum = np.float32(-1000), np.float32(0)",
        ),
        ("found = part_max > np.float32(-np.inf)", "found = end > part * KEYS"),
    ),
    wrong("the lengths that are published", ("lengths[sequence])", "min(lengths[sequence], 200))")),
    wrong(
        "weights below e^-12 left out",
        (_FACTOR, _FACTOR.replace("found", "found and row_max > part_max - np.float32(12)")),
    ),
    wrong("five sequences", ("table[sequence, key", "table[sequence % 5, key")),
    wrong(
        "scores relative to zero",
        ("new_max = max(row_max, score)", "new_max = max(row_max, min(score, np.float32(300)))"),
    ),
    wrong("an even number of keys", ("lengths[sequence])", "lengths[sequence] // 2 * 2)")),
)

SHORTCUTS = (
    shortcut("one lane for all keys", (_LOOP, _ONE_LANE)),
    shortcut("half of the lanes", (_LOOP, "    for key in range(part * KEYS + lane, end if lane < 16 else 0, 16):\n")),
)
