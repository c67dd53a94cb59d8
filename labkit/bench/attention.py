"""`labkit bench attention`: every kernel (step) of attention forward compared with each backend of torch."""

from functools import partial

from labkit import attention, cuda, gemm, softmax
from labkit.arrays.views import reshape
from labkit.bench import _harness, _torch
from labkit.calls.plan import plan
from labkit.formats import BF16, FP32

MAX_SCORES_BYTES = 2**33  # of S in 16 bits, which standard attention keeps in memory, and P beside it
BACKENDS = {"flash": "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}


def torch_attention(problem, format, Q, K, V, O, lse, *_, backend: str):
    """Return a launch of torch's attention by one of its backends."""
    tensors = (as_bhsd(X, problem.layout) for X in _torch.tensors(format, Q, K, V, O))
    return backend_launch(problem, *tensors, backend)


def backend_launch(problem, Q, K, V, O, backend: str):
    """Return a launch of torch's attention of tensors with the axes batch, heads, positions, head_dim."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    options = {"is_causal": problem.causal, "scale": problem.scale, "enable_gqa": problem.heads_per_kv > 1}

    def call():
        with sdpa_kernel(getattr(SDPBackend, BACKENDS[backend])):
            return torch.nn.functional.scaled_dot_product_attention(Q, K, V, **options)

    return _torch.launch_on_stream(call, store_first_result=O.copy_)


def as_bhsd(X, layout: str):
    """Return a tensor with its axes in the order batch, heads, positions, head_dim."""
    return X if layout == "BHSD" else X.transpose(1, 2)


def standard_torch(problem, format, Q, K, V, O, *_):
    """Return a launch of three lines of torch: two matmuls and a softmax, with S and P in memory."""
    import torch

    Q, K, V, O = (as_bhsd(X, problem.layout) for X in _torch.tensors(format, Q, K, V, O))

    def call():
        return torch.softmax(Q * problem.head_dim**-0.5 @ K.mT, -1) @ V

    return _torch.launch_on_stream(call, store_first_result=O.copy_)


def standard_ours(problem, format, Q, K, V, O, *_):
    """Return a launch of this package's three calls: two GEMMs and a softmax, with S in memory."""
    heads = problem.batch * problem.heads
    Q, K, V, O = (reshape(X, heads, X.shape[2], problem.head_dim) for X in (Q, K, V, O))
    S = cuda.device_array((heads, problem.queries, problem.keys), format.dtype)
    calls = [
        gemm.plan(Q, K, C=S, alpha=problem.head_dim**-0.5, transpose_b=True, format=format),
        plan(softmax.softmax, S, out=S, format=format),
        gemm.plan(S, V, C=O, format=format),
    ]

    def launch(stream):
        for call in calls:
            call(stream=stream)

    return launch


def standard_attention(problem, format) -> dict:
    """Return the contenders that store all scores, by name: none for masks, GQA, float32, or more scores than fit."""
    is_plain = not problem.causal and problem.window is None and problem.scale is None and problem.layout == "BHSD"
    bytes_of_scores = problem.batch * problem.heads * problem.queries * problem.keys * format.dtype.itemsize
    if format == FP32 or not is_plain or problem.heads_per_kv > 1 or bytes_of_scores > MAX_SCORES_BYTES:
        return {}
    ours = {"standard (labkit)": standard_ours} if format == BF16 else {}  # the softmax knows no float16
    return {"standard (torch)": standard_torch, **ours}


def torch_supports(problem) -> bool:
    """Say if torch is installed and computes this problem: its causal mask starts top left, and it has no window."""
    is_same = problem.window is None and not (problem.causal and problem.keys != problem.queries)
    return _torch.is_installed() and is_same


def baselines(problem, format):
    """Return the baselines by name: the backends that compute this problem."""
    if not torch_supports(problem):
        return {}
    backends = ["efficient"] if format == FP32 else list(BACKENDS)
    fused = {backend: partial(torch_attention, backend=backend) for backend in backends}
    return fused | standard_attention(problem, format)


LADDER = attention.ladder("forward")
TABLE = _harness.benchmark_of_ladder(
    LADDER,
    "Attention forward",
    formats=[FP32],  # and 16 bits
    baselines=baselines,
    max_launch_ms=2_000,  # of kv_outer, whose few blocks a chapter shows
)
main = partial(_harness.run, TABLE)
