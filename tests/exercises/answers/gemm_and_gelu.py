"""Other answers to gemm-and-gelu."""

from . import Answer, right, shortcut, wrong

READY = """        if step > 0:
            ptx.cp_async_wait(0)
            cuda.syncthreads()
"""

WAIT = "            ptx.cp_async_wait(0)\n"

BARRIER = "            cuda.syncthreads()\n"

COPIES = """        if step < steps:
            stage, k = step % STAGES, step * TILE
            ptx.cp_async(A_tiles, (stage, y, x), A, (row, k + x), 4, 4 if row < M and k + x < K else 0)
            ptx.cp_async(B_tiles, (stage, y, x), B, (k + y, col), 4, 4 if k + y < K and col < N else 0)
            ptx.cp_async_commit()
"""

COMMIT = "            ptx.cp_async_commit()\n"

PRODUCT = """        if step > 0:
            stage = (step - 1) % STAGES
            for k in range(TILE):
                total += A_tiles[stage, y, k] * B_tiles[stage, k, x]
"""

STORED = "C[row, col] = HALF * total * (np.float32(1) + erf(total * ROOT_HALF))"

FROM_MATH = "from math import erf\n"


def _zeros_stored(name, guard):
    """A copy where there is something to copy, and else a zero by a plain store."""
    copy = next(line for line in COPIES.splitlines(True) if f"ptx.cp_async({name}" in line)
    inside = copy.replace("            ptx", "                ptx").replace(f"4 if {guard} else 0", "4")
    zero = f"            else:\n                {name}_tiles[stage, y, x] = np.float32(0)\n"
    return copy, f"            if {guard}:\n{inside}{zero}"


