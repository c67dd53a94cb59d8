"""Other answers to choose-the-attention-tile."""

from . import Answer, right, shortcut, wrong

SHARED = "in_shared = 2 * head_dim * (rows + 4 * columns)"

REGISTERS = "in_registers = rows * (columns + head_dim)"

LIMITS = "if in_shared > shared_bytes or in_registers > registers:"

SEEN = "seen = max(0, min(top + rows, queries) + keys - queries)"

BROUGHT = "brought += min(tiles * columns, keys)"

LESS = "(brought, rounds) < least"

VARIANTS = (
    Answer("one tile of K and of V", "result", ((SHARED, SHARED.replace("4 *", "2 *")),)),
    Answer("numbers of 4 bytes", "result", ((SHARED, SHARED.replace("2 *", "4 *", 1)),)),
    Answer("no room for Q", "result", ((SHARED, SHARED.replace("rows + ", "")),)),
    Answer("the sums alone", "result", ((REGISTERS, REGISTERS.replace("columns + ", "")),)),
    Answer("the scores alone", "result", ((REGISTERS, REGISTERS.replace(" + head_dim", "")),)),
    Answer("less than the limits", "result", ((LIMITS, LIMITS.replace(">", ">=")),)),
    Answer("shared memory alone", "result", ((LIMITS, "if in_shared > shared_bytes:"),)),
    Answer("registers alone", "result", ((LIMITS, "if in_registers > registers:"),)),
    Answer("never causal", "result", (("                if causal:\n", "                if False:\n"),)),
    Answer("as many keys as queries", "result", ((SEEN, "seen = min(top + rows, keys)"),)),
    Answer("a block that is always full", "result", ((SEEN, "seen = max(0, top + rows + keys - queries)"),)),
    Answer("what the first query sees", "result", ((SEEN, "seen = max(0, top + 1 + keys - queries)"),)),
    Answer("the last tile whole", "result", ((BROUGHT, "brought += tiles * columns"),)),
    Answer("the keys that are seen", "result", ((BROUGHT, "brought += seen"),)),
    Answer(
        "rounds first", "result", ((LESS, "(rounds, brought) < least"), ("(brought, rounds)\n", "(rounds, brought)\n"))
    ),
    Answer("keys alone", "result", ((LESS, "brought < least[0]"),)),
    Answer("keys and rounds together", "result", ((LESS, "brought + rounds < sum(least)"),)),
    Answer("the most", "result", ((LESS, LESS.replace("<", ">")),)),
    Answer("the first that fits", "result", ((f"best is None or {LESS}", "best is None"),)),
    Answer("the last that fits", "result", ((f"best is None or {LESS}", "True"),)),
    Answer("columns and rows", "result", (("best, least = (rows, columns)", "best, least = (columns, rows)"),)),
    Answer("whole tiles only", "result", (("(seen + columns - 1) // columns", "seen // columns"),)),
    Answer("nothing where nothing fits", "result", (("    return best", "    return best or (16, 16)"),)),
    Answer("powers of two", "result", (("for rows in range(16, 257, 16):", "for rows in (16, 32, 64, 128, 256):"),)),
    Answer("a list", "solved", (("    return best", "    return best and [best[0], best[1]]"),)),
    Answer("the last of those alike", "solved", ((LESS, LESS.replace("<", "<=")),)),
)

RIGHT = (
    right(
        "rows inside",
        (
            "    for rows in range(16, 257, 16):\n        for columns in range(16, 257, 16):",
            "    for columns in range(16, 257, 16):\n        for rows in range(16, 257, 16):",
        ),
    ),
    right("from the largest on", ("for rows in range(16, 257, 16)", "for rows in range(256, 0, -16)")),
    right(
        "asked for by two",
        (
            "if in_shared > shared_bytes or in_registers > registers:",
            "if not (in_shared <= shared_bytes and in_registers <= registers):",
        ),
    ),
    right(
        "in bytes",
        ("brought += min(tiles * columns, keys)", "brought += 4 * head_dim * min(tiles * columns, keys)"),
    ),
    right(
        "all keys for the last block",
        ("                if causal:\n", "                if causal and top + rows < queries:\n"),
    ),
    right(
        "a helper and a list",
        cell="""
def cost(queries, keys, causal, rows, columns):
    ends = [min(top + rows, queries) for top in range(0, queries, rows)]
    seen = [max(0, keys - (queries - end)) if causal else keys for end in ends]
    tiles = [-(-each // columns) for each in seen]
    return sum([min(each * columns, keys) for each in tiles]), sum(tiles)


def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):
    sides = [16 * n for n in range(1, 17)]
    fitting = [
        (rows, columns)
        for rows in sides
        for columns in sides
        if head_dim * (2 * rows + 8 * columns) <= shared_bytes and rows * columns + rows * head_dim <= registers
    ]
    return min(fitting, key=lambda tile: cost(queries, keys, causal, tile[0], tile[1]), default=None)
""",
    ),
    right(
        "blocks counted where it is not causal",
        cell="""
def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):
    best = None
    for rows in range(16, 257, 16):
        for columns in range(16, 257, 16):
            if 2 * rows * head_dim + 8 * columns * head_dim > shared_bytes:
                continue
            if rows * columns + rows * head_dim > registers:
                continue
            blocks = -(-queries // rows)
            if not causal:
                cost = blocks * keys, blocks * -(-keys // columns)
            else:
                cost = 0, 0
                behind = queries
                while blocks > 0:
                    seen = max(0, behind + keys - queries)
                    tiles = -(-seen // columns)
                    cost = cost[0] + min(keys, tiles * columns), cost[1] + tiles
                    blocks -= 1
                    behind = blocks * rows
            if best is None or cost < best[0]:
                best = cost, rows, columns
    return None if best is None else (best[1], best[2])
""",
    ),
)

