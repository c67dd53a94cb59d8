"""`labkit bench attention_decode`: every step of decoding compared with each backend of torch, and flex_attention."""

from functools import partial

from labkit import attention
from labkit.bench import _harness, _torch
from labkit.bench.attention import as_bhsd

BACKENDS = {"flash": "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH"}
GQA_BACKENDS = "flash", "cuDNN"  # backends that take more heads of Q than of K
MAX_MATH_BYTES = 2**31  # of the K and V cache, which this backend copies to float32
L2_MULTIPLE = 4  # twice the usual, since reading K and V takes the time: 134 MB would partly stay in an L2 of 50 MB


def as_bhsd_tensors(problem, format, Q, K, V, O):
    """Return tensors with the axes batch, heads, positions, head_dim."""
    return [as_bhsd(X, problem.layout) for X in _torch.tensors(format, Q, K, V, O)]


def launch_into(call, O):
    """Return a launch that makes a call of torch, whose result has the elements of O."""
    return _torch.launch_on_stream(call, store_first_result=lambda result: O.copy_(result.reshape(O.shape)))


def torch_attention(problem, format, Q, K, V, lengths, page_table, O, *_, backend: str, folded: bool):
    """Return a launch of torch's attention by one of its backends.

    Folded, the one query of each head that shares a head of K is a query of that head, which every backend takes.
    """
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    Q, K, V, O = as_bhsd_tensors(problem, format, Q, K, V, O)
    if folded:
        Q = Q.reshape(problem.batch, problem.kv_heads, problem.heads_per_kv, problem.head_dim)
    options = {"scale": problem.scale, "enable_gqa": not folded}

    def call():
        with sdpa_kernel(getattr(SDPBackend, BACKENDS[backend])):
            return torch.nn.functional.scaled_dot_product_attention(Q, K, V, **options)

    return launch_into(call, O)


def flex(problem, format, Q, K, V, lengths, page_table, O, *_):
    """Return a launch of torch.compile of flex_attention, which has a kernel of its own for few queries."""
    from torch.nn.attention.flex_attention import flex_attention

    Q, K, V, O = as_bhsd_tensors(problem, format, Q, K, V, O)
    compiled = _torch.compiled(flex_attention)
    return launch_into(lambda: compiled(Q, K, V, scale=problem.scale, enable_gqa=True), O)


def baselines(problem, format):
    """Return the contenders for this problem: none for several queries per sequence, ragged sequences or pages."""
    if not _torch.is_installed() or problem.queries > 1 or problem.ragged or problem.page is not None:
        return {}
    backends = [name for name in BACKENDS if name != "math" or problem.min_bytes(format) <= MAX_MATH_BYTES]
    contenders = {name: partial(torch_attention, backend=name, folded=False) for name in GQA_BACKENDS}
    contenders |= {f"{name} folded": partial(torch_attention, backend=name, folded=True) for name in backends}
    elements = problem.batch * problem.kv_heads * problem.keys * problem.head_dim
    return contenders | {"flex_attention": flex} if elements < 2**31 else contenders  # more do not compile


LADDER = attention.ladder("decode")
TABLE = _harness.Benchmark(
    LADDER.record,
    "Attention of few queries",
    (LADDER,),
    baselines=baselines,
    steps_in_other_formats=1,
    l2_multiple=L2_MULTIPLE,
)
main = partial(_harness.run, TABLE)
