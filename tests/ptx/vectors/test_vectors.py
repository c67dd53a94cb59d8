"""Vector loads and stores: what they move, what they count, and what is said of a wrong one."""

import numpy as np
import pytest

from labkit import cuda, explore, ptx, simulate
from labkit.ptx import load4
from labkit.simulator import host
from labkit.simulator.errors import KernelError, LaunchError

NUMBERS = np.arange(512, dtype=np.float32)


@cuda.jit
def copy4(x, out, shift):
    i = 4 * cuda.grid(1) + shift
    if i < x.size:
        a, b, c, d = load4(x, i)
        ptx.store4(out, i, a, b, c, d)


@cuda.jit
def through_shared(x, out):
    rows = cuda.shared.array((32, 4), np.float32, alignment=16)
    t = cuda.threadIdx.x
    a, b, c, d = ptx.load4(x, (t, 0))
    ptx.store4(rows, (t, 0), a, b, c, d)
    cuda.syncthreads()
    e, f = ptx.load2(rows, (31 - t, 2))
    ptx.store2(out, 2 * t, e, f)


@cuda.jit
def read_back(x, out, step):
    kept = cuda.shared.array(128, np.float32, alignment=16)
    t = cuda.threadIdx.x
    a, b, c, d = ptx.load4(x, 4 * t)
    ptx.store4(kept, 4 * t, a, b, c, d)
    cuda.syncthreads()
    a, b, c, d = ptx.load4(kept, 4 * (step * t % 32))
    ptx.store4(out, 4 * t, a, b, c, d)


@cuda.jit
def unaligned_array(x, out):
    kept = cuda.shared.array(128, np.float32)
    t = cuda.threadIdx.x
    ptx.store2(kept, 2 * t, x[t], x[t])
    out[t] = kept[2 * t]


@cuda.jit
def racing(x, out):
    kept = cuda.shared.array(128, np.float32, alignment=16)
    t = cuda.threadIdx.x
    a, b, c, d = ptx.load4(x, 4 * t)
    ptx.store4(kept, 4 * t, a, b, c, d)
    out[t] = kept[(4 * t + 7) % 128]


@cuda.jit
def row_by_turn(x, out):
    t = cuda.threadIdx.x
    for row in range(t % 2, 4, 2):
        own = x[row]
        a, b, c, d = ptx.load4(own, 4 * t)
        ptx.store4(out[row], 4 * t, a, b, c, d)
        if row == 2:
            own = x[3]
        out[row, 4 * t] = ptx.load4(own, 4 * t)[0]


def test_a_vector_is_moved_whole_and_counted_once():
    trace = simulate(copy4, 4, 32, NUMBERS, np.zeros_like(NUMBERS), 0)
    assert not trace.errors
    assert np.array_equal(trace.outputs[1], NUMBERS)
    for counted in trace.sites:
        assert (counted.accesses, counted.requests, counted.bytes, counted.sectors) == (128, 4, 2048, 64)
        assert counted.site.elements == 4


def test_rows_of_shared_arrays_are_reached_by_a_tuple():
    out = np.zeros(64, np.float32)
    trace = simulate(through_shared, 1, 32, NUMBERS[:128].reshape(32, 4), out)
    assert not trace.errors
    assert np.array_equal(trace.outputs[1].reshape(32, 2), NUMBERS[:128].reshape(32, 4)[::-1, 2:])


def test_a_variable_may_be_another_row_in_other_lanes():
    x = NUMBERS.reshape(4, 128)
    trace = simulate(row_by_turn, 1, 32, x, np.zeros_like(x))
    assert not trace.errors
    expected = np.zeros_like(x)
    for row in range(4):
        for t in range(row % 2, 32, 2):
            expected[row, 4 * t : 4 * t + 4] = x[row, 4 * t : 4 * t + 4]
            expected[row, 4 * t] = x[3 if row == 2 else row, 4 * t]
    assert np.array_equal(trace.outputs[1], expected)


@pytest.mark.parametrize("step, wavefronts", [(1, 4), (2, 8), (8, 16)])
def test_128_bits_a_lane_take_a_pass_for_each_quarter_warp_and_more_where_banks_conflict(step, wavefronts):
    trace = simulate(read_back, 1, 32, NUMBERS[:128], np.zeros(128, np.float32), step)
    kept = [c for c in trace.sites if c.site.space == "shared"]
    assert {c.site.kind: c.wavefronts for c in kept} == {"store": 4, "load": wavefronts}
    assert trace.counters.bank_conflicts == wavefronts - 4


@cuda.jit
def look_up(x, places, out):
    kept = cuda.shared.array(128, np.float32, alignment=16)
    t = cuda.threadIdx.x
    a, b, c, d = ptx.load4(x, 4 * t)
    ptx.store4(kept, 4 * t, a, b, c, d)
    cuda.syncwarp()
    a, b = ptx.load2(kept, 2 * places[t])
    c, d, e, f = ptx.load4(kept, 4 * places[t])
    out[t] = a + b + c + d + e + f


LANES = np.arange(32)


