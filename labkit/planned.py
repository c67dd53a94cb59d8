"""Planned calls: what an operation launches for certain operands, worked out and packed once, run many times.

>>> plan = gemm.plan(A, B, C)
>>> plan()          # C = A @ B
>>> plan(A2, B, C)  # the same with another A, which lies as the first one did

To launch a kernel costs the host some microseconds, and to find out what to launch with which arguments some hundred:
which kernel, compiled for which types; how many blocks; what memory beside the operands; how the copy engine sees them.
None of that depends on where the operands are, as long as they are aligned alike.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import get_ident
from types import MappingProxyType

from labkit import cuda
from labkit.arrays.addresses import address_of, check_own_memory, extent, share_memory
from labkit.arrays.operands import check_on_device, layout, seen, taken
from labkit.arrays.views import View
from labkit.arrays.workspace import Workspace, even_while_captured, handle_of
from labkit.ladder import Launch

RUNS_BEFORE_GRAPH = 8  # at the same addresses
MOST_GRAPHS = 16  # of a plan, and addresses that are counted
MOST_ADDRESSES = 64  # of a plan, that are known to be apart
MOST_PLANS = 256  # that calls of an operation remember


@dataclass(frozen=True)
class Place:
    """Stands for the memory of an operand, by its number, in all views of it."""

    number: int


class Plan:
    """The launches of an operation for operands that lie in a certain way.

    `plan()` runs it for the operands that it was made with, which it keeps alive; `plan(A, B, C)` for others from then
    on, which lie in the same way. It owns its workspace and allocates nothing when it is run, so that it can be
    captured in a CUDA graph on any stream; keep it as long as the graph. It runs on one stream at a time, since its
    workspace is for one run.

    Parameters
    ----------
    launches
        `launches(*operands, workspace=...)` gives the launches, as a step does.
    operands
        Arrays of the device by their names.
    outputs
        The names of the operands that are written, and must share memory with no other one.
    in_place
        For an output the name of the operand in whose very place it may be written.
    stream
        On which it runs, unless a call names another one.
    workspace
        Where it takes memory from; if it is None, one of its own.
    keep
        Whether it keeps the operands alive; without them it has to be given some in each call.
    """

    def __init__(
        self,
        launches: Callable[..., list[Launch]],
        operands: dict[str, object],
        outputs: Sequence[str],
        *,
        in_place: Mapping[str, str] = MappingProxyType({}),
        stream=0,
        workspace: Workspace | None = None,
        keep: bool = True,
    ):
        self._names, arrays = list(operands), list(operands.values())
        self._outputs = [self._names.index(name) for name in outputs]
        for name, X in operands.items():
            check_on_device(name, X)
        for name in outputs:
            check_own_memory(name, taken(operands[name]))
        self._layouts = [layout(X) for X in arrays]
        self._near = self._distances(in_place)
        self._known = [set() for _ in arrays]  # as `seen`, of arrays that have these layouts
        self._apart = set()  # outputs, other operands, and distances between them at which they share nothing
        self._apart_at = set()  # addresses of all operands at which no two share anything
        addresses = self._where(arrays)
        self._check_apart(arrays, addresses)
        self._keeps, self._operands, self._addresses = keep, arrays if keep else (), addresses
        self._workspace = workspace or Workspace()
        self._lock = self._workspace.lock  # one run at a time uses its memory
        make, places = _OnGpu if cuda.on_gpu() else _Simulated, [taken(X, Place(i)) for i, X in enumerate(arrays)]
        with self._lock:
            self._runs = make(launches, places, self._workspace, handle_of(stream))

    def __call__(self, *operands, stream=None) -> None:
        """Runs the launches.

        Parameters
        ----------
        operands
            None of them, or all, each in the layout of the one in whose place it comes: of the same shape, strides and
            type, and as far from a multiple of 16 bytes.
        stream
            Where to run from now on; if it is None, on the stream of the time before.

        Raises
        ------
        TypeError, ValueError
            Other operands do not lie as those of the plan.
        """
        if operands:
            addresses = self._where(operands)
        else:
            operands, addresses = self._operands, self._addresses
        self.run(operands, addresses, None if stream is None else handle_of(stream))

    @property
    def workspace_bytes(self) -> int:
        """The memory of the workspace that it uses."""
        return self._workspace.size_bytes

    def run(self, operands: Sequence, addresses: list[int], stream: int | None = None) -> None:
        """As a call, of operands that are known to lie as planned and begin there; and of a stream's handle."""
        with self._lock:
            if addresses is not self._addresses:
                self._check_apart(operands, addresses)
            if self._keeps:
                self._operands, self._addresses = operands, addresses
            self._runs(operands, addresses, stream)

    def _where(self, operands):
        """Where operands begin that lie as planned; raises where they do not."""
        if len(operands) != len(self._names):
            raise TypeError(f"this plan takes {', '.join(self._names)}, or nothing, and got {len(operands)} operands")
        addresses = []
        for number, X in enumerate(operands):
            try:
                known, address = seen(X)
            except AttributeError:
                check_on_device(self._names[number], X)
                raise
            if known not in self._known[number]:
                self._check_layout(number, X)
                self._known[number].add(known)
            addresses.append(address)
        return addresses

    def _check_layout(self, number, X):
        name = self._names[number]
        planned, found = self._layouts[number], layout(X)
        for what, wanted, has in zip(("is of shape", "has strides", "holds"), planned, found):
            if wanted != has:
                raise ValueError(f"{name} {what} {has}, and the plan is for {wanted}: make a plan for such an array")
        if planned != found:
            raise ValueError(
                f"{name} begins {found[3]} bytes after a multiple of 16, and the plan is for {planned[3]}: "
                "make a plan for such an array"
            )

    def _distances(self, in_place) -> list[tuple[int, int, int, int, int | None]]:
        """Outputs and other operands, between which distances the two may share bytes, and at which one they may."""
        extents = [extent(shape, strides, dtype.itemsize) for shape, strides, dtype, _ in self._layouts]
        near = []
        for output in self._outputs:
            (begin, end), same = extents[output], in_place.get(self._names[output])
            for number, (low, high) in enumerate(extents):
                if number == output or (number in self._outputs and number < output):  # of two outputs once
                    continue
                alike = self._names[number] == same and self._layouts[number] == self._layouts[output]
                near.append((output, number, begin - high, end - low, 0 if alike else None))
        return near

    def _check_apart(self, operands, addresses):
        """Raises ValueError where writing an output would change another operand."""
        if (at := tuple(addresses)) in self._apart_at:
            return
        for output, number, least, most, allowed in self._near:
            distance = addresses[number] - addresses[output]
            if not least < distance < most or distance == allowed or (output, number, distance) in self._apart:
                continue
            if share_memory(taken(operands[number]), taken(operands[output])):
                name, written = self._names[number], self._names[output]
                used = "written too" if number in self._outputs else f"read while {written} is written"
                raise ValueError(
                    f"{written} shares memory with {name}, which is {used}: give {written} memory of its own"
                )
            self._apart.add((output, number, distance))
        if len(self._apart_at) == MOST_ADDRESSES:
            self._apart_at.clear()
        self._apart_at.add(at)


