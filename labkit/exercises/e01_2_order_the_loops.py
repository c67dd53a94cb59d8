"""Exercise 01.2: three loops in the order that walks down columns, and so misses the cache at each step."""

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Variant
from labkit.exercises.matmuls import matmul_loop

SIZES = ((320, 48, 40), (12, 40, 600))  # M, N, K: columns of A and C, then of B, are longer than L1


def launch(rng, M, N, K):
    return matmul_loop(rng, M, N, K, (Budget("misses of the L1 cache", M * N * K // 10, "M * N * K / 10"),))


_ORDER = "for i in range(M):\n        for k in range(K):\n            for j in range(N):\n                C"


def _order(outer, middle, inner):
    text = _ORDER
    for old, new in zip("ikj", (outer, middle, inner), strict=True):
        text = text.replace(f"for {old} in range({'MKN'['ikj'.index(old)]})", f"for <{new}>")
    for name, side in zip("ikj", "MKN", strict=True):
        text = text.replace(f"for <{name}>", f"for {name} in range({side})")
    return text


EXERCISE = Exercise(
    id="01.2",
    title="Order the loops",
    task="Change the order of the three loops so that L1 misses at most once in ten multiply-adds.",
    points=2,
    function="reordered",
    launch=launch,
    sizes=SIZES,
    drawn=((range(321, 340), range(49, 56), range(20, 30)), (range(8, 12), range(49, 56), range(601, 640))),
    machine="cpu",
    variants=(
        Variant("the order that the exercise starts with", "budget", ((_ORDER, _order("j", "k", "i")),)),
        Variant("down the columns of B", "budget", ((_ORDER, _order("i", "j", "k")),)),
        Variant("down the columns of B, rows last", "budget", ((_ORDER, _order("j", "i", "k")),)),
        Variant("down the columns of A and C", "budget", ((_ORDER, _order("k", "j", "i")),)),
        Variant("C is not set to zero", "result", (("            C[i, j] = 0\n", "            pass\n"),)),
        Variant("no sum", "result", (("C[i, j] +=", "C[i, j] ="),)),
        Variant(
            "rows of the book's shapes",
            "unwritten",
            (("    M, K = A.shape\n", "    M, K = min(320, A.shape[0]), A.shape[1]\n"),),
        ),
        Variant("a length of the book's", "result", (("    N = B", "    K = min(600, K)\n    N = B"),)),
        Variant("k outermost", "solved", ((_ORDER, _order("k", "i", "j")),)),
    ),
)
