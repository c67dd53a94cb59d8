"""`labkit bench stalls`: what the warps of each GEMM step do in every cycle, and how busy its arithmetic is, by ncu.

A warp that is resident issues an instruction in a cycle, or it waits, for one of the reasons of Nsight Compute's
*warp states*. Reasons with the same cause are added up.
"""

import sys
import tempfile
from pathlib import Path

from labkit import cuda, gemm
from labkit.bench import _ncu, _record
from labkit.formats import BF16, FP32, Format

STATES = {  # what a warp does: ncu's names of it
    "issue an instruction": ("selected",),
    "ready, another warp issues": ("not_selected",),
    "global memory": ("long_scoreboard", "lg_throttle"),
    "shared memory": ("short_scoreboard", "mio_throttle"),
    "a barrier or wgmma_wait": ("barrier", "membar", "sleeping"),  # `WARPGROUP.DEPBAR` counts as a barrier
    "arithmetic units": ("math_pipe_throttle", "gmma"),
    "an earlier instruction": ("wait", "dispatch_stall", "branch_resolving", "no_instruction", "imc_miss"),
    "the end of the kernel, and others": ("drain", "misc", "tex_throttle"),
}
METRIC = "smsp__warp_issue_stalled_{}_per_warp_active.pct"
BUSY = {  # the unit of a ladder's arithmetic: its metric
    "fp32": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
}
OUR_KERNELS = "--kernel-name-base", "mangled", "--kernel-name", "regex:labkit"
LADDERS = {"fp32": (FP32, 2048), "tensor": (BF16, 4096)}  # the format, and the side of the matrices
COLUMNS = {"ladder": "", "step": "", "state": "", "percent": ".1f"}


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("reads counters", "ncu")
    metrics = [METRIC.format(name) for names in STATES.values() for name in names] + list(BUSY.values())
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "ncu.csv")
        program = [sys.executable, "-m", "labkit.bench.stalls"]
        _ncu.wait(_ncu.start(program, metrics, table, OUR_KERNELS), table)
        measured = _ncu.read(table)
    rows = [row for step, found in zip(steps(), measured, strict=True) for row in states(*step, found)]
    _record.print_table(f"What warps wait for on {gpu.name}", rows, COLUMNS)
    _record.store_if_requested("stalls", rows, gpu.name, record, out)


def steps() -> list[tuple]:
    """Return (ladder, step, problem, format) of each kernel that is profiled, in order."""
    return [
        (name, step, gemm.Problem(side, side, side), format)
        for name, (format, side) in LADDERS.items()
        for step in gemm.ladder(name)
        if step.slug != "split"  # which is for few rows
    ]


def states(ladder: str, step, problem, format: Format, metrics: dict[str, float]) -> list[dict]:
    """Return a row for each state, with its share of all resident warps' cycles in percent, and one for `busy`."""
    where = {"operation": "stalls", "step": step.slug, "ladder": ladder, "problem": str(problem), "dtype": format.name}
    shares = {state: sum(metrics[METRIC.format(name)] for name in names) for state, names in STATES.items()}
    rows = [{**where, "state": state, "percent": percent} for state, percent in shares.items()]
    return [*rows, {**where, "state": "busy", "percent": metrics[BUSY[ladder]]}]


def launch_all() -> None:
    """Launch each step once: the program that ncu profiles."""
    for _, step, problem, format in steps():
        step.launch(*map(cuda.to_device, problem.operands(format)), format=format)
        cuda.synchronize()


if __name__ == "__main__":
    launch_all()
