"""Vector accesses: a thread reads or writes neighbouring elements at once.

They are `ld.v2`, `ld.v4`, `st.v2` and `st.v4` of the PTX ISA manual (section "Data Movement and
Conversion Instructions"): one instruction moves 8 or 16 bytes per thread, between registers and a global or shared
array. The address of the first element must be a multiple of that, else a GPU stops the launch. Arrays in global memory
are aligned so; a shared one needs `cuda.shared.array(256, float32, alignment=16)`.
"""

from labkit.ptx.instruction import instruction
from labkit.ptx.vectors.on_lanes import VectorLoad, VectorStore

__all__ = ["load2", "load4", "store2", "store4"]

WIDTHS_BYTES = (8, 16)


@instruction(VectorLoad(2, WIDTHS_BYTES))
def load2(array, index):
    """Read `array[index], array[index + 1]` at once.

    Parameters
    ----------
    array
        Global or shared array in C order, of elements of 4 or 8 bytes.
    index
        Integer, or a tuple of one per axis; the elements are neighbours along the last axis.
    """


@instruction(VectorLoad(4, WIDTHS_BYTES))
def load4(array, index):
    """Read four neighbouring elements, of 2 or 4 bytes each, at once; see `load2`."""


@instruction(VectorStore(2, WIDTHS_BYTES))
def store2(array, index, a, b):
    """Write `a` and `b` to `array[index]` and the next element at once; see `load2`."""


@instruction(VectorStore(4, WIDTHS_BYTES))
def store4(array, index, a, b, c, d):
    """Write four neighbouring elements at once; see `load4`."""
