"""Random small convolutions: any parameter may be ragged or degenerate, and one size of each is not that small."""

from hypothesis import strategies as st

SMALL = {"N": 3, "R": 4, "S": 4, "stride_h": 3, "stride_w": 3, "dilation_h": 3, "dilation_w": 3, "groups": 3}
LARGE = {"C": 40, "K": 70, "pixels": 20}  # of a group; pixels beside those that the filter spans
OF_GROUP = {"C": "group_channels", "K": "group_filters"}
FEW = 3


@st.composite
def convolutions(draw, kind, takes=None, large=LARGE):
    """A convolution of a kind; what a step takes fixes some of its attributes, and the rest is drawn."""
    takes = takes or {}

    def value(name, otherwise):
        return draw(st.sampled_from(takes[name]) if name in takes else otherwise)

    most = draw(st.sampled_from(sorted(large)).map(lambda name: {name: large[name]}))
    counts = SMALL | ({"groups": most.get("C", FEW)} if "group_channels" in takes else {})
    one = {name: value(name, st.integers(1, count)) for name, count in counts.items()}
    if "odd_channels" in takes:
        one["groups"] *= 2
    for along in "hw" if "dilated_stride" in takes else "":
        if one[f"stride_{along}"] > 1:
            one[f"dilation_{along}"] = 1
    for name, of_group in OF_GROUP.items():
        in_group = value(of_group, st.integers(1, most.get(name, FEW)))
        one[name] = value(name, st.just(in_group * one["groups"]))
    for size, taps, along, before, after in (("H", "R", "h", "top", "bottom"), ("W", "S", "w", "left", "right")):
        reach = one[f"dilation_{along}"] * (one[taps] - 1)
        for side in (before, after):
            one[side] = value(side, st.integers(0, reach))
        least = max(1, reach + 1 - one[before] - one[after])
        one[size] = value(size, st.integers(least, least + most.get("pixels", FEW)))
    one["flipped"] = value("flipped", st.booleans())
    one["layout"] = value("layout", st.sampled_from(("NCHW", "NHWC")))
    return kind(**one)
