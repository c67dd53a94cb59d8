"""Operands of the tensor-core steps: requirements, padding, and the views that kernels use."""

from dataclasses import replace
from functools import cache
from math import ceil, prod

from labkit import ptx, specialise
from labkit.arrays.addresses import VECTOR_BYTES, round_up_to_vectors
from labkit.arrays.views import as_bits, as_strided, as_words, reshape
from labkit.conv.problem import Convolution
from labkit.conv.tensor.padding import copy_padded
from labkit.formats import Format
from labkit.ladder import Launch, TooLarge

SUPPORTED = {"result": ("y",), "groups": (1,), "layout": ("NHWC",)}  # fields that kernels take; y: outputs
MAX_VECTORS = 2**32  # of images, for 32-bit indices
CHANNELS = 64  # of 16 bits, in a copy of 128 bytes


def pad_channels(
    x, w, problem: Convolution, format: Format, workspace, may_fold: bool = False
) -> tuple[list[Launch], object, object, Convolution]:
    """Pad pixels and taps to whole 16-byte vectors; return the launches, images, filters, and their problem.

    If C is a multiple of 8, nothing changes and no launch is needed. Otherwise a copy adds zeros. With `may_fold`, that
    copy may also fold the taps of a row into channels (`fold_taps`). Raise `TooLarge` if the images are too large.
    """
    C = round_up_to_vectors(problem.C, format.dtype)
    vectors = problem.N * problem.H * problem.W * C * format.itemsize // VECTOR_BYTES
    if vectors > MAX_VECTORS:
        why = f"the images are {vectors} pieces of {VECTOR_BYTES} bytes, and this step counts to {MAX_VECTORS}"
        raise TooLarge(why, "take fewer images at a time")
    if C == problem.C:
        return [], x, w, problem
    launches = []
    w = copy_padded(w, (problem.K, problem.R, problem.S, C), (0, 0), "filters", workspace, launches)
    if may_fold and is_worth_folding(problem, C):
        x, problem = fold_taps(x, problem, C, workspace, launches)
        return launches, x, reshape(w, problem.K, problem.R, 1, problem.C), problem
    x = copy_padded(x, (problem.N, problem.H, problem.W, C), (0, 0), "images", workspace, launches)
    return launches, x, w, replace(problem, C=C)


def is_worth_folding(problem: Convolution, C: int) -> bool:
    """Return whether the taps of a row, with C channels each, become channels (`fold_taps`) in half as many copies."""
    is_plain = problem.dilation_w == 1 and not problem.flipped
    return is_plain and 2 * ceil(problem.S * C / CHANNELS) <= problem.S * ceil(C / CHANNELS)


def fold_taps(x, problem: Convolution, C: int, workspace, launches: list[Launch]) -> tuple[object, Convolution]:
    """Return images of C channels with borders, and the problem, with the S taps of a row as channels of one tap.

    Column q of the images begins at window q, so columns overlap. The launch that copies is appended to `launches`.
    """
    N, S = problem.N, problem.S
    H, W = problem.H + problem.top + problem.bottom, problem.W + problem.left + problem.right
    x = copy_padded(x, (N, H, W, C), (problem.top, problem.left), "images", workspace, launches)
    size = x.dtype.itemsize
    x = as_strided(x, (N, H, problem.Q, S * C), (H * W * C * size, W * C * size, problem.stride_w * C * size, size))
    sizes = {"C": S * C, "H": H, "W": problem.Q, "S": 1, "stride_w": 1}
    return x, replace(problem, **sizes, top=0, bottom=0, left=0, right=0)


def as_vectors(X):
    """View an array of 16-bit elements as 16-byte vectors, four words each."""
    elements = VECTOR_BYTES // X.dtype.itemsize
    return as_words(reshape(X, prod(X.shape) // elements, elements))


def as_outputs(y, problem: Convolution):
    """View the outputs as a matrix of NPQ rows: of words, two filters each, or for odd K of single elements."""
    rows = reshape(y, problem.N * problem.P * problem.Q, problem.K)
    return as_bits(rows) if problem.K % 2 else as_words(rows)


@cache
def specialise_for_outputs(kernel, format: Format, is_even: bool):
    """Return the kernel for a format, and for an even or odd number of filters (`as_outputs`)."""
    return specialise(kernel, FORMAT=format.number, RESULT=format.result.number, EVEN=is_even)


def make_pixel_map(x, problem: Convolution, pixels: int, words: int) -> ptx.PixelMap:
    """Return the TMA map of images in words, two channels each, for copies of `words` words of `pixels` windows.

    Raise `TooLarge` if TMA does not support these windows.
    """
    padding = problem.top, problem.left, problem.bottom, problem.right
    steps = problem.stride_h, problem.stride_w, problem.dilation_h, problem.dilation_w
    try:
        return ptx.PixelMap(x, pixels, words, *padding, problem.R, problem.S, *steps)
    except ValueError as error:
        raise TooLarge(str(error)) from None
