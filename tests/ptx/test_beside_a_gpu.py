"""The simulator against a GPU: what instructions make of the same input."""

import fragments
import measured_sums
import numpy as np
import pipeline
import pytest
import test_copies
import test_exponentials
import test_matrices
import test_named_barriers
import test_number_formats
import test_pixel_copies
import test_warpgroups
from cells import kernel_in
from numba import types

import labkit
from labkit import cuda, ptx
from labkit.ptx.matrices import MULTIPLIED
from labkit.simulator import numba_types
from labkit.simulator.errors import LaunchError

pytestmark = pytest.mark.needs("gpu")


def outputs(kernel, grid, block, *arguments, shared_bytes=0):
    """The last argument after the run, in the simulator and on the GPU."""
    trace = labkit.simulate(kernel, grid, block, *arguments, shared_bytes=shared_bytes)
    assert not trace.errors
    there = [on_device(a) for a in arguments]
    try:
        kernel[grid, block, 0, shared_bytes](*there)
    except LaunchError as older:
        if "needs a GPU of compute capability" not in str(older):
            raise
        pytest.skip(str(older))
    return trace.outputs[-1], there[-1].copy_to_host()


def on_device(argument):
    if isinstance(argument, ptx.PixelMap):
        return argument.of(cuda.to_device(argument.array))
    return cuda.to_device(argument) if isinstance(argument, np.ndarray) else argument


def assert_same(kernel, grid, block, *arguments, **options):
    here, there = outputs(kernel, grid, block, *arguments, **options)
    assert np.array_equal(here.view(np.uint8), there.view(np.uint8))


