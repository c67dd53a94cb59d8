"""CUDA graphs: launches recorded once, which one driver call replays.

Imported only where numba-cuda is installed. (CUDA driver API, "Graph Management".)
"""

import weakref
from collections.abc import Callable

from labkit.arrays.driver import import_bindings

binding, driver = import_bindings()
SUCCESS = binding.CUresult.CUDA_SUCCESS
NOT_CAPTURED = binding.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE


class Graph:
    """The recorded launches of a function, which gets the driver's handle of a private stream."""

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
        """Replay the graph on a stream.

        Raises
        ------
        RuntimeError
            The driver refuses the replay.
        """
        (status,) = binding.cuGraphLaunch(self._executable, binding.CUstream(handle))
        if status != SUCCESS:
            raise RuntimeError(f"the driver refuses to replay a graph: {status.name}")


def may_replay(handle: int) -> bool:
    """Return whether a stream can replay a graph: it cannot while it is being captured."""
    status, capture = binding.cuStreamIsCapturing(binding.CUstream(handle))
    return status == SUCCESS and capture == NOT_CAPTURED
