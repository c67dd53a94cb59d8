"""The bench of tensor cores: its kernels do the work that a row says, on the operands that it says."""

import os
import time

import numpy as np
import pytest

import labkit
from labkit import formats, specialise
from labkit.arrays.views import as_words
from labkit.bench import _sustained, tensor_cores
from labkit.checking.budget import TENSOR_FLOPS, read_counter

ITERATIONS = 3


@pytest.mark.parametrize("format", tensor_cores.OPERANDS)
@pytest.mark.parametrize(
    ("kernel", "shared_bytes", "flops"),
    [
        (tensor_cores.only_mma, 0, tensor_cores.MMA_FLOPS),
        (tensor_cores.only_wgmma, tensor_cores.SHARED_BYTES, 2 * tensor_cores.M * tensor_cores.N * tensor_cores.K),
    ],
)
def test_a_block_does_the_work_that_its_row_says(kernel, shared_bytes, flops, format):
    words = as_words(tensor_cores.draw((tensor_cores.M + tensor_cores.N, tensor_cores.K), "7 bits", format)).ravel()
    sums = np.zeros((1, tensor_cores.WARPS, 32), np.float32)
    kernel = specialise(kernel, FORMAT=format.number)
    trace = labkit.simulate(
        kernel, 1, (32, tensor_cores.WARPS), words, sums, ITERATIONS, shared_bytes=tensor_cores.SHARED_BYTES
    )
    assert read_counter(TENSOR_FLOPS, trace) == ITERATIONS * flops
    assert trace.outputs[1].all()


def test_operands_differ_in_their_bits_alone():
    drawn, rounded, zeros = (
        formats.FP16.decode(tensor_cores.draw((64, 64), operands, formats.FP16))
        for operands in tensor_cores.OPERANDS[formats.FP16]
    )
    np.testing.assert_array_equal(rounded, formats.BF16.decode(formats.BF16.encode(rounded)))
    assert 0 < abs(drawn - rounded).max() < 2**-6
    assert not zeros.any()


def test_a_sustained_launch_has_its_time_and_the_clock_meanwhile(tmp_path, monkeypatch):
    program, said = tmp_path / "nvidia-smi", tmp_path / "said"
    program.write_text(f"#!/bin/sh\necho '1980, 400.00'\necho '1500, 690.00'\necho '1500, 700.00'\ntouch {said}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def run_for(launch, seconds):
        while seconds == _sustained.MEASURED_S and not said.exists():
            time.sleep(0.01)
        return seconds

    monkeypatch.setattr(_sustained, "run_for", run_for)
    assert _sustained.measure(None, "GPU-0") == {"time_ms": _sustained.MEASURED_S, "clock_mhz": 1500, "power_w": 690}
