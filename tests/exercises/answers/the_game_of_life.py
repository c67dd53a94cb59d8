"""Other answers to the-game-of-life."""

from . import Answer, right, shortcut, wrong

_ROWS = "range(max(row - 1, 0), min(row + 2, rows))"
_COLUMNS = "range(max(col - 1, 0), min(col + 2, columns))"
_RULE = "1 if living == 3 or (alive == 1 and living == 2) else 0"
_NEIGHBOURS = """                if r != row or c != col:
                    living += board[r, c]
"""
_ALL_NINE = """                cell = board[r, c]
                living += cell
                if r == row and c == col:
                    alive = cell
        living -= alive
"""
_DOWN = """x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row, col = cuda.blockIdx.y * 8 + x % 8, cuda.blockIdx.x * 32 + y * 4 + x // 8
"""

_GUARDED = """
@cuda.jit(device=True)
def cell_at(board, row, col):
    if row < 0 or col < 0 or row >= board.shape[0] or col >= board.shape[1]:
        return 0
    return board[row, col]


@cuda.jit
def generation(board, after):
    col, row = cuda.grid(2)
    if row >= board.shape[0] or col >= board.shape[1]:
        return
    living = cell_at(board, row - 1, col - 1) + cell_at(board, row - 1, col) + cell_at(board, row - 1, col + 1)
    living += cell_at(board, row, col - 1) + cell_at(board, row, col + 1)
    living += cell_at(board, row + 1, col - 1) + cell_at(board, row + 1, col) + cell_at(board, row + 1, col + 1)
    after[row, col] = living == 3 or living + board[row, col] == 3
"""
_A_THREAD_PER_ROW = """
@cuda.jit
def generation(board, after):
    rows, columns = board.shape
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    first = cuda.blockIdx.x * cuda.blockDim.x
    if row < rows and cuda.threadIdx.x == 0:
        for col in range(first, min(first + 32, columns)):
            living = 0
            for r in range(max(row - 1, 0), min(row + 2, rows)):
                for c in range(max(col - 1, 0), min(col + 2, columns)):
                    if r != row or c != col:
                        living += board[r, c]
            after[row, col] = 1 if living == 3 or (board[row, col] == 1 and living == 2) else 0
"""

VARIANTS = (
    Answer(
        "a ring from above to below",
        "result",
        ((_ROWS, "range(row - 1, min(row + 2, rows))"),),
        mistake="the last row were above the first",
    ),
    Answer(
        "a ring from left to right",
        "result",
        ((_COLUMNS, "range(col - 1, min(col + 2, columns))"),),
        mistake="the last column were left of the first",
    ),
    Answer("below the last row", "bounds", ((_ROWS, "range(max(row - 1, 0), row + 2)"),)),
    Answer("past the last column", "bounds", ((_COLUMNS, "range(max(col - 1, 0), col + 2)"),)),
    Answer(
        "a ring on purpose",
        "result",
        (
            (_ROWS, "range(row - 1, row + 2)"),
            (_COLUMNS, "range(col - 1, col + 2)"),
            ("board[r, c]", "board[(r + rows) % rows, (c + columns) % columns]"),
        ),
        mistake="the board were a ring in both directions",
    ),
    Answer(
        "the rim left out",
        "unwritten",
        (("if row < rows and col < columns", "if 0 < row < rows - 1 and 0 < col < columns - 1"),),
        mistake="the rim were not stored",
    ),
    Answer("no guard for the own cell", "bounds", (("if row < rows and col < columns:", "if row < rows:"),)),
    Answer(
        "itself counted", "result", (("if r != row or c != col:", "if True:"),), mistake="a cell were its own neighbour"
    ),
    Answer(
        "four neighbours",
        "result",
        (("if r != row or c != col:", "if (r != row) != (c != col):"),),
        mistake="corners were no neighbours",
    ),
    Answer("corners alone", "result", (("if r != row or c != col:", "if r != row and c != col:"),)),
    Answer("born of two", "result", ((_RULE, "1 if living == 2 or (alive == 1 and living == 3) else 0"),)),
    Answer(
        "two keep dead cells as well",
        "result",
        (("(alive == 1 and living == 2)", "living == 2"),),
        mistake="dead cells with two neighbours came to life",
    ),
    Answer("lonely cells live on", "result", (("alive == 1 and living == 2", "alive == 1 and living <= 2"),)),
    Answer("a warp down the rows", "budget", (("col, row = cuda.grid(2)\n", _DOWN),)),
    Answer(
        "the game on its own board", "input changed", (("after[row, col] =", "after[row, col] = board[row, col] ="),)
    ),
    Answer(
        "the own cell loaded each time",
        "budget",
        (("                if r", "                alive = board[row, col]\n                if r"),),
    ),
    Answer("a thread for a row of the block", "budget", cell=_A_THREAD_PER_ROW),
    Answer("a helper that guards each load", "solved", cell=_GUARDED),
    Answer(
        "three alone keep a cell",
        "result",
        ((_RULE, "1 if living == 3 else 0"),),
        mistake="living cells with two neighbours died",
    ),
    Answer(
        "`and` for `or`",
        "result",
        (("if r != row or c != col:", "if r != row and c != col:"),),
        mistake="corners alone were neighbours",
    ),
    Answer(
        "ranges that end with the cell",
        "result",
        (
            ("range(max(row - 1, 0), min(row + 2, rows))", "range(max(row - 1, 0), row + 1)"),
            ("range(max(col - 1, 0), min(col + 2, columns))", "range(max(col - 1, 0), col + 1)"),
        ),
        mistake="neighbours below and to the right were left out",
    ),
    Answer(
        "dead cells of two",
        "result",
        (("alive == 1 and living == 2", "alive == 0 and living == 2"),),
        mistake="of cells with two neighbours the dead ones lived on",
    ),
    Answer(
        "the living alone",
        "result",
        (("living == 3 or (alive == 1 and living == 2)", "alive == 1 and (living == 2 or living == 3)"),),
        mistake="no dead cell came to life",
    ),
    Answer("cells that stay", "result", (("else 0", "else alive"),), mistake="no living cell died"),
    Answer(
        "index 0 is no neighbour",
        "result",
        (
            ("range(max(row - 1, 0), min(row + 2, rows))", "range(max(row - 1, 1), min(row + 2, rows))"),
            ("range(max(col - 1, 0), min(col + 2, columns))", "range(max(col - 1, 1), min(col + 2, columns))"),
        ),
        mistake="row 0 and column 0 were off the board",
    ),
    Answer(
        "no zeros",
        "unwritten",
        (
            (
                "after[row, col] = 1 if living == 3 or (alive == 1 and living == 2) else 0",
                "if living == 3 or (alive == 1 and living == 2):\n            after[row, col] = 1",
            ),
        ),
        mistake="living cells alone were stored",
    ),
    Answer(
        "x is the row",
        "unwritten",
        (("col, row = cuda.grid(2)", "row, col = cuda.grid(2)"),),
        mistake="row and column had changed places, in the grid or in the guard",
    ),
    Answer(
        "threads of the block alone",
        "unwritten",
        (("col, row = cuda.grid(2)", "col, row = cuda.threadIdx.x, cuda.threadIdx.y"),),
        mistake="each block began at row 0 and column 0",
    ),
)

