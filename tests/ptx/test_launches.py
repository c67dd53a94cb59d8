"""Tensor maps among a kernel's parameters, and launches that overlap."""

import numpy as np
import pytest

from labkit import cuda, ptx, simulate

pytestmark = [pytest.mark.needs("numba-cuda"), pytest.mark.needs("toolkit")]


@cuda.jit(device=True)
def ask(tile, full, tensor_map, row):
    ptx.tma_load(tile, (0, 0), tensor_map, (row, 0), full, 0)


@cuda.jit(early=True)
def kernel(out, tensor_map, row):
    tile = ptx.shared_array(0, (8, 32), np.uint32)
    full = cuda.shared.array(1, np.uint64)
    if cuda.threadIdx.x == 0:
        ptx.tma_prefetch(tensor_map)
        ptx.mbarrier_init(full, 0, 1)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    ptx.launch_release()
    ptx.launch_wait()
    if cuda.threadIdx.x == 0:
        ptx.mbarrier_expect(full, 0, 1024)
        ask(tile, full, tensor_map, row)
    ptx.mbarrier_wait(full, 0, 0)
    out[cuda.threadIdx.x] = tile[0, cuda.threadIdx.x]


def test_a_map_is_a_parameter_by_value_and_the_copy_engine_gets_its_address():
    from numba import types

    from labkit.compiler import ptx_text
    from labkit.ptx.on_gpu.tensor_copies import TensorMapType

    code = ptx_text(kernel, (types.Array(types.uint32, 1, "C"), TensorMapType(2), types.int64), (9, 0))
    (parameter,) = [line.split()[-1] for line in code.splitlines() if ".param .align 128 .b8" in line]
    name = parameter.rstrip(",").removesuffix("[128]")
    taken = code.index(f"mov.b64 map, {name};")
    address = code[taken:].split("cvta.param.u64 ")[1].split(",")[0]
    assert f"[{address}, {{" in code  # in a device function, too
    assert f"prefetch.tensormap [{address}];" in code
    assert code.index("griddepcontrol.launch_dependents;") < code.index("griddepcontrol.wait;")


def test_they_change_nothing_in_the_simulator():
    source, out = np.arange(16 * 32, dtype=np.uint32).reshape(16, 32), np.zeros(32, np.uint32)
    trace = simulate(kernel, 1, 32, out, ptx.TensorMap(source, (8, 32)), 8, shared_bytes=1024)
    assert not trace.errors
    assert (trace.outputs[0] == source[8]).all()


def test_words_that_are_none_of_a_map_are_refused():
    @cuda.jit
    def wrong(x):
        ptx.tma_prefetch(x)

    with pytest.raises(Exception, match="needs a TensorMap"):
        simulate(wrong, 1, 32, np.zeros(4, np.uint32))
