"""No error is found in any kernel of the book that is right: ladder steps, solutions, and what the chapters run."""

import pytest
from chapters import CHAPTERS, run_cells
from exercises.answers import cell, function
from exercises.variants import variants

import labkit
from labkit import gemm
from labkit.exercises import exercise, exercise_ids
from labkit.gemm.problem import Problem
from labkit.simulator import run

# The kernels that a chapter shows because they are wrong.
WRONG = {
    "00-start-here": {"hasty"},
    "02-first-gpu-matmul": {"double_unguarded"},
    "03-tiled-gemm": {"no_first_barrier"},
    "06-tensor-cores": {"never_empty"},
    "90-trusting-the-simulator": {"counter"},
}


@pytest.mark.parametrize("size", [(37, 29, 41), (64, 48, 80), (5, 70, 3)], ids=str)
@pytest.mark.parametrize("step", gemm.ladder("fp32"), ids=lambda step: step.name)
def test_the_steps_of_the_ladder(step, size):
    M, N, _ = size
    operands = Problem(*size).operands()
    trace = labkit.simulate(step.kernel, *step.geometry(M, N), *operands, shared_bytes=step.shared_bytes)
    assert not trace.errors


@pytest.mark.parametrize("id", [id for id in exercise_ids() if exercise(id).machine == "gpu"])
def test_the_right_answers_to_an_exercise(id):
    rules = exercise(id)
    for text in (cell(id), *(v.source(cell(id)) for v in variants(id) if v.reason == "solved")):
        kernel = function(id, text, f"<{id} {hash(text)}>")
        constants = {name: kernel.py_func.__globals__[name] for name in rules.constants}
        for launch in rules.launches(7, **constants):
            trace = labkit.simulate(kernel, launch.grid, launch.block, *launch.args, shared_bytes=launch.shared_bytes)
            assert not trace.errors


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_the_kernels_of_a_chapter(chapter, monkeypatch):
    found, ran = set(), set()
    trace_of = run.report.trace

    def noted(launch, *given):
        trace = trace_of(launch, *given)
        name = launch.function.__name__
        ran.add(name)
        if trace.errors:
            found.add(name)
        return trace

    monkeypatch.setattr(run.report, "trace", noted)
    monkeypatch.setenv("LABKIT_DEVICE", "simulator")
    run_cells(chapter)
    assert ran
    assert found == WRONG.get(chapter.stem, set())
