"""The steps refuse what they do not take, and cost what their docstrings say."""

from collections import Counter

import numpy as np
import pytest

from labkit import ladder
from labkit.arrays.workspace import Workspace
from labkit.conv.problem import Forward
from labkit.conv.winograd.products import BLOCKINGS, make_products
from labkit.forecast import sass
from labkit.gemm.interface.planes import batched_kernel
from labkit.simulator.in_place import simulate_in_place

STEPS = ladder.ladder("conv", "winograd")


@pytest.fixture(params=STEPS, ids=lambda step: step.slug)
def step(request):
    return request.param


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"R": 5}, "takes R = 3, and the convolution has R = 5"),
        ({"stride_w": 2}, "takes stride_w = 1"),
        ({"dilation_h": 2}, "takes dilation_h = 1"),
        ({"groups": 2}, "takes groups = 1"),
        ({"layout": "NHWC"}, "takes layout = NCHW"),
    ],
)
def test_a_step_says_what_it_does_not_take(step, other, why):
    problem = step.problem(**{**dict(N=1, C=2, H=9, W=9, K=2, R=3, S=3), **other})
    with pytest.raises(ValueError, match=why):
        step.launches(*problem.operands(), workspace=Workspace())


@pytest.mark.parametrize(("slug", "out"), [("f2x2", 2), ("f4x4", 4), ("f6x6", 6)])
def test_a_forward_step_costs_what_it_says(slug, out):
    step, (N, C, K, H, W) = STEPS.step(slug), (2, 4, 8, 24, 12)
    problem = Forward(N, C, H, W, K, 3, 3, 1, 1, 1, 1, 1, 1)
    of_filters, of_images, of_products, of_outputs = step.simulate(*problem.operands()).traces
    pixels, more = N * H * W, (out + 2) ** 2 / out**2
    assert of_filters.counters.global_stores == (out + 2) ** 2 * K * C
    assert of_images.counters.global_stores == more * pixels * C
    assert of_images.counters.global_loads <= more * pixels * C
    assert of_products.counters.global_stores * 4 == of_outputs.counters.global_loads == more * pixels * K
    assert of_outputs.counters.global_stores * {2: 2, 4: 4, 6: 2}[out] == pixels * K
    assert all(trace.counters.flops_by_dtype.keys() <= {"float32"} for trace in (of_filters, of_images, of_outputs))


def test_the_fused_step_costs_what_it_says():
    step, (N, C, K, H, W) = STEPS.step("fused"), (1, 16, 128, 16, 32)
    problem = Forward(N, C, H, W, K, 3, 3, 1, 1, 1, 1, 1, 1)
    _, fused = step.simulate(*problem.operands()).traces
    outputs = N * K * H * W
    loads = {site.site.array: site.requests * 32 for site in fused.sites if site.site.kind == "load"}
    assert outputs * C / 16 * 0.9 < loads["x"] <= outputs * C / 16
    assert fused.counters.flops >= 2 * 4 * outputs * C
    assert fused.counters.flops_by_dtype.keys() == {"float32"}


def test_the_fused_step_is_right_where_neither_tiles_nor_filters_nor_channels_fill_a_block():
    step = STEPS.step("fused")
    problem = step.problem(3, 9, 11, 13, 70, 3, 3, 1, 1, 0, 1, 1, 2)
    before = problem.operands()
    run = step.simulate(*before)
    assert run.errors == ()
    assert problem.is_right(before, run.operands)


@pytest.mark.needs("numba-cuda", "toolkit", "nvdisasm")
@pytest.mark.parametrize(("slug", "tile"), [("f2x2", 4), ("f4x4", 6), ("f6x6", 8)])
@pytest.mark.sample(1)
def test_zeros_among_coefficients_leave_no_instruction(slug, tile):
    step = STEPS.step(slug)
    launches = step.launches(*step.examples[0].operands(), workspace=Workspace(memory=Numpy))
    for launch, matrix, other in ((launches[1], step.B, tile), (launches[3], step.A, step.OUT)):
        code = sass.compiled(launch.kernel, *launch.arguments)
        names = Counter(instruction.opcode for instruction in code.instructions)
        assert names["FADD"] + names["FMUL"] + names["FFMA"] <= np.count_nonzero(matrix) * (tile + other) + tile * 4
        assert code.spill_bytes == 0 and code.registers <= 96


class Numpy:
    """Memory of the host, whose arrays a compiler knows."""

    device_array = staticmethod(np.empty)


@pytest.mark.parametrize("way", BLOCKINGS, ids=lambda way: f"{way.rows}x{way.cols}")
@pytest.mark.parametrize(("rows", "cols"), [(70, 300), (129, 4), (33, 35)])
@pytest.mark.sample(5)
def test_products_are_right_by_blocks_of_each_size(way, rows, cols):
    rng = np.random.default_rng(3)
    U, V = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, rows, 36), (2, 36, cols)))
    M = np.full((2, rows, cols), np.nan, np.float32)
    grid, block = way.grid(*M.shape), (32, way.warps)
    trace = simulate_in_place(batched_kernel(way.kernel), grid, block, U, V, M, shared_bytes=way.shared_bytes)
    assert trace.errors == ()
    np.testing.assert_allclose(M, U @ V, rtol=1e-4, atol=1e-4)


@pytest.mark.needs("numba-cuda", "toolkit", "nvdisasm")
@pytest.mark.parametrize("way", BLOCKINGS, ids=lambda way: f"{way.rows}x{way.cols}")
@pytest.mark.sample(1)
def test_as_many_blocks_fit_on_an_sm_as_are_counted_on(way):
    matrix = np.zeros((1, 4, 4), np.float32)
    code = sass.compiled(batched_kernel(way.kernel), matrix, matrix, matrix)
    assert code.spill_bytes == 0
    assert way.resident * way.warps * 32 * -(-code.registers // 8) * 8 <= 65536
    assert way.resident * (way.shared_bytes + 1024) <= 228 * 1024


def test_blocks_are_those_that_leave_the_fewest_sms_idle():
    found = {case: blocks_of(*case) for case in ((64, 50176), (256, 12544), (384, 1152))}
    assert found == {(64, 50176): (64, 256), (256, 12544): (128, 256), (384, 1152): (128, 128)}


def blocks_of(rows, cols):
    """Rows and columns of the blocks for 36 products; the matrices need no memory."""
    shapes = (36, rows, 64), (36, 64, cols), (36, rows, cols)
    launch = make_products(*(np.broadcast_to(np.float32(0), shape) for shape in shapes))
    return next((way.rows, way.cols) for way in BLOCKINGS if batched_kernel(way.kernel) is launch.kernel)
