"""Convolution on tensor cores: right in any tiling, as costly as the docstrings say, bad input told in a sentence."""

import re
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from sampling import sampled

from labkit import conv
from labkit.arrays.workspace import ALIGNMENT_BYTES, Workspace
from labkit.conv.problem import ForwardNHWC
from labkit.conv.sizes import make_windows
from labkit.conv.tensor.operands import pad_channels
from labkit.conv.tensor.tilings import SHARED_BYTES, TILINGS, Tiling, as_product, best_tiling
from labkit.forecast import sass
from labkit.formats import BF16, FP16
from labkit.simulator.in_place import simulate_in_place

STEPS = conv.ladder("tensor")
PERSISTENT = STEPS.step("persistent")


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
    "channels": ForwardNHWC(3, 72, 12, 11, 200, 2, 3, 1, 1, 1, 0, 0, 2),
    "folded": ForwardNHWC(5, 3, 20, 19, 72, 5, 5, 2, 2, 1, 2, 0, 2),
    "folded to one tap": ForwardNHWC(2, 3, 9, 20, 16, 1, 5, 1, 1, 0, 0, 1, 2),
    "dilated": ForwardNHWC(2, 3, 9, 20, 16, 3, 5, dilation_w=2),
    "odd": ForwardNHWC(2, 8, 14, 15, 69, 1, 1),
    "even": ForwardNHWC(2, 16, 14, 15, 70, 3, 1, flipped=True),
}


@pytest.mark.parametrize("name", RAGGED)
@pytest.mark.parametrize("tiling", sampled(TILINGS, 4), ids=str)
@pytest.mark.sample(3)
def test_every_tiling_is_right_where_blocks_take_several_tiles(tiling, name):
    assert is_right(PERSISTENT, RAGGED[name], tiling=tiling, grid=2)


@pytest.mark.parametrize("C", [1, 7, 8, 63, 64, 65, 136])
@pytest.mark.sample(5)
def test_any_number_of_channels_is_taken(step, C):
    assert is_right(step, ForwardNHWC(2, C, 5, 6, 9, 2, 2, top=1, right=1))


def test_outputs_of_many_images_fill_tiles(step):
    """More tiles than a band of the order in which blocks take them, and windows that go on in the next image."""
    assert is_right(step, ForwardNHWC(50, 8, 7, 7, 16, 1, 1), FP16)


@pytest.mark.parametrize("C", [8, 3])
def test_values_that_are_not_finite_stay_where_they_are_met(step, C):
    """Padding of tiles is zero on both sides, or reaches no result."""
    problem = ForwardNHWC(1, C, 6, 6, 16, 2, 2)
    for place in range(2):
        operands = problem.operands(BF16)
        operands[place].flat[0] = BF16.encode(np.array(np.inf))
        simulated(step, operands)
        is_finite = np.isfinite(BF16.decode(operands[2]))
        met = np.zeros_like(is_finite)
        if place == 0:
            met[0, 0, 0] = True
        else:
            met[..., 0] = True
        assert (is_finite == ~met).all()


# --- what it costs ---------------------------------------------------------------------------------


@pytest.mark.sample(1)
def test_a_step_costs_what_its_docstring_says(step):
    problem = ForwardNHWC(16, 64, 17, 17, 256, 2, 2)
    options = {"tiling": Tiling(2, 1, 256)} if step is PERSISTENT else {}
    traces, workspace_bytes = simulated(step, problem.operands(BF16), **options)
    (trace,) = traces
    outputs = prod(problem.shapes["y"])

    def per_output(amount, space, names=None, bytes=None):
        loads = [s for s in trace.sites if (s.site.kind, s.site.space) == ("load", space)]
        chosen = [s for s in loads if (not names or s.site.array in names) and bytes in (None, s.site.bytes)]
        return sum(getattr(s, amount) for s in chosen) / outputs

    by_engine = step.slug != "mma"
    counted = {
        "copies per output": per_output("requests" if by_engine else "accesses", "global"),
        "`ldmatrix` per output and lane": per_output("accesses", "shared", bytes=16),
        "`wgmma` of a warpgroup per output": per_output("requests", "shared", ("x_tiles",)),
        "bank conflicts per block": trace.counters.bank_conflicts / prod(trace.grid),
        "bytes of shared memory per block": trace.shared_bytes // 4096 * 4096,  # but for a ring's barriers
        "bytes of workspace": workspace_bytes,
    }
    lines = re.findall(r"^    (\S.*?)  +(\S.*?)(?:, of .*)?$", step.module.__doc__, re.MULTILINE)
    assert len(lines) >= 3
    for expression, what in lines:
        assert eval(expression, {"CRS": 64 * 4}, vars(step.module)) == counted[what], what