RIGHT = (
    right(
        "all nine, less the own",
        ("alive, living = board[row, col], 0", "alive, living = 0, 0"),
        (_NEIGHBOURS, _ALL_NINE),
    ),
    right(
        "ifs for the edges",
        (_ROWS, "range(row - 1, row + 2)"),
        (_COLUMNS, "range(col - 1, col + 2)"),
        ("if r != row or c != col:", "if (r != row or c != col) and 0 <= r < rows and 0 <= c < columns:"),
    ),
    right(
        "nested ifs",
        (
            f"after[row, col] = {_RULE}",
            "lives = 0\n        if living == 3:\n            lives = 1\n"
            "        elif living == 2:\n            lives = alive\n        after[row, col] = lives",
        ),
    ),
    right("the rule in numbers", (_RULE, "int((living | alive) == 3)")),
    right(
        "thread by thread",
        (
            "col, row = cuda.grid(2)",
            "col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x\n"
            "    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y",
        ),
    ),
)

WRONG = (
    wrong("a crowd is no crowd", ("living == 3 or", "living == 3 or living == 8 or")),
    wrong(
        "the columns that are published",
        ("if row < rows and col < columns:", "if row < rows and col < min(columns, 64):"),
    ),
    wrong(
        "the rows that are published",
        ("rows, columns = board.shape", "rows, columns = min(board.shape[0], 24), board.shape[1]"),
    ),
    wrong("boards of three rows and more", (_ROWS, "range(max(row - 1, 0), min(row + 2, max(rows, 2)))")),
    wrong("boards of two columns and more", ("1 if living == 3 or", "0 if columns < 2 else 1 if living == 3 or")),
)

SHORTCUTS = (
    shortcut(
        "one thread plays it all",
        cell="""
@cuda.jit
def generation(board, after):
    rows, columns = board.shape
    col, row = cuda.grid(2)
    if row == 0 and col == 0:
        for row in range(rows):
            for col in range(columns):
                living = 0
                for r in range(max(row - 1, 0), min(row + 2, rows)):
                    for c in range(max(col - 1, 0), min(col + 2, columns)):
                        if r != row or c != col:
                            living += board[r, c]
                after[row, col] = 1 if living == 3 or (board[row, col] == 1 and living == 2) else 0
""",
    ),
    shortcut("a thread for each row of a block", cell=_A_THREAD_PER_ROW),
)
