"""`labkit bench attention_fp8`: attention of e4m3 numbers compared with torch in bfloat16; errors of quantisation.

torch has no attention of 8-bit operands. Its backends get the same numbers in bfloat16, so that all have one oracle;
their rounding to bfloat16 counts as an error of theirs.
"""

from functools import partial
from pathlib import Path

import numpy as np

from labkit import attention
from labkit.attention.fp8.problem import BLOCK, ORDER, decode_blocks, encode_blocks
from labkit.attention.problem import expected_attention
from labkit.bench import _harness, _record, _torch
from labkit.bench.attention import is_known, of_backend
from labkit.formats import FP32

BACKENDS = "flash", "cuDNN"
OUTLIERS, SIZE = 1e-3, 10.0  # of all numbers so many are so many times as large (FlashAttention-3, section 4.3)
FAR_LARGER = 1e5  # are the numbers of the last positions


def in_bfloat16(problem, format, Q, K, V, q_scale, k_scale, v_scale) -> list:
    """Return tensors of the numbers that codes and scales encode."""
    Q, K, V, *scales = _torch.tensors(format, Q, K, V, q_scale, k_scale, v_scale)
    groups = V.float().unflatten(-1, (-1, len(ORDER)))[..., np.argsort(ORDER).tolist()]
    V = groups.flatten(-2)[..., : problem.keys].transpose(-1, -2)
    tensors = []
    for X, scale in zip((Q, K, V), scales, strict=True):
        row_scales = scale.repeat_interleave(BLOCK, -1)[..., : X.shape[2], None]
        tensors.append((X.float() * row_scales).bfloat16().contiguous())
    return tensors


def of_torch(problem, format, Q, K, V, q_scale, k_scale, v_scale, O, *_, backend: str):
    """torch's attention by one of its backends, in bfloat16."""
    tensors = in_bfloat16(problem, format, Q, K, V, q_scale, k_scale, v_scale)
    return of_backend(problem, *tensors, *_torch.tensors(format.result, O), backend)


def baselines(problem, format):
    """Return the backends that compute this problem in bfloat16."""
    if not is_known(problem):
        return {}
    return {f"{backend} bf16": partial(of_torch, backend=backend) for backend in BACKENDS}


def kinds_of_numbers(shape: tuple[int, ...]) -> dict[str, list]:
    """Q, K and V of some kinds, by what they are."""
    rng = np.random.default_rng(0)
    normal = [rng.standard_normal(shape) for _ in range(3)]
    with_outliers = [X + SIZE * rng.standard_normal(shape) * (rng.random(shape) < OUTLIERS) for X in normal]
    with_large_end = [X.copy() for X in normal]
    with_large_end[2][:, :, -BLOCK:] *= FAR_LARGER
    return {"normal": normal, "outliers": with_outliers, "large values at the end": with_large_end}


def errors_of_scales(queries: int = 1024, head_dim: int = 128) -> list[dict]:
    """Return the relative error of each row of causal attention that quantisation causes.

    Both results are computed in float64; quantised numbers have one scale per block, or one per tensor.
    """
    problem = attention.AttentionForward(1, 1, queries, head_dim, causal=True)
    places, shape, rows = np.arange(queries), (1, 1, queries, head_dim), []
    for kind, arrays in kinds_of_numbers(shape).items():
        exact = attended(problem, arrays)
        quantised = {
            f"a scale a {name}": attended(
                problem, [decode_blocks(*encode_blocks(X, block), places, block) for X in arrays]
            )
            for name, block in (("block", BLOCK), ("tensor", queries))
        }
        errors = {
            name: np.linalg.norm(O - exact, axis=-1) / np.linalg.norm(exact, axis=-1) for name, O in quantised.items()
        }
        rows.append({"numbers": kind} | {name: float(np.sqrt(np.mean(error**2))) for name, error in errors.items()})
    return rows


def attended(problem, arrays):
    """Attention in float64."""
    O, _ = expected_attention(problem, *arrays, np.asarray, FP32, 0.0)
    return O.value


LADDER = attention.ladder("fp8")
TABLE = _harness.Table(LADDER.record, "Attention of e4m3 numbers", (LADDER,), baselines=baselines)


def main(record: bool = False, out: Path | None = None) -> None:
    _harness.run(TABLE, record, out)
    rows = errors_of_scales()
    columns = dict.fromkeys(rows[0], ".1e") | {"numbers": ""}
    _record.show("Error of quantisation, of causal attention", rows, columns)
