"""Sizes, places and values at which calls once failed on a GPU, beside torch."""

import pytest

torch = pytest.importorskip("torch")

from labkit import attention, gemm, layouts, nn, norm  # noqa: E402 - after torch is known to be there

pytestmark = pytest.mark.needs("gpu", "torch")


def randn(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


def close(found, expected, tolerance):
    error = (found.double() - expected.double()).norm() / expected.double().norm()
    assert error < tolerance, float(error)


@pytest.mark.parametrize("shape", [(40, 256, 14, 14), (32, 64, 16, 15), (31, 8, 16, 16)])
def test_a_channel_of_nearly_8192_values_has_gradients(shape):
    ours, theirs = nn.BatchNorm2d(shape[1], device="cuda"), torch.nn.BatchNorm2d(shape[1], device="cuda")
    x, dy = randn(*shape), randn(*shape)
    gradients = [
        torch.autograd.grad(layer(x.requires_grad_()), (x, layer.weight, layer.bias), dy) for layer in (ours, theirs)
    ]
    for found, expected in zip(*gradients):
        close(found, expected, 1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("batch_and_heads", [(70_000, 1), (1, 70_000)])
def test_more_heads_than_a_grid_has_along_y(dtype, batch_and_heads):
    Q, K, V, dO = (randn(*batch_and_heads, 17, 16, dtype=dtype) for _ in range(4))
    lse = torch.empty(Q.shape[:3], device="cuda")
    O = attention.attend(Q, K, V, lse=lse, causal=True)
    found = attention.attend_backward(dO, Q, K, V, O, lse, causal=True)
    exact = [X.double().requires_grad_() for X in (Q, K, V)]
    expected = torch.nn.functional.scaled_dot_product_attention(*exact, is_causal=True)
    expected.backward(dO.double())
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    for one, other in zip((O, *found), (expected, *(X.grad for X in exact))):
        close(one, other, tolerance)


@pytest.mark.parametrize("batch_and_heads", [(70_000, 1), (1, 70_000)])
def test_more_heads_with_a_cache(batch_and_heads):
    Q, K, V = (randn(*batch_and_heads, n, 16, dtype=torch.float16) for n in (1, 17, 17))
    weights = (Q.float() @ K.float().transpose(-1, -2) / 4).softmax(-1)  # torch's kernels take no such grid
    close(attention.attend_cached(Q, K, V), weights @ V.float(), 2e-3)


def unaligned(X):
    """A copy one element after a multiple of 16 bytes."""
    memory = X.new_empty(X.numel() + 1)
    return memory[1:].view(X.shape).copy_(X)


def test_16_bits_one_element_off_alignment():
    Q, K, V, dO = (randn(2, 3, 40, 64, dtype=torch.float16) for _ in range(4))
    lse = torch.empty(Q.shape[:3], device="cuda")
    O = attention.attend(Q, K, V, lse=lse, causal=True)
    expected = attention.attend_backward(dO, Q, K, V, O, lse, causal=True)
    Q, K, V, dO, into = map(unaligned, (Q, K, V, dO, O))
    found = attention.attend(Q, K, V, O=into, lse=lse, causal=True)
    assert torch.equal(found, O)
    for one, other in zip(attention.attend_backward(dO, Q, K, V, into, lse, causal=True), expected):
        assert torch.equal(one, other)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e18])
def test_gradients_of_large_scores_are_as_torchs(size):
    Q, K, V, dO = (randn(1, 2, 48, 16) for _ in range(4))
    Q, K = Q * size**0.5, K * size**0.5
    lse = torch.empty(Q.shape[:3], device="cuda")
    O = attention.attend(Q, K, V, lse=lse)
    _, _, dV = attention.attend_backward(dO, Q, K, V, O, lse)
    exact = [X.double().requires_grad_() for X in (Q, K, V)]
    torch.nn.functional.scaled_dot_product_attention(*exact).backward(dO.double())
    close(dV, exact[2].grad, 1e-4)


def test_a_compiled_function_may_call_what_was_never_compiled():
    x, w = randn(48, 72), randn(72, 40)

    def function(x, w):
        return gemm.multiply(norm.layer_norm(torch.sin(x)), w) + 1

    expected = torch.nn.functional.layer_norm(torch.sin(x), (72,)) @ w + 1
    close(torch.compile(function)(x, w), expected, 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_results_are_tensors_of_the_operands_type(dtype):
    A, B = randn(48, 64, dtype=dtype), randn(64, 40, dtype=dtype)
    C = gemm.multiply(A, B)
    assert C.dtype == dtype and C.is_cuda
    close(C, A.double() @ B.double(), 1e-2)
    assert layouts.convert(randn(2, 3, 4, 5, dtype=dtype), "NCHW", "NHWC").dtype == dtype


def test_host_and_device_mix():
    A, B = randn(48, 64), torch.randn(64, 40)
    C = gemm.multiply(A, B)
    assert C.is_cuda
    into = torch.empty(48, 40)
    assert gemm.multiply(A, B.numpy(), C=into) is into
    close(C.cpu(), into, 1e-6)
