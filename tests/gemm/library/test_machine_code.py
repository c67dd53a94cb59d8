"""The machine code of the library's kernel: no spills in any format or tiling, and early launches that wait."""

import numpy as np
import pytest
from sampling import sampled

from labkit.forecast import sass
from labkit.formats import BF16, E4M3, FP16, TF32
from labkit.gemm.library.launches import launches
from labkit.gemm.library.tilings import Tiling

pytestmark = [pytest.mark.needs("numba-cuda"), pytest.mark.needs("toolkit")]

TILINGS = (
    Tiling(128, 256, 4),
    Tiling(128, 168, 5),
    Tiling(128, 248, 4),
    Tiling(64, 256, 5),
    Tiling(64, 64, 13, splits=3),
    Tiling(64, 8, 16, 2, swapped=True),
)
CASES = [(format, TILINGS[0], "") for format in (BF16, FP16, TF32, E4M3)]
CASES += [(BF16, tiling, columns) for tiling in TILINGS for columns in ("", "A", "B")][1:]


class OfHost:
    """A workspace of arrays that numba knows the types of where there is no GPU."""

    def array(self, role, shape, dtype):
        return np.empty(shape, dtype)

    def counters(self, count):
        return np.zeros(count, np.uint32)

    def unused_array(self, shape, dtype):
        return np.empty(shape, dtype)


def launch(format, tiling, columns="", biased=False):
    """A launch for operands of which some lie in columns."""
    A, B, C = (np.zeros((64, 64), kind.dtype) for kind in (format, format, format.result))
    A, B = (np.asfortranarray(X) if name in columns else X for name, X in (("A", A), ("B", B)))
    added = np.broadcast_to(C[0], C.shape) if biased else None
    return launches(A, B, C, tiling, workspace=OfHost(), added=added)[0]


@pytest.mark.parametrize(("format", "tiling", "columns"), sampled(CASES, 4), ids=str)
@pytest.mark.sample(2)
def test_the_kernel_assembles_without_spills(format, tiling, columns):
    one = launch(format, tiling, columns)
    code = sass.compiled(one.kernel, *one.arguments, compute_capability=(9, 0, "a"))
    assert (code.registers, code.spill_bytes) == (168, 0)  # what 384 threads of an SM leave for each
    assert {"LDL", "STL"}.isdisjoint(instruction.opcode for instruction in code.instructions)


@pytest.mark.parametrize(("tiling", "format", "most_bytes"), [(0, BF16, 0), (-1, BF16, 0), (0, TF32, 40)], ids=str)
@pytest.mark.sample(1)
def test_a_bias_spills_next_to_nothing(tiling, format, most_bytes):
    one = launch(format, TILINGS[tiling], biased=True)
    assert 0 in one.arguments[3].added.strides
    assert sass.compiled(one.kernel, *one.arguments, compute_capability=(9, 0, "a")).spill_bytes <= most_bytes


@pytest.mark.parametrize("tiling", [TILINGS[0], TILINGS[4]])
def test_a_launch_that_begins_early_waits_before_it_touches_global_memory(tiling):
    from numba.cuda.typing.typeof import Purpose, typeof

    from labkit.cuda.compiling import ptx_text

    one = launch(BF16, tiling)
    code = ptx_text(one.kernel, [typeof(argument, Purpose.argument) for argument in one.arguments], (9, 0, "a"))
    touching = [code.find(text) for text in ("cp.async.bulk.tensor", "ld.global", "st.global", "atom.")]
    assert 0 < code.index("griddepcontrol.wait") < min(place for place in touching if place >= 0)
