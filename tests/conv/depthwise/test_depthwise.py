"""The depthwise ladder: as costly as its docstrings say, chosen for depthwise layers, and right in every format."""

import re
from itertools import product
from math import ceil, log2, prod

import pytest

from labkit import conv
from labkit.arrays.workspace import Workspace
from labkit.conv.depthwise import padded, tiling
from labkit.conv.depthwise.phases import axis_phases
from labkit.conv.depthwise.tiling import Tiling
from labkit.formats import BF16, FP16, FP32

LADDER = conv.ladder("depthwise")
KINDS = {"y": conv.Forward, "x": conv.BackwardData, "w": conv.BackwardFilter}
STEPS = {"y": "strips", "x": "backward_data", "w": "backward_filter"}
RINGS = {"y": "pipelined", "x": "pipelined_data", "w": "pipelined_filter"}
(LAYER,) = padded(2, [(16, 8, 3, 1)], "NHWC")


@pytest.fixture(params=LADDER, ids=lambda step: step.slug)
def step(request):
    return request.param


def costs(step) -> dict[str, str]:
    """The costs that a step states, as expressions by what they are."""
    lines = re.findall(r"^    (\S.*?)  +(\S.*?)(?:[:;].*)?$", step.module.__doc__, re.MULTILINE)
    return {what: expression for expression, what in lines}


def test_a_step_costs_what_its_docstring_says(step, monkeypatch):
    """For one strip per image and whole tiles, without padding."""
    monkeypatch.setattr(tiling, "best_strip_rows", lambda rows, *_: rows)
    result = step.problem.result
    problem = step.problem(2, 16, 10, 20 if result == "x" else 18, 16, 3, 3, groups=16, layout="NHWC")
    format = step.formats[0]
    trace = step.simulate(*problem.operands(format), format=format).traces[0]
    blocks, sizes = prod(trace.grid), {name: prod(shape) for name, shape in problem.shapes.items()}
    (launch, *_) = step.launches(*problem.operands(format), format=format, workspace=Workspace())
    names = vars(step.module) | launch.kernel.py_func.__globals__ | {"ceil": ceil, "log2": log2, "T": 9}
    names |= {name: getattr(problem, name) for name in "HWPQRS"}
    if isinstance(launch.block, tuple):
        names |= dict(zip(("LANES", "ROWS"), launch.block))

    def loads(name):
        sites = (site for site in trace.sites if (site.site.array, site.site.kind) == (name, "load"))
        return sum(site.accesses for site in sites)

    counted = {
        "global loads per output": trace.counters.global_loads / sizes["y"],
        "loads of x per element of y": loads("x") / sizes["y"],
        "loads of y per element of y": loads("y") / sizes["y"],
        "loads of y per element of x": loads("y") / sizes["x"],
        "bytes of shared memory per block": trace.shared_bytes,
        "barriers per block": trace.counters.barriers / blocks,
    }
    stated = costs(step)
    assert len(stated) >= 2
    for what, expression in stated.items():
        assert eval(expression, names) == pytest.approx(counted[what], rel=1e-12), what


@pytest.mark.parametrize("format", [FP32, BF16, FP16], ids=str)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("result", KINDS)
def test_depthwise_layers_are_computed_by_their_steps(result, layout, format):
    """On a GPU the prediction decides."""
    for C, side, taps, stride in ((32, 112, 3, 1), (96, 112, 3, 2), (240, 28, 5, 1), (768, 7, 7, 1)):
        (sizes,) = padded(64, [(C, side, taps, stride)], layout)
        steps = RINGS if format != FP32 and layout == "NHWC" and taps <= 5 else STEPS
        assert str(conv.heuristic(KINDS[result](*sizes), format).best) == f"depthwise/{steps[result]}"


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
def test_calls_compute_depthwise_layers_and_their_gradients(format, layout):
    problems = {result: kind(*LAYER[:-1], layout) for result, kind in KINDS.items()}
    options = {"padding": 1, "groups": 16, "layout": layout, "format": format}
    for result, problem in problems.items():
        x, w, y, _ = before = problem.operands(format, seed=5)
        call, given = {
            "y": (conv.forward, {"x": x, "w": w}),
            "x": (conv.backward_data, {"w": w, "y": y, "H": 8, "W": 8}),
            "w": (conv.backward_filter, {"x": x, "y": y, "R": 3, "S": 3}),
        }[result]
        found = call(**given, **options)
        after = tuple(found if name == result else X for name, X in zip("xwy", before))
        assert problem.is_right(before, (*after, problem), format)


