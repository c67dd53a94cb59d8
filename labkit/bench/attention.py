"""`labkit bench attention`: every step of attention forward beside each backend of torch's, in one run."""

from functools import partial
from pathlib import Path

from labkit import attention
from labkit.bench import _harness, _torch
from labkit.formats import FP32

BACKENDS = {"flash": "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION", "efficient": "EFFICIENT_ATTENTION"}


def of_torch(problem, format, Q, K, V, O, lse, *_, backend: str):
    """torch's attention by one of its backends.

    The first call also copies O to where ours stands, for its error to be found.
    """
    tensors = (as_heads_of_torch(X, problem.layout) for X in _torch.tensors(format, Q, K, V, O))
    return of_backend(problem, *tensors, backend)


def of_backend(problem, Q, K, V, O, backend: str):
    """The same, of tensors with the axes batch, heads, positions, head_dim."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    options = {"is_causal": problem.causal, "scale": problem.scale, "enable_gqa": problem.group > 1}
    chosen, done = getattr(SDPBackend, BACKENDS[backend]), []

    def launch():
        with sdpa_kernel(chosen):
            found = torch.nn.functional.scaled_dot_product_attention(Q, K, V, **options)
        if not done:
            done.append(True)
            O.copy_(found)

    return _torch.on_stream(launch)


def as_heads_of_torch(X, layout: str):
    """A tensor with its axes in the order batch, heads, positions, head_dim."""
    return X if layout == "BHSD" else X.transpose(1, 2)


def is_known(problem) -> bool:
    """Whether torch is here and computes this problem: it aligns a causal mask top left, and has no window."""
    is_same = problem.window is None and not (problem.causal and problem.keys != problem.queries)
    return _torch.is_here() and is_same


def baselines(problem, format):
    """The backends that compute this problem."""
    if not is_known(problem):
        return {}
    backends = ["efficient"] if format == FP32 else list(BACKENDS)
    return {backend: partial(of_torch, backend=backend) for backend in backends}


LADDER = attention.ladder("forward")
TABLE = _harness.Table(LADDER.record, "Attention forward", (LADDER,), (FP32,), baselines=baselines, fastest=len(LADDER))


def main(record: bool = False, out: Path | None = None) -> None:
    _harness.run(TABLE, record, out)