@pytest.mark.parametrize(
    "places, of_two, of_four",
    [
        (LANES, 2, 4),
        (LANES * 0, 1, 2),
        (LANES // 2, 1, 2),
        (LANES // 16, 1, 2),
        (LANES // 4 * 2 + LANES % 2, 1, 2),
        ((LANES + 1) // 2, 2, 4),
        (LANES % 8, 2, 4),
        (LANES // 2 * 2, 2, 4),
    ],
    ids="own uniform neighbours halves next_but_one shifted far_apart with_conflicts".split(),
)
def test_a_wide_load_takes_half_the_passes_where_lanes_read_the_same_two_by_two(places, of_two, of_four):
    trace = simulate(look_up, 1, 32, NUMBERS[:128], places, np.zeros(32, np.float32))
    store, two, four = (c for c in trace.sites if c.site.space == "shared")
    assert (store.wavefronts, two.wavefronts, four.wavefronts) == (4, of_two, of_four)


def test_a_vector_that_reaches_beyond_the_array_is_out_of_bounds():
    x = NUMBERS[:126]
    trace = simulate(copy4, 1, 32, x, np.zeros_like(x), 0)
    assert [(f.kind, f.line, f.threads[0].thread[0], f.index) for f in trace.errors] == [
        ("bounds", 18, 31, (127,)),
        ("bounds", 19, 31, (127,)),
    ]
    assert np.array_equal(trace.outputs[1][:124], x[:124]) and not trace.outputs[1][124:].any()


def test_lanes_that_take_no_part_may_stand_at_the_arrays_end():
    @cuda.jit
    def guarded(x, out):
        i = 4 * cuda.grid(1)
        if i + 4 <= x.size:
            a, b, c, d = ptx.load4(x, i)
            ptx.store4(out, i, a, b, c, d)

    trace = simulate(guarded, 1, 32, NUMBERS[:126], np.zeros(126, np.float32))
    assert not trace.errors and np.array_equal(trace.outputs[1][:124], NUMBERS[:124])


def test_a_misaligned_vector_is_told_with_its_thread_and_address():
    found, *_ = simulate(copy4, 1, 8, NUMBERS, np.zeros_like(NUMBERS), 1).errors
    assert (found.kind, found.line, found.array, found.index) == ("misaligned", 18, "x", (1,))
    assert "thread 0 of block 0 reads 4 elements at once from x[1] on, which is byte 4 of global" in found.message
    assert "must begin at a multiple of 16" in found.message


def test_a_view_of_a_host_array_begins_anew_on_the_device():
    assert not simulate(copy4, 1, 8, NUMBERS[3:], np.zeros_like(NUMBERS), 0).errors


def test_a_slice_of_a_device_array_must_begin_where_a_vector_may():
    device = host.to_device(NUMBERS)
    assert not simulate(copy4, 1, 8, device[4:], np.zeros_like(NUMBERS), 0).errors
    found, *_ = simulate(copy4, 1, 8, device[3:], np.zeros_like(NUMBERS), 0).errors
    assert (found.kind, found.array, found.index) == ("misaligned", "x", (0,))
    assert found.remedy == "Slice the device array that x is taken from at a multiple of 4 elements."


def test_a_shared_array_must_ask_for_its_alignment():
    (found,) = simulate(unaligned_array, 1, 32, NUMBERS, np.zeros(32, np.float32)).errors[:1]
    assert found.kind == "misaligned" and found.remedy == "Pass `alignment=8` where kept is made."


def test_each_element_of_a_vector_takes_part_in_a_race():
    found = simulate(racing, 1, 32, NUMBERS, np.zeros(32, np.float32)).errors
    assert [(f.kind, f.array) for f in found] == [("race", "kept")]


def test_what_no_instruction_moves_is_refused():
    with pytest.raises(KernelError, match="moves 8 or 16 bytes at once, and 4 elements of int8"):
        simulate(copy4, 1, 32, np.zeros(128, np.int8), np.zeros(128, np.int8), 0)
    with pytest.raises(LaunchError, match="C order: pass a copy"):
        simulate(copy4, 1, 32, cuda.to_device(NUMBERS)[::2], np.zeros_like(NUMBERS), 0)

    @cuda.jit
    def too_few(x):
        ptx.store2(x, 0, x[0])

    with pytest.raises(KernelError, match=r"`ptx.store2` takes 4 arguments by position, not 3"):
        simulate(too_few, 1, 1, NUMBERS)


def test_outside_a_kernel_they_say_where_they_belong():
    with pytest.raises(LaunchError, match="only inside a kernel"):
        ptx.load2(NUMBERS, 0)


@pytest.mark.needs("numba-cuda")
@pytest.mark.needs("toolkit")
def test_they_compile_to_vector_instructions():
    from numba import cuda as numba_cuda
    from numba import types

    from labkit.cuda.compiling import bind_cuda

    vector, matrix = (types.Array(types.float32, n, "C") for n in (1, 2))
    cases = {
        copy4: ((vector, vector, types.int64), ("ld.global.v4.f32", "st.global.v4.f32")),
        through_shared: ((matrix, vector), ("st.shared.v4.f32", "ld.shared.v2.f32", "st.global.v2.f32")),
    }
    for kernel, (kinds, instructions) in cases.items():
        ptx_text, _ = numba_cuda.compile(
            bind_cuda(kernel.py_func), kinds, device=False, abi="numba", cc=(7, 5), output="ptx"
        )
        assert all(instruction in ptx_text for instruction in instructions)


def test_orders_are_explored_of_plain_accesses_alone():
    with pytest.raises(KernelError, match="the orders of a kernel that calls `load4` are not explored"):
        explore(copy4, 1, 32, NUMBERS, np.zeros_like(NUMBERS), 0)
