"""Other answers to exercise 16.2."""

from . import Variant

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
    Variant("the stub: all tiles", "budget", ((LOOP, "for left in range(0, keys, KEYS):"), (NEVER, ""))),
    Variant("nothing left out in between", "budget", ((NEVER, ""),)),
    Variant("tiles behind the last query", "budget", ((LOOP, "for left in range(0, keys, KEYS):"),)),
    Variant("a last place beyond the keys", "budget", ((LAST, "last = first + 2 * QUERIES - 1"),)),
    Variant("a key too many", "budget", ((SKIPPED, SKIPPED.replace("<=", "<")),)),
    Variant("a tile too many", "budget", ((SKIPPED, SKIPPED.replace("KEYS - 1", "2 * KEYS - 1")),)),
    Variant("a sink too many", "budget", ((SKIPPED, SKIPPED.replace(">=", ">")),)),
    Variant("the tile of the sinks rounded up", "budget", ((SKIPPED, SKIPPED.replace("left >=", "left - KEYS >=")),)),
    Variant("no sinks", "result", ((SKIPPED, SKIPPED.replace("left >= sinks and ", "")),)),
    Variant("the first tile alone has sinks", "result", ((SKIPPED, SKIPPED.replace("sinks", "KEYS")),)),
    Variant("the window of the last query", "result", ((SKIPPED, SKIPPED.replace("first -", "last -")),)),
    Variant("a tile's first key", "result", ((SKIPPED, SKIPPED.replace(" + KEYS - 1", "")),)),
    Variant("a window too short", "result", ((SKIPPED, SKIPPED.replace("first - window", "first - window + 1")),)),
    Variant("queries at the first keys", "result", ((FIRST, "first = cuda.blockIdx.x * QUERIES"),)),
    Variant("up to the first query", "result", ((LOOP, "for left in range(0, first + 1, KEYS):"),)),
    Variant(
        "up to the tile of the last query", "result", ((LOOP, "for left in range(0, last // KEYS * KEYS, KEYS):"),)
    ),
    Variant(
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
    Variant("each thread for itself", "barrier", ((SKIPPED, SKIPPED.replace("first -", "place -")),)),
    Variant("in two parts", "solved", (("    " + LOOP + "\n" + NEVER, _IN_TWO),)),
    Variant("a flag", "solved", (("    " + LOOP + "\n" + NEVER, _BY_FLAG),)),
    Variant(
        "left by an end",
        "solved",
        ((LOOP, "for left in range(0, keys, KEYS):\n        if left > last:\n            break"),),
    ),
)
