"""`labkit bench attention`: every kernel (step) of attention forward compared with each backend of torch."""

from functools import partial

from labkit import attention
from labkit.bench import _harness, _torch
from labkit.formats import FP32

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

    return _torch.launch_on_stream(call, store_result=O.copy_)


def as_bhsd(X, layout: str):
    """Return a tensor with its axes in the order batch, heads, positions, head_dim."""
    return X if layout == "BHSD" else X.transpose(1, 2)


def torch_supports(problem) -> bool:
    """Say if torch is installed and computes this problem: its causal mask starts top left, and it has no window."""
    is_same = problem.window is None and not (problem.causal and problem.keys != problem.queries)
    return _torch.is_installed() and is_same


def baselines(problem, format):
    """Return the baselines by name: the backends that compute this problem."""
    if not torch_supports(problem):
        return {}
    backends = ["efficient"] if format == FP32 else list(BACKENDS)
    return {backend: partial(torch_attention, backend=backend) for backend in backends}


LADDER = attention.ladder("forward")
TABLE = _harness.benchmark_of_ladder(LADDER, "Attention forward", formats=[FP32], baselines=baselines)  # and 16 bits
main = partial(_harness.run, TABLE)
