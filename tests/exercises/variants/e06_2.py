"""Other answers to exercise 06.2."""

from . import Variant

SWIZZLED = "    return piece ^ row % 8\n"

VARIANTS = (
    Variant("the bug itself", "budget", ((SWIZZLED, "    return piece\n"),)),
    Variant("two places alone", "budget", ((SWIZZLED, "    return piece ^ row % 2\n"),)),
    Variant("four places alone", "budget", ((SWIZZLED, "    return piece ^ row % 4\n"),)),
    Variant("every row moved alike", "budget", ((SWIZZLED, "    return piece ^ 5\n"),)),
    Variant("all pieces of a row in one place", "race", ((SWIZZLED, "    return row % 8\n"),)),
    Variant("out of the row", "bounds", ((SWIZZLED, "    return piece + row % 8\n"),)),
    Variant(
        "rows padded by one piece",
        "budget",
        (
            (SWIZZLED, "    return piece\n"),
            ("array((16, 32)", "array((16, 36)"),
            ("array((8, 32)", "array((8, 36)"),
        ),
    ),
    Variant(
        "only what is written is moved",
        "result",
        (("(row, slot(row, step + lane // 16) * 4)", "(row, (step + lane // 16) * 4)"),),
    ),
    Variant(
        "no barrier before the reads",
        "race",
        (("        cuda.syncthreads()\n        for step", "        for step"),),
    ),
    Variant("the XOR with the whole row, kept in the row", "solved", ((SWIZZLED, "    return (piece ^ row) % 8\n"),)),
    Variant("a rotation instead", "solved", ((SWIZZLED, "    return (piece + row) % 8\n"),)),
    Variant("a rotation the other way", "solved", ((SWIZZLED, "    return (piece - row) % 8\n"),)),
)
