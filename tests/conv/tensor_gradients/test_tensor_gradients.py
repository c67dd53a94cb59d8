"""Gradients on tensor cores: right in any tiling, as costly as the docstrings say, chosen by calls, without spills."""

import re
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from sampling import sampled

from labkit import conv, cuda
from labkit.arrays.workspace import Workspace
from labkit.conv.problem import BackwardDataNHWC, BackwardFilterNHWC
from labkit.conv.remainders import remainders
from labkit.conv.tensor.tilings import SHARED_BYTES
from labkit.conv.tensor.tilings import Tiling as DataTiling
from labkit.conv.tensor_gradients import part_sums
from labkit.conv.tensor_gradients.filter_tilings import TILINGS, Split, Tiling, best_split
from labkit.conv.tensor_gradients.s01_backward_data import GRADIENT_TILINGS
from labkit.forecast import sass
from labkit.formats import BF16, FP16
from labkit.ladder import TooLarge
from labkit.simulator.in_place import simulate_in_place

STEPS = conv.ladder("tensor_gradients")
DATA, FILTER = STEPS.step("backward_data"), STEPS.step("backward_filter")
SPLITS = [Split(tiling, parts) for tiling in TILINGS for parts in (1, 3)]


@pytest.fixture(params=STEPS, ids=lambda step: step.slug)
def step(request):
    return request.param


def simulated(step, operands, format=BF16, grid=None, **options):
    """The traces of a step's launches, which write to the operands, and the bytes of its workspace."""
    workspace = Workspace()
    launches = step.module.launches(*operands, format, workspace, **options)
    traces = []
    for one in launches:
        blocks = min(one.grid, grid) if grid and one is launches[-1] else one.grid
        arguments = one.block, *one.arguments
        traces.append(simulate_in_place(one.kernel, blocks, *arguments, shared_bytes=one.shared_bytes))
    assert not [error for trace in traces for error in trace.errors]
    return traces, workspace.size_bytes


def is_right(step, problem, format=BF16, **options):
    before = problem.operands(format, seed=3)
    after = tuple(X.copy() if isinstance(X, np.ndarray) else X for X in before)
    simulated(step, after, format, **options)
    return problem.is_right(before, after, format)


# --- right -----------------------------------------------------------------------------------------

RAGGED = {
    "channels": (3, 200, 12, 11, 72, 2, 3, 1, 1, 1, 0, 0, 2),
    "strides": (2, 72, 14, 15, 64, 3, 3, 2, 2, 1, 0, 1, 1),
    "strides of which one has no tap": (2, 16, 9, 10, 24, 1, 1, 2, 2),
    "more than two remainders": (2, 16, 12, 11, 24, 4, 2, 3, 5, 1, 1, 1, 0),
    "dilated": (2, 24, 12, 14, 16, 3, 2, 2, 1, 2, 1, 1, 0, 3, 2),
    "odd": (2, 69, 14, 15, 8, 1, 1),
    "flipped": (2, 16, 14, 15, 70, 3, 2, 2, 1, 1, 0, 0, 1, 1, 1, 1, True),
}


@pytest.mark.parametrize("name", RAGGED)
@pytest.mark.parametrize("tiling", sampled(GRADIENT_TILINGS, 3), ids=str)
@pytest.mark.sample(2)
def test_images_are_right_in_every_tiling_where_blocks_take_several_tiles(tiling, name):
    assert is_right(DATA, BackwardDataNHWC(*RAGGED[name]), tiling=tiling, grid=3)


@pytest.mark.parametrize("name", RAGGED)
@pytest.mark.parametrize("split", sampled(SPLITS, 4), ids=str)
@pytest.mark.sample(3)
def test_filters_are_right_in_every_split(split, name):
    assert is_right(FILTER, BackwardFilterNHWC(*RAGGED[name]), split=split)


@pytest.mark.parametrize("C", [1, 7, 8, 63, 64, 65, 136])
@pytest.mark.sample(3)
def test_any_number_of_channels_and_filters_is_taken(step, C):
    for sizes in ((2, C, 5, 6, 9, 2, 2, 1, 1, 1, 0, 0, 1), (2, 9, 5, 6, C, 2, 2, 1, 1, 1, 0, 0, 1)):
        assert is_right(step, step.problem(*sizes), FP16)


