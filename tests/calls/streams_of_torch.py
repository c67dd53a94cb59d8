"""Calls that need a workspace, on torch's tensors: what each gives for inputs that are drawn anew."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch

from labkit import attention, conv, gemm, layouts, nn, norm, softmax

SLEEP_CYCLES = 2_000_000  # about a millisecond, in which work on another stream would come too early


@dataclass(frozen=True)
class Case:
    """A call by its name: `draw()` gives its inputs, `run(*inputs)` its results."""

    draw: Callable[[], tuple]
    run: Callable[..., object]


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


def heads(*shapes, dtype=torch.bfloat16):
    return lambda: tuple(randn(*shape, dtype=dtype) for shape in shapes)


@cache
def layer_norm():
    return nn.LayerNorm(1024, device="cuda")


@cache
def batch_norm(channels):
    return nn.BatchNorm2d(channels, device="cuda")


def gradients_of_layer_norm(x, dy):
    layer = layer_norm()
    x = x.detach().requires_grad_()
    return torch.autograd.grad(layer(x), (x, layer.weight, layer.bias), dy)


def gradients_of_attention(Q, K, V, dO):
    lse = torch.empty(Q.shape[:3], device="cuda")
    O = torch.empty_like(Q)
    attention.attend(Q, K, V, O=O, lse=lse, causal=True)
    dQ, dK, dV = (torch.empty_like(X) for X in (Q, K, V))
    return attention.attend_backward(dO, Q, K, V, O, lse, dQ=dQ, dK=dK, dV=dV, causal=True)


def cached(Q, K, V, lengths):
    return attention.attend_cached(Q, K, V, lengths, O=torch.empty_like(Q))


def product(A, B):
    return gemm.multiply(A, B, C=A.new_empty(A.shape[0], B.shape[1]))


def convolution(x, w):
    return conv.forward(x, w, y=x.new_empty(x.shape[0], w.shape[0], *x.shape[2:]), padding=1)


def gradients_of_batch_norm(x, dy):
    layer = batch_norm(x.shape[1])
    x = x.detach().requires_grad_()
    return torch.autograd.grad(layer(x), (x, layer.weight, layer.bias), dy)


def lengths():
    return (*heads((8, 32, 1, 128), (8, 8, 4096, 128), (8, 8, 4096, 128))(), torch.randint(1, 4096, (8,)).int().cuda())


WITH_WORKSPACE = {
    "layer norm's gradients": Case(heads((4096, 1024), (4096, 1024), dtype=torch.float32), gradients_of_layer_norm),
    "batch norm's gradients": Case(
        heads((32, 64, 56, 56), (32, 64, 56, 56), dtype=torch.float32), gradients_of_batch_norm
    ),
    "attention's gradients": Case(heads(*[(2, 8, 1024, 128)] * 4), gradients_of_attention),
    "attention to a cache": Case(lengths, cached),
    "product cut along k": Case(heads((64, 65536), (65536, 64), dtype=torch.float32), product),
    "convolution": Case(heads((16, 64, 28, 28), (64, 64, 3, 3), dtype=torch.float32), convolution),
}


def out_of(call, **options):
    def run(x):
        found = torch.empty_like(x)
        call(x, **{name: found if value is ... else value for name, value in options.items()})
        return found

    return run


ON_CURRENT_STREAM = {
    "gemm": Case(heads((512, 512), dtype=torch.float32), lambda x: product(x, x)),
    "conv": Case(
        heads((8, 32, 28, 28), dtype=torch.float32), lambda x: convolution(x, torch.ones(32, 32, 3, 3, device="cuda"))
    ),
    "layer norm": Case(heads((1024, 1024), dtype=torch.float32), out_of(norm.layer_norm, y=...)),
    "rms norm": Case(heads((1024, 1024), dtype=torch.float32), out_of(norm.rms_norm, y=...)),
    "batch norm": Case(heads((16, 32, 28, 28), dtype=torch.float32), out_of(norm.batch_norm, y=...)),
    "softmax": Case(heads((1024, 1024), dtype=torch.float32), out_of(softmax.softmax, out=...)),
    "layouts": Case(
        heads((16, 32, 28, 28), dtype=torch.float32),
        lambda x: layouts.convert(x, "NCHW", "NHWC", y=x.new_empty(16, 28, 28, 32)),
    ),
    "attention": Case(heads((2, 8, 512, 64)), lambda x: attention.attend(x, x, x, O=torch.empty_like(x), causal=True)),
    "attention to a cache": Case(
        heads((4, 8, 512, 64)), lambda x: attention.attend_cached(x[:, :, :1], x, x, O=torch.empty_like(x[:, :, :1]))
    ),
}


def equal(found, expected) -> bool:
    pairs = zip(as_tuple(found), as_tuple(expected), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


def as_tuple(found):
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def wrong_replays(case: Case, replays: int = 200) -> int:
    """How many replays of two graphs, captured one after the other and replayed on two streams at once, are wrong."""
    inputs = [case.draw() for _ in range(2)]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # as torch asks for, before autograd is captured
        expected = [[X.clone() for X in as_tuple(case.run(*of))] for of in inputs for _ in range(3)][2::3]
    torch.cuda.synchronize()
    graphs, found = [], []
    for of in inputs:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found.append(case.run(*of))
        graphs.append(graph)
    streams, wrong = [torch.cuda.Stream() for _ in graphs], 0
    for _ in range(replays):
        for X in (X for results in found for X in as_tuple(results)):
            X.fill_(torch.nan)  # what a replay does not write shows
        torch.cuda.synchronize()
        for graph, stream in zip(graphs, streams):
            with torch.cuda.stream(stream):
                graph.replay()
        torch.cuda.synchronize()
        wrong += not all(map(equal, found, expected))
    return wrong


def wrong_calls(case: Case, calls: int = 10) -> int:
    """How many calls on torch's current stream read what was there before the stream's earlier work."""
    ((x,), stream, wrong) = case.draw(), torch.cuda.Stream(), 0
    case.run(x)
    for _ in range(calls):
        (new,) = case.draw()
        expected = [X.clone() for X in as_tuple(case.run(new))]
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(SLEEP_CYCLES)
            x.copy_(new)
            found = case.run(x)
        torch.cuda.synchronize()
        wrong += not equal(found, expected)
    return wrong
