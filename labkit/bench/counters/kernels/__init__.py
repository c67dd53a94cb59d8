"""Small kernels whose counters the simulator predicts and a GPU's own counters check: a file for each family.

Their machine code accesses memory as the source does: no thread reads an element twice, and the compiler can drop no
access.
"""

from functools import partial

import numpy as np

from labkit import gemm
from labkit.arrays.workspace import Workspace
from labkit.bench.counters.kernels import copies, histograms, products, reductions, stencils, transposes, vectors
from labkit.bench.counters.kernels.launch import L2_PAIRS, Launch
from labkit.ladder import ladder

PRODUCTS = ("naive", "coalesced", "tiled")  # steps whose machine code accesses memory as the source does
FLOPS_OPEN = {  # a counter that is left open, not compared: the reason
    "flops": "a quotient, a root or a power takes several machine operations, and ncu's FLOPs leave tensor cores out"
}
TMA_OPEN = dict.fromkeys(
    ["global_load_requests", "global_load_sectors", "global_store_requests", "global_store_sectors", "l1_hit_rate"],
    "TMA's copies bypass L1 and the instructions that ncu counts",
)
FRAGMENT_LOADS_OPEN = dict.fromkeys(
    ["shared_load_requests", "shared_load_wavefronts"], "ncu does not count `ldmatrix` and `wgmma` as loads"
)
BARRIERS_OPEN = dict.fromkeys(
    ["shared_store_wavefronts", "shared_atomic_wavefronts"],
    "ncu does not count stores and atomics by TMA, `stmatrix` and mbarriers",
)
L2_HITS_OPEN = {
    "l2_hit_rate": "blocks request keys while another block's load is in flight, which ncu does not count as a hit"
}
FEW_BLOCKS_OPEN = {
    "l2_hit_rate": "few blocks run at once, some request the same sectors, and the hit rate varies between runs"
}
COPIES_OPEN = {"shared_store_wavefronts": "ncu does not count the stores of `cp.async`"}
STEPS = {  # operation, ladder and slug of a kernel: the counters that are not compared, each with the reason
    ("gemm", "fp32", "register_tile"): FEW_BLOCKS_OPEN,
    ("gemm", "fp32", "tuned"): COPIES_OPEN,
    ("gemm", "tensor", "mma"): FLOPS_OPEN | FEW_BLOCKS_OPEN,
    ("gemm", "tensor", "pipelined"): FLOPS_OPEN | FRAGMENT_LOADS_OPEN | COPIES_OPEN,
    ("gemm", "tensor", "persistent"): FLOPS_OPEN | FRAGMENT_LOADS_OPEN | TMA_OPEN | BARRIERS_OPEN | FEW_BLOCKS_OPEN,
    ("layouts", "transpose", "tiled"): {},
    ("layouts", "transpose", "vectorised"): {},
    ("layouts", "transpose", "swizzled"): {},
    ("norm", "batch", "fused"): FLOPS_OPEN,
    ("norm", "channels_last", "in_registers"): FLOPS_OPEN,
    ("norm", "batch_backward", "masked_again"): FLOPS_OPEN,
    ("norm", "rows", "three_reads"): FLOPS_OPEN
    | {"l2_hit_rate": "rows request a weight while another row's load is in flight, which ncu does not count as a hit"},
    ("norm", "rows_backward", "split"): {},
    ("softmax", "forward", "online"): FLOPS_OPEN,
    ("softmax", "backward", "fused"): {},
    ("attention", "forward", "q_outer"): FLOPS_OPEN | L2_HITS_OPEN,
    ("attention", "forward", "mma"): FLOPS_OPEN | FRAGMENT_LOADS_OPEN | L2_HITS_OPEN,
    ("attention", "forward", "persistent"): FLOPS_OPEN | FRAGMENT_LOADS_OPEN | TMA_OPEN | BARRIERS_OPEN | L2_HITS_OPEN,
    ("conv", "direct", "halo"): {},
    ("conv", "im2col", "batch"): {},
    ("conv", "implicit_gemm", "magic"): L2_PAIRS,
    ("conv", "winograd", "f2x2"): {"flops": "the compiler drops products with the zeros and ones of constant matrices"},
    ("conv", "fft", "tiled"): {"flops": "a product that is added and subtracted becomes two fused multiply-adds"},
}
PROBLEMS = {  # for steps whose `roofline_problem` is too small
    # divergent warps: the compiler's copies of a loop access memory for their lanes one after the other
    ("norm", "batch", "fused"): (8, 8, 32, 32),
    ("norm", "batch_backward", "masked_again"): (8, 8, 32, 32),
    # one tile of keys, or none that is left out
    ("attention", "forward", "q_outer"): (1, 2, 256, 64, 256, 2, True),
    ("attention", "forward", "mma"): (1, 2, 300, 64, 512, 2, True),
    ("attention", "forward", "persistent"): (1, 4, 512, 128, 512, 2, True),
}


def launches() -> list[Launch]:
    """Return every launch that is compared, in running order."""
    families = (copies, vectors, transposes, reductions, histograms, stencils, products)
    return [*_products(), *_steps(), *(launch for family in families for launch in family.LAUNCHES)]


def _products():
    for step in map(gemm.ladder("fp32").step, PRODUCTS):
        for problem, left_open in ((gemm.Problem(256, 256, 256), {}), (gemm.Problem(200, 120, 72), FEW_BLOCKS_OPEN)):
            (launch,) = step.launches(*problem.operands())
            options = {"problem": str(problem), "name": step.slug, "shared_bytes": launch.shared_bytes}
            options["left_open"] = left_open  # the second problem has ragged edges
            yield Launch(launch.kernel, launch.grid, launch.block, problem.operands, **options)


def _steps():
    """Yield the launch of each step's own kernel, without those before and after it."""
    for (operation, name, slug), left_open in STEPS.items():
        step = ladder(operation, name).step(slug)
        sizes = PROBLEMS.get((operation, name, slug))
        problem = step.roofline_problem if sizes is None else step.problem(*sizes)
        launch, arguments = _own_launch(step, problem), partial(_arguments, step, problem)
        titles = {"problem": str(problem), "name": f"{name} {slug}"}
        options = {**titles, "left_open": left_open, "shared_bytes": launch.shared_bytes}
        yield Launch(launch.kernel, launch.grid, launch.block, arguments, **options)


def _own_launch(step, problem):
    launches = step.launches(*problem.operands(step.formats[0]), workspace=Workspace())
    return next(launch for launch in launches if launch.kernel.__name__ == step.slug)


def _arguments(step, problem):
    """Make the arguments anew, since a launch writes into them."""
    return tuple(np.array(X) if hasattr(X, "copy_to_host") else X for X in _own_launch(step, problem).arguments)
