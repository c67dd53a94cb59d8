"""Other answers to exercise 09.3."""

from . import Variant

_TILES = "(P[i] + m - 1) // m * ((Q[i] + m - 1) // m)"
_COUNT = "tiles * (m + R[i] - 1) * (m + R[i] - 1)"

VARIANTS = (
    Variant("the edge left out", "result", ((_TILES, "P[i] // m * (Q[i] // m)"),)),
    Variant("as many tiles as outputs have room for", "result", ((_TILES, "P[i] * Q[i] // (m * m)"),)),
    Variant("tiles that do not overlap", "result", ((_COUNT, "tiles * m * m"),)),
    Variant("one dimension", "result", ((_COUNT, "tiles * (m + R[i] - 1)"),)),
    Variant("3 x 3 taps", "result", ((_COUNT, "tiles * (m + 2) * (m + 2)"),)),
    Variant("the largest of those that are as good", "result", (("count < least", "count <= least"),)),
    Variant("tiles of even sides", "result", (("range(2, 7)", "range(2, 7, 2)"),)),
    Variant("tiles of up to five outputs", "result", (("range(2, 7)", "range(2, 6)"),)),
    Variant("the definition", "result", (("range(2, 7)", "range(2, 2)"),)),
    Variant("the largest tile", "result", (("count < least", "True"),)),
    Variant("no guard", "bounds", (("if i < P.size", "if i < 32"),)),
    Variant("both numbers exchanged", "result", (("products[i], best[i] = least", "best[i], products[i] = least"),)),
    Variant(
        "kept in memory while it looks",
        "budget",
        (
            (
                "                least, tile = count, m\n",
                "                least, tile = count, m\n                best[i] = m\n",
            ),
        ),
    ),
    Variant("ceilings by a negative floor", "solved", ((_TILES, "(-P[i] // m) * (-Q[i] // m)"),)),
)
