"""Launches recorded once as a CUDA graph, which the driver replays by one call, however many there are.

Imported only where numba-cuda is installed. (CUDA driver API, "Graph Management".)
"""

import weakref
from collections.abc import Callable

from numba.cuda.cudadrv.driver import binding, driver

SUCCESS = binding.CUresult.CUDA_SUCCESS
NOT_CAPTURED = binding.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE


class Graph:
    """What a function launches on a stream, by the driver's handle of it, recorded on a stream of its own."""

    def __init__(self, launch: Callable[[int], None]):
        stream = driver.cuStreamCreate(binding.CUstream_flags.CU_STREAM_NON_BLOCKING.value)
        try:
            driver.cuStreamBeginCapture(stream, binding.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
            try:
                launch(int(stream))
            finally:
                graph = driver.cuStreamEndCapture(stream)
            self._executable = driver.cuGraphInstantiate(graph, 0)
            driver.cuGraphDestroy(graph)
        finally:
            driver.cuStreamDestroy(stream)
        weakref.finalize(self, binding.cuGraphExecDestroy, self._executable).atexit = False

    def run(self, handle: int) -> None:
        """Replays it on a stream.

        Raises
        ------
        RuntimeError
            The driver refuses it.
        """
        (status,) = binding.cuGraphLaunch(self._executable, binding.CUstream(handle))
        if status != SUCCESS:
            raise RuntimeError(f"the driver refuses to replay a graph: {status.name}")


def may_replay(handle: int) -> bool:
    """Whether a graph can be replayed on a stream: not while it is itself captured into another one."""
    status, capture = binding.cuStreamIsCapturing(binding.CUstream(handle))
    return status == SUCCESS and capture == NOT_CAPTURED
