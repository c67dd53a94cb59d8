"""numba's compiler as labkit uses it: what it must still do right, on a GPU."""

import numpy as np
import pytest


@pytest.mark.needs("gpu")
@pytest.mark.parametrize(
    "bounds", [(7,), (0,), (-3,), (2, 9), (9, 2), (3, 20, 4), (20, 3, -4), (5, 5, 1), (-9, 9, 6)], ids=str
)
@pytest.mark.parametrize("kind", ["int64", "int32", "uint64"])
def test_a_loop_over_range_visits_what_it_should_on_the_gpu(bounds, kind):
    from labkit import cuda

    if kind == "uint64" and min(bounds) < 0:
        pytest.skip("not negative")

    @cuda.jit
    def visit(bounds, seen):
        n = 0
        k = bounds[0]
        if bounds.size == 1:
            for k in range(bounds[0]):
                seen[n] = k
                n += 1
        elif bounds.size == 2:
            for k in range(bounds[0], bounds[1]):
                seen[n] = k
                n += 1
        else:
            for k in range(bounds[0], bounds[1], bounds[2]):
                seen[n] = k
                n += 1
        seen[n] = 100 + k

    expected = list(range(*bounds))
    seen = np.full(30, -99, np.int64)
    visit[1, 1](np.array(bounds, kind), seen)
    last = expected[-1] if expected else bounds[0]
    assert seen[: len(expected) + 2].tolist() == [*expected, 100 + last, -99]
