"""Other answers to exercise 17.4."""

from . import Variant

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
    Variant(
        "zeros stored at the edges",
        "solved",
        (_zeros_stored("A", "row < M and k + x < K"), _zeros_stored("B", "k + y < K and col < N")),
    ),
    Variant("no GELU", "result", ((STORED, "C[row, col] = total"),)),
    Variant("ReLU", "result", ((STORED, "C[row, col] = max(total, np.float32(0))"),)),
    Variant(
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
    ),
    Variant(
        "GELU by a sigmoid",
        "result",
        (
            (FROM_MATH, "from math import exp\n"),
            (STORED, "C[row, col] = total / (np.float32(1) + exp(np.float32(-1.702) * total))"),
        ),
    ),
    Variant("no root of 2", "result", ((STORED, STORED.replace(" * ROOT_HALF", "")),)),
    Variant("the half forgotten", "result", ((STORED, STORED.replace("HALF * total *", "total *")),)),
    Variant(
        "GELU of each step",
        "result",
        ((PRODUCT, PRODUCT + "            total = HALF * total * (np.float32(1) + erf(total * ROOT_HALF))\n"),),
    ),
    Variant("no wait", "in-flight", ((WAIT, ""),)),
    Variant("a wait for all but the newest", "in-flight", ((WAIT, WAIT.replace("0", "1")),)),
    Variant("no barrier", "race", ((BARRIER, ""),)),
    Variant("no groups", "in-flight", ((COMMIT, ""),)),
    Variant("the wait behind the barrier", "race", ((READY, "        if step > 0:\n" + BARRIER + WAIT),)),
    Variant(
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
    Variant(
        "one stage for all",
        "in-flight",
        ((COPIES, COPIES.replace("step % STAGES", "0")), (PRODUCT, PRODUCT.replace("(step - 1) % STAGES", "0"))),
    ),
    Variant("the other stage multiplied", "in-flight", ((PRODUCT, PRODUCT.replace("(step - 1)", "step")),)),
    Variant("the last tile left out", "result", (("range(steps + 1)", "range(steps)"),)),
    Variant("rows beyond the last", "bounds", ((COPIES, COPIES.replace("row < M and ", "")),)),
    Variant("k beyond the last", "bounds", ((COPIES, COPIES.replace(" and k + x < K else 0", " else 0")),)),
    Variant("no zeros behind the last k", "bounds", ((COPIES, COPIES.replace("if k + y < K and col", "if col")),)),
    Variant("B transposed", "result", ((PRODUCT, PRODUCT.replace("B_tiles[stage, k, x]", "B_tiles[stage, x, k]")),)),
    Variant(
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
    Variant("a second barrier", "budget", ((PRODUCT, PRODUCT + BARRIER),)),
    Variant("waiting for copies just begun", "budget", ((COPIES, COPIES + "        ptx.cp_async_wait(0)\n"),)),
    Variant("a third stage", "budget", (("TILE, STAGES = 16, 2", "TILE, STAGES = 16, 3"),)),
    Variant("in float64", "budget", ((STORED, STORED.replace("np.float32(1)", "1.0")),)),
    Variant(
        "a column of padding",
        "solved",
        (
            ("TILE, STAGES = 16, 2", "TILE, STAGES, PITCH = 16, 2, 17"),
            ("A_tiles = cuda.shared.array((STAGES, TILE, TILE)", "A_tiles = cuda.shared.array((STAGES, TILE, PITCH)"),
        ),
    ),
    Variant(
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
    Variant(
        "by the complement",
        "solved",
        ((FROM_MATH, "from math import erfc\n"), (STORED, "C[row, col] = HALF * total * erfc(-total * ROOT_HALF)")),
    ),
)
