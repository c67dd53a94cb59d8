"""`labkit bench mlir`: which kernels of the ladders numba_cuda_mlir, numba-cuda's successor, compiles, without a GPU.

Each kernel of a step counts once, in the step's first format. numba_cuda_mlir has none of labkit's instructions
(`labkit.ptx`): a kernel that calls some is compiled with stand-ins for them, which have their types and no effect. That
tells if anything else is in its way.
"""

import re
from collections import Counter
from importlib.util import find_spec

from rich.console import Console

from labkit import ladder
from labkit.arrays.workspace import CountingWorkspace
from labkit.bench import _record

PACKAGE = "numba_cuda_mlir"
AS_IT_IS, WITH_INSTRUCTIONS, FAILS = "compiles as it is", "compiles with labkit's instructions", "does not compile"
# A line with its own function for what an instruction does, or for a part of it: such as for two axes, or only the
# address in another block. The line's kernel has a global array `x` and a shared one `s`.
ITS_LINES = {
    "cluster_load": "cuda.intrin.mapa(types.ptr(s), 1)",
    "cluster_rank": "x[0] = cuda.intrin.cluster_ctarank()",
    "cluster_store": "cuda.intrin.mapa(types.ptr(s), 1)",
    "load2": "x[0] = cuda.vector.load(x, 2, 2, 8).x",
    "load4": "x[0] = cuda.vector.load(x, 4, 4, 16).x",
    "mbarrier_expect": "cuda.intrin.mbarrier_arrive_expect_tx(types.ptr(s), 16)",
    "mbarrier_init": "cuda.intrin.mbarrier_init(types.ptr(s), 1)",
    "mbarrier_init_fence": "cuda.intrin.fence_mbarrier_init()",
    "mbarrier_wait": "cuda.intrin.mbarrier_try_wait(types.ptr(s), 0)",
    "store2": "cuda.vector.store(x, 2, cuda.float32x2(x[0], x[1]), 8)",
    "store4": "cuda.vector.store(x, 4, cuda.float32x4(x[0], x[1], x[2], x[3]), 16)",
    "tma_load": "cuda.intrin.cp_async_bulk_tensor_2d(types.ptr(s), types.ptr(x), 0, 0, types.ptr(s))",
    "tma_load_multicast": "cuda.intrin.cp_async_bulk_tensor_2d_multicast("
    "types.ptr(s), types.ptr(x), 0, 0, types.ptr(s), 1)",
    "tma_prefetch": "cuda.intrin.prefetch_tensormap(types.ptr(x))",
}


def main(record=False, out=None) -> None:
    if find_spec(PACKAGE) is None:
        Console().print(f"This bench compiles by {PACKAGE}, which is not installed: `pip install numba-cuda-mlir`.")
        raise SystemExit(1)
    kernels = [row for step in steps() for row in rows_of(step)]
    outcomes = Counter((row["outcome"], row["reason"]) for row in kernels)
    totals = [{"kernels": n, "outcome": what, "reason": why} for (what, why), n in outcomes.most_common()]
    _record.print_table(f"kernels under {PACKAGE}", totals, {"kernels": "d", "outcome": "", "reason": ""})
    instructions = rows_of_instructions(kernels)
    columns = {"instruction": "", "used_by": "d", "its_name": "", "its_outcome": ""}
    _record.print_table(f"labkit's instructions that kernels use, and {PACKAGE}'s own names", instructions, columns)
    _record.store_if_requested("mlir", instructions + kernels, _record.cpu_name(), record, out)


def steps() -> list[ladder.Step]:
    """Return all steps whose kernels are for a GPU."""
    return [step for each in ladder.every_ladder() if each.operation != "loops" for step in each]


def rows_of(step: ladder.Step) -> list[dict]:
    """Compile each kernel of a step for the arguments of its last example."""
    from labkit.bench.mlir import compiling

    _record.report_progress(f"compiling {step.path}")
    format = step.formats[0]
    launches = step.launches(*step.examples[-1].operands(format), format=format, workspace=CountingWorkspace())
    rows = []
    for launch in {launch.kernel.__name__: launch for launch in launches if launch.grid != ()}.values():
        instructions = compiling.instructions_of(launch.kernel)
        reason = compiling.reason_to_refuse(launch.kernel, launch.arguments)
        outcome = FAILS if reason else WITH_INSTRUCTIONS if instructions else AS_IT_IS
        row = {"step": step.path, "kernel": launch.kernel.__name__, "outcome": outcome, "reason": reason}
        rows.append({**row, "instructions": " ".join(instructions)})
    return rows


def rows_of_instructions(kernels: list[dict]) -> list[dict]:
    """Return how many kernels call each instruction, most first, its name in numba_cuda_mlir, and if that compiles."""
    used_by = Counter(name for row in kernels for name in row["instructions"].split())
    names = sorted(used_by, key=lambda name: (-used_by[name], name))
    return [{"instruction": name, "used_by": used_by[name], **its_own(name)} for name in names]


def its_own(instruction: str) -> dict:
    """Compile numba_cuda_mlir's own function for an instruction, if it has one."""
    from labkit.bench.mlir import compiling

    line = ITS_LINES.get(instruction)
    if line is None:
        return {"its_name": "", "its_outcome": ""}
    name = re.search(r"cuda\.([\w.]+)\(", line)[1]
    return {"its_name": name, "its_outcome": compiling.reason_to_refuse_line(line) or AS_IT_IS}
