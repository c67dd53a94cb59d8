"""`labkit bench counters`: what the simulator counts beside what the GPU's own counters say, read with ncu.

The simulator counts what the source asks for. The compiler may ask for less: it merges four shared loads
into one of 128 bits. The SASS factor says how much less, read from the machine code alone: instructions
of a kind for each multiply-add there, over the same of the source.
"""

import csv
import io
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

import labkit
from labkit import device, gemm
from labkit.bench import _record

PROBLEMS = (gemm.Problem(256, 256, 256), gemm.Problem(200, 120, 72))  # the first has no ragged edge
COLUMNS = {
    "kernel": "",
    "problem": "",
    "counter": "",
    "predicted": ",d",
    "sass_factor": ".4f",
    "measured": ",d",
    "agreement": ".4f",
}


@dataclass(frozen=True)
class Counter:
    """How one counter is read from a Trace and from ncu, and which SASS instruction it counts."""

    name: str
    metrics: tuple[str, ...]
    instruction: str

    def predicted(self, trace) -> int:
        if self.name == "shared_load_requests":
            sites = (s for s in trace.sites if s.site.space == "shared" and s.site.kind == "load")
            return sum(s.requests for s in sites)
        return getattr(trace.counters, self.name)


_SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
COUNTERS = (
    Counter("global_load_requests", ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",), "LDG"),
    Counter("global_load_sectors", ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",), "LDG"),
    Counter("global_store_requests", ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",), "STG"),
    Counter("global_store_sectors", ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",), "STG"),
    Counter("shared_load_requests", ("smsp__sass_inst_executed_op_shared_ld.sum",), "LDS"),
    Counter("bank_conflicts", ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",), ""),
    Counter("flops", tuple(_SASS.format(op) for op in ("ffma", "fadd", "fmul")), ""),
)
FLOPS_OF = {_SASS.format("ffma"): 2}


def main(record=False, out=None) -> None:
    found = device.detect()
    if found.kind != "gpu" or shutil.which("ncu") is None:
        missing = found.detail if found.kind != "gpu" else "Nsight Compute (ncu) is not on the PATH"
        Console().print(f"This bench reads a GPU's counters, but {missing}; run `labkit doctor`.")
        raise SystemExit(1)
    rows = [row for step in gemm.ladder("fp32") for row in compare(step)]
    _record.show(f"counters of {found.name}", rows, COLUMNS)
    _record.finish("counters", rows, found.name, record, out)


def compare(step) -> list[dict]:
    """A row for each problem and counter."""
    traces = [simulated(step, problem) for problem in PROBLEMS]
    sass = machine_code(step)
    rows = []
    for problem, trace in zip(PROBLEMS, traces, strict=True):
        measured = read_ncu(step.slug, problem)
        for counter in COUNTERS:
            predicted = counter.predicted(trace)
            factor = sass_factor(sass, counter, traces[0])
            found = sum(measured[metric] * FLOPS_OF.get(metric, 1) for metric in counter.metrics)
            rows.append(
                {
                    "kernel": step.slug,
                    "problem": f"{problem.M}x{problem.N}x{problem.K}",
                    "counter": counter.name,
                    "predicted": predicted,
                    "sass_factor": factor,
                    "measured": found,
                    "agreement": found / (predicted * factor) if predicted else float(found == 0),
                }
            )
    return rows


def simulated(step, problem: gemm.Problem):
    return labkit.simulate(step.kernel, *step.geometry(problem.M, problem.N), *problem.operands())


def sass_factor(sass: str, counter: Counter, trace) -> float:
    """Instructions of the counter's kind for each multiply-add in the machine code, over those of the source.

    `trace` is of a problem without ragged edges, so that its counts tell how often each loop of the source
    runs. Stores stand outside the loops and are compared by their number.
    """
    count = sass.count(f" {counter.instruction}")
    multiply_adds = trace.counters.flops / 2
    match counter.instruction:
        case "LDG":
            source = trace.counters.global_loads / multiply_adds
        case "LDS" if trace.counters.shared_loads:
            source = trace.counters.shared_loads / multiply_adds
        case "STG":
            return count / sum(s.site.kind == "store" and s.site.space == "global" for s in trace.sites)
        case _:
            return 1.0
    return count / sass.count(" FFMA") / source


def machine_code(step) -> str:
    """The SASS of a step's kernel for this GPU."""
    from numba import cuda

    step.launch(*map(cuda.to_device, PROBLEMS[0].operands()))
    (sass,) = step.kernel.inspect_sass().values()
    return sass


def read_ncu(slug: str, problem: gemm.Problem) -> dict[str, int]:
    """The metrics of one launch, by name."""
    metrics = ",".join(metric for counter in COUNTERS for metric in counter.metrics)
    sizes = map(str, (problem.M, problem.N, problem.K))
    command = [
        "ncu",
        "--csv",
        "--clock-control",
        "none",
        "--metrics",
        metrics,
        "--kernel-name",
        f"regex:{slug}",
    ]
    command += [sys.executable, "-c", LAUNCH, slug, *sizes]
    path = os.pathsep.join(filter(None, [str(Path(labkit.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    start = done.stdout.find('"ID"')
    if done.returncode != 0 or start < 0:
        raise RuntimeError(f"ncu read nothing: {done.stdout[-500:]}{done.stderr[-500:]}")
    rows = csv.DictReader(io.StringIO(done.stdout[start:]))
    return {row["Metric Name"]: int(row["Metric Value"].replace(",", "")) for row in rows}


LAUNCH = """
import sys
from numba import cuda
from labkit import gemm

step = gemm.step("fp32", sys.argv[1])
step.launch(*map(cuda.to_device, gemm.Problem(*map(int, sys.argv[2:])).operands()))
cuda.synchronize()
"""
