"""Random small conversions: any size may be ragged, and one of each is not that small."""

from hypothesis import strategies as st

from labkit.layouts import Conversion
from labkit.layouts.problem import LAYOUTS, VECTORS

LARGE = {"C": 140, "H": 12, "W": 140}
FEW = 4


@st.composite
def conversions(draw, ways=None, multiple=1):
    """A conversion, one of these ways if some are named; pixels of a row and channels are multiples of a number."""
    large = draw(st.sampled_from(sorted(LARGE)))
    most = {"N": 3, **{name: LARGE[name] if name == large else FEW * multiple for name in LARGE}}
    steps = {"N": 1, "C": multiple, "H": 1, "W": multiple}
    sizes = {name: draw(st.integers(1, max(1, most[name] // step))) * step for name, step in steps.items()}
    source, target = draw(st.sampled_from(ways or [(a, b) for a in LAYOUTS for b in LAYOUTS]))
    return Conversion(**sizes, source=source, target=target, vector=draw(st.sampled_from(VECTORS)))
