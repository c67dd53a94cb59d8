"""What is asked of the CUDA driver beside numba: the device of this thread, streams by their handles, captures."""

import weakref
from contextlib import contextmanager
from functools import cache

from labkit import cuda

# Handles of default streams: the one that all others wait for, and the one that each thread has for itself.
LEGACY, PER_THREAD = 1, 2
DEFAULTS = 0, LEGACY  # of all threads


@cache
def bindings():
    """The driver's functions, which give a status, and the same by numba, which raise; only where there is a GPU."""
    from numba.cuda.cudadrv.driver import binding, driver

    return binding, driver


def current_device() -> int:
    """The number of the GPU that this thread uses, which has a context from then on; 0 in the simulator."""
    if bindings.cache_info().currsize == 0 and not cuda.on_gpu():  # each call asks, and `on_gpu` takes long
        return 0
    status, device = bindings()[0].cuCtxGetDevice()
    return cuda.get_current_device().id if status else int(device)  # where there was no context yet


def handle_of(stream) -> int:
    """The driver's handle of a stream: numba's, torch's, CuPy's, or another's that is one by its `__cuda_stream__`.

    Raises
    ------
    TypeError
        It is no stream.
    """
    if isinstance(stream, int) and stream == 0 and not isinstance(stream, bool):
        return 0
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for name in ("cuda_stream", "ptr"):  # older torch, CuPy
        if isinstance(getattr(stream, name, None), int):
            return getattr(stream, name)
    raise TypeError(f"{stream!r} is no stream: give one of cuda.stream(), torch's or CuPy's, or 0")


def number_of(stream: int) -> int:
    """The number of a stream, which no other one ever has, as the handle of one that is gone may be another's.

    It must not be asked for while the stream is captured: the capture would fail.
    """
    binding, driver = bindings()
    return int(driver.cuStreamGetId(binding.CUstream(stream)))


def is_capturing(stream: int) -> bool:
    """Whether work on a stream is recorded into a graph now."""
    binding, _ = bindings()
    status, capture = binding.cuStreamIsCapturing(binding.CUstream(stream))
    return bool(status) or capture != binding.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE


def synchronize(stream: int) -> None:
    """Waits until all work of a stream is done."""
    binding, driver = bindings()
    driver.cuStreamSynchronize(binding.CUstream(stream))


@contextmanager
def even_while_captured():
    """Lets this thread allocate while a stream is captured: a graph takes no notice of it.

    (CUDA driver API, cuThreadExchangeStreamCaptureMode.)
    """
    binding, driver = bindings()
    before = driver.cuThreadExchangeStreamCaptureMode(binding.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        yield
    finally:
        driver.cuThreadExchangeStreamCaptureMode(before)


class Moment:
    """Where a stream is, for which another one can wait."""

    def __init__(self):
        binding, driver = bindings()
        self._event = driver.cuEventCreate(binding.CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
        weakref.finalize(self, binding.cuEventDestroy, self._event).atexit = False

    def pass_on(self, stream: int) -> None:
        """It is behind all work that the stream has got."""
        binding, _ = bindings()
        _check(binding.cuEventRecord(self._event, binding.CUstream(stream)))

    def wait(self, stream: int) -> None:
        """What the stream gets from now on begins behind it."""
        binding, _ = bindings()
        _check(binding.cuStreamWaitEvent(binding.CUstream(stream), self._event, 0))


def _check(found):
    (status,) = found
    if status:
        raise RuntimeError(f"the driver cannot let one stream wait for another: {status.name}")
