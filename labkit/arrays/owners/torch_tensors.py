"""torch's tensors, on the GPU and on the host, with torch's meaning.

More than a tensor's memory defines its meaning: negative and conjugate bits, the gradient that torch records, and the
versions by which autograd detects a change of a saved tensor. torch's allocator, which knows streams and captured
graphs, provides workspace and results.
"""

import sys
from functools import cached_property

import numpy as np

from labkit.arrays.addresses import VECTOR_BYTES
from labkit.arrays.owners.base import NeedsPreparation, Owner


class TorchTensors(Owner):
    """Owner of torch's tensors. See `Owner`."""

    name = "torch"
    allocates_workspace = has_streams = True

    def owns(self, X) -> bool:
        return _is_tensor(X)

    def is_on_host(self, X) -> bool:
        return not X.is_cuda

    def check(self, name, X, is_written):
        torch = _torch()
        if why := _unreadable(torch, X):
            raise TypeError(f"{name} {why}")
        if X.requires_grad and torch.is_grad_enabled():
            raise TypeError(
                f"{name} requires a gradient, and this call records none: use labkit.nn, or torch.no_grad(), "
                f"or {name}.detach()"
            )
        if self._has_tangent(X):
            raise TypeError(
                f"{name} has a tangent of forward differentiation, and this call records none: pass "
                f"torch.autograd.forward_ad.unpack_dual({name}).primal"
            )
        if is_written and (X.is_neg() or X.is_conj()):
            raise ValueError(f"{name} is a negated or conjugated view, and calls write to none: pass the tensor itself")

    def resolve(self, X):
        return X.resolve_conj().resolve_neg()

    def signature(self, X):
        device, dtype = X.get_device(), X.dtype
        if device < 0 or X.is_neg() or (dtype.is_complex and X.is_conj()):
            raise NeedsPreparation
        if (X.requires_grad and _torch().is_grad_enabled()) or self._has_tangent(X):
            raise NeedsPreparation
        try:
            address = X.data_ptr()
            if address or not X.numel():
                return (X.__class__, X.shape, X.stride(), dtype, address % VECTOR_BYTES, device), address
        except RuntimeError:  # X has no memory of its own, or no shape
            pass
        raise NeedsPreparation

    def address(self, X) -> int:
        return X.data_ptr()

    def device_of(self, X) -> int | None:
        return X.get_device() if X.is_cuda else None

    def _has_tangent(self, X):
        forward = self._forward
        return forward._current_level >= 0 and forward.unpack_dual(X).tangent is not None

    @cached_property
    def _forward(self):
        return _torch().autograd.forward_ad

    @cached_property
    def _raw_stream(self):
        return _torch()._C._cuda_getCurrentRawStream

    @cached_property
    def _increment_versions(self):
        return _torch()._C._increment_version  # torch.autograd.graph.increment_version of a tuple

    def current_stream(self, X) -> int:
        return self._raw_stream(X.get_device())

    def mark_written(self, X) -> None:
        self._increment_versions((X,))

    def block(self, like, size_bytes):
        return TorchBlock(like.new_empty(-(-size_bytes // like.element_size())))

    def empty(self, like, shape, type_name=None):
        return like.new_empty(shape) if type_name is None else like.new_empty(shape, dtype=getattr(_torch(), type_name))

    def permute_axes(self, X, axes):
        return X.permute(axes)

    def on_stream(self, like, stream):
        torch = _torch()
        if stream == 0:  # torch accepts 0 only as its own default stream
            return torch.cuda.stream(torch.cuda.default_stream(like.device))
        return torch.cuda.stream(torch.cuda.ExternalStream(stream, device=like.device))

    def as_numpy(self, X) -> np.ndarray:
        """Return the memory of a host tensor, as bits if NumPy lacks the type."""
        X = X.detach()
        try:
            return X.numpy()
        except TypeError:
            return X.view(getattr(_torch(), f"uint{8 * X.element_size()}")).numpy()


class TensorsWithoutMemory(TorchTensors):
    """Owner of tensors whose class implements `__torch_dispatch__`: fake tensors, parts of distributed tensors."""

    def owns(self, X) -> bool:
        return _is_tensor(X) and type(X).__torch_dispatch__ is not _torch().Tensor.__torch_dispatch__

    def check(self, name, X, is_written):
        raise TypeError(f"{name} {NESTED if X.is_nested else f'is a {type(X).__name__} {ELSEWHERE}'}")

    def signature(self, X):
        raise NeedsPreparation


class TorchBlock:
    """Memory from torch's allocator."""

    def __init__(self, tensor):
        self.tensor, self.address = tensor, tensor.data_ptr()

    def release(self) -> None:
        """Return the memory to torch, for later work on the stream."""
        self.tensor = None


ELSEWHERE = (
    "without memory of its own, as torch.func and tracing use: call this outside of them; labkit.nn has layers that "
    "torch can trace"
)
NESTED = "is a nested tensor, whose parts have shapes of their own: pass them one by one"


def _is_tensor(X) -> bool:
    return hasattr(X, "data_ptr") and hasattr(X, "is_cuda") and hasattr(X, "new_empty")


def _torch():
    return sys.modules["torch"]  # imported: a tensor exists


def _unreadable(torch, X) -> str:
    """Return why kernels cannot read a tensor's memory, as a sentence without its subject; "" if they can."""
    if X.is_nested:
        return NESTED
    if X.layout != torch.strided:
        return f"is of layout {X.layout}, and kernels read dense tensors: pass a copy by .to_dense()"
    if X.is_quantized:
        return "is a quantized tensor: pass a copy by .dequantize()"
    if X.device.type not in ("cuda", "cpu"):
        return f"is on {X.device}, and kernels run on an NVIDIA GPU: move it to cuda or cpu"
    try:
        has_memory = X.data_ptr() or not X.numel()
    except RuntimeError:
        has_memory = False
    return "" if has_memory else f"is a {type(X).__name__} {ELSEWHERE}"