def test_a_filter_for_each_of_several_outputs_of_a_channel_and_holes_are_computed_too():
    problem = conv.Forward(2, 6, 9, 8, 12, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2, 6, layout="NHWC")
    before = problem.operands(BF16)
    y = conv.forward(*before[:2], padding=2, dilation=2, groups=6, layout="NHWC", format=BF16)
    assert problem.is_right(before, (*before[:2], y, problem), BF16)


@pytest.mark.parametrize("tiles", [Tiling(8, 1, 2, 1), Tiling(4, 1, 4, 1), Tiling(2, 1, 7, 1), Tiling(1, 1, 3, 1)])
@pytest.mark.parametrize("result", KINDS)
def test_every_tiling_of_channels_is_right(result, tiles):
    check(KINDS[result](*LAYER), tiles, BF16)


@pytest.mark.parametrize("tiles", [Tiling(4, 1, 4, 1), Tiling(4, 1, 2, 2), Tiling(2, 1, 4, 4), Tiling(2, 1, 4, 2)])
@pytest.mark.parametrize("result", KINDS)
def test_every_tiling_of_a_ring_is_right(result, tiles):
    check(KINDS[result](*LAYER), tiles, FP16, RINGS)


@pytest.mark.parametrize("tiles", [Tiling(8, 8, 8, 1), Tiling(4, 4, 8, 1), Tiling(2, 2, 14, 1), Tiling(1, 1, 7, 1)])
@pytest.mark.parametrize("result", KINDS)
def test_every_tiling_of_columns_is_right(result, tiles):
    check(KINDS[result](*LAYER[:-1], "NCHW"), tiles, BF16)


def check(problem, tiles, format, steps=STEPS):
    step = LADDER.step(steps[problem.result])
    before = problem.operands(format, seed=3)
    arrays = tuple(X.copy() for X in before[:3])
    options = {"workspace": Workspace()} if problem.result == "w" else {}
    for launch in step.module.launches(*arrays, problem, format=format, tiling=tiles, **options):
        launch.run()
    assert problem.is_right(before, (*arrays, problem), format)


@pytest.mark.parametrize(
    ("size", "taps", "zeros", "dilation"), [(9, 3, 2, 2), (7, 3, 6, 3), (1, 3, 2, 3), (8, 2, 0, 1)]
)
def test_phases_share_out_pixels_and_outputs(size, taps, zeros, dilation):
    outputs = conv.output_size(size, taps, 1, zeros, zeros, dilation)
    axes = [*axis_phases(size, outputs, zeros, dilation)]
    pixels = [axis.first_pixel + dilation * n for axis in axes for n in range(axis.pixels)]
    rows = [axis.first_output + dilation * n for axis in axes for n in range(axis.outputs)]
    assert sorted(pixels) == [*range(size)] and sorted(rows) == [*range(outputs)]
    for axis in axes:  # tap r of output n is on the pixel that the whole convolution has there
        for n, r in product(range(axis.outputs), range(taps)):
            whole = axis.first_output + dilation * n + dilation * r - zeros
            assert axis.first_pixel + dilation * (n + r - axis.zeros) == whole


@pytest.mark.parametrize("result", KINDS)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_dilated_convolution_has_a_launch_per_phase(result, layout):
    problem = KINDS[result](2, 6, 11, 9, 6, 3, 3, 1, 1, 3, 2, 3, 3, 3, 2, 6, False, layout)
    step, before = LADDER.step(STEPS[result]), problem.operands(BF16, seed=7)
    run = step.simulate(*before, format=BF16)
    assert len(run.traces) == 6 + (result == "w") and not run.errors
    assert problem.is_right(before, run.operands, BF16)


def test_what_is_no_depthwise_convolution_is_refused(step):
    problem = step.problem(2, 8, 9, 8, 8, 3, 3, groups=4)
    assert "takes group_channels = 1, and the convolution has group_channels = 2" in problem.misfit(step.SUPPORTED)