VARIANTS = (
    Answer(
        "zeros stored at the edges",
        "solved",
        (_zeros_stored("A", "row < M and k + x < K"), _zeros_stored("B", "k + y < K and col < N")),
    ),
    Answer("no GELU", "result", ((STORED, "C[row, col] = total"),), mistake="there were no GELU"),
    Answer("ReLU", "result", ((STORED, "C[row, col] = max(total, np.float32(0))"),), mistake="it were a ReLU"),
    Answer(
        "GELU by tanh",
        "result",
        (
            (FROM_MATH, "from math import tanh\n"),
            (
                STORED,
                "C[row, col] = HALF * total * (np.float32(1) + tanh(np.float32(0.7978845608) * "
                "(total + np.float32(0.044715) * total * total * total)))",
            ),
        ),
        mistake="GELU were computed by tanh",
    ),
    Answer(
        "GELU by a sigmoid",
        "result",
        (
            (FROM_MATH, "from math import exp\n"),
            (STORED, "C[row, col] = total / (np.float32(1) + exp(np.float32(-1.702) * total))"),
        ),
        mistake="GELU were computed by a sigmoid",
    ),
    Answer(
        "no root of 2",
        "result",
        ((STORED, STORED.replace(" * ROOT_HALF", "")),),
        mistake="the argument of erf were not divided by the root of 2",
    ),
    Answer(
        "the half forgotten",
        "result",
        ((STORED, STORED.replace("HALF * total *", "total *")),),
        mistake="the factor 1/2 were left out",
    ),
    Answer(
        "GELU of each step",
        "result",
        ((PRODUCT, PRODUCT + "            total = HALF * total * (np.float32(1) + erf(total * ROOT_HALF))\n"),),
    ),
    Answer("no wait", "in-flight", ((WAIT, ""),)),
    Answer("a wait for all but the newest", "in-flight", ((WAIT, WAIT.replace("0", "1")),)),
    Answer("no barrier", "race", ((BARRIER, ""),)),
    Answer("no groups", "in-flight", ((COMMIT, ""),)),
    Answer("the wait behind the barrier", "race", ((READY, "        if step > 0:\n" + BARRIER + WAIT),)),
    Answer(
        "copies before the barrier",
        "in-flight",
        (
            (READY, ""),
            (COPIES, COPIES + READY.replace("wait(0)", "wait(1)")),
            ("range(steps + 1)", "range(steps)"),
            (
                PRODUCT,
                PRODUCT.replace(
                    "        if step > 0:\n            stage = (step - 1)",
                    "        if step >= 0:\n            stage = step",
                ),
            ),
        ),
    ),
    Answer(
        "one stage for all",
        "in-flight",
        ((COPIES, COPIES.replace("step % STAGES", "0")), (PRODUCT, PRODUCT.replace("(step - 1) % STAGES", "0"))),
    ),
    Answer("the other stage multiplied", "in-flight", ((PRODUCT, PRODUCT.replace("(step - 1)", "step")),)),
    Answer(
        "the last tile left out",
        "result",
        (("range(steps + 1)", "range(steps)"),),
        mistake="the last tile along K were left out",
    ),
    Answer("rows beyond the last", "bounds", ((COPIES, COPIES.replace("row < M and ", "")),)),
    Answer("k beyond the last", "bounds", ((COPIES, COPIES.replace(" and k + x < K else 0", " else 0")),)),
    Answer("no zeros behind the last k", "bounds", ((COPIES, COPIES.replace("if k + y < K and col", "if col")),)),
    Answer(
        "B transposed",
        "result",
        ((PRODUCT, PRODUCT.replace("B_tiles[stage, k, x]", "B_tiles[stage, x, k]")),),
        mistake="each tile of B were transposed",
    ),
    Answer(
        "all before it is used",
        "budget",
        (
            (READY, ""),
            (COPIES, COPIES + READY.replace("step > 0", "step >= 0")),
            ("range(steps + 1)", "range(steps)"),
            (
                PRODUCT,
                PRODUCT.replace(
                    "        if step > 0:\n            stage = (step - 1)",
                    "        if step >= 0:\n            stage = step",
                ),
            ),
        ),
    ),
    Answer("a second barrier", "budget", ((PRODUCT, PRODUCT + BARRIER),)),
    Answer("waiting for copies just begun", "budget", ((COPIES, COPIES + "        ptx.cp_async_wait(0)\n"),)),
    Answer("a third stage", "budget", (("TILE, STAGES = 16, 2", "TILE, STAGES = 16, 3"),)),
    Answer("in float64", "budget", ((STORED, STORED.replace("np.float32(1)", "1.0")),)),
    Answer(
        "a column of padding",
        "solved",
        (
            ("TILE, STAGES = 16, 2", "TILE, STAGES, PITCH = 16, 2, 17"),
            ("A_tiles = cuda.shared.array((STAGES, TILE, TILE)", "A_tiles = cuda.shared.array((STAGES, TILE, PITCH)"),
        ),
    ),
    Answer(
        "the first copies by themselves",
        "solved",
        (
            (READY, READY.replace("step > 0", "True")),
            (
                "    for step in range(steps + 1):\n",
                COPIES.replace("step", "first")
                .replace("    if first < firsts", "if True")
                .replace("            ", "        ")
                .replace("        if", "    if")
                .replace("first % STAGES, first * TILE", "0, 0")
                + "    for step in range(steps):\n",
            ),
            (
                COPIES,
                COPIES.replace("step < steps", "step + 1 < steps").replace(
                    "step % STAGES, step * TILE", "(step + 1) % STAGES, (step + 1) * TILE"
                ),
            ),
            (PRODUCT, PRODUCT.replace("step > 0", "True").replace("(step - 1)", "step")),
        ),
    ),
    Answer(
        "by the complement",
        "solved",
        ((FROM_MATH, "from math import erfc\n"), (STORED, "C[row, col] = HALF * total * erfc(-total * ROOT_HALF)")),
    ),
)