def test_taps_of_a_row_become_channels_where_these_are_few():
    problem = BackwardFilterNHWC(1, 3, 14, 13, 64, 7, 7, 2, 2, 3, 3, 3, 3)
    traces, _ = simulated(FILTER, problem.operands(BF16), split=Split(Tiling(2, 1, 1, 64), 1))
    assert [trace.kernel for trace in traces] == ["pad", "backward_filter", "add_parts"]
    tiles = sum(s.requests for s in traces[1].sites if s.site.array == "x_map")
    assert tiles == 7  # of 56 channels, one per row of taps
    assert is_right(FILTER, problem)


@pytest.mark.parametrize("parts", [2, 3, 17, 40])
def test_parts_are_added_in_order_by_any_team(parts):
    """Large and small parts, whose sum shows the order of the additions, and fewer elements than a block has lanes."""
    rng = np.random.default_rng(parts)
    values = (rng.standard_normal((parts, 3, 8)) * 10.0 ** rng.integers(0, 6, (parts, 3, 8))).astype(np.float32)
    w = np.zeros((3, 8), np.uint16)
    launch = part_sums.sum_parts(values, w, 8, BF16)
    trace = simulate_in_place(launch.kernel, launch.grid, launch.block, *launch.arguments)
    assert not trace.errors
    teams = int(launch.arguments[-1])
    by_member = np.zeros((teams, 3, 8), np.float32)
    for part in range(parts):
        by_member[part % teams] += values[part]
    total = by_member[0]
    for member in by_member[1:]:
        total = total + member
    assert (w == BF16.encode(total)).all()


# --- calls -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", [BF16, FP16], ids=str)
def test_calls_compute_gradients_of_16_bits_with_channels_last(format):
    problem = BackwardDataNHWC(2, 16, 9, 8, 24, 3, 3, 2, 2, 1, 1, 1, 1)
    x, w, y, _ = problem.operands(format)
    options = {"stride": 2, "padding": 1, "layout": "NHWC", "format": format}
    found = conv.backward_data(w, y, H=9, W=8, **options)
    assert problem.is_right((x, w, y, problem), (found, w, y, problem), format)
    problem = BackwardFilterNHWC(**problem.fields)
    x, w, y, _ = problem.operands(format)
    found = conv.backward_filter(x, y, R=3, S=3, **options)
    assert problem.is_right((x, w, y, problem), (x, found, y, problem), format)


@pytest.mark.parametrize("kind", [conv.BackwardData, conv.BackwardFilter])
def test_it_is_the_algorithm_for_16_bits_with_channels_last(kind):
    layer = kind(64, 256, 14, 14, 256, 3, 3, 1, 1, 1, 1, 1, 1, layout="NHWC")
    assert str(conv.heuristic(layer, "bfloat16").best).startswith("tensor_gradients/")
    assert not conv.heuristic(replace(layer, groups=2), "bfloat16").candidates


def test_a_limit_of_workspace_leaves_fewer_parts():
    problem = BackwardFilterNHWC(64, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1, 1, 1)
    algorithm = conv.heuristic(problem, "bfloat16").best
    assert algorithm.workspace_bytes(problem, BF16) > 2**20
    for limit in (0, 2**18, 2**20):
        assert algorithm.workspace_bytes(problem, BF16, limit) <= limit


# --- what it costs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "problem", "options"),
    [
        (DATA, BackwardDataNHWC(16, 256, 16, 16, 64, 2, 2, 1, 1, 1, 0, 0, 1), {"tiling": DataTiling(2, 1, 256)}),
        (
            FILTER,
            BackwardFilterNHWC(16, 64, 16, 16, 128, 2, 2, 1, 1, 1, 0, 0, 1),
            {"split": Split(Tiling(2, 1, 1, 256), 4)},
        ),
    ],
    ids=["data", "filter"],
)
@pytest.mark.sample(1)
def test_a_step_costs_what_its_docstring_says(step, problem, options):
    traces, workspace_bytes = simulated(step, problem.operands(BF16), **options)
    elements = prod(problem.shapes[problem.result])
    loads = [s for s in traces[0].sites if s.site.kind == "load"]
    copies = sum(s.requests for s in loads if s.site.space == "global")
    products = sum(s.requests for s in loads if s.site.space == "shared" and s.site.array == "y_tiles")
    counted = {"copies": copies / elements, "`wgmma`": products / elements, "bytes": workspace_bytes / elements}
    sizes = {"KRS": 64 * 4, "NPQ": 16 * 16 * 16, "parts": 4}
    lines = re.findall(r"^    (\S.*?)  +(\S+) of|^    (\S.*?)  +(\S+) per", step.module.__doc__, re.MULTILINE)
    assert len(lines) == 3
    for first, first_what, second, second_what in lines:
        assert eval(first or second, sizes, vars(step.module)) == pytest.approx(counted[first_what or second_what])


