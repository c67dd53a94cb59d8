"""What the tensor-core steps ask of their operands, and how kernels see them."""

from dataclasses import replace
from functools import cache
from math import ceil, prod

from labkit import specialise
from labkit.arrays.addresses import PIECE_BYTES, in_pieces
from labkit.arrays.views import as_bits, as_words, reshaped, viewed
from labkit.conv.problem import Convolution
from labkit.conv.tensor.padding import copy_padded
from labkit.formats import Format
from labkit.ladder import Launch, TooLarge

TAKES = {"result": ("y",), "groups": (1,), "layout": ("NHWC",)}
MAX_VECTORS = 2**32  # of images, counted in 32 bits
CHANNELS = 64  # of 16 bits that a copy of 128 bytes brings


def pad_channels(
    x, w, problem: Convolution, format: Format, workspace, may_fold: bool = False
) -> tuple[list[Launch], object, object, Convolution]:
    """Images and filters whose pixels and taps are whole pieces of 16 bytes, of which problem, and how they are made.

    Where C is a multiple of 8 they are as they were, and no launch is needed. Elsewhere zeros are added, which costs a
    copy. That copy may also fold the taps of a row into channels (`fold_taps`), where a step says that this serves it.

    Raises
    ------
    TooLarge
        The images are too large.
    """
    C = in_pieces(problem.C, format.dtype)
    pieces = problem.N * problem.H * problem.W * C * format.itemsize // PIECE_BYTES
    if pieces > MAX_VECTORS:
        why = f"the images are {pieces} pieces of {PIECE_BYTES} bytes, and this step counts to {MOST_PIECES}"
        raise TooLarge(why, "take fewer images at a time")
    if C == problem.C:
        return [], x, w, problem
    launches = []
    w = copy_padded(w, (problem.K, problem.R, problem.S, C), (0, 0), "filters", workspace, launches)
    is_plain = problem.dilation_w == 1 and not problem.flipped
    if may_fold and is_plain and 2 * ceil(problem.S * C / CHANNELS) <= problem.S * ceil(C / CHANNELS):
        return launches, *fold_taps(x, w, problem, C, workspace, launches)
    x = copy_padded(x, (problem.N, problem.H, problem.W, C), (0, 0), "images", workspace, launches)
    return launches, x, w, replace(problem, C=C)


def fold_taps(
    x, w, problem: Convolution, C: int, workspace, launches: list[Launch]
) -> tuple[object, object, Convolution]:
    """Images with their borders, in which the S taps of a row of a filter are the channels of one tap.

    Column q of the images is where window q begins, so that columns overlap.
    """
    N, R, S = problem.N, problem.R, problem.S
    H, W = problem.H + problem.top + problem.bottom, problem.W + problem.left + problem.right
    x = copy_padded(x, (N, H, W, C), (problem.top, problem.left), "images", workspace, launches)
    size = x.dtype.itemsize
    x = viewed(x, (N, H, problem.Q, S * C), (H * W * C * size, W * C * size, problem.stride_w * C * size, size))
    sizes = {"C": S * C, "H": H, "W": problem.Q, "S": 1, "stride_w": 1}
    return x, reshaped(w, problem.K, R, 1, S * C), replace(problem, **sizes, top=0, bottom=0, left=0, right=0)


def as_vectors(X):
    """An array of 16 bits as pieces of 16 bytes, four words each."""
    elements = PIECE_BYTES // X.dtype.itemsize
    return as_words(reshaped(X, prod(X.shape) // elements, elements))


def as_outputs(y, problem: Convolution):
    """The outputs as a matrix of NPQ rows: of words, two filters each, or if K is odd of single elements."""
    rows = reshaped(y, problem.N * problem.P * problem.Q, problem.K)
    return as_bits(rows) if problem.K % 2 else as_words(rows)


def specialise_for_outputs(kernel, format: Format, problem: Convolution):
    """The kernel for a format, and for outputs as `as_outputs` gives them."""
    return _specialised(kernel, format, problem.K % 2 == 0)


@cache
def _specialised(kernel, format, is_even):
    return specialise(kernel, FORMAT=format.number, RESULT=format.result.number, EVEN=is_even)