WRONG = (
    wrong("no more columns than 128", ("for columns in range(16, 257, 16)", "for columns in range(16, 129, 16)")),
    wrong("no more rows than 128", ("for rows in range(16, 257, 16)", "for rows in range(16, 129, 16)")),
    wrong("the rows of a warpgroup", ("for rows in range(16, 257, 16)", "for rows in range(64, 257, 64)")),
    wrong("as many columns as rows", ("for columns in range(16, 257, 16)", "for columns in (rows,)")),
    wrong(
        "at least as many rows as columns",
        ("for columns in range(16, 257, 16)", "for columns in range(16, rows + 1, 16)"),
    ),
    wrong("the first blocks alone", ("range(0, queries, rows)", "range(0, min(queries, 512), rows)")),
    wrong("whole blocks", ("range(0, queries, rows)", "range(0, max(1, queries - rows + 1), rows)")),
    wrong(
        "blocks that see nothing bring a tile",
        ("tiles = (seen + columns - 1) // columns", "tiles = max(1, (seen + columns - 1) // columns)"),
    ),
    wrong(
        "none below zero",
        ("max(0, min(top + rows, queries) + keys - queries)", "abs(min(top + rows, queries) + keys - queries)"),
    ),
    wrong(
        "no fewer keys than queries",
        ("+ keys - queries)", "+ max(keys - queries, 0))"),
        ("seen = max(0, min", "seen = min(keys, min"),
    ),
    wrong(
        "a tile that ends behind the diagonal",
        ("tiles = (seen + columns - 1) // columns", "tiles = (min(keys, seen + 1) + columns - 1) // columns"),
    ),
    wrong("heads of 64 numbers", ("in_shared = 2 * head_dim", "in_shared = 2 * 64")),
    wrong(
        "heads of whole sixteens",
        ("in_shared = 2 * head_dim", "in_shared = 2 * (head_dim // 16 * 16 + 16 * (head_dim % 16 > 0))"),
    ),
    wrong("the columns of Q once more", ("rows * (columns + head_dim)", "rows * (columns + 2 * head_dim)")),
    wrong(
        "the largest area",
        ("(brought, rounds) < least", "rows * columns > least"),
        ("(brought, rounds)\n", "rows * columns\n"),
    ),
    wrong(
        "the most rows, then the most columns",
        ("(brought, rounds) < least", "(rows, columns) > least"),
        ("(brought, rounds)\n", "(rows, columns)\n"),
    ),
    wrong(
        "the fewest keys, then the most rows",
        ("(brought, rounds) < least", "(brought, -rows) < least"),
        ("(brought, rounds)\n", "(brought, -rows)\n"),
    ),
    wrong(
        "the fewest blocks, then the most columns",
        ("(brought, rounds) < least", "(-(-queries // rows), -columns) < least"),
        ("(brought, rounds)\n", "(-(-queries // rows), -columns)\n"),
    ),
)

SHORTCUTS = (
    shortcut(
        "always the same",
        cell="def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):\n    return 64, 64\n",
    ),
    shortcut(
        "nothing", cell="def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):\n    return None\n"
    ),
    shortcut(
        "the checker asked",
        cell="""
from labkit.exercises.choose_the_attention_tile import find_fault


def best_tile(*call):
    sides = range(16, 257, 16)
    return next(((rows, columns) for rows in sides for columns in sides if not find_fault(call, (rows, columns))), None)
""",
    ),
    shortcut(
        "the library asked",
        cell="""
from labkit.attention import traffic


def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):
    return traffic.tiles(queries, 64, 64)
""",
    ),
    shortcut(
        "a table of what fits",
        cell="""
def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):
    for rows, columns in ((256, 64), (128, 128), (128, 64), (64, 128), (64, 64), (64, 32), (32, 32), (16, 16)):
        if 2 * head_dim * (rows + 4 * columns) <= shared_bytes and rows * (head_dim + columns) <= registers:
            return rows, columns
    return None
""",
    ),
    shortcut(
        "the most rows, no more than needed, then the most columns",
        cell="""
def best_tile(queries, keys, head_dim, causal, shared_bytes, registers):
    best = None
    for rows in range(16, 257, 16):
        for columns in range(16, 257, 16):
            if 2 * head_dim * (rows + 4 * columns) > shared_bytes or rows * (head_dim + columns) > registers:
                continue
            if columns > 16 and columns - 16 >= keys:
                continue
            if best is None or -(-queries // rows) < -(-queries // best[0]) or rows == best[0]:
                best = rows, columns
    return best
""",
    ),
)
