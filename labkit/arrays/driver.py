"""Calls of the CUDA driver that numba lacks: the device of this thread, streams by their handles, captures."""

import weakref
from contextlib import contextmanager
from functools import cache
from typing import Any

from labkit import cuda
from labkit.cuda.driver_calls import import_bindings

# Handles of default streams: the one that all others wait for, and the one that each thread has.
LEGACY, PER_THREAD = 1, 2
DEFAULTS = 0, LEGACY  # handles of the stream that all threads share


@cache
def bindings() -> tuple[Any, Any]:
    """Return what `import_bindings` does; only with a GPU."""
    return import_bindings()


def current_device() -> int:
    """Return the number of the GPU that this thread uses, and create its context; 0 in the simulator."""
    if bindings.cache_info().currsize == 0 and not cuda.on_gpu():  # `on_gpu` is slow, and each call gets here
        return 0
    status, device = bindings()[0].cuCtxGetDevice()
    return cuda.get_current_device().id if status else int(device)  # there was no context yet


def stream_handle(stream) -> int:
    """Return the driver's handle of a stream: of numba, torch, CuPy, or any object with `__cuda_stream__`.

    Raise TypeError if `stream` is not a stream.
    """
    if isinstance(stream, int) and stream == 0 and not isinstance(stream, bool):
        return 0
    if (described := getattr(stream, "__cuda_stream__", None)) is not None:
        return int(described()[1])
    for name in ("cuda_stream", "ptr"):  # older torch, CuPy
        if isinstance(getattr(stream, name, None), int):
            return getattr(stream, name)
    raise TypeError(f"{stream!r} is not a stream: give one of cuda.stream(), torch's or CuPy's, or 0")


def stream_id(stream: int) -> int:
    """Return the number of a stream, which no other stream ever has; the driver may reuse a handle.

    Do not call this during a capture of the stream: the capture would fail.
    """
    binding, driver = bindings()
    return int(driver.cuStreamGetId(binding.CUstream(stream)))


def is_capturing(stream: int) -> bool:
    """Return whether a graph is capturing the stream now."""
    binding, _ = bindings()
    status, capture = binding.cuStreamIsCapturing(binding.CUstream(stream))
    return bool(status) or capture != binding.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE


def synchronize(stream: int) -> None:
    """Wait until all work of a stream is done."""
    binding, driver = bindings()
    driver.cuStreamSynchronize(binding.CUstream(stream))


@contextmanager
def allow_during_capture():
    """Let this thread allocate during a capture: the graph does not record it.

    (CUDA driver API, cuThreadExchangeStreamCaptureMode.)
    """
    binding, driver = bindings()
    before = driver.cuThreadExchangeStreamCaptureMode(binding.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    try:
        yield
    finally:
        driver.cuThreadExchangeStreamCaptureMode(before)


class StreamEvent:
    """A point in a stream's work, for which another stream can wait."""

    def __init__(self):
        binding, driver = bindings()
        self._event = driver.cuEventCreate(binding.CUevent_flags.CU_EVENT_DISABLE_TIMING.value)
        weakref.finalize(self, binding.cuEventDestroy, self._event).atexit = False

    def record(self, stream: int) -> None:
        """Put the event after all current work of the stream."""
        binding, _ = bindings()
        _check(binding.cuEventRecord(self._event, binding.CUstream(stream)))

    def wait(self, stream: int) -> None:
        """Let later work of the stream wait for the event."""
        binding, _ = bindings()
        _check(binding.cuStreamWaitEvent(binding.CUstream(stream), self._event, 0))


def _check(results):
    (status,) = results
    if status:
        raise RuntimeError(f"the driver cannot let one stream wait for another: {status.name}")
