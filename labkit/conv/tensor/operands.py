"""What the tensor-core steps ask of their operands, and how kernels see them."""

from functools import cache

import numpy as np

from labkit import specialise
from labkit.arrays.addresses import PIECE_BYTES, in_pieces
from labkit.arrays.views import as_bits, reshaped
from labkit.conv.problem import Convolution
from labkit.conv.tensor.padding import padded
from labkit.formats import Format
from labkit.gemm.tensor.operands import as_words
from labkit.ladder import Launch

TAKES = {"result": ("y",), "groups": (1,), "layout": ("NHWC",)}
MOST_PIECES = 2**32  # of images, counted in 32 bits


def prepared(x, w, y, problem: Convolution, format: Format, workspace) -> tuple[list[Launch], object, object]:
    """Images and filters whose pixels and taps are whole pieces of 16 bytes, and the launches that make them so.

    There are none where C is a multiple of 8. Elsewhere zeros are added, which cost a copy.

    Raises
    ------
    TypeError
        An array does not hold the format.
    ValueError
        An array has another shape than the problem says, or the images are too large.
    """
    C = in_pieces(problem.C, format.dtype)
    pieces = problem.N * problem.H * problem.W * C * format.itemsize // PIECE_BYTES
    if pieces > MOST_PIECES:
        raise ValueError(
            f"the images are {pieces} pieces of {PIECE_BYTES} bytes, and this step counts to {MOST_PIECES}: "
            "take fewer images at a time"
        )
    if C == problem.C:
        return [], x, w
    made = []
    return made, *(padded(X, C, name, workspace, made) for name, X in (("x", x), ("w", w)))


def as_pieces(X):
    """An array of 16 bits as pieces of 16 bytes, four words each."""
    count = int(np.prod(X.shape)) * X.dtype.itemsize // PIECE_BYTES
    return as_words(reshaped(X, count, PIECE_BYTES // X.dtype.itemsize))


def as_outputs(y, problem: Convolution):
    """The outputs as a matrix of NPQ rows: of words, two filters each, or if K is odd of single elements."""
    rows = reshaped(y, problem.N * problem.P * problem.Q, problem.K)
    return as_bits(rows) if problem.K % 2 else as_words(rows)


def with_outputs(kernel, format: Format, problem: Convolution):
    """The kernel for a format, and for outputs as `as_outputs` gives them."""
    return _with(kernel, format, problem.K % 2 == 0)


@cache
def _with(kernel, format, even):
    return specialise(kernel, FORMAT=format.number, RESULT=format.result.number, EVEN=even)
