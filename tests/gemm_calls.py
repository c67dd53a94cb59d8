"""Calls of `gemm.multiply` of every kind: formats, orders, factors, batches, and sides that fit no tile."""

from dataclasses import dataclass, field

import numpy as np

from labkit.formats import format_named


@dataclass(frozen=True)
class Call:
    """Sides M, N, K, a format, options of `multiply`, and how many matrices A and B are."""

    shape: tuple[int, int, int]
    format: str
    options: dict = field(default_factory=dict)
    batches: tuple[int | None, int | None] = (None, None)

    def __str__(self):
        return f"{'x'.join(map(str, self.shape))} {self.format} {self.options} {self.batches}"


def _call(shape, format, batches=(None, None), **options):
    return Call(shape, format, {**options, "format": format}, batches)


CALLS = (
    _call((64, 48, 32), "float32"),
    _call((256, 256, 1024), "float32", alpha=-0.5, beta=2.0),
    _call((67, 41, 33), "float32", transpose_a=True),
    _call((40, 24, 36), "float32", (5, 5)),
    _call((1, 500, 300), "float32", transpose_b=True),
    _call((3, 500, 300), "float32", alpha=2.0, beta=1.0),
    _call((128, 256, 512), "tf32", transpose_b=True),
    _call((128, 256, 512), "bfloat16", transpose_b=True),
    _call((256, 512, 256), "bfloat16"),
    _call((512, 512, 512), "bfloat16", transpose_a=True, alpha=2.0, beta=-0.5),
    _call((65, 90, 401), "bfloat16", beta=1.0),
    _call((8, 1024, 4096), "float16", transpose_b=True),
    _call((64, 64, 256), "float16", (3, None)),
    _call((64, 64, 256), "float8_e4m3", (2, 2), transpose_b=True),
    _call((64, 64, 0), "bfloat16", beta=3.0),
)


def operands_of(call: Call, seed: int):
    """Random A, B and C of the host, as the call takes them."""
    format, rng = format_named(call.format), np.random.default_rng(seed)
    M, N, K = call.shape
    sides = (K, M) if call.options.get("transpose_a") else (M, K), (N, K) if call.options.get("transpose_b") else (K, N)
    batches = (*call.batches, next((n for n in call.batches if n), None))
    kinds = format, format, format.result
    return tuple(
        np.ascontiguousarray(kind.encode(rng.standard_normal((*((n,) if n else ()), *side))))
        for kind, n, side in zip(kinds, batches, (*sides, (M, N)), strict=True)
    )
