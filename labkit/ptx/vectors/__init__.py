"""Vector accesses: a thread reads or writes neighbouring elements at once.

They are `ld.v2`, `ld.v4`, `st.v2` and `st.v4` of the PTX ISA manual (section "Data Movement and
Conversion Instructions"): one instruction moves 8 or 16 bytes a thread, between registers and a global or shared
array. The first element must lie at a multiple of that many bytes: a GPU stops the launch where it does not. Arrays in
global memory begin at such a place; a shared one is asked to, `cuda.shared.array(256, float32, alignment=16)`.
"""

from labkit.ptx.instruction import instruction
from labkit.ptx.vectors.on_lanes import VectorLoad, VectorStore

__all__ = ["load2", "load4", "store2", "store4"]

WIDTHS_BYTES = (8, 16)


@instruction(VectorLoad(2, WIDTHS_BYTES))
def load2(array, index):
    """The element at `index` and the next one, `array[index], array[index + 1]`, read at once.

    Parameters
    ----------
    array
        A global or shared array in C order, of elements of 4 or 8 bytes.
    index
        A whole number, or a tuple of them, one for each axis; the elements follow along the last axis.
    """


@instruction(VectorLoad(4, WIDTHS_BYTES))
def load4(array, index):
    """Four neighbouring elements, read at once; as `load2`, for elements of 2 or 4 bytes."""


@instruction(VectorStore(2, WIDTHS_BYTES))
def store2(array, index, a, b):
    """Writes `a` and `b` to `array[index]` and the element after it, at once; as `load2`."""


@instruction(VectorStore(4, WIDTHS_BYTES))
def store4(array, index, a, b, c, d):
    """Writes four neighbouring elements at once; as `load4`."""
