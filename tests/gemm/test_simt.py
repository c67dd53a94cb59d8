"""The float32 kernel for CUDA cores: right for every kind of block and any strides, equal bits; what it counts."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import sampled

from labkit.arrays.workspace import Workspace
from labkit.forecast import sass
from labkit.gemm.simt import kernel
from labkit.gemm.simt.launches import launches
from labkit.gemm.simt.tilings import BLOCKS, SHARED_BYTES, Tiling, Work, block_of, estimate, tilings
from labkit.simulator import host
from labkit.simulator.in_place import simulate_in_place

SMS = 132


def made(block, shape, parts=1, alpha=1.0, beta=0.0, order="KN", swapped=False):
    """The launches of a product, its arrays and what C should be."""
    M, N, K = shape
    rng = np.random.default_rng(shape)
    A, B, C = (rng.standard_normal(side).astype(np.float32) for side in ((M, K), (N, K), (M, N)))
    expected = alpha * (A.astype(float) @ B.T.astype(float)) + (beta * C if beta else 0)
    bound = (K + 3) * 2.0**-23 * (abs(alpha) * (np.abs(A) @ np.abs(B.T)) + np.abs(beta * C))
    A, B = (X if axis == "K" else np.asfortranarray(X) for X, axis in zip((A, B), order))
    tiling = Tiling(block.rows, block.cols, block.slices, parts, swapped)
    made = launches(A, B, C, tiling, alpha, beta, C, Workspace(memory=host))
    return made, C, expected, bound


def run(launch_list):
    """The traces of launches."""
    return [
        simulate_in_place(one.kernel, one.grid, one.block, *one.arguments, shared_bytes=one.shared_bytes)
        for one in launch_list
    ]


CASES = [(block, "".join(order)) for block in BLOCKS for order in product("KN", repeat=2)]


@pytest.mark.parametrize(("block", "order"), sampled(CASES, 8), ids=str)
@pytest.mark.sample(2)
def test_each_kind_of_block_is_right_where_the_ring_wraps_and_tiles_are_cut_off(block, order):
    shape = block.rows + 4, block.cols + 8, (2 * block.stages + 1) * block.step + 5
    launch_list, C, expected, bound = made(block, shape, alpha=0.5, beta=-2.0, order=order)
    (trace,) = run(launch_list)
    assert trace.errors == ()
    assert (np.abs(C - expected) <= bound).all()


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("parts", "factors"), [(3, (1.0, 0.0)), (20, (-0.5, 2.0))])
@pytest.mark.sample(1)
def test_parts_of_k_are_added_in_a_fixed_order(parts, factors, swapped):
    block = next(block for block in BLOCKS if block.rows == 16)
    results = []
    for _ in range(2):
        shape = (45, 13, 32 * parts + 7) if swapped else (13, 45, 32 * parts + 7)
        launch_list, C, expected, bound = made(block, shape, parts, *factors, swapped=swapped)
        assert [one.kernel.__name__ for one in launch_list] == ["simt", "add_parts"]
        assert all(trace.errors == () for trace in run(launch_list))
        assert (np.abs(C - expected) <= bound).all()
        results.append(C.tobytes())
    assert results[0] == results[1]


def test_lines_that_a_32_bit_index_does_not_reach_are_counted_in_64_bits():
    A, C = np.zeros((1, 8), np.float32), np.zeros((1, 1), np.float32)
    far = np.lib.stride_tricks.as_strided(A, (1, 8), (4 * 2**25, 4))
    kernels = [launches(X, A, C, Tiling(32, 32), 1.0, 0.0, C, Workspace(memory=host))[0].kernel for X in (A, far)]
    assert kernels[0] != kernels[1]


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.slices == 1 and block.rows >= 64], ids=str)
@pytest.mark.sample(1)
def test_the_kernel_costs_what_its_docstring_says(block):
    M, N, K = 2 * block.rows, block.cols, 4 * block.step
    (one,), *_ = made(block, (M, N, K))
    (trace,) = run([one])
    stated = re.findall(r"^    (\S.*?)  +(\w[\w ]*)", kernel.__doc__, re.MULTILINE)
    sizes = {"BM": block.rows, "BN": block.cols, "TM": block.thread_rows, "TN": block.thread_cols, "K": K}
    sizes |= {"STAGES": block.stages, "BK": block.step, "DEPTH": block.step}
    costs = {what: eval(expression, sizes) for expression, what in stated}
    counters = trace.counters
    assert costs["global loads per output"] == counters.global_loads / (M * N)
    assert costs["shared loads per output"] == counters.shared_loads / (M * N)
    assert costs["bytes of shared memory per block"] == one.shared_bytes
    assert counters.bank_conflicts == 0


@given(st.builds(Work, *[st.integers(1, 20000)] * 3, st.integers(1, 5)))
@settings(max_examples=50, deadline=None)
def test_every_tiling_fits_an_sm_and_leaves_no_part_empty(work):
    found = tilings(work, SMS)
    cycles = [estimate(tiling, work, SMS) for tiling, _ in found]
    assert cycles == sorted(cycles) == [cycle for _, cycle in found]
    for tiling, _ in found:
        block = block_of(tiling)
        assert 1 <= tiling.parts <= -(-work.K // block.step)
        assert block.per_sm * (block.shared_bytes + 1024) <= SHARED_BYTES
        assert block.thread_rows % 4 == block.thread_cols % 4 == 0 and block.step // block.slices % 8 == 0


def test_a_gpu_with_less_shared_memory_gets_blocks_that_fit():
    found = tilings(Work(64, 4096, 4096), 108, shared_bytes=99 * 1024)
    assert found and all(block_of(tiling).shared_bytes <= 99 * 1024 for tiling, _ in found)


def test_a_tiling_that_is_none_is_refused():
    with pytest.raises(ValueError, match="one of BLOCKS, and at least one part"):
        block_of(Tiling(48, 48))


@pytest.mark.needs("numba-cuda", "toolkit")
@pytest.mark.parametrize(("block", "order"), sampled(CASES, 4), ids=str)
@pytest.mark.sample(1)
def test_the_kernel_assembles_with_few_spills(block, order):
    (one,), *_ = made(block, (512, 512, 512), order=order)
    code = sass.compiled(one.kernel, *one.arguments, compute_capability=(9, 0))
    most = 512 if block.slices > 1 or order == "KK" else 0  # around the loop, where addresses are computed
    assert code.spill_bytes <= most
    assert block.per_sm * 32 * block.warps * code.registers <= 65536
