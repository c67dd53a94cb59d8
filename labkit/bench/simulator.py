"""`labkit bench simulator`: the lockstep simulator compared with numba's own, and the growth of its time and memory.

A lane operation is a load, a store, an atomic or a FLOP of one lane. Each size of the curve runs in a process of its
own, so that its peak of memory is its own too.
"""

import json
import os
import subprocess
import sys
import tempfile

import labkit
from labkit import gemm
from labkit.bench import _record
from labkit.calls import timing
from labkit.results.computed import add_computed

SIZES = (32, 64, 128)
STEPS = ("naive", "tiled")
COLUMNS = {"kernel": "", "problem": "", "numba_ms": ".1f", "labkit_ms": ".2f", "ratio": ".0f"}
CURVE_SIZES = (128, 256, 512, 1024)
SAMPLED_SIZE, SAMPLED_BLOCKS = 4096, 64  # too large to run whole: at least so many blocks run
CURVE_COLUMNS = {"kernel": "", "problem": "", "blocks_run": ",d", "labkit_ms": ",.1f"}
CURVE_COLUMNS |= {"lane_operations": ",d", "ns_per_lane_operation": ".2f", "peak_mb": ",.0f"}
FIRST_COLUMNS = {"kernel": "", "problem": "", "disk_cache": "", "first_simulate_s": ".2f"}


def main(record=False, out=None) -> None:
    rows = [compare(step, size) for step in STEPS for size in SIZES]
    _record.print_table("one launch, all counters and findings on", rows, COLUMNS)
    with tempfile.TemporaryDirectory() as cache:
        first = [first_simulate(kind, cache) for kind in ("cold", "warm")]
    _record.print_table("import and first simulate in a fresh process", first, FIRST_COLUMNS)
    curve = [measure_growth("tiled", size) for size in CURVE_SIZES]
    curve.append(measure_growth("tiled", SAMPLED_SIZE, SAMPLED_BLOCKS))
    _record.print_table("time and memory of larger problems", curve, CURVE_COLUMNS)
    _record.store_if_requested("simulator", rows + first + curve, _record.cpu_name(), record, out)


def compare(slug: str, size: int) -> dict:
    """Time one step in both simulators."""
    _record.report_progress(f"timing {slug} {size} in both simulators")
    step = gemm.step("fp32", slug)
    A, B, C = gemm.Problem(size, size, size).operands()
    labkit_ms = timing.host_time_ms(lambda: labkit.simulate(step.kernel, *step.geometry(size, size), A, B, C))
    numba_ms = _run_script(NUMBA_SCRIPT, slug, size, NUMBA_ENABLE_CUDASIM="1")["time_ms"]
    problem = f"{size}x{size}x{size}"
    return add_computed({"kernel": slug, "problem": problem, "numba_ms": numba_ms, "labkit_ms": labkit_ms})


def first_simulate(disk_cache: str, cache_folder: str) -> dict:
    """Time in seconds a fresh process that imports labkit and simulates s03_tiled at 64 for the first time."""
    _record.report_progress(f"timing a fresh process, {disk_cache} cache")
    seconds = _run_script(FIRST_SCRIPT, "tiled", 64, NUMBA_CACHE_DIR=cache_folder)["time_s"]
    return {"kernel": "tiled", "problem": "64x64x64", "disk_cache": disk_cache, "first_simulate_s": seconds}


def measure_growth(slug: str, size: int, sample: int | None = None) -> dict:
    """Measure time and peak memory of one step; lane operations of a `sample` are those of the blocks that ran."""
    _record.report_progress(f"timing {slug} {size}")
    measured = _run_script(GROWTH_SCRIPT, slug, size, sample or 0)
    return add_computed({"kernel": slug, "problem": f"{size}x{size}x{size}", **measured})


def _run_script(script: str, *arguments, **environment) -> dict:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    settings = {**os.environ, "LABKIT_DEVICE": "simulator", **environment}
    process = subprocess.run(command, env=settings, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(process.stdout.splitlines()[-1])


NUMBA_SCRIPT = """
import json, sys, time
import numpy as np
from numba import cuda
import labkit.cuda
from labkit import gemm
from labkit.rebinding import rebuild

step, size = gemm.step("fp32", sys.argv[1]), int(sys.argv[2])
A, B, C = gemm.Problem(size, size, size).operands()
kernel = cuda.jit(rebuild(step.kernel.py_func, {"cuda": cuda}))
start = time.perf_counter()
kernel[step.geometry(size, size)](A, B, C)
seconds = time.perf_counter() - start
assert (np.abs(C - gemm.oracle(A, B)) <= gemm.error_bound(A, B)).all()
print(json.dumps({"time_ms": seconds * 1e3}))
"""

FIRST_SCRIPT = """
import json, sys, time
start = time.perf_counter()
import labkit
from labkit import gemm

step, size = gemm.step("fp32", sys.argv[1]), int(sys.argv[2])
trace = labkit.simulate(step.kernel, *step.geometry(size, size), *gemm.Problem(size, size, size).operands())
assert not trace.errors
print(json.dumps({"time_s": time.perf_counter() - start}))
"""

GROWTH_SCRIPT = """
import json, sys
from math import prod
import labkit
from labkit import gemm
from labkit.calls import timing

step, size, sample = gemm.step("fp32", sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) or None

def simulated(size):
    arguments = gemm.Problem(size, size, size).operands()
    return lambda: labkit.simulate(step.kernel, *step.geometry(size, size), *arguments, sample=sample)

simulated(64)()
run = simulated(size)
traces = []
labkit_ms = timing.host_time_ms(lambda: traces.append(run()), repeats=7 if size <= 256 else 1)
trace = traces[-1]
c, part = trace.counters, trace.counters.sample
operations = (c.global_loads + c.global_stores + c.global_atomics + c.shared_loads + c.shared_stores
              + c.shared_atomics + c.flops)
blocks = prod(trace.grid)
run_blocks = part.blocks_run if part else blocks
found = {"labkit_ms": labkit_ms, "lane_operations": operations * run_blocks // blocks, "blocks_run": run_blocks}
try:
    import resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found["peak_mb"] = peak / (2**20 if sys.platform == "darwin" else 2**10)
except ImportError:  # Windows does not tell
    pass
print(json.dumps(found))
"""
