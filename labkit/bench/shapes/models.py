"""The list of shapes: calls that models make whose sizes are public, in the formats in which people run them.

Sizes are those of the papers and of the published configurations. Batches are those of training on one GPU and of
serving; a model's layers of equal sizes are one case.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from labkit.attention import AttentionBackward, AttentionDecode, AttentionForward
from labkit.conv.problem import BackwardData, BackwardFilter, Forward
from labkit.formats import BF16, FP16, FP32, TF32, Format
from labkit.gemm import LayerProblem
from labkit.ladder import Problem
from labkit.norm import BatchBackward, BatchForward, RowBackward, RowForward
from labkit.softmax import Backward as SoftmaxBackward
from labkit.softmax import Forward as SoftmaxForward


class Case(NamedTuple):
    """A call of a model: its name, problem and format."""

    model: str
    call: str
    problem: Problem
    format: Format


# Model: rows of activations at a time; (outputs, inputs) of its linear layers.
LINEAR = {
    "GPT-2": ((1024, 8192), ((2304, 768), (768, 768), (3072, 768), (768, 3072), (50257, 768))),
    "ViT-B/16": ((12608,), ((2304, 768), (3072, 768), (768, 3072))),
    "ViT-L/16": ((12608,), ((3072, 1024), (4096, 1024), (1024, 4096))),
    "CLIP ViT-L/14, text": ((4928,), ((768, 768), (3072, 768), (768, 3072))),
    "Whisper large": ((12000,), ((1280, 1280), (5120, 1280), (1280, 5120))),
    "Stable Diffusion": ((8192,), ((320, 320), (2560, 320), (320, 1280))),
    "Llama 3 8B": ((1, 16, 64, 4096), ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (128256, 4096))),
    "Llama 3 70B": ((16, 2048), ((10240, 8192), (57344, 8192), (8192, 28672))),
    "Mixtral 8x7B, an expert": ((24, 512), ((28672, 4096), (4096, 14336))),
}
# Model: (rows, outputs, inputs) in float32 on CUDA cores and in TF32.
LINEAR_FP32 = {
    "GPT-2": ((1024, 2304, 768), (1024, 3072, 768), (1024, 768, 3072)),
    "ResNet-50, classes": ((64, 1000, 2048),),
    "ViT-B/16": ((12608, 3072, 768),),
    "Llama 3 8B": ((4, 4096, 4096), (32, 4096, 4096), (64, 28672, 4096)),
}
# Model: batch, heads, queries, head_dim; then keys, heads of K and V, and whether the mask is causal.
ATTENTION = {
    "GPT-2": ((8, 12, 1024, 64, None, None, True),),
    "Llama 3 8B": ((4, 32, 2048, 128, None, 8, True), (1, 32, 8192, 128, None, 8, True)),
    "Llama 3 70B": ((1, 64, 4096, 128, None, 8, True),),
    "ViT-B/16": ((64, 12, 197, 64, None, None, False),),
    "ViT-L/16": ((64, 16, 197, 64, None, None, False),),
    "CLIP ViT-L/14, text": ((64, 12, 77, 64, None, None, True),),
    "Stable Diffusion XL": (
        (2, 10, 4096, 64, None, None, False),
        (2, 20, 1024, 64, None, None, False),
        (2, 10, 4096, 64, 77, None, False),
        (2, 20, 1024, 64, 77, None, False),
    ),
    "Whisper large": ((8, 20, 1500, 64, None, None, False), (8, 20, 448, 64, 1500, None, False)),
}
# Model: batch, heads, queries, head_dim, keys, heads of K and V.
DECODING = {
    "Llama 3 8B": ((1, 32, 1, 128, 8192, 8), (16, 32, 1, 128, 2048, 8), (64, 32, 1, 128, 2048, 8)),
    "Llama 3 70B": ((1, 64, 1, 128, 32768, 8), (32, 64, 1, 128, 4096, 8)),
    "GPT-2": ((16, 12, 1, 64, 1024, 12),),
}
# Model: kind of norm, rows, columns.
ROWS = {
    "GPT-2": ("layer", 8192, 768),
    "ViT-B/16": ("layer", 12608, 768),
    "ViT-L/16": ("layer", 12608, 1024),
    "Whisper large": ("layer", 12000, 1280),
    "ConvNeXt-T, first stage": ("layer", 200704, 96),
    "Llama 3 8B": ("rms", 4096, 4096),
    "Llama 3 70B": ("rms", 2048, 8192),
}
SOFTMAX = {
    "GPT-2, words": (8192, 50257),
    "Llama 3 8B, words": (2048, 128256),
    "ViT-B/16, classes": (64, 1000),
    "ViT-B/16, scores": (151296, 197),
}
# Model: C, H, W, K, R, S, stride, zeros on each side, groups; in NHWC, with 64 images unless it says so.
CONVOLUTIONS = {
    "ResNet-50": (
        (3, 224, 224, 64, 7, 7, 2, 3, 1),
        *((C, side, side, C, 3, 3, 1, 1, 1) for C, side in ((64, 56), (128, 28), (256, 14), (512, 7))),
        *((C, side, side, C, 3, 3, 2, 1, 1) for C, side in ((128, 56), (256, 28), (512, 14))),
        *((C, side, side, 4 * C, 1, 1, 1, 0, 1) for C, side in ((64, 56), (128, 28), (256, 14), (512, 7))),
        *((4 * C, side, side, C, 1, 1, 1, 0, 1) for C, side in ((64, 56), (128, 28), (256, 14), (512, 7))),
        *((C, side, side, 2 * C, 1, 1, 2, 0, 1) for C, side in ((256, 56), (512, 28), (1024, 14))),
    ),
    "MobileNetV2": tuple(
        (C, side, side, C, 3, 3, stride, 1, C)
        for C, side, stride in ((32, 112, 1), (96, 112, 2), (144, 56, 1), (192, 28, 1), (384, 14, 1), (960, 7, 1))
    ),
    "MobileNetV3": ((72, 56, 56, 72, 5, 5, 2, 2, 72), (120, 28, 28, 120, 5, 5, 1, 2, 120)),
    "EfficientNet-B0": tuple(
        (C, side, side, C, 5, 5, 1, 2, C) for C, side in ((240, 28), (480, 14), (672, 14), (1152, 7))
    ),
    "ConvNeXt-T": (
        (3, 224, 224, 96, 4, 4, 4, 0, 1),
        *((C, side, side, C, 7, 7, 1, 3, C) for C, side in ((96, 56), (192, 28), (384, 14), (768, 7))),
        (96, 56, 56, 192, 2, 2, 2, 0, 1),
    ),
    "ViT-B/16": ((3, 224, 224, 768, 16, 16, 16, 0, 1),),
}
DIFFUSION_IMAGES = 2  # of Stable Diffusion's U-Net: with and without the prompt
DIFFUSION = tuple((C, side, side, C, 3, 3, 1, 1, 1) for C, side in ((320, 64), (640, 32), (1280, 16), (1280, 8)))
# Model: images N, C, H, W
BATCH_NORMS = {
    "ResNet-50": ((64, 64, 112, 112), (64, 256, 56, 56), (64, 512, 28, 28), (64, 1024, 14, 14), (64, 2048, 7, 7)),
    "MobileNetV2": ((64, 96, 112, 112), (64, 144, 56, 56), (64, 960, 7, 7)),
}
IMAGES = 64


def cases() -> tuple[Case, ...]:
    """Return all cases, those of a call together."""
    return (*_products(), *_attentions(), *_rows(), *_convolutions(), *_batch_norms())


def _products() -> Iterator[Case]:
    for model, (rows, layers) in LINEAR.items():
        for M, (N, K) in product(rows, layers):
            yield Case(model, "gemm.multiply", LayerProblem(M, N, K), BF16)
    for model, sizes in LINEAR_FP32.items():
        for size, format in product(sizes, (FP32, TF32)):
            yield Case(model, "gemm.multiply", LayerProblem(*size), format)


def _attentions() -> Iterator[Case]:
    for call, kind in ("attention.attend", AttentionForward), ("attention.attend_backward", AttentionBackward):
        for model, sizes in ATTENTION.items():
            for size in sizes:
                yield Case(model, call, kind(*size), BF16)
    for model, sizes in DECODING.items():
        for size in sizes:
            yield Case(model, "attention.attend_cached", AttentionDecode(*size), BF16)


def _rows() -> Iterator[Case]:
    for end, norm_kind, softmax_kind in ("", RowForward, SoftmaxForward), ("_backward", RowBackward, SoftmaxBackward):
        for model, (kind, *size) in ROWS.items():
            yield Case(model, f"norm.{kind}_norm{end}", norm_kind(*size, kind), BF16)
        for model, size in SOFTMAX.items():
            yield Case(model, f"softmax.softmax{end}", softmax_kind(*size), BF16)
    yield Case("GPT-2", "norm.layer_norm", RowForward(8192, 768), FP16)


def _convolutions() -> Iterator[Case]:
    calls = {"conv.forward": Forward, "conv.backward_data": BackwardData, "conv.backward_filter": BackwardFilter}
    for call, kind in calls.items():
        for model, layers in CONVOLUTIONS.items():
            for layer in layers:
                if kind is not BackwardData or layer[0] != 3:  # nobody asks for the gradient of photographs
                    yield Case(model, call, _problem(kind, IMAGES, *layer), BF16)
        for layer in DIFFUSION if kind is Forward else ():
            yield Case("Stable Diffusion", call, _problem(kind, DIFFUSION_IMAGES, *layer), FP16)


def _problem(kind, N, C, H, W, K, R, S, stride, zeros, groups):
    return kind(N, C, H, W, K, R, S, stride, stride, *[zeros] * 4, groups=groups, layout="NHWC")


def _batch_norms() -> Iterator[Case]:
    for call, kind in ("norm.batch_norm", BatchForward), ("norm.batch_norm_backward", BatchBackward):
        for model, sizes in BATCH_NORMS.items():
            for size in sizes:
                yield Case(model, call, kind(*size, layout="NHWC"), BF16)
