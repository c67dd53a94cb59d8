"""`labkit bench conv_formats`: layers of ResNet-50 with torch in float32, TF32 and bfloat16, and by our kernel.

TF32 is torch's default for convolutions of float32. The strided layers and the first one, with three channels, are
those on which kernels for tensor cores are tested least.
"""

from functools import partial
from pathlib import Path

from labkit import conv
from labkit.bench import _harness, _record, _torch
from labkit.bench.conv import torch_chosen
from labkit.conv.layers import RESNET_50_3X3
from labkit.conv.problem import ForwardNHWC
from labkit.formats import BF16, FP32

NAME, TITLE, IMAGES = "conv_formats", "Layers of ResNet-50 by format", 64
# C, H, W, K, R, S, stride, padding
LAYERS = (
    *((*sizes, 1, 1) for sizes in RESNET_50_3X3),
    (128, 56, 56, 128, 3, 3, 2, 1),
    (256, 28, 28, 256, 3, 3, 2, 1),
    (256, 56, 56, 512, 1, 1, 2, 0),
    (3, 224, 224, 64, 7, 7, 2, 3),
)
FLOAT32 = {"torch, float32": torch_chosen, "torch, TF32": partial(torch_chosen, allow_tf32=True)}
BFLOAT16 = {"torch, bfloat16": torch_chosen}


def main(record: bool = False, out: Path | None = None) -> None:
    gpu = _record.require_gpu("times kernels")
    if not _torch.is_installed():
        raise SystemExit("This bench compares formats of torch, which is not installed: pip install torch.")
    rows = [row for layer in LAYERS for row in measure(*layer)]
    _harness.print_comparison(f"{TITLE} on {gpu.name}", rows)
    _record.store_if_requested(NAME, rows, gpu.name, record, out)


def measure(C, H, W, K, R, S, stride, pad) -> list[dict]:
    """Return a row for each format of torch, in float32 for both layouts, and one for our kernel in bfloat16."""
    sizes = IMAGES, C, H, W, K, R, S, stride, stride, pad, pad, pad, pad
    nchw, nhwc = conv.Forward(*sizes), ForwardNHWC(*sizes)
    persistent = conv.ladder("tensor").step("persistent")
    return [
        *_harness.measure(_benchmark(FLOAT32), nchw, FP32),
        *_harness.measure(_benchmark(FLOAT32), nhwc, FP32),
        *_harness.measure(_benchmark(BFLOAT16), nhwc, BF16, [persistent]),
    ]


def _benchmark(contenders) -> _harness.Benchmark:
    return _harness.Benchmark(NAME, TITLE, ladders=(), ours=contenders)
