"""torch's own functions as contenders of a bench."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import numpy as np

from labkit.formats import Format


def is_here() -> bool:
    return find_spec("torch") is not None


def tensors(format: Format, *arrays) -> tuple:
    """Arrays of the device as torch tensors of the same memory; bits as the format whose they are."""
    import torch

    def tensor(array):
        if not hasattr(array, "dtype"):
            return array
        own = format if array.dtype == format.dtype else format.result
        found = torch.as_tensor(array, device="cuda")
        is_own = array.dtype == own.dtype and own.is_bits
        return found.view(getattr(torch, own.type_name)) if is_own else found

    return tuple(map(tensor, arrays))


def on_stream(call: Callable[[], object]) -> Callable[[object], None]:
    """A function of a numba stream that makes a call of torch's on it, as `labkit.calls.timing` wants its launches."""
    import torch

    def launch(stream):
        with torch.cuda.stream(torch.cuda.ExternalStream(int(stream))):
            call()

    return launch


def compiled(function: Callable) -> Callable:
    """torch.compile's version of a function, made anew for each shape, type and layout.

    As it stands, torch gives up on a function after eight of them, and runs it as it is.
    """
    import torch
    import torch._dynamo

    torch._dynamo.config.recompile_limit = 1000
    return torch.compile(function, dynamic=False)


def in_each_layout(way: Callable) -> dict[str, Callable]:
    """A way of torch's to treat images, eager and compiled, in each layout; none where torch is not here."""
    if not is_here():
        return {}
    return {
        " ".join(filter(None, ("torch.compile" if compiled else "torch", "channels-last" * channels_last))): partial(
            way, compiled=compiled, channels_last=channels_last
        )
        for compiled in (False, True)
        for channels_last in (False, True)
    }


def random(*shape):
    """Random normal float32 on the GPU."""
    import torch

    return torch.randn(*map(int, np.atleast_1d(shape)), device="cuda")
