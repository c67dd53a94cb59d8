"""gemv and its transpose: within their bounds of float64, on any matrix, with the same bits in every run."""

import numpy as np
import pytest

import labkit
from labkit import cuda
from labkit.arrays.workspace import Workspace
from labkit.blas import axpy, gemv, gemv_t
from labkit.blas.problem import gemv_bound, gemv_oracle
from labkit.simulator import host

SHAPES = [(1, 1), (2, 5), (37, 101), (64, 256), (301, 132), (7, 2050), (9, 4096), (3, 5003), (1281, 4), (2000, 3)]


def matrix(M, N, seed=0):
    return np.random.default_rng(seed).standard_normal((M, N), np.float32)


def vector(n, seed=1):
    return np.random.default_rng(seed).standard_normal(n, np.float32)


def right(found, alpha, A, x, beta, y):
    return (np.abs(found - gemv_oracle(alpha, A, x, beta, y)) <= gemv_bound(alpha, A, x, beta, y)).all()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize("module", [gemv, gemv_t], ids=["gemv", "gemv_t"])
def test_a_product_on_any_shape(module, shape):
    A = matrix(*shape)
    as_used = A.T if module is gemv_t else A
    x, y = vector(as_used.shape[1]), np.full(as_used.shape[0], np.nan, np.float32)
    module.launch(1.5, A, x, 0, y)
    assert right(y, 1.5, as_used, x, 0, y)
    start = vector(as_used.shape[0], seed=2)
    y[:] = start
    module.launch(-1, A, x, 0.5, y)
    assert right(y, -1, as_used, x, 0.5, start)


CUTS = {
    "columns from 1": np.s_[:, 1:],
    "102 of 104 columns": np.s_[:, :102],
    "every second row": np.s_[::2],
    "every second column": np.s_[:, ::2],
    "rows backwards": np.s_[::-1],
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("module", [gemv, gemv_t], ids=["gemv", "gemv_t"])
def test_any_cut_of_a_matrix_will_do(module, cut):
    whole = matrix(66, 104)
    as_used = whole[cut].T if module is gemv_t else whole[cut]
    x, y = vector(as_used.shape[1]), cuda.to_device(np.full(as_used.shape[0], np.nan, np.float32))
    module.launch(1, cuda.to_device(whole)[cut], x, 0, y)
    assert right(y.copy_to_host(), 1, as_used, x, 0, np.zeros(1))


def test_a_row_has_as_many_warps_as_it_keeps_busy():
    assert gemv.geometry(10, 100) == (3, (32, 4))
    assert gemv.geometry(10, 2048) == (5, (64, 2))
    assert gemv.geometry(10, 100_000) == (10, (128, 1))


def test_parts_of_the_rows_fill_the_gpu_and_none_is_empty():
    (strips, parts), _ = gemv_t.geometry(65536, 1024)
    assert strips * parts == gemv_t.BLOCKS
    assert gemv_t.geometry(40, 1024)[0] == (8, 1)


@pytest.mark.parametrize("shape", [(64, 256), (33, 520), (300, 128)], ids=str)
@pytest.mark.parametrize("step", [gemv, gemv_t], ids=lambda step: step.slug)
def test_there_is_no_error_and_every_byte_of_the_matrix_is_read_once(step, shape):
    run = step.simulate(*step.problem(*shape).operands())
    assert run.errors == ()
    (trace,) = run.traces
    of_A = sum(counted.sectors for counted in trace.sites if counted.site.array.startswith("A"))
    assert of_A == 4 * shape[0] * shape[1] // 32


def test_two_runs_give_the_same_bits_and_leave_the_counters_as_they_were():
    A, x = matrix(300, 260), vector(300)
    workspace = Workspace()
    found = []
    for _ in range(3):
        y = cuda.to_device(np.full(260, np.nan, np.float32))
        (launch,) = gemv_t.launches(1, A, x, 0, y, workspace=workspace)
        launch.run()
        found.append(y.copy_to_host().tobytes())
        assert not workspace.counters(3).copy_to_host().any()
    assert len({*found}) == 1


def test_the_last_block_must_wait_for_the_others():
    """Without its fence the parts are read while they may not be there yet."""

    @cuda.jit(device=True)
    def hasty(arrived, counter, blocks):
        last = cuda.shared.array(1, np.int32)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
            last[0] = cuda.atomic.inc(arrived, counter, np.uint32(blocks - 1)) == blocks - 1
        cuda.syncthreads()
        return last[0] != 0

    operands = gemv_t.problem(256, 128).operands()
    (launch,) = gemv_t.launches(*operands, workspace=Workspace(memory=host))
    kernel = labkit.specialise(gemv_t.kernel, is_last_block=hasty)
    trace = labkit.simulate(kernel, launch.grid, launch.block, *launch.arguments)
    assert {found.kind for found in trace.errors} == {"race"}


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((4, 5), 4, 4), "A is 4 x 5, x has 4 elements and y 4: x needs 5, y needs 4"),
        (((4, 5), 5, 5), "y needs 4"),
        (((4, 0), 1, 4), "A is empty"),
    ],
)
def test_operands_that_do_not_fit_are_refused(shapes, words):
    A, x, y = (np.ones(shape, np.float32) for shape in shapes)
    with pytest.raises(ValueError, match=words):
        gemv.launch(1, A, x, 0, y)


def test_operands_that_do_not_fit_the_transposed_matrix_are_refused():
    A, x, y = (np.ones(shape, np.float32) for shape in ((4, 5), 5, 5))
    with pytest.raises(ValueError, match="A is 4 x 5, x has 5 elements and y 5: x needs 4, y needs 5"):
        gemv_t.launch(1, A, x, 0, y)


@pytest.mark.parametrize("factor", [None, "2", 2j, np.ones(2, np.float32)])
def test_a_factor_is_a_real_number(factor):
    A, x = np.ones((4, 4), np.float32), np.ones(4, np.float32)
    for call in (
        lambda: gemv.launch(factor, A, x, 0, x.copy()),
        lambda: gemv_t.launch(1, A, x, factor, x.copy()),
        lambda: axpy.launch(factor, x, x.copy()),
    ):
        with pytest.raises(TypeError, match="a factor is a real number"):
            call()
