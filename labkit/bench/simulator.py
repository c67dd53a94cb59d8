"""`labkit bench simulator`: the lockstep simulator beside numba's own, on the same kernels in one run."""

import json
import os
import subprocess
import sys
import tempfile

import labkit
from labkit import gemm, timing
from labkit.bench import _record

SIZES = (32, 64, 128)
STEPS = ("naive", "tiled")
COLUMNS = {"kernel": "", "problem": "", "numba_ms": ".1f", "labkit_ms": ".2f", "ratio": ".0f"}
FIRST_COLUMNS = {"kernel": "", "problem": "", "disk_cache": "", "first_simulate_s": ".2f"}


def main(record=False, out=None) -> None:
    rows = [compare(step, size) for step in STEPS for size in SIZES]
    _record.show("one launch, all counters and findings on", rows, COLUMNS)
    with tempfile.TemporaryDirectory() as cache:
        first = [first_simulate(kind, cache) for kind in ("cold", "warm")]
    _record.show("import and first simulate in a fresh process", first, FIRST_COLUMNS)
    _record.finish("simulator", rows + first, _record.cpu_name(), record, out)


def compare(slug: str, size: int) -> dict:
    """The time of one step in both simulators."""
    step = gemm.step("fp32", slug)
    A, B, C = gemm.Problem(size, size, size).operands()
    labkit_ms = timing.host_time_ms(lambda: labkit.simulate(step.kernel, *step.geometry(size, size), A, B, C))
    numba_ms = _in_a_process(NUMBA, slug, size, NUMBA_ENABLE_CUDASIM="1")["time_ms"]
    return {
        "kernel": slug,
        "problem": f"{size}x{size}x{size}",
        "numba_ms": numba_ms,
        "labkit_ms": labkit_ms,
        "ratio": numba_ms / labkit_ms,
    }


def first_simulate(disk_cache: str, cache_folder: str) -> dict:
    """Seconds that a fresh process takes to import labkit and simulate s03_tiled at 64 for the first time."""
    seconds = _in_a_process(FIRST, "tiled", 64, NUMBA_CACHE_DIR=cache_folder)["time_s"]
    return {"kernel": "tiled", "problem": "64x64x64", "disk_cache": disk_cache, "first_simulate_s": seconds}


def _in_a_process(script: str, *arguments, **environment) -> dict:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    settings = {**os.environ, "LABKIT_DEVICE": "simulator", **environment}
    done = subprocess.run(command, env=settings, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


NUMBA = """
import json, sys, time
import numpy as np
from numba import cuda
import labkit.cuda
from labkit import gemm
from labkit.rebinding import rebuilt

step, size = gemm.step("fp32", sys.argv[1]), int(sys.argv[2])
A, B, C = gemm.Problem(size, size, size).operands()
kernel = cuda.jit(rebuilt(step.kernel.py_func, {"cuda": cuda}))
start = time.perf_counter()
kernel[step.geometry(size, size)](A, B, C)
seconds = time.perf_counter() - start
assert (np.abs(C - gemm.oracle(A, B)) <= gemm.error_bound(A, B)).all()
print(json.dumps({"time_ms": seconds * 1e3}))
"""

FIRST = """
import json, sys, time
start = time.perf_counter()
import labkit
from labkit import gemm

step, size = gemm.step("fp32", sys.argv[1]), int(sys.argv[2])
trace = labkit.simulate(step.kernel, *step.geometry(size, size), *gemm.Problem(size, size, size).operands())
assert not trace.errors
print(json.dumps({"time_s": time.perf_counter() - start}))
"""
