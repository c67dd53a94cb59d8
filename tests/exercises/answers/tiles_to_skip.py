"""Other answers to tiles-to-skip."""

from . import Answer, right, shortcut, wrong

FIRST = "first = cuda.blockIdx.x * QUERIES + keys - queries"

LAST = "last = min(first + QUERIES, keys) - 1"

LOOP = "for left in range(0, last + 1, KEYS):"

SKIPPED = "if left >= sinks and left + KEYS - 1 <= first - window:"

NEVER = f"        {SKIPPED}\n            continue\n"

_IN_TWO = """    behind = min(last + 1, (sinks + KEYS - 1) // KEYS * KEYS)
    resumed = max(behind, max(0, first - window + 1) // KEYS * KEYS)
    tiles = (behind + KEYS - 1) // KEYS
    more = max(0, last - resumed + KEYS) // KEYS
    for tile in range(tiles + more):
        left = tile * KEYS if tile < tiles else resumed + (tile - tiles) * KEYS
"""

_BY_FLAG = """    for left in range(0, keys, KEYS):
        needed = left <= last and (left < sinks or left + KEYS > first - window + 1)
        if not needed:
            continue
"""

VARIANTS = (
    Answer("the stub: all tiles", "budget", ((LOOP, "for left in range(0, keys, KEYS):"), (NEVER, ""))),
    Answer("nothing left out in between", "budget", ((NEVER, ""),)),
    Answer("tiles behind the last query", "budget", ((LOOP, "for left in range(0, keys, KEYS):"),)),
    Answer("a last place beyond the keys", "budget", ((LAST, "last = first + 2 * QUERIES - 1"),)),
    Answer("a key too many", "budget", ((SKIPPED, SKIPPED.replace("<=", "<")),)),
    Answer("a tile too many", "budget", ((SKIPPED, SKIPPED.replace("KEYS - 1", "2 * KEYS - 1")),)),
    Answer("a sink too many", "budget", ((SKIPPED, SKIPPED.replace(">=", ">")),)),
    Answer("the tile of the sinks rounded up", "budget", ((SKIPPED, SKIPPED.replace("left >=", "left - KEYS >=")),)),
    Answer(
        "no sinks",
        "result",
        ((SKIPPED, SKIPPED.replace("left >= sinks and ", "")),),
        mistake="no tile of sinks were loaded unless it is in the window",
    ),
    Answer(
        "the first tile alone has sinks",
        "result",
        ((SKIPPED, SKIPPED.replace("sinks", "KEYS")),),
        mistake="only the first tile had sinks",
    ),
    Answer("the window of the last query", "result", ((SKIPPED, SKIPPED.replace("first -", "last -")),)),
    Answer("a tile's first key", "result", ((SKIPPED, SKIPPED.replace(" + KEYS - 1", "")),)),
    Answer(
        "a window too short",
        "result",
        ((SKIPPED, SKIPPED.replace("first - window", "first - window + 1")),),
        mistake="a tile of which one query sees one key were skipped",
    ),
    Answer("queries at the first keys", "result", ((FIRST, "first = cuda.blockIdx.x * QUERIES"),)),
    Answer("up to the first query", "result", ((LOOP, "for left in range(0, first + 1, KEYS):"),)),
    Answer("up to the tile of the last query", "result", ((LOOP, "for left in range(0, last // KEYS * KEYS, KEYS):"),)),
    Answer(
        "the sinks again as part of the window",
        "result",
        (
            (
                LOOP + "\n" + NEVER,
                "for n in range(-(sinks + KEYS - 1) // KEYS * KEYS, last + 1, KEYS):\n"
                "        left = n if n >= 0 else -n - KEYS\n"
                "        if n >= 0 and left + KEYS - 1 <= first - window:\n            continue\n",
            ),
        ),
    ),
    Answer("each thread for itself", "barrier", ((SKIPPED, SKIPPED.replace("first -", "place -")),)),
    Answer("in two parts", "solved", (("    " + LOOP + "\n" + NEVER, _IN_TWO),)),
    Answer("a flag", "solved", (("    " + LOOP + "\n" + NEVER, _BY_FLAG),)),
    Answer(
        "left by an end",
        "solved",
        ((LOOP, "for left in range(0, keys, KEYS):\n        if left > last:\n            break"),),
    ),
)

