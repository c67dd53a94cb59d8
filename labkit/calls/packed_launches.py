"""The launches of an operation packed for the driver; imported only where numba-cuda is installed."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

from labkit.arrays.driver import even_while_captured
from labkit.arrays.views import Place, View
from labkit.arrays.workspace import NOWHERE, Counted
from labkit.calls.graphs import Graph, may_replay
from labkit.ladder import Launch
from labkit.packed import Packed, compiled, move

RUNS_BEFORE_GRAPH = 8  # at the same addresses
MOST_GRAPHS = 16  # and addresses that are counted


class PackedLaunches:
    """Launches as the driver takes them, and where in them the addresses of operands and workspace stand.

    Several launches that have run some times at the same addresses are recorded as a graph, which is replayed from then
    on: that costs the host about as much as one launch. It is not done at once, since recording takes as long as a
    dozen launches; and a few graphs are kept, for operands that take turns.

    Attributes
    ----------
    counters_bytes, pieces_bytes, workspace_bytes
        The memory that they need beside the operands: zeros, which they leave at zero, and any; and together.
    takes_memory
        Whether a run is given any.
    """

    def __init__(self, launches: Callable[..., list[Launch]], operands: Sequence[View]):
        workspace = Counted(first_place=len(operands))
        self._launches = launches(*operands, workspace=workspace)  # keeps what they hold alive
        self.counters_bytes, self.pieces_bytes = workspace.counters_bytes, workspace.pieces_bytes
        self.workspace_bytes = workspace.size_bytes
        self.takes_memory = self.workspace_bytes > 0
        self._packed = [
            Packed(
                compiled(one.kernel, one.arguments),
                one.grid,
                one.block,
                one.arguments,
                one.shared_bytes,
                one.kernel.options.get("early", False),
            )
            for one in self._launches
        ]
        begins = (*(X.address for X in operands), NOWHERE, NOWHERE)
        self._cells = _moving((pair for one in self._packed for pair in one.cells), begins)
        self._maps = _moving((pair for one in self._packed for pair in one.maps), begins)
        self._addresses, self._stream = begins, None
        self._known = OrderedDict()  # by addresses: how often they ran, or the graph that is replayed there
        self._lock = Lock()  # the launches are packed for one run at a time

    def run(self, operands: Sequence, addresses: tuple[int, ...], stream: int, memory: tuple[int, int]) -> None:
        """Runs the launches.

        Parameters
        ----------
        operands, addresses
            The operands, which are not looked at, and where they begin.
        stream
            The driver's handle of the stream.
        memory
            Where counters and other pieces of the workspace begin.
        """
        with self._lock:
            addresses += memory
            if len(self._packed) > 1 and (graph := self._graph(addresses, stream)) is not None:
                graph.run(stream)
                return
            self._move_to(addresses)
            self._set_stream(stream)
            for one in self._packed:
                one.run()

    def _graph(self, addresses, stream):
        """The graph for these addresses; None as long as there is none, or it cannot be replayed on the stream."""
        known = self._known.setdefault(addresses, 0)
        if isinstance(known, int) and known < RUNS_BEFORE_GRAPH:
            self._known[addresses] = known + 1
            if len(self._known) > MOST_GRAPHS:
                self._known.popitem(last=False)
            return None
        if not may_replay(stream):
            return None
        if isinstance(known, int):
            self._move_to(addresses)
            known = self._known[addresses] = self._recorded()
        return known

    def _move_to(self, addresses):
        if addresses != self._addresses:
            for cell, number, distance in self._cells:
                cell.value = addresses[number] + distance
            for tensor_map, number, distance in self._maps:
                move(tensor_map, addresses[number] + distance)
            self._addresses = addresses

    def _recorded(self):
        def launch(handle):
            self._set_stream(handle)
            for one in self._packed:
                one.run()

        with even_while_captured():
            return Graph(launch)

    def _set_stream(self, handle):
        if handle != self._stream:
            for one in self._packed:
                one.set_stream(handle)
            self._stream = handle


def _moving(views, begins):
    """Of the views of operands: what holds the address, of which operand, and how far from its begin that is."""
    return [
        (holder, view.owner.number, view.address - begins[view.owner.number])
        for view, holder in views
        if isinstance(view.owner, Place)
    ]
