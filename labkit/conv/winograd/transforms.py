"""The matrices of F(m, r): m outputs of a filter of r taps by m + r - 1 products instead of m r, in exact rationals.

Multiplying polynomials of m and r coefficients takes their values at m + r - 1 points, the products of these, and the
polynomial through them. (Toom and Cook; Blahut, Fast Algorithms for Digital Signal Processing, 1985, section 5.2.)
Transposed, with the filter held, that computes a correlation (Winograd, Arithmetic Complexity of Computations, 1980;
Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015, section 4):

    y = A.T @ ((G @ g) * (B.T @ d))

for m outputs y of r taps g and m + r - 1 pixels d. In two dimensions each matrix is used twice:

    Y = A.T @ ((G @ g @ G.T) * (B.T @ d @ B)) @ A
"""

from fractions import Fraction
from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Shaped

POINTS = tuple(map(Fraction, ("0", "1", "-1", "2", "-2", "1/2", "-1/2", "4", "-4", "1/4", "-1/4")))  # then infinity


class Transforms(NamedTuple):
    """The matrices of F(m, r), arrays of `Fraction`."""

    A: Shaped[np.ndarray, "alpha m"]
    G: Shaped[np.ndarray, "alpha r"]
    B: Shaped[np.ndarray, "alpha alpha"]


def transforms(m: int, r: int) -> Transforms:
    """Return the matrices of F(m, r), with the first of POINTS and infinity.

    Denominators are in G, which transforms only filters: B holds integers if the points are integers.

    Raises
    ------
    ValueError
        m or r is less than 1, or POINTS is too short.
    """
    count = m + r - 2  # of finite points
    if m < 1 or r < 1 or count > len(POINTS):
        raise ValueError(
            f"F({m}, {r}) is not among these transforms: give at least one output and one tap, together at most "
            f"{len(POINTS) + 2}"
        )
    points = POINTS[:count]
    A = [_powers(point, m) for point in points] + [_highest(m)]
    G = [_powers(point, r) / prod(point - other for other in points if other != point) for point in points]
    B = [_vanishing([other for other in points if other != point], count + 1) for point in points]
    B.append(_vanishing(points, count + 1))
    return Transforms(np.stack(A), np.stack([*G, _highest(r)]), np.stack(B, axis=1))


def as_float32(matrix: Shaped[np.ndarray, "rows cols"]) -> Float32[np.ndarray, "rows cols"]:
    """Round a matrix to float32; kernels use such a module constant as compile-time constants."""
    return matrix.astype(np.float64).astype(np.float32)


def _powers(point, count):
    """Row that evaluates a polynomial of `count` coefficients at the point."""
    return np.array([point**power for power in range(count)], object)


def _highest(count):
    """Row that evaluates it at infinity: its highest coefficient."""
    return np.array([Fraction(power == count - 1) for power in range(count)], object)


def _vanishing(roots, count):
    """Coefficients of the product of all x - root, the lowest first, padded with zeros."""
    polynomial = np.array([Fraction(1)] + [Fraction(0)] * (count - 1), object)
    for root in roots:
        polynomial = np.roll(polynomial, 1) - root * polynomial  # the highest is 0 until the last root
    return polynomial
