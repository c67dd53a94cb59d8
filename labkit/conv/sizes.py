"""The sizes of a convolution as kernel arguments: 32-bit integers, and divisors for fast division."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from labkit.arrays.addresses import VECTOR_BYTES
from labkit.conv.problem import Convolution
from labkit.formats import Format
from labkit.ladder import TooLarge
from labkit.parts.division import DIVIDEND_LIMIT, Divisor, make_divisor


class Sizes(NamedTuple):
    """Sizes by the letters of `Convolution`, all uint32; C and K count the channels and filters of one group.

    A tap's number, counted over C, R and S, is divided by RS and S. An output's number, counted over N, P and Q, is
    divided by PQ and Q.
    """

    N: np.uint32
    C: np.uint32
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
    CRS: np.uint32
    NPQ: np.uint32
    RS: Divisor
    S: Divisor
    PQ: Divisor
    Q: Divisor


def make_sizes(problem: Convolution) -> Sizes:
    """Return the sizes of a problem; raise `TooLarge` if an index does not fit into the 32 bits that kernels use."""
    C, K = problem.C // problem.groups, problem.K // problem.groups
    RS, PQ = problem.R * problem.S, problem.P * problem.Q
    check_counts(
        {
            "the pixels of an image": problem.C * problem.H * problem.W,
            "all filters": problem.K * C * RS,
            "the outputs of an image": problem.K * PQ,
            "the outputs of a filter": problem.N * PQ,
        }
    )
    divisors = {"RS": RS, "S": problem.S, "PQ": PQ, "Q": problem.Q}
    return Sizes(**_convert(problem, divisors, N=problem.N, C=C, K=K, CRS=C * RS, NPQ=problem.N * PQ))


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
    """Return the windows of a problem; raise `TooLarge` if an index does not fit into the 32 bits that kernels use."""
    RS, PQ = problem.R * problem.S, problem.P * problem.Q
    vectors = -(-problem.C * format.itemsize // VECTOR_BYTES)
    check_counts({"the outputs of a filter": problem.N * PQ, "the pieces of a filter": RS * vectors})
    divisors = {"PQ": PQ, "Q": problem.Q, "S": problem.S, "vectors": vectors}
    return Windows(**_convert(problem, divisors, K=problem.K, RS=RS, NPQ=problem.N * PQ))


def _convert(problem, divisors, **numbers) -> dict:
    """Return the numbers, and those that all kernels need, as uint32, and the divisors for fast division."""
    names = "H W R P stride_h stride_w top left dilation_h dilation_w flipped".split()
    numbers |= {name: getattr(problem, name) for name in names}
    kernel_numbers = {name: np.uint32(number) for name, number in numbers.items()}
    return kernel_numbers | {name: make_divisor(value) for name, value in divisors.items()}


def check_counts(counts: Mapping[str, int]) -> None:
    """Raise `TooLarge` if a count, by its description, does not fit into 32 bits."""
    for description, count in counts.items():
        if count >= DIVIDEND_LIMIT:
            raise TooLarge(
                f"{description} are {count}, and this step counts them below {DIVIDEND_LIMIT}", "take fewer at a time"
            )
