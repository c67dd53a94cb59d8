"""What benches ask torch."""

from functools import partial

import pytest

pytestmark = pytest.mark.needs("gpu", "torch")


def test_the_kernel_of_a_product_is_told_by_its_name():
    import torch

    from labkit.bench._torch import kernel_of

    A = torch.ones((512, 512), device="cuda")
    assert "gemm" in kernel_of(partial(torch.mm, A, A)).lower()
