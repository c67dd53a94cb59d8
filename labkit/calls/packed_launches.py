"""Launches of an operation, packed for the driver or recorded as a CUDA graph, which one driver call replays.

Imported only where numba-cuda is installed. (CUDA driver API, "Graph Management".)
"""

import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from labkit.arrays.driver import allow_during_capture
from labkit.arrays.views import OperandSlot
from labkit.arrays.workspace import DUMMY_ADDRESS, CountingWorkspace
from labkit.cuda.driver_calls import import_bindings
from labkit.cuda.packed import PackedLaunch, get_compiled, move_map
from labkit.ladder import Launch

binding, driver = import_bindings()
SUCCESS = binding.CUresult.CUDA_SUCCESS
NOT_CAPTURED = binding.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
RUNS_BEFORE_GRAPH = 8  # at the same addresses
MAX_GRAPHS = 16  # also the number of address sets whose runs are counted


class PackedLaunches:
    """Launches in the driver's form, with the positions of operand and workspace addresses in them.

    After several runs at the same addresses, two or more launches are recorded as a graph, and later runs replay it. A
    replay costs the host about as much as one launch. Recording costs as much as a dozen launches, so it waits for
    repeated runs. Several graphs are cached, for operands that alternate.

    Attributes
    ----------
    counters_bytes, buffers_bytes, workspace_bytes
        Size of the workspace: counters, which are zero before and after a run; uninitialised buffers; both together.
    takes_memory
        Whether a run needs workspace.
    """

    def __init__(self, launches: Callable[..., list[Launch]], operands: Sequence):
        workspace = CountingWorkspace(first_slot=len(operands))
        self._launches = launches(*operands, workspace=workspace)  # keeps their arrays alive
        self.counters_bytes, self.buffers_bytes = workspace.counters_bytes, workspace.buffers_bytes
        self.workspace_bytes = workspace.size_bytes
        self.takes_memory = self.workspace_bytes > 0
        self._packed = list(map(_pack, self._launches))
        addresses = (*(X.address for X in operands), DUMMY_ADDRESS, DUMMY_ADDRESS)
        # What holds an operand's address: kernel arguments, and tensor maps.
        self._cells = _find_movable((pair for launch in self._packed for pair in launch.cells), addresses)
        self._maps = _find_movable((pair for launch in self._packed for pair in launch.maps), addresses)
        self._addresses, self._stream = addresses, None
        self._graphs = OrderedDict()  # by addresses: the number of runs, or the graph
        self._lock = Lock()  # the launches are packed for one run at a time

    def run(self, operands: Sequence, addresses: tuple[int, ...], stream: int, memory: tuple[int, int]) -> None:
        """Run the launches for operands at these addresses, on a stream by the driver's handle of it.

        `memory` has the addresses of the workspace's counters and of its other buffers; `operands` is not used here.
        """
        with self._lock:
            addresses += memory
            if len(self._packed) > 1 and (graph := self._graph(addresses, stream)) is not None:
                graph.run(stream)
                return
            self._move_to(addresses)
            self._launch_all(stream)

    def _graph(self, addresses, stream):
        """Return the graph for these addresses; None if there is none yet, or the stream cannot replay it."""
        graph = self._graphs.setdefault(addresses, 0)
        if isinstance(graph, int) and graph < RUNS_BEFORE_GRAPH:
            self._graphs[addresses] = graph + 1
            if len(self._graphs) > MAX_GRAPHS:
                self._graphs.popitem(last=False)
            return None
        if not may_replay(stream):
            return None
        if isinstance(graph, int):
            self._move_to(addresses)
            with allow_during_capture():
                graph = self._graphs[addresses] = Graph(self._launch_all)
        return graph

    def _move_to(self, addresses):
        if addresses != self._addresses:
            self._addresses = None  # until all have moved
            for cell, number, offset in self._cells:
                cell.value = addresses[number] + offset
            for tensor_map, number, offset in self._maps:
                move_map(tensor_map, addresses[number] + offset)
            self._addresses = addresses

    def _launch_all(self, stream):
        if stream != self._stream:
            self._stream = None  # until all are set
            for launch in self._packed:
                launch.set_stream(stream)
            self._stream = stream
        for launch in self._packed:
            launch.run()


def _pack(launch):
    kernel = get_compiled(launch.kernel, launch.arguments)
    early = launch.kernel.options.get("early", False)  # whether it may begin before the launch before it ends
    return PackedLaunch(kernel, launch.grid, launch.block, launch.arguments, launch.shared_bytes, early)


def _find_movable(views, addresses):
    """Return, for each view of an operand: the holder of its address, the operand's number, the offset in bytes."""
    return [
        (holder, view.owner.number, view.address - addresses[view.owner.number])
        for view, holder in views
        if isinstance(view.owner, OperandSlot)
    ]


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

        Raise RuntimeError if the driver refuses the replay.
        """
        (status,) = binding.cuGraphLaunch(self._executable, binding.CUstream(handle))
        if status != SUCCESS:
            raise RuntimeError(f"the driver refuses to replay a graph: {status.name}")


def may_replay(handle: int) -> bool:
    """Return whether a stream can replay a graph: it cannot while it is being captured."""
    status, capture = binding.cuStreamIsCapturing(binding.CUstream(handle))
    return status == SUCCESS and capture == NOT_CAPTURED
