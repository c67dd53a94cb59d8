"""Other answers to exercise 09.2."""

from . import Variant

_GUARD = """    if 2 * tile_y >= y.shape[0] or 2 * tile_x >= y.shape[1]:
        return
"""
_WHOLE_TILES = """    if 2 * tile_y + 1 >= y.shape[0] or 2 * tile_x + 1 >= y.shape[1]:
        return
"""
_LOAD = """            d[i, j] = 0
            if 0 <= row < x.shape[0] and 0 <= col < x.shape[1]:
                d[i, j] = x[row, col]
"""
_CLAMPED = """            d[i, j] = x[min(max(row, 0), x.shape[0] - 1), min(max(col, 0), x.shape[1] - 1)]
"""
_ENDS_ALONE = """            d[i, j] = 0
            if row < x.shape[0] and col < x.shape[1]:
                d[i, j] = x[row, col]
"""
_BEGINNINGS_ALONE = """            d[i, j] = 0
            if row >= 0 and col >= 0:
                d[i, j] = x[row, col]
"""
_STORE = """        if row < y.shape[0]:
            y[row, col] ="""
_TERNARY = """            there = 0 <= row < x.shape[0] and 0 <= col < x.shape[1]
            d[i, j] = x[row, col] if there else np.float32(0)
"""

VARIANTS = (
    Variant("no pixel asked for", "bounds", ((_LOAD, "            d[i, j] = x[row, col]\n"),)),
    Variant("the ends of the image alone", "result", ((_LOAD, _ENDS_ALONE),)),
    Variant("its beginnings alone", "bounds", ((_LOAD, _BEGINNINGS_ALONE),)),
    Variant("the last pixels again and again", "result", ((_LOAD, _CLAMPED),)),
    Variant("no zeros", "uninitialised", (("            d[i, j] = 0\n", ""),)),
    Variant("whole tiles alone", "unwritten", ((_GUARD, _WHOLE_TILES),)),
    Variant("pad to the other side", "result", (("2 * tile_y + i - pad", "2 * tile_y + i + pad"),)),
    Variant("pad in columns alone", "result", (("2 * tile_y + i - pad", "2 * tile_y + i"),)),
    Variant(
        "outputs moved as well",
        "result",
        (("row, col = 2 * tile_y + i, 2 * tile_x\n", "row, col = 2 * tile_y + 1 - i, 2 * tile_x\n"),),
    ),
    Variant("rows of outputs not asked for", "bounds", ((_STORE, "        if True:\n            y[row, col] ="),)),
    Variant("columns of outputs not asked for", "bounds", (("if col + 1 < y.shape[1]", "if True"),)),
    Variant("threads beyond the last tile", "budget", ((_GUARD, ""),)),
    Variant("a condition in place of a branch", "solved", ((_LOAD, _TERNARY),)),
)
