"""`labkit bench conv_batches`: the layers of the cuDNN paper with growing numbers of images, as in its Figure 2.

Each family has an algorithm or more. A baseline lowers each image and calls cuBLAS for it, as Caffe did. torch is timed
in three formats: float32, TF32 (its default for convolutions of float32), and bfloat16 beside our tensor cores.
"""

from functools import partial
from pathlib import Path

from labkit import conv
from labkit.bench import _harness, _record, _torch
from labkit.bench.conv import torch_chosen
from labkit.bench.conv_choices import algorithm_launch
from labkit.calls.memory import PlanWorkspace
from labkit.conv.layers import TABLE_2, batched
from labkit.formats import BF16, FP32

NAME = "conv_batches"
IMAGES = 1, 16, 64, 128
IMAGES_IN_16_BITS = 128
ALGORITHMS = (  # of which each layer has those that apply
    "direct/registers", "implicit_gemm/gathered", "implicit_gemm/split", "fft/few_taps",
    "winograd/f2x2", "winograd/f4x4", "winograd/f6x6",
)  # fmt: skip


def main(record: bool = False, out: Path | None = None) -> None:
    gpu = _record.require_gpu("times kernels")
    problems = [conv.Forward(*sizes) for images in IMAGES for sizes in batched(images, TABLE_2)]
    rows = [row for problem in problems for row in measure(problem)]
    rows += [row for sizes in batched(IMAGES_IN_16_BITS, TABLE_2) for row in measure_16_bits(sizes)]
    _harness.print_comparison(f"Convolution by number of images on {gpu.name}", rows)
    _record.store_if_requested(NAME, rows, gpu.name, record, out)


def measure(problem) -> list[dict]:
    """Return a row for each algorithm that applies and each baseline, in float32."""
    _record.report_progress(f"timing {NAME} {problem}")
    usable = {str(row.algorithm): row.algorithm for row in conv.heuristic(problem) if not row.reason}
    names = [name for name in ALGORITHMS if name in usable]
    ours = {name: partial(algorithm_launch, usable[name], PlanWorkspace()) for name in names}
    contenders = {"torch": torch_chosen, "torch, TF32": torch_tf32, "im2col and cuBLAS, image by image": by_image}
    table = _harness.Benchmark(NAME, NAME, ladders=(), ours=ours, baselines=lambda *_: contenders)
    return _harness.measure(table, problem, FP32)


def measure_16_bits(sizes) -> list[dict]:
    """Return a row for the fastest step on tensor cores, compared with torch."""
    step = conv.ladder("tensor").step("persistent")
    table = _harness.Benchmark(NAME, NAME, ladders=(), baselines=lambda *_: {"torch, bfloat16": torch_chosen})
    problem = step.problem(*sizes)
    _record.report_progress(f"timing {NAME} {problem} in {BF16.name}")
    return _harness.measure(table, problem, BF16, [step])


def torch_tf32(problem, format, *operands):
    """Return `torch_chosen` as torch computes by default: factors are rounded to TF32, for the tensor cores."""
    launch = torch_chosen(problem, format, *operands, allow_tf32=True)
    launch.facts = {"dtype": "tf32"}
    return launch


def by_image(problem, format, x, w, y, _):
    """Return a launch that writes the matrix of each image and multiplies it with cuBLAS, as Caffe did."""
    import torch
    from torch.nn.functional import unfold

    x, w, y = _torch.tensors(format, x, w, y)
    filters, outputs = w.view(problem.K, -1), y.view(problem.N, problem.K, -1)
    padding, stride = (problem.top, problem.left), (problem.stride_h, problem.stride_w)

    def call():
        for n in range(problem.N):
            pixels = unfold(x[n : n + 1], (problem.R, problem.S), padding=padding, stride=stride)[0]
            torch.mm(filters, pixels, out=outputs[n])

    return _torch.launch_on_stream(call)