def in_whole_allocations(*sizes_bytes):
    return sum(-(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for size in sizes_bytes)


def test_channels_that_are_no_pieces_cost_a_copy(step):
    problem = ForwardNHWC(2, 9, 6, 5, 10, 2, 2)
    traces, found = simulated(step, problem.operands(BF16))
    assert [trace.kernel for trace in traces] == ["pad", "pad", step.slug]
    assert found == in_whole_allocations(2 * 2 * 6 * 5 * 16, 2 * 10 * 2 * 2 * 16)


def test_taps_of_a_row_become_channels_where_these_are_few():
    """11 x 11 taps of 3 channels, 8 with zeros: 11 rows of 88 channels, which are two steps each, instead of 121."""
    problem = ForwardNHWC(1, 3, 14, 13, 96, 11, 11, 1, 1, 2, 1, 3, 0)
    traces, found = simulated(PERSISTENT, problem.operands(BF16), tiling=Tiling(2, 1, 96))
    copies = sum(s.requests for s in traces[-1].sites if s.site.array == "x_map")
    assert copies == 11 * 2
    assert found == in_whole_allocations(2 * 17 * 16 * 8, 2 * 96 * 11 * 11 * 8)
    (*_, last), _ = simulated(PERSISTENT, replace(problem, flipped=True).operands(BF16), tiling=Tiling(2, 1, 96))
    assert sum(s.requests for s in last.sites if s.site.array == "x_map") == 121


# --- how the outputs are cut up ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("N", "side", "box", "waste"),
    [(64, 7, (16, 8, 1), 1 / 8), (16, 11, (8, 4, 4), 1 - 121 / 144), (64, 56, (2, 8, 8), 0), (64, 14, (32, 2, 2), 0)],
)
def test_boxes_waste_least(N, side, box, waste):
    step, problem = STEPS.step("boxes"), ForwardNHWC(N, 8, side, side, 8, 1, 1)
    assert step.waste(problem) == pytest.approx(waste)
    found = step.choose_box(problem)
    assert prod(found) == step.BM
    assert prod(step.count_boxes(problem, found)) == prod(step.count_boxes(problem, step.Box(*box)))


def test_a_tiling_fits_shared_memory_and_registers():
    for tiling in TILINGS:
        producer, consumer = tiling.registers
        assert tiling.stages >= 3 and tiling.shared_bytes + 1024 <= SHARED_BYTES
        threads = 128 * (1 + tiling.warpgroups)
        assert 128 * (producer + tiling.warpgroups * consumer) <= threads * (65536 // threads // 8 * 8)
        assert tiling.m_blocks * tiling.filters // 2 + 40 <= consumer


def test_the_tiling_fits_filters_and_the_last_round():
    layers = {
        (64, 128, 28, 28, 128, 3, 3, 1, 1, 1, 1, 1, 1): Tiling(3, 1, 128),
        (64, 256, 14, 14, 256, 3, 3, 1, 1, 1, 1, 1, 1): Tiling(3, 1, 128),
    }
    for sizes, tiling in layers.items():
        assert best_tiling(as_product(ForwardNHWC(*sizes)), 132) == tiling


# --- machine code ------------------------------------------------------------------------------------


class OfHost:
    """A workspace of arrays that numba knows the types of where there is no GPU."""

    def array(self, role, shape, dtype):
        return np.empty(shape, dtype)


@pytest.mark.needs("numba-cuda", "toolkit")
@pytest.mark.parametrize("tiling", sampled(TILINGS, 4), ids=str)
@pytest.mark.sample(2)
def test_a_tiling_assembles_without_spills(tiling):
    operands = ForwardNHWC(2, 64, 9, 9, 256, 3, 3).operands(BF16)
    (launch,) = PERSISTENT.module.launches(*operands, BF16, OfHost(), tiling=tiling)
    code = sass.compiled(launch.kernel, *launch.arguments, compute_capability=(9, 0, "a"))
    threads = launch.block[0] * launch.block[1]
    assert (code.registers, code.spill_bytes) == (65536 // threads // 8 * 8, 0)
    assert {"LDL", "STL"}.isdisjoint(instruction.opcode for instruction in code.instructions)


# --- bad input ---------------------------------------------------------------------------------------


def test_what_a_step_does_not_take_is_refused_in_a_sentence(step):
    problem = ForwardNHWC(2, 8, 6, 5, 16, 2, 2)
    x, w, y, _ = problem.operands(BF16)

    def launch(*operands, format=BF16):
        step.launches(*operands, format=format, workspace=Workspace())

    with pytest.raises(TypeError, match="x holds float32, but this step takes uint16: convert it"):
        launch(x.astype(np.float32), w, y, problem)
    with pytest.raises(TypeError, match="x holds uint16, but this step takes float16"):
        launch(x, w, y, problem, format=FP16)
    with pytest.raises(ValueError, match="w, the filters, is 16 x 2 x 2 x 9, but KRSC of this convolution is 16 x 2"):
        launch(x, np.zeros((16, 2, 2, 9), np.uint16), y, problem)
    with pytest.raises(ValueError, match="x, the images, is 2 x 8 x 6 x 5, but NHWC of this convolution is 2 x 6 x 5"):
        launch(np.zeros((2, 8, 6, 5), np.uint16), w, y, problem)
    with pytest.raises(ValueError, match="this step takes layout = NHWC, and the convolution has layout = NCHW"):
        launch(x, w, y, replace(problem, layout="NCHW"))
    with pytest.raises(ValueError, match="is not in C order"):
        launch(np.zeros((2, 8, 6, 5), np.uint16).transpose(0, 2, 3, 1), w, y, problem)
    with pytest.raises(ValueError, match="this step takes groups = 1, and the convolution has groups = 2"):
        grouped = replace(problem, groups=2)
        launch(x, np.zeros((16, 2, 2, 4), np.uint16), y, grouped)


def test_images_that_32_bits_do_not_count_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="the images are 8589934592 pieces of 16 bytes, and this step counts to 42949"):
        pad_channels(None, None, ForwardNHWC(2**15, 8, 2**9, 2**9, 8, 1, 1), BF16, None)
    with pytest.raises(ValueError, match="the outputs of a filter are 2147483648, and this step counts them below"):
        make_windows(ForwardNHWC(2**13, 8, 2**9, 2**9, 8, 1, 1), BF16)


def test_boxes_take_no_strides():
    problem = ForwardNHWC(2, 8, 6, 5, 16, 2, 2, 2)
    with pytest.raises(ValueError, match="takes stride_h = 1, and the convolution has stride_h = 2: choose another"):
        STEPS.step("boxes").launches(*problem.operands(BF16), workspace=Workspace())
