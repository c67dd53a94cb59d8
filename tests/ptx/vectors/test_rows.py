"""Vector loads of rows: what the simulator refuses, numba does not compile either."""

import numpy as np
import pytest

from labkit import cuda, ptx, simulate
from labkit.simulator import host
from labkit.simulator.errors import LaunchError


@cuda.jit
def first_of_rows(x, y):
    row = x[cuda.threadIdx.x]
    y[cuda.threadIdx.x], _, _, _ = ptx.load4(row, 0)


def test_rows_of_a_whole_matrix_are_loaded():
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    np.testing.assert_array_equal(simulate(first_of_rows, 1, 4, x, np.zeros(4, np.float32)).outputs[1], x[:, 0])


@pytest.mark.parametrize("cut", [np.s_[:, :8], np.s_[::2], np.s_[:, ::2], np.s_[::-1]], ids=str)
def test_rows_that_lie_apart_are_refused(cut):
    x = host.to_device(np.arange(128, dtype=np.float32).reshape(8, 16))[cut]
    with pytest.raises(LaunchError, match="an array in C order: pass a copy, `x.copy"):
        simulate(first_of_rows, 1, 4, x, np.zeros(4, np.float32))


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize(("layout", "compiles"), [("C", True), ("A", False), ("F", False)])
def test_numba_tells_them_by_their_type(layout, compiles):
    from numba import types
    from numba.core.errors import TypingError

    from labkit.cuda.compiling import ptx_text

    kinds = types.Array(types.float32, 2, layout), types.Array(types.float32, 1, "C")
    if compiles:
        assert "ld.global.v4.f32" in ptx_text(first_of_rows, kinds, (9, 0))
    else:
        with pytest.raises(TypingError, match="an array in C order: pass a copy"):
            ptx_text(first_of_rows, kinds, (9, 0))
