"""Every step of the book with its chapter and its recorded speed: the whole ladder."""

import re
from collections.abc import Sequence

from labkit import results
from labkit.book import surroundings
from labkit.checking.source import python_function
from labkit.exercises.contents import book_contents
from labkit.ladder import Ladder, Step, every_ladder
from labkit.machine.gpus import GPU_BY_DRIVER_NAME, GPUS
from labkit.ptx.capabilities import CAPABILITIES, is_missing
from labkit.table import short_number
from labkit.views import Rung

# The chapter that teaches a ladder, or, where a ladder spans several, a step.
CHAPTERS = {
    "loops": "triple-loop",
    "gemm/fp32": "register-tiles",
    "gemm/fp32/naive": "first-gpu-matmul",
    "gemm/fp32/coalesced": "first-gpu-matmul",
    "gemm/fp32/tiled": "tiled-gemm",
    "blas/level1": "roofline",
    "blas/level2": "roofline",
    "gemm/tensor": "hopper-gemm",
    "gemm/tensor/mma": "tensor-cores",
    "gemm/tensor/ldmatrix": "feeding-tensor-cores",
    "gemm/tensor/pipelined": "feeding-tensor-cores",
    "conv/direct": "direct-convolution",
    "conv/im2col": "im2col-and-implicit-gemm",
    "conv/implicit_gemm": "im2col-and-implicit-gemm",
    "conv/winograd": "winograd",
    "conv/fft": "fft-convolution",
    "norm": "batchnorm-fused",
    "layouts/transpose": "layouts-nhwc",
    "conv/tensor": "tensor-core-convolution",
    "conv/tensor_gradients": "tensor-core-convolution",
    "softmax": "attention-and-online-softmax",
    "attention/forward": "flash-attention-2-and-3",
    "attention/forward/standard": "flash-attention",
    "attention/forward/kv_outer": "flash-attention",
    "attention/forward/q_outer": "flash-attention",
    "attention/forward/mma": "flash-attention",
    "attention/forward/pipelined": "flash-attention",
    "attention/backward": "flash-attention-2-and-3",
    "attention/decode": "decoding-and-few-bits",
    "attention/fp8": "decoding-and-few-bits",
}
NO_LIBRARY = re.compile(r"CUDA C\+\+|cop(y|ies)|cuMemcpy|standard \(.*\)")  # baselines that a step is not judged by
CPU_MACHINE = "amd-epyc"


def rungs(machine: str = "nvidia-h100-80gb-hbm3") -> list[Rung]:
    """Return the steps of all recorded ladders in the order of the book; loops of the CPU are those of one CPU."""
    recorded = {name for _, name in results.recorded()}
    found = [each for each in every_ladder() if each.record in recorded]
    found.sort(key=lambda each: (_number(each[0]), list(CHAPTERS).index(_key(each))))
    return [rung for each in found for rung in _rungs_of(each, CPU_MACHINE if each.path == "loops" else machine)]


def _key(ladder: Ladder) -> str:
    return ladder.path if ladder.path in CHAPTERS else ladder.operation


def chapter(step: Step) -> str:
    """Return the slug of the chapter that teaches a step."""
    return CHAPTERS.get(f"{step.ladder.path}/{step.slug}") or CHAPTERS[_key(step.ladder)]


def _number(step) -> str:
    found = book_contents().chapter(chapter(step))
    assert found is not None, f"{chapter(step)} is no chapter"
    return found.number


def _rungs_of(ladder: Ladder, machine: str) -> list[Rung]:
    record = results.load(ladder.record, machine)
    return [_rung(step, record) for step in ladder]


def _rung(step: Step, record) -> Rung:
    needed = _needs(step) if record.header.get("gpu") else []
    facts = {
        "ladder": step.ladder.path,
        "step": step.slug,
        "idea": step.idea,
        "chapter": _number(step),
        "needs": max((need[:2] for need in needed), default=(0, 0)),
        "gpus": tuple(
            name
            for name, gpu in GPUS.items()
            if step.shared_bytes <= gpu.shared_bytes_per_block
            and not any(is_missing(gpu.compute_capability, need) for need in needed)
        ),
    }
    format = step.formats[0]
    rows = [
        row
        for row in record.select(step=step.slug, dtype=format.name)
        if row.get("baseline") and not NO_LIBRARY.fullmatch(row["baseline"])
    ]
    if not rows:
        return Rung(**facts)
    problem = str(step.compared) if record.header.get("gpu") else rows[-1]["problem"]
    row = min((row for row in rows if row["problem"] == problem), key=lambda row: row["baseline_time_ms"])
    gpu = GPUS.get(GPU_BY_DRIVER_NAME.get(record.header.get("gpu", ""), ""))
    speed, share = f"{short_number(row.get('gflops') or 0)} GFLOP/s", None
    if gpu:
        arithmetic_ms = row["flops"] / gpu.peak_tflops[format.arithmetic or "float32"] / 1e9
        memory_ms = row["min_bytes"] / gpu.dram_gb_s / 1e6
        speed = f"{short_number(row['tflops'])} TFLOP/s" if arithmetic_ms > memory_ms else f"{row['gb_s']:,.0f} GB/s"
        share = max(arithmetic_ms, memory_ms) / row["time_ms"]
    measured = {"problem": f"{problem} in {format.name}", "library": row["baseline"], "ratio": row["ratio"]}
    return Rung(**facts, **measured, speed=speed, share=share)


def _needs(step: Step) -> Sequence[tuple]:
    """Return the compute capabilities that a step's instructions need."""
    number = step.formats[0].number
    used = surroundings.instructions(python_function(step.kernel))
    return [CAPABILITIES[key] for name in used for key in (name, (name, number)) if key in CAPABILITIES]
