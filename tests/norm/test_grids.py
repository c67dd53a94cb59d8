"""Launches fill the GPU in use, however many multiprocessors it has; on an H100 they are those that were measured."""

import json
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
from described import described

from labkit.arrays.workspace import CountingWorkspace
from labkit.ladder import TooLarge, ladders
from labkit.machine.gpus import gpu
from labkit.machine.occupancy import occupancy
from norm.gpus import give_sms

STEPS = [
    step
    for one in ladders("norm")
    for step in one
    if "MULTIPROCESSOR_COUNT" in Path(step.module.__file__).read_text(encoding="utf-8")
]
H100 = Path(__file__).with_suffix(".json")  # the grids of all examples and benches, as they were timed on an H100
LARGE = (64, 256, 56, 56), (32, 64, 112, 112), (32, 512, 8, 8), (4, 24, 32, 32)


def options(kernel) -> dict:
    """Those of `cuda.jit`."""
    return kernel.options if hasattr(kernel, "options") else kernel.targetoptions


def launched(step, problem, format):
    """What a step launches; nothing where the problem is too large for it."""
    try:
        return step.launches(*described(problem, format), problem, format=format, workspace=CountingWorkspace())
    except TooLarge:
        return []


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.path)
def test_on_an_h100_grids_are_those_of_its_recorded_times(step, monkeypatch):
    give_sms(monkeypatch, gpu("H100 SXM").sms)
    known = json.loads(H100.read_text(encoding="utf-8"))
    for format in step.formats:
        for problem in (*step.examples, *step.benched):
            grids = known[f"{step.path} {problem} {format}"]
            expected = [] if grids == "too large" else [tuple(g) if isinstance(g, list) else g for g in grids]
            assert [one.grid for one in launched(step, problem, format)] == expected, problem


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.path)
def test_a_smaller_gpu_is_filled_otherwise(step, monkeypatch):
    found, problems = [], [*step.examples, *step.benched]
    if "rows" not in step.path:
        problems.append(replace(step.benched[0], N=4, C=24, H=32, W=32))
    for sms in (132, 16):
        give_sms(monkeypatch, sms)
        result = [launched(step, problem, format) for format in step.formats for problem in problems]
        found.append([[(one.grid, one.block, one.kernel) for one in launches] for launches in result])
    assert found[0] != found[1]


@pytest.mark.parametrize("sms", [132, 114, 108, 16])
@pytest.mark.parametrize("step", [step for step in STEPS if options(step.kernel).get("cooperative")], ids=str)
def test_blocks_that_wait_for_one_another_all_have_a_place(step, sms, monkeypatch):
    """By threads and shared memory of an SM of Hopper, and by the blocks for which launch bounds leave registers."""
    give_sms(monkeypatch, sms)
    count = 0
    for format in step.formats:
        for problem in (*step.examples, *step.benched, *(step.problem(*sizes, True, "NHWC") for sizes in LARGE)):
            for launch in launched(step, problem, format):
                bounds = options(launch.kernel)["launch_bounds"]
                by_registers = bounds[1] if isinstance(bounds, tuple) else 1
                threads = prod(launch.block) if isinstance(launch.block, tuple) else launch.block
                by_others = occupancy("H100 SXM", threads, launch.shared_bytes).blocks
                assert launch.grid <= sms * min(by_registers, by_others), problem
                count += 1
    assert count > 8


def test_the_steps_whose_blocks_wait_are_found():
    waiting = [step.path for step in STEPS if options(step.kernel).get("cooperative")]
    assert len(waiting) == 3 and all("channels_last" in path for path in waiting)
