"""Tensor maps among a kernel's parameters, and launches that overlap."""

import numpy as np
import pytest
from cells import kernel_in, line_of
from numba import uint64

from labkit import cuda, ptx, simulate
from labkit.ptx import launch_release, launch_wait

# a use of each instruction, and the least compute capability that has it (tests/ptx/test_capabilities.py)
LINES = {
    "ptx.launch_wait()": (9, 0),
    "ptx.launch_release()": (9, 0),
}


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


@pytest.mark.needs("numba-cuda")
@pytest.mark.needs("toolkit")
def test_a_map_is_a_parameter_by_value_and_tma_gets_its_address():
    from numba import types

    from labkit.cuda.compiling import ptx_text
    from labkit.ptx.tensor_copies.map_types import TensorMapType

    code = ptx_text(kernel, (types.Array(types.uint32, 1, "C"), TensorMapType(2), types.int64), (9, 0))
    (parameter,) = [line.split()[-1] for line in code.splitlines() if ".param .align 128 .b8" in line]
    name = parameter.rstrip(",").removesuffix("[128]")
    taken = code.index(f"mov.b64 map, {name};")
    address = code[taken:].split("cvta.param.u64 ")[1].split(",")[0]
    assert f"[{address}, {{" in code  # in a device function, too
    assert f"prefetch.tensormap [{address}];" in code
    assert code.index("griddepcontrol.launch_dependents;") < code.index("griddepcontrol.wait;")


def test_they_change_nothing_that_a_launch_alone_does():
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


@cuda.jit(early=True)
def by_name(x, out):
    launch_release()
    launch_wait()
    out[cuda.threadIdx.x] = x[cuda.threadIdx.x]


def test_they_may_be_imported_by_name():
    trace = simulate(by_name, 1, 32, np.arange(32.0), np.zeros(32))
    assert not trace.errors and (trace.outputs[1] == np.arange(32)).all()


@pytest.mark.needs("numba-cuda")
@pytest.mark.needs("toolkit")
def test_they_may_be_imported_by_name_on_a_gpu():
    from numba import types

    from labkit.cuda.compiling import ptx_text

    code = ptx_text(by_name, (types.Array(types.float64, 1, "C"),) * 2, (9, 0))
    assert (
        code.index("griddepcontrol.launch_dependents;") < code.index("griddepcontrol.wait;") < code.index("ld.global")
    )


# --- what touches global memory before the wait ---------------------------------------------------

EARLY = """
@cuda.jit(early=True)
def kernel(x, out, tensor_map, some):
    tile = cuda.shared.array((8, 32), uint32, alignment=1024)
    full = cuda.shared.array(1, uint64)
    t = cuda.threadIdx.x
    if t == 0:
        ptx.tma_prefetch(tensor_map)
        ptx.mbarrier_init(full, 0, 1)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    BEFORE
    ptx.launch_wait()
    if t == 0:
        ptx.mbarrier_expect(full, 0, 1024)
        ptx.tma_load(tile, (0, 0), tensor_map, (8, 0), full, 0)
    ptx.mbarrier_wait(full, 0, 0)
    out[t] = x[t] + tile[0, t % 32] * some
"""


def early(before="", waits="ptx.launch_wait()", text=EARLY):
    made = kernel_in(
        text.replace("BEFORE", before).replace("ptx.launch_wait()", waits), ptx=ptx, np=np, uint32=np.uint32,
        uint64=uint64,
    )  # fmt: skip
    source = np.arange(16 * 32, dtype=np.uint32).reshape(16, 32)
    x, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    return made, simulate(made, 1, 64, x, out, ptx.TensorMap(source, (8, 32)), 1)


def test_barriers_and_maps_may_be_made_ready_before_the_wait():
    _, trace = early()
    assert not trace.errors, trace.errors


@pytest.mark.parametrize(
    "before, array, does",
    [
        ("y = x[t]", "x", "reads x[0]"),
        ("out[t + 0] = 7", "out", "writes out[0]"),
        ("cuda.atomic.add(out, 3, 1)", "out", "updates out[3]"),
        ("y = ptx.load2(x, 2 * (t % 32))", "x", "reads x[0]"),
        ("ptx.cp_async(tile, (0, t % 32), x, t, 4, 4)", "x", "reads x[0]"),
        ("if t == 0:\n        ptx.tma_store(tensor_map, (8, 0), tile, (0, 0))", "tensor_map", "writes"),
        ("if t == 40:\n        y = x[t]", "x", "thread 40 of block 0 reads x[40]"),
    ],
)
def test_global_memory_is_not_touched_before_the_wait(before, array, does):
    made, trace = early(before)
    found = [f for f in trace.errors if f.kind == "early"]
    assert [(f.array, f.line) for f in found] == [(array, line_of(made, before.split("\n")[-1].strip()))]
    assert does in found[0].message
    assert "`ptx.launch_wait()`" in found[0].remedy


def test_a_kernel_that_begins_early_and_never_waits_is_told_of_its_first_access():
    _, trace = early(waits="cuda.syncthreads()")
    assert {"early"} == {f.kind for f in trace.errors}
    assert {f.array for f in trace.errors} == {"tensor_map", "x", "out"}


def test_a_kernel_that_begins_when_the_one_before_has_ended_may_touch_it_at_once():
    _, trace = early("y = x[t]", text=EARLY.replace("(early=True)", ""))
    assert not trace.errors


@pytest.mark.parametrize(
    "waits, who",
    [
        ("if t == 0:\n        ptx.launch_wait()\n    cuda.syncthreads()", None),
        ("if t // 32 == 0:\n        ptx.launch_wait()\n        cuda.syncwarp()\n    ptx.barrier_sync(1, 64)", None),
        ("if t < 1:\n        ptx.launch_wait()\n    cuda.syncthreads()\n    if t == 33: ptx.launch_wait()", None),
        ("if t == 0:\n        ptx.launch_wait()", "thread 1 of"),
        ("if t == 0:\n        ptx.launch_wait()\n    cuda.syncwarp()", "thread 32 of"),
        ("if t == 0:\n        ptx.launch_wait()\n    if t < 2: cuda.syncwarp(3)", "thread 2 of"),
        ("if t < 2: cuda.syncwarp(3)\n    if t == 0:\n        ptx.launch_wait()", "thread 1 of"),
        (
            "if t == 0:\n        ptx.launch_wait()\n    if t < 2: cuda.syncwarp(3)\n"
            "    if 0 < t and t < 32: cuda.syncwarp(0xFFFFFFFE)",
            "thread 32 of",
        ),
        ("if t // 32 == 0:\n        ptx.launch_wait()", "thread 32 of"),
    ],
)
def test_one_thread_may_wait_for_those_who_meet_it_behind_that(waits, who):
    """What the tile brings is waited for at its barrier, behind the wait of thread 0: x is read before that."""
    text = EARLY.replace(
        "    if t == 0:\n        ptx.mbarrier_e", "    y = x[t]\n    if t == 0:\n        ptx.mbarrier_e"
    )
    _, trace = early(waits=waits, text=text)
    found = [f.message for f in trace.errors if f.kind == "early"]
    assert bool(found) == (who is not None), trace.errors
    assert who is None or who in found[0]


def test_a_barrier_of_a_copy_tells_of_the_wait():
    """The warp that begins the copies has waited; the other hears of that where the copy has arrived."""
    _, trace = early(waits="if t // 32 == 0:\n        ptx.launch_wait()")
    assert not trace.errors, trace.errors
