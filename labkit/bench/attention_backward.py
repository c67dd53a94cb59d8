"""`labkit bench attention_backward`: every step of attention backward compared with each backend of torch."""

from contextlib import contextmanager
from functools import partial

from labkit import attention
from labkit.bench import _harness, _torch
from labkit.bench.attention import BACKENDS, as_bhsd, torch_supports
from labkit.formats import FP32

DETERMINISTIC = "flash, deterministic"  # the only backend that has both ways


def torch_gradients(problem, format, *operands, backend: str, is_deterministic: bool = False):
    """Return the gradients of torch's attention by one of its backends, as autograd computes them.

    The forward pass runs once, in the first call, which is not timed.
    """
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    tensors = dict(zip(problem.ARRAYS, _torch.tensors(format, *operands[:-1]), strict=True))
    tensors_bhsd = {name: as_bhsd(X, problem.layout) for name, X in tensors.items() if name != "lse"}
    inputs = [tensors_bhsd[name].detach().requires_grad_() for name in "QKV"]
    options = {"is_causal": problem.causal, "scale": problem.scale, "enable_gqa": problem.heads_per_kv > 1}
    outputs = []

    def call():
        if not outputs:
            with sdpa_kernel(getattr(SDPBackend, BACKENDS[backend])):
                outputs.append(torch.nn.functional.scaled_dot_product_attention(*inputs, **options))
        with _deterministic(is_deterministic):
            return torch.autograd.grad(outputs[0], inputs, tensors_bhsd["dO"], retain_graph=True)

    def store(gradients):
        for name, gradient in zip(("dQ", "dK", "dV"), gradients, strict=True):
            tensors_bhsd[name].copy_(gradient)

    return _torch.launch_on_stream(call, store_first_result=store)


@contextmanager
def _deterministic(is_deterministic: bool):
    """Make torch choose kernels that give the same bits each time, if requested, without filling memory."""
    import torch

    before = torch.are_deterministic_algorithms_enabled(), torch.utils.deterministic.fill_uninitialized_memory
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.use_deterministic_algorithms(is_deterministic)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.utils.deterministic.fill_uninitialized_memory = before[1]


def baselines(problem, format):
    """Return the backends that compute this problem; flash also has a deterministic version."""
    if not torch_supports(problem):
        return {}
    backends = ["efficient"] if format == FP32 else list(BACKENDS)
    found = {backend: partial(torch_gradients, backend=backend) for backend in backends}
    return found if format == FP32 else found | {DETERMINISTIC: partial(found["flash"], is_deterministic=True)}


LADDER = attention.ladder("backward")
TABLE = _harness.benchmark_of_ladder(LADDER, "Attention backward", formats=[FP32], baselines=baselines)
main = partial(_harness.run, TABLE)
