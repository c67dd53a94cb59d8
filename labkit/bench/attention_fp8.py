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
from labkit.bench.attention import backend_launch, torch_supports
from labkit.formats import FP32

BACKENDS = "flash", "cuDNN"
OUTLIER_SHARE, OUTLIER_SIZE = 1e-3, 10.0  # one value in 1000 is 10 times larger (FlashAttention-3, section 4.3)
END_FACTOR = 1e5  # by which the values of the last positions are multiplied


def decode_to_bfloat16(problem, format, Q, K, V, q_scale, k_scale, v_scale) -> list:
    """Return Q, K and V decoded from e4m3 codes and scales per block, as bfloat16 tensors."""
    Q, K, V, *scales = _torch.tensors(format, Q, K, V, q_scale, k_scale, v_scale)
    groups = V.float().unflatten(-1, (-1, len(ORDER)))[..., np.argsort(ORDER).tolist()]
    V = groups.flatten(-2)[..., : problem.keys].transpose(-1, -2)
    tensors = []
    for X, scale in zip((Q, K, V), scales, strict=True):
        row_scales = scale.repeat_interleave(BLOCK, -1)[..., : X.shape[2], None]
        tensors.append((X.float() * row_scales).bfloat16().contiguous())
    return tensors


def torch_attention(problem, format, Q, K, V, q_scale, k_scale, v_scale, O, *_, backend: str):
    """torch's attention by one of its backends, in bfloat16."""
    tensors = decode_to_bfloat16(problem, format, Q, K, V, q_scale, k_scale, v_scale)
    return backend_launch(problem, *tensors, *_torch.tensors(format.result, O), backend)


def baselines(problem, format):
    """Return the backends that compute this problem in bfloat16."""
    if not torch_supports(problem):
        return {}
    return {f"{backend} bf16": partial(torch_attention, backend=backend) for backend in BACKENDS}


def inputs_by_kind(shape: tuple[int, ...]) -> dict[str, list]:
    """Return Q, K and V of several distributions, by name."""
    rng = np.random.default_rng(0)
    normal = [rng.standard_normal(shape) for _ in range(3)]
    draw = rng.standard_normal
    with_outliers = [X + OUTLIER_SIZE * draw(shape) * (rng.random(shape) < OUTLIER_SHARE) for X in normal]
    large_at_end = [X.copy() for X in normal]
    large_at_end[2][:, :, -BLOCK:] *= END_FACTOR
    return {"normal": normal, "outliers": with_outliers, "large values at the end": large_at_end}


def quantisation_errors(queries: int = 1024, head_dim: int = 128) -> list[dict]:
    """Return the relative error of each row of causal attention that quantisation causes.

    Both results are computed in float64; quantised numbers have one scale per block, or one per tensor.
    """
    problem = attention.AttentionForward(1, 1, queries, head_dim, causal=True)
    positions, shape, rows = np.arange(queries), (1, 1, queries, head_dim), []
    for kind, arrays in inputs_by_kind(shape).items():
        exact = exact_attention(problem, arrays)
        quantised = {
            f"a scale a {name}": exact_attention(
                problem, [decode_blocks(*encode_blocks(X, block), positions, block) for X in arrays]
            )
            for name, block in (("block", BLOCK), ("tensor", queries))
        }
        errors = {
            name: np.linalg.norm(O - exact, axis=-1) / np.linalg.norm(exact, axis=-1) for name, O in quantised.items()
        }
        rows.append({"numbers": kind} | {name: float(np.sqrt(np.mean(error**2))) for name, error in errors.items()})
    return rows


def exact_attention(problem, arrays):
    """Attention in float64."""
    O, _ = expected_attention(problem, *arrays, np.asarray, FP32, 0.0)
    return O.value


LADDER = attention.ladder("fp8")
TABLE = _harness.Benchmark(LADDER.record, "Attention of e4m3 numbers", (LADDER,), baselines=baselines)


def main(record: bool = False, out: Path | None = None) -> None:
    _harness.run(TABLE, record, out)
    rows = quantisation_errors()
    columns = dict.fromkeys(rows[0], ".1e") | {"numbers": ""}
    _record.print_table("Error of quantisation, of causal attention", rows, columns)