@pytest.mark.parametrize("form", [ptx.BF16, ptx.FP16])
def test_halves(form):
    x = test_number_formats.samples()
    pack = kernel_in(test_number_formats.PACK, ptx=ptx, FORMAT=form)
    assert_same(pack, -(-x.size // 256), 128, x, np.zeros(x.size // 2, np.uint32))
    codes = test_number_formats.CODES[0::2] | test_number_formats.CODES[1::2] << 16
    unpack = kernel_in(test_number_formats.UNPACK, ptx=ptx, FORMAT=form)
    here, there = outputs(unpack, 256, 128, codes, np.zeros(1 << 16, np.float32))
    assert np.array_equal(here, there, equal_nan=True)
    numbers = ~np.isnan(here)  # a conversion of NaN may drop its sign
    assert np.array_equal(np.signbit(here[numbers]), np.signbit(there[numbers]))


def test_tf32():
    x = test_number_formats.samples()
    assert_same(kernel_in(test_number_formats.TO_TF32, ptx=ptx), -(-x.size // 128), 128, x, np.zeros(x.size, np.uint32))


@pytest.mark.parametrize("format", MULTIPLIED, ids=str)
def test_products(format):
    depth, dtype = test_matrices.depth_of(format), format.accumulator_dtype
    rng = np.random.default_rng(format.number)
    A = test_matrices.codes_of(rng, (16, depth), format)
    B = test_matrices.codes_of(rng, (depth, 8), format)
    a, b = fragments.registers(A, fragments.A[depth], 4), fragments.registers(B, fragments.B[depth], 2)
    kind = numba_types.type_of(dtype)
    kernel = kernel_in(test_matrices.MMA, **test_matrices.NAMES, FORMAT=format.number, KIND=kind)
    here, there = outputs(kernel, 1, 32, a, b, (10 * rng.standard_normal((32, 4))).astype(dtype))
    tolerance = {"int8 tensor": 0, "float8 tensor": 1e-3}.get(format.arithmetic, 1e-5)  # of float8 sums keep fewer bits
    assert np.abs(here - there).max() <= tolerance * np.abs(here).max()


@pytest.mark.parametrize("n", [8, 64, 184])
@pytest.mark.parametrize("a_major", [ptx.K_MAJOR, ptx.MN_MAJOR])
@pytest.mark.parametrize("b_major", [ptx.K_MAJOR, ptx.MN_MAJOR])
def test_products_of_warpgroups(a_major, b_major, n):
    kernel = test_warpgroups.kernel_of_majors(test_warpgroups.MAJORS, a_major, b_major, n)
    A, B = test_warpgroups.exact((2, test_warpgroups.ROWS, 64), 1), test_warpgroups.exact((n, 64), 2)
    A, B = (test_warpgroups.bits_of(X, ptx.BF16) for X in (A, B))
    assert_same(kernel, 2, 256, A, B, np.zeros((2, test_warpgroups.ROWS, n), np.float32))


@pytest.mark.parametrize("kind", measured_sums.KINDS)
def test_sums_of_e4m3(kind):
    operands = measured_sums.operands(kind)
    assert_same(measured_sums.add_products, 1, measured_sums.THREADS, *operands, np.zeros_like(operands[-1]))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("call", "ldmatrix2 ldmatrix4 ldmatrix2_transposed ldmatrix4_transposed".split())
def test_loading_matrices(call, dtype):
    count, pitch = int(call[8]), 16 // np.dtype(dtype).itemsize
    x = np.random.default_rng(1).integers(0, 256, (32, 16), dtype=np.uint8).view(dtype)
    text = test_matrices.LOAD.replace("LOAD", call)
    kind = numba_types.type_of(np.dtype(dtype))
    kernel = kernel_in(text, **test_matrices.NAMES, SIZE=32, PITCH=pitch, KIND=kind, COUNT=count)
    rows = np.random.default_rng(2).permutation(32)
    assert_same(kernel, 1, 32, x, rows, np.zeros((32, count), np.uint32))


def test_storing_matrices():
    rng = np.random.default_rng(3)
    x, rows = rng.integers(0, 1 << 32, (32, 4), dtype=np.uint32), rng.permutation(32)
    assert_same(kernel_in(test_matrices.STORE, **test_matrices.NAMES), 1, 32, x, rows, np.zeros((32, 8), np.uint16))


@pytest.mark.parametrize("kind", [types.uint16, types.uint8])
def test_storing_matrices_transposed(kind):
    rng, each = np.random.default_rng(3), 16 // kind.bitwidth
    x, rows = rng.integers(0, 1 << 32, (32, 4), dtype=np.uint32), rng.permutation(32)
    names = test_matrices.NAMES | dict(KIND=kind, PITCH=16 * each, HALF=8 * each)
    out = np.zeros((32, 8 * each), f"u{2 // each}")
    assert_same(kernel_in(test_matrices.STORE_TRANSPOSED, **names), 1, 32, x, rows, out)


def test_powers_of_two():
    x = np.linspace(-150, 130, 5000, dtype=np.float32)
    kernel = kernel_in(test_exponentials.POWERS, ptx=ptx)
    here, there = outputs(kernel, -(-x.size // 64), 64, x, np.zeros(x.size, np.float32))
    assert np.allclose(here, there, rtol=2.0**-22, atol=0)
    x = np.array([-np.inf, np.inf, np.nan, -0.0, 1e-40, -126, -127], np.float32)
    here, there = outputs(kernel, 1, 64, x, np.zeros(x.size, np.float32))
    assert np.array_equal(here, there, equal_nan=True)


@pytest.mark.parametrize("keeps", ["k > 0", "True", "k > 0 or t >= 128"])
@pytest.mark.parametrize("sign", [1, -1])
def test_products_that_begin_or_are_taken_away(keeps, sign):
    text = test_warpgroups.SCALED.replace("KEEPS", keeps)
    kernel = test_warpgroups.kernel_of_majors(text, ptx.K_MAJOR, ptx.MN_MAJOR, 72, SIGN=sign)
    A, B = test_warpgroups.exact((2, test_warpgroups.ROWS, 64), 1), test_warpgroups.exact((72, 64), 2)
    A, B = (test_warpgroups.bits_of(X, ptx.BF16) for X in (A, B))
    assert_same(kernel, 2, 256, A, B, np.zeros((2, test_warpgroups.ROWS, 72), np.float32))


@pytest.mark.parametrize("width", [4, 8, 16])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_copies_with_zeros(dtype, width):
    item = np.dtype(dtype).itemsize
    x = np.random.default_rng(item).integers(1, 77, (8, 64), dtype=np.uint8).view(dtype)
    kind = numba_types.type_of(np.dtype(dtype))
    names = test_copies.NAMES | dict(PITCH=64 // item, KIND=kind, ITEM=item, WIDTH=width, START=0)
    valid = np.minimum(test_copies.VALID, width)
    assert_same(kernel_in(test_copies.COPY, **names), 1, 8, x, valid, np.zeros((8, 64 // item), dtype))


@pytest.mark.parametrize("case", test_pixel_copies.CASES.values(), ids=test_pixel_copies.CASES)
def test_pixels_of_windows(case):
    assert_same(test_pixel_copies.kernel(dtype=case.dtype), case.blocks, 32, *case.arguments())


def test_pixels_of_windows_for_two_blocks():
    kernel, arguments = test_pixel_copies.by_pairs(test_pixel_copies.CASES["stride 2, odd"])
    assert_same(kernel, *arguments)


def test_pixels_rounded_to_tf32():
    x = np.random.default_rng(5).standard_normal((1, 6, 8, 32)).astype(np.float32).view(np.uint32)
    rounded = ptx.PixelMap(x, test_pixel_copies.PIXELS, 32, 0, 0, 0, 0, 1, 1, to_tf32=True)
    out = np.zeros((2, test_pixel_copies.PIXELS, 32), np.uint32)
    assert_same(test_pixel_copies.kernel(dtype=x.dtype), 2, 32, rounded, 0, 8, 6, 0, 0, 1, 1, 0, 0, 0, out)


@pytest.mark.parametrize("shape", [(64, 96, 160), (40, 72, 104)])
def test_a_pipeline(shape):
    m, n, k = shape
    grid = -(-n // pipeline.BN), -(-m // pipeline.BM)
    here, there = outputs(pipeline.gemm, grid, 64, *pipeline.operands(m, n, k))
    assert np.linalg.norm(here - there) < 1e-6 * np.linalg.norm(here)


def test_barriers_of_some_warps():
    text = (
        test_named_barriers.PAIRS.replace("NUMBER", "1 + t // 64").replace("THREADS", "64").replace("OTHER", "t ^ 32")
    )
    x = test_named_barriers.X
    assert_same(kernel_in(text, ptx=ptx), 5, 128, x, np.zeros((5, 3, 128), np.float32))
    again = "ptx.barrier_sync(1, 64)", "ptx.barrier_sync(2, 64)"
    text = test_named_barriers.PARTED.replace("FIRST", again[0]).replace("SECOND", again[1])
    assert_same(kernel_in(text, ptx=ptx), 3, 128, x, np.zeros((5, 128), np.float32))


def test_warps_that_come_to_a_barrier_and_go_on():
    text = test_named_barriers.HANDED.replace("EMPTY", "ptx.barrier_sync(2, 128)")
    text = text.replace("FULL", "ptx.barrier_arrive(1, 128)").replace("BEHIND", "pass")
    assert_same(kernel_in(text, ptx=ptx), 3, 128, test_named_barriers.X, np.zeros((3, 4, 64), np.float32))
    turns = kernel_in(test_named_barriers.TURNS, ptx=ptx, int32=np.int32)
    assert_same(turns, 3, 128, np.full((3, 6), 9))
