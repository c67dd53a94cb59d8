"""Exercise 01.2: three loops in the order that walks down columns, and so misses the cache at each step."""

from labkit.exercises.budget import Budget
from labkit.exercises.exercise import Exercise, Variant
from labkit.exercises.matmuls import matmul_loop

SHAPES = ((320, 48, 40), (24, 40, 600))  # M, N, K: columns of A and C, then of B, are longer than L1


def launches(rng):
    for M, N, K in SHAPES:
        yield matmul_loop(rng, M, N, K, (Budget("misses of the L1 cache", M * N * K // 10, "M * N * K / 10"),))


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
    launches=launches,
    machine="cpu",
    variants=(
        Variant("the order that the exercise starts with", "budget", ((_ORDER, _order("j", "k", "i")),)),
        Variant("down the columns of B", "budget", ((_ORDER, _order("i", "j", "k")),)),
        Variant("down the columns of B, rows last", "budget", ((_ORDER, _order("j", "i", "k")),)),
        Variant("down the columns of A and C", "budget", ((_ORDER, _order("k", "j", "i")),)),
        Variant("C is not set to zero", "result", (("            C[i, j] = 0\n", "            pass\n"),)),
        Variant("no sum", "result", (("C[i, j] +=", "C[i, j] ="),)),
        Variant("k outermost", "solved", ((_ORDER, _order("k", "i", "j")),)),
    ),
)
