"""Algorithms: what applies and why the rest does not, exact workspaces, and limits."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from random_convolutions import convolutions
from sampling import WHOLE

from labkit import conv, cuda
from labkit.arrays.workspace import ALIGNMENT_BYTES, Workspace
from labkit.calls.plan import make_plan
from labkit.calls.tuning import source_files
from labkit.conv.interface.algorithms import Algorithm, algorithms, find_algorithm, launch_misfit
from labkit.conv.interface.convolution import ConvByProblem
from labkit.conv.layers import TABLE_2
from labkit.formats import BF16, FP32, format_named
from labkit.ladder import ladders
from labkit.places import PACKAGE

KINDS = {"y": conv.Forward, "x": conv.BackwardData, "w": conv.BackwardFilter}
ALL = [one for result in "yxw" for one in algorithms(result)]
LAYER_2 = conv.Forward(128, *TABLE_2[1])
SETTINGS = settings(max_examples=60 if WHOLE else 12, phases=[Phase.generate])


def test_what_a_ladder_offers_is_among_its_steps_and_each_direction_has_several():
    for ladder in ladders("conv"):
        assert {*getattr(ladder.module, "ALGORITHMS", ())} <= {step.slug for step in ladder}, ladder
    assert all(len(algorithms(result)) >= 2 for result in "yxw")
    assert len({(one.step.problem.result, str(one)) for one in ALL}) == len(ALL)


def test_a_new_ladder_is_found_by_what_its_steps_state(monkeypatch):
    from labkit.conv.interface import algorithms as module

    direct = conv.ladder("direct")
    monkeypatch.setattr(module, "ladders", lambda operation: [direct])
    monkeypatch.delattr(direct.module, "ALGORITHMS")
    try:
        algorithms.cache_clear()
        assert algorithms("y") == tuple(map(Algorithm, direct))  # a ladder that says nothing offers all
    finally:
        algorithms.cache_clear()


@pytest.mark.parametrize("algorithm", ALL, ids=str)
def test_the_predicted_workspace_is_what_a_plan_allocates(algorithm):
    """With a limit too, and where operands are not looked at."""
    kind = KINDS[algorithm.step.problem.result]

    @SETTINGS
    @given(problem=convolutions(kind, algorithm.step.SUPPORTED), limit=st.none() | st.integers(0, 2**16))
    def check(problem, limit):
        format = algorithm.step.formats[0]
        predicted = algorithm.dry_run(problem, format, limit)
        if predicted.misfit:
            return
        arrays = {
            name: cuda.device_array(shape, (format.result if name == problem.result else format).dtype)
            for name, shape in problem.shapes.items()
        }
        workspace, asked = Workspace(), ConvByProblem(problem, format, algorithm, limit)
        asked.launches(arrays, workspace)
        assert workspace.size_bytes == predicted.workspace_bytes == make_plan(asked, arrays).workspace_bytes

    check()


def test_nothing_is_allocated_for_a_prediction(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("memory was asked for")

    monkeypatch.setattr(cuda, "device_array", refuse)
    monkeypatch.setattr(cuda, "to_device", refuse)
    found = {str(one): one.workspace_bytes(LAYER_2, FP32) for one in algorithms("y")}
    assert found["implicit_gemm/gathered"] == found["direct/registers"] == 0
    assert found["im2col/batch"] == 4 * (64 * 81 + 128) * 128 * 56 * 56
    assert found["winograd/f4x4"] is None


def test_the_recorded_workspaces_are_predicted():
    from labkit import results

    count = 0
    for machine, operation in results.recorded():
        for row in results.load(operation, machine).rows if operation.startswith("conv_") else ():
            known = [one for one in ALL if (one.step.ladder.record, one.step.slug) == (operation, row["step"])]
            if known and "workspace_bytes" in row and "parts" not in row:
                (algorithm,) = known
                fields = {name: row[name] for name in LAYER_2.fields}
                problem = KINDS[algorithm.step.problem.result](**fields)
                predicted = algorithm.workspace_bytes(problem, format_named(row["dtype"]))
                assert predicted == row["workspace_bytes"], (algorithm, problem)
                count += 1
    assert count > 100


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"groups": 2}, "takes groups = 1, and the convolution has groups = 2"),
        ({"stride_h": 2}, "takes stride_h = 1"),
        ({"dilation_w": 3}, "takes dilation_w = 1"),
        ({"layout": "NHWC"}, "takes layout = NCHW"),
        ({"R": 5}, "takes R = 3"),
    ],
)
def test_why_winograd_does_not_apply(change, words):
    problem = replace(conv.Forward(2, 4, 40, 40, 4, 3, 3), **change)
    assert words in find_algorithm("winograd/f4x4", "y").misfit(problem, FP32)


def test_why_sizes_and_formats_do_not_apply():
    large = conv.Forward(1, 1, 200, 200, 1, 99, 99)
    assert "99 x 99 taps, and tiles have 64 x 64" in find_algorithm("fft/few_taps", "y").misfit(large, FP32)
    spread = conv.Forward(1, 1, 400, 400, 1, 3, 3, dilation_h=150, dilation_w=150)
    assert "bytes of shared memory" in find_algorithm("direct/registers", "y").misfit(spread, FP32)
    deep = conv.Forward(1, 2**17, 4, 4, 1, 3, 3)
    assert "131072 blocks along y, and a GPU takes 65535" in find_algorithm("winograd/f4x4", "y").misfit(deep, FP32)
    many = conv.Forward(1, 1, 2**16, 2**15, 1, 1, 1)
    assert "counts them below" in find_algorithm("implicit_gemm/gathered", "y").misfit(many, FP32)
    assert "takes float32, and the arrays hold bfloat16" in find_algorithm("fft/tiled", "y").misfit(LAYER_2, BF16)


@pytest.mark.parametrize("result", KINDS)
def test_no_size_raises_another_error_than_the_one_that_is_a_reason(result):
    """Extreme sizes along each axis, of which nothing is allocated."""
    sizes = {"N": 2**20, "C": 2**17, "H": 2**16, "W": 2**20, "K": 2**17, "R": 64, "S": 300}
    for name, size in sizes.items():
        problem = KINDS[result](**{**dict(zip("NCHWKRS", (2, 3, 64, 300, 3, 3, 3))), name: size})
        ranking = conv.heuristic(problem)
        assert all(bool(row.reason) == (row.time_ms is None) for row in ranking)


def test_what_a_gpu_refuses_is_a_reason(monkeypatch):
    gathered = find_algorithm("implicit_gemm/gathered", "y")
    (launch,) = gathered.dry_run(LAYER_2, FP32).launches
    assert launch_misfit(launch, FP32, cuda.get_current_device()) == ""
    assert "shared memory" in launch_misfit(replace(launch, shared_bytes=2**18), FP32, cuda.get_current_device())
    gpu = cuda.get_current_device()
    older = SimpleNamespace(
        compute_capability=(7, 5),
        MULTIPROCESSOR_COUNT=gpu.MULTIPROCESSOR_COUNT,
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=gpu.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    )
    monkeypatch.setattr(cuda, "get_current_device", lambda: older)
    assert "compute capability 7.5 lacks" in gathered.misfit(LAYER_2, FP32)
    assert find_algorithm("direct/registers", "y").misfit(LAYER_2, FP32) == ""


def test_an_unknown_algorithm_is_refused_with_the_list():
    with pytest.raises(ValueError, match="no algorithm 'winograd' for this: there is .*direct/registers, "):
        find_algorithm("winograd", "y")


@pytest.mark.parametrize("name", ["implicit_gemm/split", "im2col/library"])
def test_an_algorithm_does_with_less_memory_where_it_can(name):
    algorithm, problem = find_algorithm(name, "y"), conv.Forward(16, *TABLE_2[4])
    wanted = algorithm.workspace_bytes(problem, FP32)
    spared = algorithm.workspace_bytes(problem, FP32, wanted // 2)
    assert spared <= wanted // 2 < wanted and spared % ALIGNMENT_BYTES == 0


def test_the_gradient_of_filters_needs_no_memory_if_there_is_none():
    algorithm = find_algorithm("implicit_gemm/backward_filter", "w")
    problem = conv.BackwardFilter(128, *TABLE_2[2])
    assert algorithm.workspace_bytes(problem, FP32) > 0 == algorithm.workspace_bytes(problem, FP32, 0)
    assert np.prod(problem.shapes["w"]) * 4 * 2 > algorithm.workspace_bytes(problem, FP32, np.prod(problem.shapes["w"]))


def test_an_algorithm_is_made_of_all_kernels_that_it_launches():
    def files(name):
        kernels = find_algorithm(name, "y").kernels
        return {path.relative_to(PACKAGE).as_posix() for kernel in kernels for path in source_files(kernel)}

    assert {"conv/fft/s06_few_taps.py", "conv/fft/s03_three_products.py", "conv/fft/lines.py"} < files("fft/few_taps")
    assert {"gemm/fp32/s10_tuned.py", "conv/winograd/products.py"} < files("winograd/f4x4")
    assert "gemm/fp32/s10_tuned.py" not in files("winograd/fused")
