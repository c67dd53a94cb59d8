"""`labkit bench calls`: host time of a call on small torch tensors: as a plan, with and without an output.

The time is the median over many calls, in a loop in which the GPU keeps up.
"""

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter

import labkit
from labkit import attention, conv, elementwise, gemm, layouts, norm, softmax
from labkit.bench import _record

TIMED_CALLS, QUEUED_CALLS, WARM_UP_CALLS = 2000, 50, 100  # the GPU is synchronised after every 50 calls
COLUMNS = {"operation": "", "problem": "", "planned_us": ".1f", "with_output_us": ".1f", "new_output_us": ".1f"}
COLUMNS |= {"torch_us": ".1f"}


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("times calls")
    import torch

    rows = [measure(name, *case(torch)) for name, case in CASES.items()]
    _record.print_table(f"Host time of a call on {gpu.name}", rows, COLUMNS)
    _record.store_if_requested("calls", rows, gpu.name, record, out)


def measure(name: str, problem: str, call: Callable, arrays: tuple, output: dict, options: dict, torch_call) -> dict:
    """Return a row: the host time in us of a call in each form, and of torch's own function."""
    plan = labkit.plan(call, *arrays, **output, **options)
    return {
        "operation": name,
        "problem": problem,
        "planned_us": host_time_us(plan),
        "with_output_us": host_time_us(partial(call, *arrays, **output, **options)),
        "new_output_us": host_time_us(partial(call, *arrays, **options)),
        "torch_us": host_time_us(torch_call),
    }


def host_time_us(call: Callable[[], object]) -> float:
    """Return the median host time of a call in us."""
    import torch

    for _ in range(WARM_UP_CALLS):
        call()
    times_us = []
    for number in range(TIMED_CALLS):
        if number % QUEUED_CALLS == 0:
            torch.cuda.synchronize()  # a full queue would make the call wait for the GPU
        start = perf_counter()
        call()
        times_us.append((perf_counter() - start) * 1e6)
    return median(times_us)


def _randn(*shape, half=True):
    import torch

    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16 if half else torch.float32)


def _gemm(torch):
    A, B, C = (_randn(256, 256) for _ in range(3))
    return "256x256x256 bfloat16", gemm.multiply, (A, B), {"C": C}, {}, partial(torch.matmul, A, B)


def _conv(torch):
    x, w = _randn(4, 16, 16, 64), _randn(64, 3, 3, 64)
    torch_call = partial(torch.nn.functional.conv2d, x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2))
    problem = "4x64x16x16 64x3x3 NHWC bfloat16"
    return problem, conv.forward, (x, w), {"y": _randn(4, 14, 14, 64)}, {"layout": "NHWC"}, torch_call


def _layer_norm(torch):
    x, weight, bias = _randn(128, 1024, half=False), _randn(1024, half=False), _randn(1024, half=False)
    torch_call = partial(torch.nn.functional.layer_norm, x, (1024,), weight, bias)
    return "128x1024 float32", norm.layer_norm, (x, weight, bias), {"y": torch.empty_like(x)}, {}, torch_call


def _batch_norm(torch):
    x = _randn(8, 64, 16, 16, half=False)
    torch_call = partial(torch.nn.functional.batch_norm, x, None, None, training=True)
    return "8x64x16x16 float32", norm.batch_norm, (x,), {"y": torch.empty_like(x)}, {}, torch_call


def _softmax(torch):
    x = _randn(128, 1024, half=False)
    return "128x1024 float32", softmax.softmax, (x,), {"out": torch.empty_like(x)}, {}, partial(torch.softmax, x, -1)


def _attention(torch):
    Q = _randn(1, 4, 256, 128)
    torch_call = partial(torch.nn.functional.scaled_dot_product_attention, Q, Q, Q, is_causal=True)
    problem = "1x4x256x128 causal bfloat16"
    return problem, attention.attend, (Q, Q, Q), {"O": torch.empty_like(Q)}, {"causal": True}, torch_call


def _layouts(torch):
    x, y = _randn(2, 16, 16, 16, half=False), _randn(2, 16, 16, 16, half=False)
    torch_call = partial(torch.Tensor.copy_, y, x.permute(0, 2, 3, 1))
    options = {"source": "NCHW", "target": "NHWC"}
    return "2x16x16x16 float32", layouts.convert, (x,), {"y": y}, options, torch_call


def _geglu(torch):
    gate, up = _randn(128, 1024), _randn(128, 1024)
    torch_call = lambda: torch.nn.functional.gelu(gate) * up  # noqa: E731 - as a user writes it
    return "128x1024 bfloat16", elementwise.geglu, (gate, up), {"y": torch.empty_like(up)}, {}, torch_call


CASES = {
    "gemm": _gemm,
    "conv": _conv,
    "layer norm": _layer_norm,
    "batch norm": _batch_norm,
    "softmax": _softmax,
    "attention": _attention,
    "layouts": _layouts,
    "geglu": _geglu,
}
