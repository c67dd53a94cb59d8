"""Arrays of another GPU than the current one."""

import pytest

torch = pytest.importorskip("torch")

from labkit import attention, gemm, nn, norm  # noqa: E402 - after torch is known to be there

pytestmark = [
    pytest.mark.needs("gpu", "torch"),
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs"),
]


def test_calls_run_where_their_tensors_are():
    for device in (1, 0, 1):
        A, B = torch.randn(64, 65536, device=device), torch.randn(65536, 64, device=device)
        C = gemm.multiply(A, B)
        assert C.get_device() == device and torch.allclose(C, A @ B, rtol=1e-3, atol=1e-1)
        x = torch.randn(64, 1024, device=device)
        assert torch.allclose(norm.layer_norm(x), torch.nn.functional.layer_norm(x, (1024,)), atol=1e-5)
        Q = torch.randn(2, 4, 128, 64, device=device, dtype=torch.float16)
        expected = torch.nn.functional.scaled_dot_product_attention(Q, Q, Q)
        assert torch.allclose(attention.attend(Q, Q, Q), expected, atol=2e-3)
    assert torch.cuda.current_device() == 0


def test_a_plan_runs_where_its_tensors_are():
    A, B = torch.randn(64, 65536, device=1), torch.randn(65536, 64, device=1)
    C = torch.empty(64, 64, device=1)
    plan = gemm.plan(A, B, C=C)
    plan()
    torch.cuda.synchronize(1)
    assert torch.allclose(C, A @ B, rtol=1e-3, atol=1e-1)


def test_layers_learn_there():
    layer = nn.LayerNorm(64, device="cuda:1")
    x = torch.randn(8, 64, device="cuda:1", requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.get_device() == 1


def test_tensors_of_two_gpus_are_refused():
    A, B = torch.randn(8, 8, device=0), torch.randn(8, 8, device=1)
    with pytest.raises(ValueError, match="A is on GPU 0 and B on GPU 1: move the one to the other"):
        gemm.multiply(A, B)
