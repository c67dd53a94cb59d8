"""`labkit bench gemm_shapes`: gemm.multiply in bfloat16 compared with cuBLAS, on squares and a transformer's layers.

For each shape the most promising candidates are timed first, as `gemm.tune` does; then the fastest alternates with
cuBLAS. The last row is what can be read from memory at all: `nrm2` of a vector of 1 GB.
"""

from functools import partial
from itertools import product
from statistics import geometric_mean

from rich.console import Console
from rich.progress import track

from labkit.bench import _harness, _record
from labkit.bench.gemm_tensor import baselines
from labkit.blas import nrm2
from labkit.calls import timing
from labkit.calls.plan import make_plan
from labkit.formats import BF16, FP32
from labkit.gemm import LayerProblem
from labkit.gemm.interface.candidates import Shape, candidates
from labkit.gemm.interface.product import Product

SQUARES = tuple((size, size, size) for size in (1024, 2048, 4096, 8192, 16384))
SIDES = (4096, 11008, 14336)
LAYERS = tuple((M, N, K) for M, N, K in product((1, 8, 16, 64, 256, 1024, 4096), SIDES, SIDES))
MOST_CANDIDATES = 7
READ_1_GB = nrm2.problem(2**28)  # of float32


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("times kernels")
    rows = [measure(LayerProblem(*shape)) for shape in track([*SQUARES, *LAYERS], console=Console(stderr=True))]
    _harness.print_comparison(f"gemm.multiply, bfloat16, on {gpu.name}", rows)
    for name, mean in means(rows).items():
        Console().print(f"{name}: {mean:.1%} of cuBLAS's speed")
    (reading,) = _harness.measure(_harness.Benchmark("gemm_shapes", title="", ladders=()), READ_1_GB, FP32, [nrm2])
    Console().print(f"read from memory: {reading['gb_s']:.0f} GB/s")
    _record.store_if_requested("gemm_shapes", [*rows, {**reading, "step": "read"}], gpu.name, record, out)


def measure(problem: LayerProblem) -> dict:
    """Return a row for C = A @ B.T by the fastest candidate."""
    sets = _harness.copies_on_gpu(problem.operands(BF16), _harness.count_operand_sets(problem.min_bytes(BF16)))
    promising = candidates(BF16, Shape(problem.M, problem.N, problem.K))[:MOST_CANDIDATES]
    times_ms = timing.gpu_times_ms(
        {tried: [_candidate_launch(tried, problem, BF16, *operands) for operands in sets] for tried in promising}
    )
    fastest = min(times_ms, key=times_ms.get)
    ours = {"multiply": partial(_candidate_launch, fastest)}
    benchmark = _harness.Benchmark("gemm_shapes", title="", ladders=(), ours=ours, baselines=baselines)
    (row,) = _harness.measure(benchmark, problem, BF16)
    return {**row, "plan": ", ".join(map(str, fastest.tiling)) if fastest.tiling else fastest.step}


def means(rows: list[dict]) -> dict[str, float]:
    """Return the geometric means of speeds relative to cuBLAS, of the squares and of the layers."""
    squares = [row["ratio"] for row in rows if row["M"] == row["N"] == row["K"]]
    layers = [row["ratio"] for row in rows if not row["M"] == row["N"] == row["K"]]
    return {"squares": geometric_mean(squares), "layers": geometric_mean(layers)}


def _candidate_launch(candidate, problem, format, A, B, C):
    """C = A @ B.T by a certain candidate."""
    operation = Product(transpose_b=True, format=format, candidate=candidate)
    plan = make_plan(operation, {"A": A, "B": B, "C": C})
    return lambda stream: plan(stream=stream)
