"""Images as the copy engine walks over their windows."""

from labkit import ptx
from labkit.conv.problem import Convolution
from labkit.ladder import TooLarge


def make_pixel_map(x, problem: Convolution, pixels: int, words: int) -> ptx.PixelMap:
    """The map of images, in words of two channels, for copies of so many words of so many windows' pixels.

    Raises
    ------
    TooLarge
        The copy engine does not take these windows.
    """
    padding = problem.top, problem.left, problem.bottom, problem.right
    steps = problem.stride_h, problem.stride_w, problem.dilation_h, problem.dilation_w
    try:
        return ptx.PixelMap(x, pixels, words, *padding, problem.R, problem.S, *steps)
    except ValueError as error:
        raise TooLarge(str(error)) from None