class Remembered:
    """The plans that calls of an operation have made, by what they are for; threads may share them.

    There are up to `most`: then the one that nobody has asked for the longest is forgotten.
    """

    def __init__(self, most: int = MOST_PLANS):
        self.most, self._plans = most, OrderedDict()

    def __len__(self):
        return len(self._plans)

    def get(self, key: Hashable) -> Plan | None:
        """The plan for this, if there is one."""
        known = self._plans.get(key)
        if known is not None:
            with suppress(KeyError):  # another thread forgot it
                self._plans.move_to_end(key)
        return known

    def keep(self, key: Hashable, plan: Plan) -> None:
        """Remembers a plan."""
        self._plans[key] = plan
        with suppress(KeyError):
            while len(self._plans) > self.most:
                self._plans.popitem(last=False)

    def clear(self) -> None:
        """Forgets all."""
        self._plans.clear()


class _Simulated:
    """Launches in the simulator, which are made anew for other operands."""

    def __init__(self, launches, operands, workspace, stream):
        self._make = partial(launches, workspace=workspace)
        self._made, self._addresses = self._make(*operands), list(map(address_of, operands))

    def __call__(self, operands, addresses, stream):
        if self._made is None or addresses != self._addresses:
            self._made = self._make(*operands)
        made, self._made = self._made, None  # which keep operands alive
        for launch in made:
            launch.run()


class _OnGpu:
    """Launches packed for the driver, and where in them the addresses of operands stand.

    Several launches that have run some times at the same addresses are recorded as a graph, which is replayed from then
    on: that costs the host about as much as one launch. It is not done at once, since recording takes as long as a
    dozen launches; and a few graphs are kept, for operands that take turns.
    """

    def __init__(self, launches, operands: Sequence[View], workspace, stream):
        from labkit.graphs import Graph, may_replay
        from labkit.packed import Packed, compiled, move

        self._launches = launches(*operands, workspace=workspace)  # keeps what they hold alive
        self._packed = [
            Packed(
                compiled(one.kernel, one.arguments),
                one.grid,
                one.block,
                one.arguments,
                one.shared_bytes,
                one.kernel.targetoptions.get("early", False),
            )
            for one in self._launches
        ]
        begins = [X.address for X in operands]
        self._cells = _moving((pair for one in self._packed for pair in one.cells), begins)
        self._maps = _moving((pair for one in self._packed for pair in one.maps), begins)
        self._move, self._recording, self._may_replay = move, Graph, may_replay
        self._addresses, self._stream = begins, None
        self._known = OrderedDict()  # by addresses: how often they ran, or the graph that is replayed there
        self._threads = {get_ident()}  # which have a context
        self._set_stream(stream)

    def __call__(self, operands, addresses, stream):
        if get_ident() not in self._threads:
            cuda.current_context()
            self._threads.add(get_ident())
        if stream is not None and stream != self._stream:
            self._set_stream(stream)
        if len(self._packed) > 1:
            known = self._known.setdefault(key := tuple(addresses), 0)
            if isinstance(known, int) and known < RUNS_BEFORE_GRAPH:
                self._known[key] = known + 1
            elif self._may_replay(self._stream):
                if isinstance(known, int):
                    self._move_to(addresses)
                    known = self._known[key] = self._recorded()
                known.run(self._stream)
                return
            if len(self._known) > MOST_GRAPHS:
                self._known.popitem(last=False)
        self._move_to(addresses)
        self._launch()

    def _move_to(self, addresses):
        if addresses != self._addresses:
            for cell, number, distance in self._cells:
                cell.value = addresses[number] + distance
            for tensor_map, number, distance in self._maps:
                self._move(tensor_map, addresses[number] + distance)
            self._addresses = addresses

    def _launch(self):
        for one in self._packed:
            one.run()

    def _recorded(self):
        stream = self._stream

        def launch(handle):
            self._set_stream(handle)
            try:
                self._launch()
            finally:
                self._set_stream(stream)

        with even_while_captured():
            return self._recording(launch)

    def _set_stream(self, handle):
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
