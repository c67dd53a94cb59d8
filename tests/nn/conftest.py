"""Tensors of these tests are on the GPU if there is one."""

import pytest

from labkit import cuda


@pytest.fixture(autouse=True)
def device():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    torch.set_default_device("cuda" if cuda.on_gpu() else "cpu")
    yield torch.get_default_device().type
    torch.set_default_device("cpu")
