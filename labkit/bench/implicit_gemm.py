"""`labkit bench implicit_gemm`: on what the speed of implicit GEMM depends, in three records.

`implicit_gemm_products` has layers with different sizes and equal products C * R * S and N * P * Q;
`implicit_gemm_division` has one kernel that finds its pixels in several ways; `implicit_gemm_tf32` has torch's default
for convolutions, TF32, on the layers of the cuDNN paper.
"""

from dataclasses import replace
from functools import partial

from labkit import conv, cuda, specialise
from labkit.bench import _cudnn, _harness, _record
from labkit.bench.conv import torch_chosen
from labkit.formats import FP32

CRS, NPQ, FILTERS = 2304, 65536, 128
SIDES = 1, 2, 3, 4, 6, 8, 12, 16  # of square filters, with as many channels as make up CRS
IMAGES = 1, 16, 64, 256, 1024, 4096  # with as many outputs as make up NPQ
USUAL_SIDE, USUAL_IMAGES = 3, 64
MANY = 128  # images of the layers that TF32 is timed on
DIVIDING = ("index", "offsets", "magic")


@cuda.jit(device=True)
def plain_divide(n, divisor):
    """Return n // divisor.value as the compiler does it."""
    return n // divisor.value


def magic_with_division(problem, format, *operands):
    """Return a launch of the step `magic` whose divisions are plain ones, and nothing else differs."""
    step = conv.ladder("implicit_gemm").step("magic")
    (launch,) = step.launches(*operands, format=format)
    launch = replace(launch, kernel=specialise(launch.kernel, fast_divide=plain_divide))
    return lambda stream: launch.run(stream)


def baselines(problem, format):
    """Return torch's choice in benchmark mode, without TF32."""
    return {"torch": torch_chosen}


def baselines_with_tf32(problem, format):
    """Return torch's choices without and with TF32, and the fastest of cuDNN's search, which has none."""
    return baselines(problem, format) | {
        "torch, TF32": partial(torch_chosen, allow_tf32=True),
        "cuDNN's search": _cudnn.contender,
    }


PRODUCTS = _harness.Benchmark("implicit_gemm_products", "Implicit GEMM, equal products", (), baselines=baselines)
DIVISION = _harness.Benchmark(
    "implicit_gemm_division", "Implicit GEMM, ways to divide", (), ours={"magic with //": magic_with_division}
)
TF32 = _harness.Benchmark("implicit_gemm_tf32", "Implicit GEMM and TF32", (), baselines=baselines_with_tf32)


def problem_of_products(images: int, side: int) -> conv.Forward:
    """Return a layer with FILTERS x CRS times CRS x NPQ as its matrix product."""
    outputs = round((NPQ / images) ** 0.5)
    pixels = outputs + side - 1
    return conv.Forward(images, CRS // side**2, pixels, pixels, FILTERS, side, side)


def problems_of_products() -> list[conv.Forward]:
    """Return layers with filters of different sides, and with different numbers of images."""
    sizes = [(USUAL_IMAGES, side) for side in SIDES] + [(images, USUAL_SIDE) for images in IMAGES]
    return [problem_of_products(*size) for size in dict.fromkeys(sizes)]


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("times kernels")
    steps = conv.ladder("implicit_gemm")
    few = steps.step("index").benched  # Table 2 of the cuDNN paper
    many = [replace(problem, N=MANY) for problem in few]
    for benchmark, problems, slugs in (
        (PRODUCTS, problems_of_products(), ("gathered",)),
        (DIVISION, few, DIVIDING),
        (TF32, many, ("gathered",)),
    ):
        rows = []
        for problem in problems:
            _record.report_progress(f"timing {benchmark.name} {problem}")
            rows += _harness.measure(benchmark, problem, FP32, [steps.step(slug) for slug in slugs])
        _harness.print_comparison(f"{benchmark.title}, on {gpu.name}", rows)
        _record.store_if_requested(benchmark.name, rows, gpu.name, record, out)
