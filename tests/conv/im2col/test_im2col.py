"""im2col: right on problems of all kinds, with a workspace of exactly the stated size."""

import importlib

import numpy as np
import pytest

from labkit import conv
from labkit.arrays.workspace import ALIGNMENT_BYTES, Workspace
from labkit.calls.choice import override_choice

STEPS = conv.ladder("im2col")
PROBLEMS = [
    conv.Forward(3, 2, 5, 6, 3, 2, 2, top=1, right=1),
    conv.Forward(2, 3, 7, 5, 4, 3, 2, stride_h=2, stride_w=3, left=1, dilation_h=2, flipped=True),
    conv.Forward(1, 8, 4, 4, 5, 1, 1),
    conv.Forward(3, 34, 4, 5, 1, 2, 2),  # the filter is a single row
]


@pytest.fixture(params=STEPS, ids=lambda step: step.slug)
def step(request):
    return request.param


def in_whole_allocations(*sizes_bytes):
    return sum(-(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for size in sizes_bytes)


def planned(step, problem):
    """The launches of a step, and the bytes of its workspace."""
    workspace = Workspace()
    return step.launches(*problem.operands(), workspace=workspace), workspace.size_bytes


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.sample(6)
def test_a_step_is_right(step, problem):
    before = problem.operands(seed=2)
    run = step.simulate(*before)
    assert run.errors == () and problem.is_right(before, run.operands)


def test_the_workspace_is_as_stated():
    problem = conv.Forward(4, 3, 9, 8, 5, 3, 2)
    N, K, CRS, PQ = problem.N, problem.K, 18, problem.P * problem.Q
    assert PQ == 49
    launches, found = planned(STEPS.step("batch"), problem)
    assert len(launches) == 3 and found == in_whole_allocations(4 * CRS * N * PQ, 4 * K * N * PQ)
    launches, found = planned(STEPS.step("image"), problem)
    assert len(launches) == 2 * N and found == in_whole_allocations(4 * CRS * PQ)
    _, found = planned(STEPS.step("library"), problem)  # in whole pieces of 16 bytes: CRS 20, and PQ 52
    assert found == in_whole_allocations(4 * N * 20 * 52, 4 * N * K * 52, 4 * K * 20)


def test_the_matrix_is_written_once(step):
    problem = conv.Forward(2, 4, 5, 5, 4, 2, 2)
    run = step.simulate(*problem.operands())
    lowering = [trace for trace in run.traces if trace.kernel == step.slug]
    written = sum(trace.counters.global_stores for trace in lowering)
    assert written == 16 * 2 * 16 and sum(trace.counters.global_loads for trace in lowering) == written


def test_a_limit_of_workspace_makes_chunks_of_images(monkeypatch):
    library = STEPS.step("library")
    problem = conv.Forward(5, 3, 6, 6, 4, 3, 3)
    before = problem.operands()
    once, _ = planned(library, problem)
    monkeypatch.setattr(importlib.import_module(library.module.__name__), "WORKSPACE_BYTES", 2 * 4 * 28 * 16)
    launches, found = planned(library, problem)
    assert len(launches) > len(once) and found == in_whole_allocations(2 * 4 * 28 * 16, 4 * 4 * 28)
    assert problem.is_right(before, library.simulate(*before).operands)


def test_the_matrix_holds_each_pixel_as_often_as_windows_meet_it():
    problem = conv.Forward(2, 2, 5, 5, 1, 3, 3, top=1, bottom=1, left=1, right=1)
    operands = problem.operands()
    step, workspace = STEPS.step("batch"), Workspace()
    lowering = step.launches(*operands, workspace=workspace)[0]
    lowering.kernel[lowering.grid, lowering.block](*lowering.arguments)
    matrix = lowering.arguments[1].copy_to_host()
    assert matrix.shape == (2 * 3 * 3, 2 * 5 * 5)
    values, counts = np.unique(matrix, return_counts=True)
    times = dict(zip(values.tolist(), counts.tolist(), strict=True))
    assert times[float(operands[0][1, 1, 2, 2])] == 9 and times[float(operands[0][1, 1, 0, 0])] == 4
    assert times[0.0] == matrix.size - sum(times[float(pixel)] for pixel in operands[0].flat)
    assert times[0.0] == 4 * (9 * 25 - 13 * 13)


def test_groups_are_refused(step):
    problem = conv.Forward(1, 4, 5, 5, 4, 3, 3, groups=2)
    with pytest.raises(ValueError, match="takes groups = 1, and the convolution has groups = 2: choose another step"):
        planned(step, problem)


def test_arrays_that_are_not_in_order_are_refused(step):
    problem = PROBLEMS[0]
    x, w, y, _ = problem.operands()
    with pytest.raises(ValueError, match="is not in C order"):
        step.launches(np.asfortranarray(x), w, y, problem, workspace=Workspace())


def test_a_single_image_may_be_multiplied_in_parts():
    problem = conv.Forward(1, 40, 8, 8, 16, 5, 5)
    before = problem.operands()
    library = STEPS.step("library")
    with override_choice(lambda _, __, ordered: sorted(ordered, key=lambda candidate: candidate.step != "simt")):
        assert any(launch.kernel.__name__ == "add_parts" for launch in planned(library, problem)[0])
        assert problem.is_right(before, library.simulate(*before).operands)
