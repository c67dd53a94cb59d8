"""Convolutions with the error bounds of Winograd transforms."""

from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from labkit import ladder
from labkit.conv.problem import EPS, PLAIN_NCHW, BackwardData, Convolution, Forward, random_rounding_bound
from labkit.conv.winograd.transforms import Transforms, transforms
from labkit.formats import FP32, Format

TAPS = 3
SUPPORTED = {"result": ("y",), "R": (TAPS,), "S": (TAPS,)} | PLAIN_NCHW  # fields that kernels take; y: outputs


class Transformed(Convolution):
    """Bounds the errors of a convolution with 3 x 3 taps that is computed in float32 by F(m x m, 3x3).

    Each rounding adds at most eps / 2 of the rounded value, which never exceeds the transform of absolute values:
    S = |A.T| ((|G| |g| |G.T|) * (|B.T| |d| |B|)) |A|, summed over channels. An output passes at most
    n = C + 2 r + 4 (m + r - 1) + 7 roundings: of the sum over channels, of sums along the rows of each matrix, which
    is used twice, and of coefficients. So its error is at most n eps / 2 S: the zeros in the matrices save more
    roundings than products of errors add. (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1.)
    Random roundings add up to less (`labkit.conv.problem.random_rounding_bound`); the lower bound counts.
    """

    out: ClassVar[int]  # m, rows and columns of a tile's outputs

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        ((position, direct),) = super().expected(operands, format).items()
        *arrays, problem = operands  # a part of this problem, perhaps
        matrices = transforms(self.out, TAPS)

        def convolve_mapped(function):
            """Convolve with a function applied to images, filters and matrices."""
            inputs = problem._as_forward(*(function(format.decode(np.asarray(X))) for X in arrays))
            return convolve_by_transforms(*inputs, Transforms(*(function(matrix) for matrix in matrices)))

        filters = problem._as_forward(*arrays)[1]
        roundings = filters.shape[1] + 2 * TAPS + 4 * (self.out + TAPS - 1) + 7
        random = random_rounding_bound(roundings, convolve_mapped(np.square), direct.value)
        bound = np.minimum(roundings * EPS / 2 * convolve_mapped(np.abs), random)
        return {position: ladder.Expected(direct.value, bound)}


class TransformedForward(Transformed, Forward):
    """The outputs y of images x and filters w."""

    def _as_forward(self, x, w, y):
        """Return images, filters, zeros above and left, rows and columns of a correlation with the same result."""
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
    """The gradient x of the images, from the gradient y of the outputs and the filters w, by tiles of 4 x 4 pixels."""

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
    """Convolve images, with zeros above and to their left, by the transforms; return rows x cols outputs."""
    A, G, B = (matrix.astype(np.float64) for matrix in matrices)
    (tile, out), (N, C, H, W) = A.shape, images.shape
    down, across = -(-rows // out), -(-cols // out)
    padded = np.zeros((N, C, down * out + tile - out, across * out + tile - out))
    padded[:, :, top : top + H, left : left + W] = images
    d = np.lib.stride_tricks.sliding_window_view(padded, (tile, tile), (2, 3))[:, :, ::out, ::out]
    M = np.einsum("kcij,ncyxij->nkyxij", G @ filters @ G.T, B.T @ d @ B)
    y = (A.T @ M @ A).swapaxes(3, 4).reshape(N, len(filters), down * out, across * out)
    return y[:, :, :rows, :cols]
