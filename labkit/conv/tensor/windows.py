"""Where the windows of a convolution lie, as kernels take it: 32 bits each, and with them what divides by them."""

from typing import NamedTuple

import numpy as np

from labkit.arrays.addresses import PIECE_BYTES
from labkit.conv.problem import Convolution
from labkit.conv.sizes import check_counts
from labkit.formats import Format
from labkit.parts.division import Divisor, make_divisor


class Windows(NamedTuple):
    """As `Convolution` has them, by the same letters, each a uint32; `pieces` are those of a pixel, of 16 bytes.

    `turn` is 1 where the filter is turned by half a turn, else 0. PQ, Q, S and pieces are divisors: a number of an
    output, counted over N, P and Q, is divided by PQ and Q, and one of a piece of a window, over R, S and the pieces of
    a pixel, by these and by S.
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
    turn: np.uint32
    RS: np.uint32
    NPQ: np.uint32
    PQ: Divisor
    Q: Divisor
    S: Divisor
    pieces: Divisor


def windows(problem: Convolution, format: Format) -> Windows:
    """The windows of a problem.

    Raises
    ------
    TooLarge
        An index that kernels compute in 32 bits would not fit.
    """
    RS, PQ = problem.R * problem.S, problem.P * problem.Q
    pieces = -(-problem.C * format.itemsize // PIECE_BYTES)
    check_counts({"the outputs of a filter": problem.N * PQ, "the pieces of a filter": RS * pieces})
    names = "H W K R P stride_h stride_w top left dilation_h dilation_w".split()
    numbers = {name: getattr(problem, name) for name in names}
    numbers |= {"turn": problem.flipped, "RS": RS, "NPQ": problem.N * PQ}
    divisors = {
        "PQ": make_divisor(PQ),
        "Q": make_divisor(problem.Q),
        "S": make_divisor(problem.S),
        "pieces": make_divisor(pieces),
    }
    return Windows(**{name: np.uint32(number) for name, number in numbers.items()}, **divisors)
