"""`labkit bench decode_shapes`: decoding with fewer heads of the cache, and with several queries per sequence.

Both change what a byte of the cache is used for. Heads of K divide its bytes, at equal arithmetic; queries multiply the
arithmetic, at equal bytes.
"""

from functools import partial

from labkit import attention
from labkit.bench import _harness, _record, attention_decode
from labkit.formats import BF16

KEYS, HEADS, HEAD_DIM = 32768, 32, 128
KV_HEADS = 32, 8, 4, 1  # of the cache, for one query: MHA, GQA, MQA
QUERIES = 2, 4, 8, 16  # at the end of the sequence, which attend to 8 heads of the cache
BASELINES = "flash", "cuDNN"
TITLE = f"One sequence of {KEYS:,} keys, {HEADS} heads of Q"


def problems():
    """Yield the problems that are timed."""
    for kv_heads in KV_HEADS:
        yield attention.AttentionDecode(1, HEADS, 1, HEAD_DIM, KEYS, kv_heads)
    for queries in QUERIES:
        yield attention.AttentionDecode(1, HEADS, queries, HEAD_DIM, KEYS, 8, causal=True)


def baselines(problem, format):
    """Return two backends of torch for one query; several queries are compared with one of ours."""
    found = attention_decode.baselines(problem, format)
    return {name: found[name] for name in BASELINES if name in found}


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("times kernels")
    measure = partial(_harness.measure, TABLE, format=BF16, steps=[attention.ladder("decode").step("split")])
    rows = [row for problem in problems() for row in measure(problem=problem)]
    _harness.print_comparison(f"{TABLE.title}, on {gpu.name}", rows)
    _record.store_if_requested(TABLE.name, rows, gpu.name, record, out)


TABLE = _harness.Benchmark(
    "decode_shapes", TITLE, ladders=(), baselines=baselines, l2_multiple=attention_decode.L2_MULTIPLE
)