RIGHT = (
    right(
        "asked otherwise",
        (
            "if left >= sinks and left + KEYS - 1 <= first - window:",
            "if not (left < sinks or left + KEYS > first - window + 1):",
        ),
    ),
    right("no branch, but an end", ("range(0, last + 1, KEYS)", "range(0, (last // KEYS + 1) * KEYS, KEYS)")),
    right(
        "by numbers of tiles",
        (
            "    for left in range(0, last + 1, KEYS):\n",
            "    for tile in range(last // KEYS + 1):\n        left = tile * KEYS\n",
        ),
    ),
    right(
        "rows of keys that nobody sees left out",
        (
            "if left + j < keys else np.float32(0)\n            V_tile",
            "if left + j <= last else np.float32(0)\n            V_tile",
        ),
    ),
    right("from the last tile on", ("range(0, last + 1, KEYS)", "range(last // KEYS * KEYS, -1, -KEYS)")),
    right(
        "a while",
        (
            "    for left in range(0, last + 1, KEYS):\n        if left",
            "    left = -KEYS\n    while left + KEYS <= last:\n        left += KEYS\n        if left",
        ),
    ),
    right(
        "a jump",
        (
            """    for left in range(0, last + 1, KEYS):
        if left >= sinks and left + KEYS - 1 <= first - window:
            continue
""",
            """    left = -KEYS
    while True:
        left += KEYS
        if left >= sinks:
            left = max(left, (first - window + 1) // KEYS * KEYS)
        if left > last:
            break
""",
        ),
    ),
    right(
        "a helper",
        (
            "@cuda.jit\ndef with_sinks",
            """@cuda.jit(device=True)
def unseen(left, first, sinks, window):
    return left >= sinks and left + KEYS <= first - window + 1


@cuda.jit
def with_sinks""",
        ),
        ("if left >= sinks and left + KEYS - 1 <= first - window:", "if unseen(left, first, sinks, window):"),
    ),
    right(
        "by a vote",
        (
            """        if left >= sinks and left + KEYS - 1 <= first - window:
            continue
""",
            """        sees = False
        for j in range(left, left + KEYS):
            sees = sees or (row < queries and j <= place and (j < sinks or j > place - window))
        if not cuda.any_sync(0xFFFFFFFF, sees):
            continue
""",
        ),
    ),
    right(
        "compared by numbers of tiles",
        (
            "if left >= sinks and left + KEYS - 1 <= first - window:",
            "if left >= sinks and left // KEYS < (first - window + 1) // KEYS:",
        ),
    ),
)

