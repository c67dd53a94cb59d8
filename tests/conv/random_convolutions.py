"""Random small convolutions: any parameter may be ragged or degenerate."""

from dataclasses import fields

from hypothesis import strategies as st

from labkit.conv import Convolution

SMALL = {"N": 3, "R": 4, "S": 4, "stride_h": 3, "stride_w": 3, "dilation_h": 3, "dilation_w": 3, "groups": 3}
NAMES = {field.name for field in fields(Convolution)}


@st.composite
def convolutions(draw, kind=Convolution, takes=None, more_pixels: int = 20):
    """A convolution of this kind; what a step takes fixes some attributes, and the rest is drawn.

    An image has at most `more_pixels` rows and columns more than the smallest that the filter fits into.
    """
    takes = dict(takes or {})

    def value(name, otherwise):
        return draw(st.sampled_from(takes[name]) if name in takes else otherwise)

    one = {name: value(name, st.integers(1, most)) for name, most in SMALL.items()}
    for name in ("C", "K"):
        one[name] = value(name, st.integers(1, 3).map(lambda n: n * one["groups"]))
    for size, taps, along, before, after in (("H", "R", "h", "top", "bottom"), ("W", "S", "w", "left", "right")):
        reach = one[f"dilation_{along}"] * (one[taps] - 1)
        for side in (before, after):
            one[side] = value(side, st.integers(0, reach))
        least = max(1, reach + 1 - one[before] - one[after])
        one[size] = value(size, st.integers(least, least + more_pixels))
    one["flipped"] = value("flipped", st.booleans())
    one["layout"] = value("layout", st.sampled_from(("NCHW", "NHWC")))
    return kind(**one)
