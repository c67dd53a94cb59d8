"""`labkit bench gemm_shapes`: gemm.multiply in bfloat16 beside cuBLAS, on squares and on the layers of a transformer.

For each shape the most promising candidates are timed first, as `gemm.tune` does; then the fastest takes turns with
cuBLAS. Operands are rotated, so that no weights are found in L2. The last row is what can be read from memory at all:
`nrm2` of a vector of 1 GB.
"""

from itertools import product
from statistics import geometric_mean

from rich.console import Console
from rich.progress import track

from labkit import gemm, ptx, timing
from labkit.bench import _products, _record
from labkit.gemm.interface.candidates import Shape, candidates
from labkit.gemm.interface.carry_out import carry_out
from labkit.gemm.interface.precisions import PRECISIONS

SQUARES = tuple((size, size, size) for size in (1024, 2048, 4096, 8192, 16384))
SIDES = (4096, 11008, 14336)
LAYERS = tuple((M, N, K) for M, N, K in product((1, 8, 16, 64, 256, 1024, 4096), SIDES, SIDES))
MOST_CANDIDATES = 7
PRECISION = PRECISIONS["bfloat16"]
READ_ELEMENTS = 2**28
COLUMNS = {
    "problem": "",
    "step": "",
    "time_ms": ".4f",
    "tflops": ".0f",
    "gb_s": ".0f",
    "rival_time_ms": ".4f",
    "ratio": ".1%",
    "error": ".1e",
    "rival_error": ".1e",
    "plan": "",
}


def main(record=False, out=None) -> None:
    found = _record.require_gpu("times kernels")
    console = Console(stderr=True)
    rows = [measure(*shape) for shape in track([*SQUARES, *LAYERS], "shapes", console=console)]
    _record.show(f"gemm.multiply, bfloat16, on {found.name}", rows, COLUMNS)
    for name, mean in means(rows).items():
        Console().print(f"{name}: {mean:.1%} of cuBLAS's speed")
    reading = read()
    Console().print(f"read from memory: {reading['gb_s']:.0f} GB/s")
    _record.finish("gemm_shapes", [*rows, reading], found.name, record, out)


def measure(M: int, N: int, K: int) -> dict:
    """A row for C = A @ B.T of M x K by K x N."""
    import torch

    generator = torch.Generator("cuda").manual_seed(0)
    tensors = [_products.operands(M, N, K, ptx.BF16, generator) for _ in range(_products.sets(M, N, K, itemsize=2))]
    arrays = [tuple(map(_products.as_array, each)) for each in tensors]
    ways = {way: [_launch(way, each) for each in arrays] for way in candidates(PRECISION, Shape(M, N, K))}
    ways = dict(list(ways.items())[:MOST_CANDIDATES])
    first_times_ms = timing.gpu_times_ms(ways)
    fastest = min(first_times_ms, key=first_times_ms.get)
    cublas = [_products.rival(ptx.BF16, *each) for each in tensors]
    times_ms = timing.gpu_times_ms({"ours": ways[fastest], "cuBLAS": cublas})
    problem, time_ms = gemm.Problem(M, N, K), times_ms["ours"]
    return {
        "operation": "gemm_shapes",
        "step": "multiply",
        "problem": str(problem),
        "dtype": "bfloat16",
        "plan": ", ".join(map(str, fastest.tiling)) if fastest.tiling else fastest.step,
        "time_ms": time_ms,
        "tflops": problem.flops / time_ms / 1e9,
        "gb_s": problem.least_bytes(2) / time_ms / 1e6,
        "error": _products.error(ways[fastest][0], *tensors[0]),
        "rival": "cuBLAS",
        "rival_time_ms": times_ms["cuBLAS"],
        "rival_error": _products.error(cublas[0], *tensors[0]),
        "ratio": times_ms["cuBLAS"] / time_ms,
    }


def means(rows: list[dict]) -> dict[str, float]:
    """The geometric means of the speeds as shares of cuBLAS's: of the squares, and of the layers."""
    squares = {str(gemm.Problem(*shape)) for shape in SQUARES}
    groups = {"squares": True, "layers": False}
    return {
        name: geometric_mean(row["ratio"] for row in rows if (row["problem"] in squares) is wanted)
        for name, wanted in groups.items()
    }


def read() -> dict:
    """A row for reading 1 GB from memory."""
    import torch
    from numba import cuda

    from labkit.blas import nrm2

    x, result = torch.randn(READ_ELEMENTS, device="cuda"), torch.empty(1, device="cuda")
    arrays = tuple(map(cuda.as_cuda_array, (x, result)))
    scratch = nrm2.scratch()
    time_ms = timing.gpu_time_ms([lambda stream: nrm2.launch(*arrays, scratch, stream)])
    read_bytes = 4 * READ_ELEMENTS
    return {
        "operation": "gemm_shapes",
        "step": "read",
        "problem": str(READ_ELEMENTS),
        "dtype": "float32",
        "time_ms": time_ms,
        "gb_s": read_bytes / time_ms / 1e6,
    }


def _launch(way, arrays):
    return lambda stream: carry_out(way, PRECISION, *arrays, 1.0, 0.0, stream)
