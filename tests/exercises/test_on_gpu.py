"""The process that runs a kernel on the GPU; here it runs in the simulator, which takes the same road."""

import io
import json
from types import SimpleNamespace

import pytest
from exercise_cells import cell, function
from sampling import sampled

from labkit.checking.on_gpu import judge_on_gpu
from labkit.exercises import check, exercise, exercise_ids, on_gpu

KERNELS = [id for id in exercise_ids() if exercise(id).machine == "gpu"]


@pytest.fixture(autouse=True)
def in_the_simulator(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simulator")


@pytest.mark.parametrize("id", sampled(KERNELS, 3))
def test_a_right_kernel_keeps_its_verdict(id):
    kernel = function(id, cell(id))
    verdict = check(id, kernel)
    assert judge_on_gpu(exercise(id), kernel, verdict, seed=1) == verdict


def test_device_functions_and_constants_go_along():
    text = """
import math as m
from math import sqrt as root
from numba import bool_, float32
FACTOR = np.float32(1)
HIGHEST = -np.inf

@cuda.jit(device=True)
def scaled(a, x):
    return float32(max(HIGHEST, a)) * x * bool_(FACTOR) * m.floor(1.5) * root(np.float32(1))

@cuda.jit
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = scaled(a, x[i]) + y[i]
"""
    kernel = function("write-saxpy", text)
    verdict = check("write-saxpy", kernel)
    assert judge_on_gpu(exercise("write-saxpy"), kernel, verdict, seed=1) == verdict


def test_a_wrong_result_there_is_said():
    good = check("write-saxpy", function("write-saxpy", cell("write-saxpy")))
    bad = function("write-saxpy", cell("write-saxpy").replace(" + y[i]", ""), "<bad>")
    verdict = judge_on_gpu(exercise("write-saxpy"), bad, good, seed=1)
    assert not verdict.passed
    assert verdict.message.startswith("All is well in the simulator, but on the GPU out[0] is")


def test_a_process_that_does_not_end_in_time_is_killed():
    kernel = function("write-saxpy", cell("write-saxpy"))
    verdict = judge_on_gpu(exercise("write-saxpy"), kernel, check("write-saxpy", kernel), seed=1, timeout_s=0.01)
    assert not verdict.passed
    assert "did not come to an end within 0.01 s" in verdict.message


@pytest.mark.parametrize(("capability", "is_run"), [((8, 0), False), ((9, 0), True)])
def test_a_gpu_without_the_instructions_runs_nothing(monkeypatch, capsys, capability, is_run):
    text = cell("the-ring-goes-on").replace("np.float32(-np.inf)", "np.float32(0)")
    task = {"exercise": "the-ring-goes-on", "function": "largest_of_jobs", "constants": {}, "seed": 1}
    task["text"] = "import numpy as np\nfrom labkit import cuda, ptx\n" + text
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(task)))
    monkeypatch.setattr(on_gpu.cuda, "get_current_device", lambda: SimpleNamespace(compute_capability=capability))
    on_gpu.main()
    assert (json.loads(capsys.readouterr().out) is not None) == is_run
