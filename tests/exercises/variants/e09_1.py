"""Other answers to exercise 09.1."""

from . import Variant

_ROWS = """        v0 = two * d0 - three * d1 + d2
        v1 = d2 - two * d1
        v2 = d2 - d1
        v3 = two * d1 - three * d2 + d3
"""
_USUAL_POINTS = """        v0 = d2 - d0
        v1 = d1 + d2
        v2 = d2 - d1
        v3 = d3 - d1
"""
_NOT_TRANSPOSED = """        v0 = two * d0
        v1 = two * d3 - three * d0 - two * d1 - d2
        v2 = d0 + d1 + d2 - three * d3
        v3 = d3
"""
_HIGHEST_FIRST = """        v0 = two * d2 - three * d1 + d0
        v1 = d0 - two * d1
        v2 = d0 - d1
        v3 = two * d2 - three * d1 + d0
"""
_OWN_POINT_TOO = """        v0 = two * d1 - three * d2 + d3
        v1 = two * d1 - three * d2 + d3
        v2 = two * d1 - three * d2 + d3
        v3 = two * d1 - three * d2 + d3
"""

VARIANTS = (
    Variant("the points of the chapter", "result", ((_ROWS, _USUAL_POINTS),)),
    Variant("B, not transposed", "result", ((_ROWS, _NOT_TRANSPOSED),)),
    Variant("the highest coefficient first", "result", ((_ROWS, _HIGHEST_FIRST),)),
    Variant("polynomials that vanish at their own point as well", "result", ((_ROWS, _OWN_POINT_TOO),)),
    Variant("the other sign of a row", "result", (("v1 = d2 - two * d1", "v1 = two * d1 - d2"),)),
    Variant("the last row as if it were for another point", "result", (("- three * d2 + d3", "- three * d2"),)),
    Variant("float64", "budget", (("two * d0 - three * d1", "2 * d0 - 3 * d1"),)),
    Variant("doubled by an addition", "solved", (("two * d0 - three * d1 + d2", "d0 + d0 - three * d1 + d2"),)),
)