def test_a_split_fits_shared_memory_and_registers():
    for tiling in TILINGS:
        producer, consumer = tiling.registers
        assert tiling.stages >= 4 and tiling.shared_bytes + 1024 <= SHARED_BYTES
        threads = 128 * (1 + tiling.warpgroups)
        assert 128 * (producer + tiling.warpgroups * consumer) <= threads * (65536 // threads // 8 * 8)
        assert tiling.m_blocks * tiling.columns // 2 + 40 <= consumer


def test_small_results_are_split_and_large_ones_are_not():
    def split(*sizes):
        return best_split(FILTER.module.as_product(BackwardFilterNHWC(*sizes), BF16), 132)

    small, large = split(64, 64, 56, 56, 64, 1, 1), split(16, 1024, 14, 14, 4096, 3, 3)
    assert small.parts > 30 and large.parts == 1


# --- machine code ------------------------------------------------------------------------------------


class OfHost:
    """A workspace of arrays that numba knows the types of where there is no GPU."""

    size_bytes = 0

    def array(self, role, shape, dtype):
        return np.empty(shape, dtype)


ASSEMBLED = [
    *((DATA, {"tiling": tiling}) for tiling in GRADIENT_TILINGS),
    *((FILTER, {"split": split}) for split in SPLITS),
]


@pytest.mark.needs("numba-cuda", "toolkit")
@pytest.mark.parametrize(("step", "options"), sampled(ASSEMBLED, 5), ids=str)
@pytest.mark.sample(2)
def test_a_tiling_assembles_without_spills(step, options):
    operands = step.problem(2, 64, 9, 9, 256, 3, 3, 2, 2).operands(BF16)
    launch = step.module.launches(*operands, BF16, OfHost(), **options)[0]
    code = sass.compiled(launch.kernel, *launch.arguments, compute_capability=(9, 0, "a"))
    threads = launch.block[0] * launch.block[1]
    assert (code.registers, code.spill_bytes) == (65536 // threads // 8 * 8, 0)


# --- bad input ---------------------------------------------------------------------------------------


def test_what_a_step_does_not_take_is_refused_in_a_sentence(step):
    problem = step.problem(2, 8, 6, 5, 16, 2, 2)
    x, w, y, _ = problem.operands(BF16)
    with pytest.raises(ValueError, match="this step takes layout = NHWC, and the convolution has layout = NCHW"):
        step.launches(x, w, y, replace(problem, layout="NCHW"), format=BF16, workspace=Workspace())
    with pytest.raises(ValueError, match="this step takes groups = 1, and the convolution has groups = 2"):
        step.launches(x, w, y, replace(problem, groups=2), format=BF16, workspace=Workspace())


def test_windows_that_tma_does_not_take_are_refused_in_a_sentence(step):
    problem = step.problem(1, 8, 700, 4, 8, 3, 1, dilation_h=300)
    operands = [cuda.device_array(shape, np.uint16) for shape in problem.shapes.values()]
    with pytest.raises(TooLarge, match="255|256"):
        step.launches(*operands, problem, format=BF16, workspace=Workspace())


def test_remainders_share_out_pixels_and_taps():
    for size, taps, stride, before, dilation in ((9, 3, 2, 1, 1), (7, 4, 3, 2, 2), (1, 1, 2, 0, 1), (12, 5, 4, 0, 3)):
        found = remainders(size, taps, stride, before, dilation)
        assert sum(one.pixels for one in found) == size
        assert all(one.taps <= taps for one in found) and len(found) == min(stride, size)
