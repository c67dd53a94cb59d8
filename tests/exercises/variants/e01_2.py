"""Other answers to exercise 01.2."""

from . import Variant

_ORDER = "for i in range(M):\n        for k in range(K):\n            for j in range(N):\n                C"


def _order(outer, middle, inner):
    text = _ORDER
    for old, new in zip("ikj", (outer, middle, inner), strict=True):
        text = text.replace(f"for {old} in range({'MKN'['ikj'.index(old)]})", f"for <{new}>")
    for name, side in zip("ikj", "MKN", strict=True):
        text = text.replace(f"for <{name}>", f"for {name} in range({side})")
    return text


VARIANTS = (
    Variant("the order that the exercise starts with", "budget", ((_ORDER, _order("j", "k", "i")),)),
    Variant("down the columns of B", "budget", ((_ORDER, _order("i", "j", "k")),)),
    Variant("down the columns of B, rows last", "budget", ((_ORDER, _order("j", "i", "k")),)),
    Variant("down the columns of A and C", "budget", ((_ORDER, _order("k", "j", "i")),)),
    Variant("C is not set to zero", "result", (("            C[i, j] = 0\n", "            pass\n"),)),
    Variant("no sum", "result", (("C[i, j] +=", "C[i, j] ="),)),
    Variant(
        "rows of the book's shapes",
        "unwritten",
        (("    K, M = A.shape\n", "    K, M = A.shape[0], min(600, A.shape[1])\n"),),
    ),
    Variant("a length of the book's", "result", (("    N = B", "    K = min(600, K)\n    N = B"),)),
    Variant("k outermost", "solved", ((_ORDER, _order("k", "i", "j")),)),
)