WRONG = (
    wrong("no tile with a single key", ("range(0, last + 1, KEYS)", "range(0, max(last, 1), KEYS)")),
    wrong("windows of up to 100", ("<= first - window:", "<= first - min(window, 100):")),
    wrong("the keys that are published", ("range(0, last + 1, KEYS)", "range(0, min(last, 160) + 1, KEYS)")),
    wrong("whole tiles of keys", ("range(0, last + 1, KEYS)", "range(0, last + 2 - KEYS, KEYS)")),
    wrong("a window of at least eight", ("first - window:", "first - max(window, 8):")),
    wrong("a window of at most fifty", ("first - window:", "first - min(window, 24):")),
    wrong("at least one sink", ("if left >= sinks and", "if left >= max(sinks, 1) and")),
    wrong("at most eight sinks", ("if left >= sinks and", "if left >= min(sinks, 8) and")),
    wrong("whole tiles of sinks", ("if left >= sinks and", "if left >= sinks // KEYS * KEYS and")),
    wrong(
        "blocks of 64",
        ("cuda.blockIdx.x * QUERIES + keys - queries\n", "cuda.blockIdx.x // 2 * 64 + keys - queries\n"),
    ),
    wrong(
        "a full last block",
        ("min(first + QUERIES, keys) - 1", "first + QUERIES - 1"),
        ("range(0, last + 1, KEYS)", "range(0, last + 1, KEYS)"),
    ),
    wrong("as many keys as queries", ("cuda.blockIdx.x * QUERIES + keys - queries\n", "cuda.blockIdx.x * QUERIES\n")),
    wrong("the window of the middle query", ("first - window:", "first + QUERIES // 2 - window:")),
    wrong(
        "only one stretch is left out",
        ("            continue\n", "            if left < 64:\n                continue\n"),
    ),
    wrong(
        "the first block alone skips",
        ("            continue\n", "            if cuda.blockIdx.x < 2:\n                continue\n"),
    ),
    wrong("sinks that are not masked", ("left + j < sinks or", "left + j < (sinks + KEYS - 1) // KEYS * KEYS or")),
    wrong("a window that is not masked", ("left + j > place - window", "left + j > first - window")),
    wrong(
        "by numbers of tiles, a tile of sinks too many",
        (
            "if left >= sinks and left + KEYS - 1 <= first - window:",
            "if left // KEYS > sinks // KEYS and left // KEYS < (first - window + 1) // KEYS:",
        ),
    ),
    wrong(
        "by numbers of tiles, a tile of the window too many",
        (
            "if left >= sinks and left + KEYS - 1 <= first - window:",
            "if left >= sinks and left // KEYS < (first - window) // KEYS:",
        ),
    ),
)

SHORTCUTS = (
    shortcut(
        "its keys alone are left out",
        ("            continue\n", "            left = left\n"),
        (
            "K_tile[j, d] = K[left + j, d] if left + j < keys",
            "K_tile[j, d] = K[left + j, d] if left + j < keys and (left < sinks or left + 7 > first - window)",
        ),
    ),
    shortcut(
        "nothing is brought, but all tiles are waited for",
        ("            continue\n", "            left = left\n"),
        (
            "K_tile[j, d] = K[left + j, d] if left + j < keys",
            "K_tile[j, d] = K[left + j, d] if left + j < keys and (left < sinks or left + 7 > first - window)",
        ),
        (
            "V_tile[j, d] = V[left + j, d] if left + j < keys",
            "V_tile[j, d] = V[left + j, d] if left + j < keys and (left < sinks or left + 7 > first - window)",
        ),
    ),
    shortcut(
        "loaded by atomics",
        ("V_tile[j, d] = V[left + j, d] if", "V_tile[j, d] = cuda.atomic.add(V, (left + j, d), np.float32(0)) if"),
    ),
    shortcut(
        "in double precision",
        ("most, total = np.float32(-3e38), np.float32(0)", "most, total = np.float32(-3e38), 0.0"),
    ),
    shortcut("two tiles at a time", ("left + KEYS - 1 <= first - window", "left // 16 * 16 + 15 <= first - window")),
    shortcut("another's kernel", cell="from labkit.attention.forward.s03_q_outer import q_outer as with_sinks\n"),
    shortcut(
        "each query by itself",
        cell="""
from math import exp

HEAD = 8


@cuda.jit
def with_sinks(Q, K, V, O, sinks, window):
    o = cuda.local.array(HEAD, np.float32)
    row = cuda.grid(1)
    queries, keys = Q.shape[1], K.shape[0]
    if row < queries:
        place = row + keys - queries
        most, total = np.float32(-3e38), np.float32(0)
        for d in range(HEAD):
            o[d] = 0
        for j in range(place + 1):
            if j < sinks or j > place - window:
                score = np.float32(0)
                for d in range(HEAD):
                    score += Q[d, row] * K[j, d]
                larger = max(most, score)
                alpha, weight = exp(most - larger), exp(score - larger)
                most, total = larger, total * alpha + weight
                for d in range(HEAD):
                    o[d] = o[d] * alpha + weight * V[j, d]
        for d in range(HEAD):
            O[d, row] = o[d] / total
""",
    ),
)
