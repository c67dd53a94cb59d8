"""Convolutions whose result may be off as far as sums of transformed pixels and filters can be."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from labkit import ladder
from labkit.conv.problem import EPS, UNIT_STRIDES, BackwardData, Convolution, Forward, random_rounding_bound
from labkit.conv.winograd.transforms import Transforms, transforms
from labkit.formats import FP32, Format

TAPS = 3
TAKES = {"result": ("y",), "R": (TAPS,), "S": (TAPS,)} | UNIT_STRIDES


class Transformed(Convolution):
    """Bounds the errors of a convolution with 3 x 3 taps that is computed in float32 by F(m x m, 3x3).

    Every rounding is off by eps / 2 of what it rounds at most, and that is never more than what the transforms make of
    absolute values: S = |A.T| ((|G| |g| |G.T|) * (|B.T| |d| |B|)) |A|, summed over channels. An output stands behind
    n = C + 2 r + 4 (m + r - 1) + 7 roundings at most: of the sum over channels, of sums as long as the rows of each
    matrix, which is used twice, and of coefficients. So it is off by n eps / 2 S at most: the zeros in the matrices
    save more roundings than products of errors add up to. (Higham, Accuracy and Stability of Numerical Algorithms,
    2002, section 3.1.) Random roundings add up to less (`labkit.conv.problem.as_random`), and the lower bound holds.

    Attributes
    ----------
    out
        Rows and columns of a tile's outputs, m.
    """

    out: ClassVar[int]

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        ((position, direct),) = super().expected(operands, format).items()
        *arrays, problem = operands  # which may be a part of this one
        matrices = transforms(self.out, TAPS)

        def of(function):
            """Sums of what a function makes of images, filters and matrices."""
            inputs = problem._as_forward(*(function(format.decode(np.asarray(X))) for X in arrays))
            return convolve_by_transforms(*inputs, Transforms(*(function(matrix) for matrix in matrices)))

        filters = problem._as_forward(*arrays)[1]
        roundings = filters.shape[1] + 2 * TAPS + 4 * (self.out + TAPS - 1) + 7
        random = random_rounding_bound(roundings, of(np.square), direct.value)
        return {position: ladder.Expected(direct.value, np.minimum(roundings * EPS / 2 * of(np.abs), random))}


class TransformedForward(Transformed, Forward):
    """The outputs y of images x and filters w."""

    def _as_forward(self, x, w, y):
        """Images, filters, zeros above and to the left, rows and columns of a correlation that has the same result."""
        return x, w[..., ::-1, ::-1] if self.flipped else w, self.top, self.left, self.P, self.Q


class Forward2x2(TransformedForward):
    """By tiles of 2 x 2 outputs."""

    out = 2


class Forward4x4(TransformedForward):
    """By tiles of 4 x 4 outputs."""

    out = 4


class Forward6x6(TransformedForward):
    """By tiles of 6 x 6 outputs."""

    out = 6


class BackwardData4x4(Transformed, BackwardData):
    """The gradient x of the images, of the gradient y of the outputs and the filters w, by tiles of 4 x 4 pixels."""

    out = 4

    def _as_forward(self, x, w, y):
        w = w.swapaxes(0, 1)
        w = w if self.flipped else w[..., ::-1, ::-1]
        return y, w, TAPS - 1 - self.top, TAPS - 1 - self.left, self.H, self.W


def convolve_by_transforms(
    images: Float64[np.ndarray, "N C H W"],
    filters: Float64[np.ndarray, "K C r r"],
    top: int,
    left: int,
    rows: int,
    cols: int,
    matrices: Transforms,
) -> Float64[np.ndarray, "N K rows cols"]:
    """So many rows and columns of outputs by the transforms, of images with zeros above and to their left."""
    A, G, B = (matrix.astype(np.float64) for matrix in matrices)
    (tile, out), (N, C, H, W) = A.shape, images.shape
    down, across = -(-rows // out), -(-cols // out)
    padded = np.zeros((N, C, down * out + tile - out, across * out + tile - out))
    padded[:, :, top : top + H, left : left + W] = images
    d = np.lib.stride_tricks.sliding_window_view(padded, (tile, tile), (2, 3))[:, :, ::out, ::out]
    M = np.einsum("kcij,ncyxij->nkyxij", G @ filters @ G.T, B.T @ d @ B)
    y = (A.T @ M @ A).swapaxes(3, 4).reshape(N, len(filters), down * out, across * out)
    return y[:, :, :rows, :cols]
