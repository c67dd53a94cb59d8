"""Small kernels whose counters the simulator predicts and a GPU's own counters check: a file for each family.

They are written so that the machine code asks memory for what the source asks: no element is read twice by a thread,
and no access is left to the compiler to drop.
"""

from labkit import gemm
from labkit.bench.counters.kernels import (
    copies,
    histograms,
    products,
    reductions,
    stencils,
    transposes,
    vectors,
)
from labkit.bench.counters.kernels.launch import Launch


def launches() -> list[Launch]:
    """Every launch that is compared, in the order in which they run."""
    families = (copies, vectors, transposes, reductions, histograms, stencils, products)
    return [*_ladder(), *(launch for family in families for launch in family.LAUNCHES)]


def _ladder():
    for step in gemm.ladder("fp32"):
        for problem in (gemm.Problem(256, 256, 256), gemm.Problem(200, 120, 72)):  # the second has ragged edges
            (one,) = step.launches(*problem.operands())
            shape = str(problem), step.slug
            yield Launch(one.kernel, one.grid, one.block, problem.operands, *shape, shared_bytes=one.shared_bytes)