RIGHT = (
    right(
        "GELU first halved",
        (
            "HALF * total * (np.float32(1) + erf(total * ROOT_HALF))",
            "total * (HALF + HALF * erf(total * ROOT_HALF))",
        ),
    ),
    right(
        "by the complement",
        ("from math import erf\n", "from math import erfc\n"),
        ("(np.float32(1) + erf(total * ROOT_HALF))", "erfc(-total * ROOT_HALF)"),
    ),
    right(
        "a helper",
        (
            "\n\n@cuda.jit\n",
            "\n\n@cuda.jit(device=True)\ndef gelu(x):\n"
            "    return HALF * x * (np.float32(1) + erf(x * ROOT_HALF))\n\n\n@cuda.jit\n",
        ),
        ("C[row, col] = HALF * total * (np.float32(1) + erf(total * ROOT_HALF))", "C[row, col] = gelu(total)"),
    ),
    right(
        "A's tile transposed",
        ("ptx.cp_async(A_tiles, (stage, y, x), A", "ptx.cp_async(A_tiles, (stage, x, y), A"),
        ("A_tiles[stage, y, k]", "A_tiles[stage, k, y]"),
    ),
    right(
        "one array for both",
        (
            "A_tiles = cuda.shared.array((STAGES, TILE, TILE), np.float32)\n"
            "    B_tiles = cuda.shared.array((STAGES, TILE, TILE), np.float32)",
            "tiles = cuda.shared.array((STAGES, 2, TILE, TILE), np.float32)",
        ),
        ("A_tiles, (stage, y, x)", "tiles, (stage, 0, y, x)"),
        ("B_tiles, (stage, y, x)", "tiles, (stage, 1, y, x)"),
        ("A_tiles[stage, y, k] * B_tiles[stage, k, x]", "tiles[stage, 0, y, k] * tiles[stage, 1, k, x]"),
    ),
    right(
        "no products behind the last k",
        ("            for k in range(TILE):\n", "            for k in range(min(TILE, K - (step - 1) * TILE)):\n"),
    ),
    right(
        "from the last tile on",
        ("stage, k = step % STAGES, step * TILE", "stage, k = step % STAGES, (steps - 1 - step) * TILE"),
    ),
)

WRONG = (
    wrong("no step with a single column of A", ("(K + TILE - 1) // TILE", "max((K + TILE - 2) // TILE, 1)")),
    wrong(
        "the longest sum that is published",
        ("steps = (K + TILE - 1) // TILE", "steps = (min(K, 96) + TILE - 1) // TILE"),
    ),
    wrong("whole tiles along k", ("steps = (K + TILE - 1) // TILE", "steps = max(1, K // TILE)")),
    wrong("an even number of rows", ("if row < M and col < N:\n", "if row < max(1, M // 2 * 2) and col < N:\n")),
    wrong(
        "a wait in the first steps alone",
        ("            ptx.cp_async_wait(0)\n", "            if step < 7:\n                ptx.cp_async_wait(0)\n"),
    ),
    wrong(
        "a barrier in the first steps alone",
        ("            cuda.syncthreads()\n", "            if step < 7:\n                cuda.syncthreads()\n"),
    ),
    wrong(
        "the last step waits for nobody",
        ("            cuda.syncthreads()\n", "            if step < steps:\n                cuda.syncthreads()\n"),
    ),
    wrong(
        "A waits, B does not",
        ("            ptx.cp_async_commit()\n", ""),
        ("            ptx.cp_async(B_tiles", "            ptx.cp_async_commit()\n            ptx.cp_async(B_tiles"),
    ),
    wrong("sums of at most 8", ("C[row, col] = HALF", "total = min(total, np.float32(8))\n        C[row, col] = HALF")),
    wrong(
        "0 below -3",
        (
            "C[row, col] = HALF",
            "total = total if total > np.float32(-3) else np.float32(0)\n        C[row, col] = HALF",
        ),
    ),
    wrong(
        "itself above 2",
        (
            "C[row, col] = HALF * total * (np.float32(1) + erf(total * ROOT_HALF))",
            "C[row, col] = HALF * total * (np.float32(1) + erf(total * ROOT_HALF)) if total < np.float32(2) else total",
        ),
    ),
    wrong("a root in three digits", ("np.float32(0.5**0.5)", "np.float32(0.707)")),
    wrong(
        "a third power that is rounded",
        ("from math import erf\n", "from math import tanh\n"),
        (
            "erf(total * ROOT_HALF)",
            "tanh(np.float32(0.79788456) * (total + np.float32(0.0447) * total * total * total))",
        ),
    ),
    wrong("GELU of a size", ("erf(total * ROOT_HALF)", "erf(abs(total) * ROOT_HALF)")),
    wrong(
        "SiLU",
        ("from math import erf\n", "from math import exp\n"),
        ("HALF * total * (np.float32(1) + erf(total * ROOT_HALF))", "total / (np.float32(1) + exp(-total))"),
    ),
    wrong(
        "the density for the distribution",
        ("from math import erf\n", "from math import exp\n"),
        ("erf(total * ROOT_HALF)", "exp(-total * total * HALF)"),
    ),
    wrong(
        "rows of A that go on",
        ("4 if row < M and k + x < K else 0", "4 if row < M and (row < M - 1 or k + x < K) else 0"),
    ),
)

