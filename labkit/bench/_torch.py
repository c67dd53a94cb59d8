"""torch's own functions as contenders of a bench."""

from collections.abc import Callable


def on_stream(call: Callable[[], object]) -> Callable[[object], None]:
    """A function of a numba stream that makes a call of torch's on it, as `labkit.timing` wants its launches."""
    import torch

    def launch(stream):
        with torch.cuda.stream(torch.cuda.ExternalStream(int(stream))):
            call()

    return launch


def kernel_of(call: Callable[[], object]) -> str:
    """The name of the kernel that a call of torch's takes longest in.

    The profiler may slow down what is timed after it in the same process.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile

    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        call()
        torch.cuda.synchronize()
    on_gpu = [event for event in profiled.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return max(on_gpu, key=lambda event: event.time_range.elapsed_us()).name
