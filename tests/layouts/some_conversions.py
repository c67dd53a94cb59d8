"""Random small conversions: any size may be ragged, and one of each is not that small."""

from hypothesis import strategies as st

from labkit.layouts import Conversion
from labkit.layouts.problem import LAYOUTS, VECTORS

LARGE = {"C": 140, "H": 12, "W": 140}
FEW = 4


@st.composite
def conversions(draw, ways=None, channels=1, pixels=1):
    """A conversion, one of these ways if some are named, with multiples of so many channels, and of pixels in a row."""
    large = draw(st.sampled_from(sorted(LARGE)))
    multiples = {"N": 1, "C": channels, "H": 1, "W": pixels}
    most = {"N": 3} | {name: LARGE[name] if name == large else FEW * multiples[name] for name in LARGE}
    sizes = {name: draw(st.integers(1, most[name] // step)) * step for name, step in multiples.items()}
    source, target = draw(st.sampled_from(ways or [(a, b) for a in LAYOUTS for b in LAYOUTS]))
    return Conversion(**sizes, source=source, target=target, vector=draw(st.sampled_from(VECTORS)))


def any_alignment(ways=None):
    """Conversions whose rows are whole vectors in both layouts, in one, or in none."""
    return st.one_of(conversions(ways, *multiples) for multiples in ((1, 1), (8, 1), (1, 8), (8, 8)))