SHORTCUTS = (
    shortcut(
        "copies that are waited for at once",
        (
            "            ptx.cp_async_commit()\n",
            "            ptx.cp_async_commit()\n            ptx.cp_async_wait(0)\n",
        ),
    ),
    shortcut("in double precision", ("np.float32(1) + erf", "1 + erf")),
    shortcut(
        "plain loads and stores",
        (
            "ptx.cp_async(A_tiles, (stage, y, x), A, (row, k + x), 4, 4 if row < M and k + x < K else 0)",
            "A_tiles[stage, y, x] = A[row, k + x] if row < M and k + x < K else np.float32(0)",
        ),
        (
            "ptx.cp_async(B_tiles, (stage, y, x), B, (k + y, col), 4, 4 if k + y < K and col < N else 0)",
            "B_tiles[stage, y, x] = B[k + y, col] if k + y < K and col < N else np.float32(0)",
        ),
    ),
    shortcut(
        "one of the two by plain loads",
        (
            "ptx.cp_async(B_tiles, (stage, y, x), B, (k + y, col), 4, 4 if k + y < K and col < N else 0)",
            "B_tiles[stage, y, x] = B[k + y, col] if k + y < K and col < N else np.float32(0)",
        ),
    ),
    shortcut(
        "factors from memory",
        (
            "A_tiles[stage, y, k] * B_tiles[stage, k, x]",
            "A_tiles[stage, y, k] * (B[(step - 1) * TILE + k, col] if (step - 1) * TILE + k < K and "
            "col < N else np.float32(0))",
        ),
    ),
    shortcut(
        "GELU in a second pass",
        (
            "        C[row, col] = HALF * total * (np.float32(1) + erf(total * ROOT_HALF))",
            "        C[row, col] = total\n"
            "        C[row, col] = HALF * C[row, col] * (np.float32(1) + erf(C[row, col] * ROOT_HALF))",
        ),
    ),
    shortcut(
        "two barriers",
        ("        if step < steps:\n", "        cuda.syncthreads()\n        if step < steps:\n"),
    ),
    shortcut("another's kernel", cell="from labkit.gemm.fp32.s03_tiled import tiled as gemm_gelu\n"),
    shortcut(
        "a copy of nothing is in flight all the time",
        cell="""
from math import erf

HALF, ROOT_HALF = np.float32(0.5), np.float32(0.5**0.5)


@cuda.jit
def gemm_gelu(A, B, C):
    A_tiles = cuda.shared.array((2, 17, 16), np.float32)
    B_tiles = cuda.shared.array((2, 17, 16), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    M, N, K = C.shape[0], C.shape[1], A.shape[1]
    total = np.float32(0)
    for k in range(0, K, 16):
        stage = k // 16 % 2
        ptx.cp_async(A_tiles, (stage, y, x), A, (row, k + x), 4, 4 if row < M and k + x < K else 0)
        ptx.cp_async(B_tiles, (stage, y, x), B, (k + y, col), 4, 4 if k + y < K and col < N else 0)
        ptx.cp_async_commit()
        if y == 0:
            ptx.cp_async(A_tiles, (stage, 16, x), A, (0, 0), 4, 0)
            ptx.cp_async(B_tiles, (stage, 16, x), B, (0, 0), 4, 0)
        ptx.cp_async_commit()
        ptx.cp_async_wait(1)
        cuda.syncthreads()
        for n in range(16):
            total += A_tiles[stage, y, n] * B_tiles[stage, n, x]
        ptx.cp_async_wait(0)
    if row < M and col < N:
        C[row, col] = HALF * total * (np.float32(1) + erf(total * ROOT_HALF))
""",
    ),
)
