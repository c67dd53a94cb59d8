"""The windows of a convolution as kernel arguments: 32-bit integers, and divisors for fast division."""

from typing import NamedTuple

import numpy as np

from labkit.arrays.addresses import PIECE_BYTES
from labkit.conv.problem import Convolution
from labkit.conv.sizes import check_counts
from labkit.formats import Format
from labkit.parts.division import Divisor, divisor


class Windows(NamedTuple):
    """Sizes by the letters of `Convolution`, all uint32, and the 16-byte vectors of a pixel.

    An output's number, counted over N, P and Q, is divided by PQ and Q. A vector's number in a window, counted over R,
    S and the vectors of a pixel, is divided by `vectors` and S.
    """

    H: np.uint32
    W: np.uint32
    K: np.uint32
    R: np.uint32
    P: np.uint32
    stride_h: np.uint32
    stride_w: np.uint32
    top: np.uint32
    left: np.uint32
    dilation_h: np.uint32
    dilation_w: np.uint32
    flipped: np.uint32  # 1 if filters are rotated by 180 degrees, else 0
    RS: np.uint32
    NPQ: np.uint32
    PQ: Divisor
    Q: Divisor
    S: Divisor
    vectors: Divisor


def make_windows(problem: Convolution, format: Format) -> Windows:
    """Return the windows of a problem.

    Raises
    ------
    TooLarge
        An index does not fit into the 32 bits that kernels use.
    """
    RS, PQ = problem.R * problem.S, problem.P * problem.Q
    vectors = -(-problem.C * format.itemsize // PIECE_BYTES)
    check_counts({"the outputs of a filter": problem.N * PQ, "the pieces of a filter": RS * vectors})
    names = "H W K R P stride_h stride_w top left dilation_h dilation_w flipped".split()
    numbers = {name: getattr(problem, name) for name in names}
    numbers |= {"RS": RS, "NPQ": problem.N * PQ}
    divisors = {"PQ": divisor(PQ), "Q": divisor(problem.Q), "S": divisor(problem.S), "vectors": divisor(vectors)}
    return Windows(**{name: np.uint32(number) for name, number in numbers.items()}, **divisors)
