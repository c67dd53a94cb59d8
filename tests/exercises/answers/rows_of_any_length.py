"""Other answers to rows-of-any-length."""

from . import Answer, right, shortcut, wrong
from .swizzle_the_tiles import CARRIED_FRAGMENTS, MEASURED_FRAGMENTS, OWN_PLACE_FRAGMENTS

_SWIZZLED = "    return vector ^ row * vectors // 8 % vectors\n"
_A = "ptx.ldmatrix4(tiles, (row * vectors + slot(row, step + lane // 16, vectors)) * 4)"
_B = "ptx.ldmatrix2(tiles, ((16 + row) * vectors + slot(row, step + lane // 8 % 2, vectors)) * 4)"
_A_GLOBAL = (
    "(A[top + g, k + step * 4 + t], A[top + g + 8, k + step * 4 + t], A[top + g, k + step * 4 + 4 + t], "
    "A[top + g + 8, k + step * 4 + 4 + t])"
)
_B_GLOBAL = "(B[left + g, k + step * 4 + t], B[left + g, k + step * 4 + 4 + t])"


def _is(what, reason, expression):
    return Answer(what, reason, ((_SWIZZLED, f"    return {expression}\n"),))


def _renamed(cell):
    return cell.replace("def no_conflicts(A, B, C)", "def any_rows(A, B, C, vectors)")


VARIANTS = (
    _is("the bug itself", "budget", "vector ^ row % vectors"),
    _is("as they are", "budget", "vector"),
    _is("the swizzle of rows of 128 bytes", "race", "vector ^ row % 8"),
    _is("the same XOR for all rows", "budget", "vector ^ 1"),
    _is("the remainder of the line left out", "race", "vector ^ row * vectors // 8"),
    _is("lines of eight rows", "budget", "vector ^ row // 8 % vectors"),
    _is("all vectors of a row in one slot", "race", "row * vectors // 8 % vectors"),
    _is("a rotation instead", "solved", "(vector + row * vectors // 8) % vectors"),
    _is("a rotation the other way", "solved", "(vector - row * vectors // 8) % vectors"),
    _is("the whole line, kept in the row", "solved", "(vector ^ row * vectors // 8) % vectors"),
    _is("rows of a line counted", "solved", "vector ^ row // (8 // vectors) % vectors"),
    Answer(
        "rows padded by one vector",
        "budget",
        (("shared.array(24 * 32", "shared.array(24 * 36"),),
    ),
    _is("slots of other rows", "race", "vector ^ row * vectors // 8 % 8"),
    Answer(
        "only what is written is moved",
        "result",
        ((_A, _A.replace("slot(row, step + lane // 16, vectors)", "step + lane // 16")),),
    ),
    Answer(
        "no barrier before the reads",
        "race",
        (("        cuda.syncthreads()\n        # -- multiply", "        # -- multiply"),),
    ),
)

RIGHT = (
    right(
        "a case for each length",
        (
            _SWIZZLED,
            "    if vectors == 8:\n        return vector ^ row % 8\n"
            "    return vector ^ row // 2 % 4 if vectors == 4 else vector ^ row // 4 % 2\n",
        ),
    ),
    right("bits", (_SWIZZLED, "    return vector ^ (row * vectors >> 3 & vectors - 1)\n")),
    right(
        "the whole address",
        (_SWIZZLED, "    n = row * vectors + vector\n    return (n ^ n // 8 % vectors) % vectors\n"),
    ),
)

WRONG = (
    wrong(
        "the longest sum that is published",
        ("range(0, A.shape[1], vectors * 4)", "range(0, min(A.shape[1], 64), vectors * 4)"),
    ),
    wrong(
        "rows of 64 and 128 bytes alone",
        (_SWIZZLED, "    return vector ^ row // (2 if vectors < 8 else 1) % vectors\n"),
    ),
    wrong(
        "rows of 32 and 128 bytes alone",
        (_SWIZZLED, "    return vector ^ row // (4 if vectors < 8 else 1) % vectors\n"),
    ),
)

SHORTCUTS = (
    shortcut("fragments from global memory, times ones from shared memory", cell=_renamed(CARRIED_FRAGMENTS)),
    shortcut("fragments from global memory, disturbed as a one and a zero are", cell=_renamed(MEASURED_FRAGMENTS)),
    shortcut("each word through a place of its lane's own", cell=_renamed(OWN_PLACE_FRAGMENTS)),
    shortcut("fragments from global memory", (_A, _A_GLOBAL), (_B, _B_GLOBAL)),
    shortcut("B's fragment from global memory", (_B, _B_GLOBAL)),
)
