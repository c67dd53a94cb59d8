"""Functions of torch as contenders of a bench."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from labkit.formats import Format


def is_installed() -> bool:
    return find_spec("torch") is not None


def tensors(format: Format, *arrays) -> tuple:
    """Return device arrays as torch tensors of the same memory; an array of bits becomes a tensor of its format."""
    import torch

    def tensor(array):
        if not hasattr(array, "dtype"):
            return array
        own = format if array.dtype == format.dtype else format.result
        found = torch.as_tensor(array, device="cuda")
        is_own = array.dtype == own.dtype and own.is_bits
        return found.view(getattr(torch, own.type_name)) if is_own else found

    return tuple(map(tensor, arrays))


def launch_on_stream(call: Callable[[], Any], store_first_result: Callable | None = None) -> Callable:
    """Return a launch that makes a call of torch on a numba stream.

    After the first call, `store_first_result` copies the result to the operands, whose error the harness computes.
    """
    import torch

    pending = [store_first_result] if store_first_result else []

    def launch(stream):
        with torch.cuda.stream(torch.cuda.ExternalStream(int(stream))):
            result = call()
            while pending:
                pending.pop()(result)

    return launch


def compiled(function: Callable) -> Callable:
    """Return torch.compile's version of a function, compiled for each shape, type and layout.

    By default torch compiles a function for eight of them and runs it eagerly for others.
    """
    import torch
    import torch._dynamo

    torch._dynamo.config.recompile_limit = 1000
    return torch.compile(function, dynamic=False)


def eager_and_compiled(contender: Callable) -> dict[str, Callable]:
    """Return torch's eager and its compiled contender by name; none without torch."""
    names = {"torch": False, "torch.compile": True} if is_installed() else {}
    return {name: partial(contender, compiled=compiled) for name, compiled in names.items()}


def in_each_layout(contender: Callable) -> dict[str, Callable]:
    """Return torch's contenders for images by name, eager and compiled, in each layout; none without torch."""
    return {
        name + " channels-last" * channels_last: partial(contender, channels_last=channels_last)
        for name, contender in eager_and_compiled(contender).items()
        for channels_last in (False, True)
    }


def as_nchw(problem, arrays_by_name: Mapping) -> dict:
    """Return the problem's images by name, as tensors with the axes N C H W."""
    images = {name: arrays_by_name[name] for name in problem.image_arrays}
    return images if problem.layout == "NCHW" else {name: X.permute(0, 3, 1, 2) for name, X in images.items()}


def memory_format(channels_last: bool):
    """Return torch's memory format of images."""
    import torch

    return torch.channels_last if channels_last else torch.contiguous_format


def random_normal(*shape):
    """Return random normal float32 on the GPU."""
    import torch

    return torch.randn(*map(int, np.atleast_1d(shape)), device="cuda")
