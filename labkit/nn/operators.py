"""Helpers of all layers: calls on tensors of one device and one type."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from labkit import cuda

TYPES = torch.float32, torch.float16, torch.bfloat16


def check_tensors_and_call(call: Callable, tensors: dict[str, Any], **options) -> None:
    """Run a call of labkit on named tensors, which include its outputs.

    Raise TypeError if tensors are neither on the GPU nor on the host, or have a type that no kernel accepts. Raise
    ValueError if they are not all on one device.
    """
    (first_name, first), *others = tensors.items()
    for name, X in others:
        if X is not None and X.device != first.device:
            raise ValueError(f"{first_name} is on {first.device} and {name} on {X.device}: move the one to the other")
    if first.dtype not in TYPES:
        raise TypeError(
            f"a tensor is {_name(first.dtype)}, which no kernel takes: convert model and input with .float()"
        )
    if first.device.type == "cpu" and not cuda.on_gpu():
        _warn_of_simulator()
    call(**tensors, **options)


def check_tensor(name: str, X) -> None:
    """Raise TypeError if an input is no tensor."""
    if not isinstance(X, Tensor):
        raise TypeError(f"{name} is a {type(X).__name__}, not a tensor: make it one with torch.from_numpy")


def to_autocast_dtype(*tensors: Tensor) -> list[Tensor]:
    """Return the tensors, converted to the type of `torch.autocast` if that is on.

    Raise TypeError if autocast is off, and the tensors have several types.
    """
    kind = tensors[0].device.type
    if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind):
        if len({X.dtype for X in tensors}) > 1:
            types = " and ".join(dict.fromkeys(_name(X.dtype) for X in tensors))
            raise TypeError(f"tensors are {types}: convert the input or the layer, or use torch.autocast")
        return list(tensors)
    dtype = torch.get_autocast_dtype(kind)
    return [X.to(dtype) if X.dtype in TYPES else X for X in tensors]  # as in torch, other types stay


def refuse_second_derivative(operator, name: str) -> None:
    """Make the gradient of a gradient raise NotImplementedError, with one sentence."""

    def refuse(ctx, *gradients):
        raise NotImplementedError(
            f"{name} has no second derivative in labkit: leave out create_graph=True, or use torch's own there"
        )

    operator.register_autograd(refuse)


def _name(dtype):
    return str(dtype).removeprefix("torch.")


@cache
def _warn_of_simulator():
    warnings.warn(
        "labkit.nn computes tensors of the host in the simulator, thread by thread, which is for small shapes: "
        "move model and data to a GPU, `.cuda()`",
        stacklevel=2,
    )
