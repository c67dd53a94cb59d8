"""Random inputs of problems."""

from math import prod

import numpy as np
from jaxtyping import Shaped

from labkit.formats import Format

DRAWN = 2**20  # random numbers, which larger operands repeat


def normal(rng: np.random.Generator, shape: tuple[int, ...], format: Format) -> Shaped[np.ndarray, "..."]:
    """Random normal numbers; the same ones again and again in an array of more than DRAWN."""
    count = prod(shape)
    if count <= DRAWN:
        return format.encode(rng.standard_normal(shape))
    return np.resize(format.encode(rng.standard_normal(DRAWN - 3)), shape)  # no multiple of a row
