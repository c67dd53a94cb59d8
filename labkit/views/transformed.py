"""What pictures of convolutions by transforms share: arrays of a run, sides of a tile, additions of its transforms."""

from collections.abc import Sequence
from math import isqrt
from typing import NamedTuple

import numpy as np

from labkit.conv.winograd.transforms import transforms
from labkit.trace import Trace
from labkit.views.wording import global_outputs


class Cost(NamedTuple):
    """Additions of a transform, and multiplications with constants that are neither 1 nor -1."""

    additions: int
    constants: int


def find_array(traces: Sequence[Trace], name: str) -> np.ndarray:
    """Return an array as the launches left it."""
    for trace in reversed(traces):
        if name in (arrays := global_outputs(trace)):
            return arrays[name]
    raise ValueError(f"No launch has an array {name}: show a convolution by transforms, whose arrays are U, V and M.")


def single_plane(array: np.ndarray) -> np.ndarray:
    """Return the rows and columns of an array of one image and one channel; a 1D array is one row."""
    *planes, rows, columns = (1, *array.shape)
    if any(size != 1 for size in planes):
        raise ValueError("The picture has room for one image, one channel and one filter: show such a problem.")
    return array.reshape(rows, columns)


def tile_sides(places: int, taps: tuple[int, int]) -> tuple[tuple[int, ...], tuple[int, int]]:
    """Return rows and columns of a tile's outputs and of the tile: one row if the filter has one, else square."""
    tile = (1, places) if taps[0] == 1 else (isqrt(places), isqrt(places))
    return tuple(side - size + 1 for side, size in zip(tile, taps, strict=True)), tile


def row_costs(matrix: np.ndarray) -> list[Cost]:
    """Return what each row of a matrix costs where it multiplies a vector."""
    return [Cost(int((row != 0).sum()) - 1, sum(abs(value) not in (0, 1) for value in row)) for row in matrix]


def tile_costs(out: tuple[int, ...], tile: tuple[int, int]) -> tuple[int, int]:
    """Return the additions of a tile's transforms, of its pixels and of its products: columns first, then rows."""
    vectors_of_pixels, vectors_of_products = 1, 1  # of the first pass, where a tile is a line
    A, _, B = transforms(out[1], tile[1] - out[1] + 1)
    pixels, products = (sum(cost.additions for cost in row_costs(matrix.T)) for matrix in (B, A))
    if tile[0] > 1:
        vectors_of_pixels, vectors_of_products = 2 * tile[0], tile[1] + out[0]
    return vectors_of_pixels * pixels, vectors_of_products * products
