"""Second launch of a split sum: it adds the parts in their order, so every run gives the same bits."""

from math import prod

from labkit import cuda
from labkit.arrays.views import flatten, reshape
from labkit.ladder import Launch

THREADS = 256


@cuda.jit
def add_parts(parts, out):
    """out = the sum of the parts."""
    i = cuda.grid(1)
    if i < out.size:
        acc = parts[0, i]
        for part in range(1, parts.shape[0]):
            acc += parts[part, i]
        out[i] = acc


def sum_parts(parts, out) -> Launch:
    """Return the launch of out = the sum of parts along their first axis."""
    size = prod(out.shape)
    return Launch(add_parts, -(-size // THREADS), THREADS, (reshape(parts, parts.shape[0], size), flatten(out)))
