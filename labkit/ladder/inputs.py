"""Random inputs of problems."""

from math import prod

import numpy as np
from jaxtyping import Shaped

from labkit.formats import Format

MAX_DRAWN = 2**20  # random numbers; larger operands repeat them


def normal(rng: np.random.Generator, shape: tuple[int, ...], format: Format) -> Shaped[np.ndarray, "..."]:
    """Return random normal numbers; an array of more than MAX_DRAWN elements repeats them."""
    if prod(shape) <= MAX_DRAWN:
        return format.encode(rng.standard_normal(shape))
    repeated = format.encode(rng.standard_normal(MAX_DRAWN - 3))  # not a multiple of a row, so rows differ
    return np.resize(repeated, shape)
