"""The sizes of a convolution as kernels take them: 32 bits each, and with them what divides by them."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from labkit.conv.problem import Convolution
from labkit.ladder import TooLarge
from labkit.parts.division import LIMIT, Divisor, make_divisor


class Sizes(NamedTuple):
    """As `Convolution` has them, by the same letters; C and K are those of a group, and all are uint32.

    `turn` is 1 where the filter is turned by half a turn, else 0. RS, S, PQ and Q are divisors: a number of a tap of a
    filter, counted over C, R and S, is divided by RS and by S, and that of an output, over N, P and Q, by PQ and Q.
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
    turn: np.uint32
    CRS: np.uint32
    NPQ: np.uint32
    RS: Divisor
    S: Divisor
    PQ: Divisor
    Q: Divisor


def sizes(problem: Convolution) -> Sizes:
    """The sizes of a problem.

    Raises
    ------
    TooLarge
        An index that kernels compute in 32 bits would not fit.
    """
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
    names = "N H W R P stride_h stride_w top left dilation_h dilation_w".split()
    numbers = {name: getattr(problem, name) for name in names}
    numbers |= {"C": C, "K": K, "turn": problem.flipped, "CRS": C * RS, "NPQ": problem.N * PQ}
    divisors = {
        "RS": make_divisor(RS),
        "S": make_divisor(problem.S),
        "PQ": make_divisor(PQ),
        "Q": make_divisor(problem.Q),
    }
    return Sizes(**{name: np.uint32(number) for name, number in numbers.items()}, **divisors)


def check_counts(counts: Mapping[str, int]) -> None:
    """Raises `TooLarge` where something, by what it is called, is more than kernels count in 32 bits."""
    for what, count in counts.items():
        if count >= LIMIT:
            raise TooLarge(f"{what} are {count}, and this step counts them below {LIMIT}", "take fewer at a time")
