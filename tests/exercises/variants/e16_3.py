"""Other answers to exercise 16.3."""

from . import Variant

SHARED = "in_shared = 2 * head_dim * (rows + 4 * columns)"
REGISTERS = "in_registers = rows * (columns + head_dim)"
LIMITS = "if in_shared > shared_bytes or in_registers > registers:"
SEEN = "seen = max(0, min(top + rows, queries) + keys - queries)"
BROUGHT = "brought += min(tiles * columns, keys)"
LESS = "(brought, rounds) < least"

VARIANTS = (
    Variant("one tile of K and of V", "result", ((SHARED, SHARED.replace("4 *", "2 *")),)),
    Variant("numbers of 4 bytes", "result", ((SHARED, SHARED.replace("2 *", "4 *", 1)),)),
    Variant("no room for Q", "result", ((SHARED, SHARED.replace("rows + ", "")),)),
    Variant("the sums alone", "result", ((REGISTERS, REGISTERS.replace("columns + ", "")),)),
    Variant("the scores alone", "result", ((REGISTERS, REGISTERS.replace(" + head_dim", "")),)),
    Variant("less than the limits", "result", ((LIMITS, LIMITS.replace(">", ">=")),)),
    Variant("shared memory alone", "result", ((LIMITS, "if in_shared > shared_bytes:"),)),
    Variant("registers alone", "result", ((LIMITS, "if in_registers > registers:"),)),
    Variant("never causal", "result", (("                if causal:\n", "                if False:\n"),)),
    Variant("as many keys as queries", "result", ((SEEN, "seen = min(top + rows, keys)"),)),
    Variant("a block that is always full", "result", ((SEEN, "seen = max(0, top + rows + keys - queries)"),)),
    Variant("what the first query sees", "result", ((SEEN, "seen = max(0, top + 1 + keys - queries)"),)),
    Variant("the last tile whole", "result", ((BROUGHT, "brought += tiles * columns"),)),
    Variant("the keys that are seen", "result", ((BROUGHT, "brought += seen"),)),
    Variant(
        "rounds first", "result", ((LESS, "(rounds, brought) < least"), ("(brought, rounds)\n", "(rounds, brought)\n"))
    ),
    Variant("keys alone", "result", ((LESS, "brought < least[0]"),)),
    Variant("keys and rounds together", "result", ((LESS, "brought + rounds < sum(least)"),)),
    Variant("the most", "result", ((LESS, LESS.replace("<", ">")),)),
    Variant("the first that fits", "result", ((f"best is None or {LESS}", "best is None"),)),
    Variant("the last that fits", "result", ((f"best is None or {LESS}", "True"),)),
    Variant("columns and rows", "result", (("best, least = (rows, columns)", "best, least = (columns, rows)"),)),
    Variant("whole tiles only", "result", (("(seen + columns - 1) // columns", "seen // columns"),)),
    Variant("nothing where nothing fits", "result", (("    return best", "    return best or (16, 16)"),)),
    Variant("powers of two", "result", (("for rows in range(16, 257, 16):", "for rows in (16, 32, 64, 128, 256):"),)),
    Variant("a list", "solved", (("    return best", "    return best and [best[0], best[1]]"),)),
    Variant("the last of those alike", "solved", ((LESS, LESS.replace("<", "<=")),)),
)
