"""Routes: calls prepared for arrays of one layout, and cached by it. An array's owner is our adapter of its package."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from labkit import cuda
from labkit.arrays.driver import StreamEvent, is_capturing
from labkit.arrays.owners import Owner, owner_of
from labkit.calls.memory import run_with_workspace
from labkit.calls.operation import Operation, Result
from labkit.calls.prepared import Prepared
from labkit.calls.streams import first_stream

MAX_ROUTES = 1024


@dataclass(frozen=True)
class NewOutput:
    """An output that a call makes: its number among all arrays, the number of the operand like it, owner and result."""

    number: int
    like_number: int
    owner: Owner
    result: Result


def new_array(owner: Owner, like, result: Result, stream: int | None = None):
    """Return a new array of an owner, with the result's order of axes in memory, for work on the stream."""
    if stream is not None and owner.current_stream(like) not in (None, stream):
        with owner.on_stream(like, stream):
            return new_array(owner, like, result)
    if result.axes is None:
        return owner.empty(like, result.shape, result.type_name)
    in_memory = owner.empty(like, tuple(result.shape[axis] for axis in result.axes), result.type_name)
    return owner.permute_axes(in_memory, tuple(result.axes.index(axis) for axis in range(len(result.axes))))


@dataclass(frozen=True)
class Route:
    """A prepared call. Arrays are given by their numbers among all arrays of the operation.

    Attributes
    ----------
    prepared
        The prepared operation, which runs the kernels.
    device
        Number of the arrays' GPU; None if no array tells it.
    new
        Outputs that the call makes.
    written
        Written arrays among the arguments.
    outputs
        Arrays that the call returns.
    allocator
        The operand whose package allocates the workspace; None if there is none.
    with_streams
        Arrays whose packages have a current stream.
    """

    prepared: Prepared
    device: int | None
    new: tuple[NewOutput, ...]
    written: tuple[int, ...]
    outputs: tuple[int, ...]
    allocator: int | None
    with_streams: tuple[int, ...]

    def run(self, arrays: list, addresses: list, stream: int | None, device: int):
        """Run for arrays of the route's layout, and return the outputs.

        `arrays` and `addresses` have None for each missing array; new outputs are put into both. `stream` is the
        driver's handle, or None for the arrays' current stream; `device` is the number of the GPU of this thread.
        """
        if self.device is not None and self.device != device:
            with cuda.gpus[self.device]:
                return self._run(arrays, addresses, stream)
        return self._run(arrays, addresses, stream)

    def _run(self, arrays, addresses, stream):
        currents: list[Any] = [owner_of(arrays[i]).current_stream(arrays[i]) for i in self.with_streams]
        if stream is None:
            stream = first_stream(currents)
        for new in self.new:
            X = arrays[new.number] = new_array(new.owner, arrays[new.like_number], new.result, stream)
            addresses[new.number] = owner_of(X).address(X)
        operands = [X for X in arrays if X is not None]
        operand_addresses = tuple([address for address in addresses if address is not None])
        if self.written:  # new arrays share memory with nothing
            self.prepared.check_overlap(operands, operand_addresses)
        others = () if self.allocator is not None and len(currents) == 1 else {*currents} - {None, stream}
        for other in others:
            _wait_for(other, stream)
        allocator = None if self.allocator is None else arrays[self.allocator]
        run_with_workspace(self.prepared.launches, operands, operand_addresses, stream, allocator)
        for other in others:
            _wait_for(stream, other)
        for i in self.written:
            owner_of(arrays[i]).mark_written(arrays[i])
        if len(self.outputs) == 1:
            return arrays[self.outputs[0]]
        return tuple([arrays[i] for i in self.outputs])


def _wait_for(first: int, second: int) -> None:
    """Let later work of the stream `second` wait for all current work of the stream `first`."""
    if not is_capturing(first) and not is_capturing(second):
        event = StreamEvent()
        event.record(first)
        event.wait(second)


class Routes:
    """A cache of up to `limit` routes by their keys; it evicts the least recently used one."""

    def __init__(self, limit: int = MAX_ROUTES):
        self.limit, self._routes, self._lock = limit, OrderedDict(), Lock()

    def __len__(self):
        return len(self._routes)

    def get(self, key: Hashable) -> Route | None:
        """Return the route for a key; None if there is none."""
        with self._lock:
            route = self._routes.get(key)
            if route is not None:
                self._routes.move_to_end(key)
            return route

    def store(self, key: Hashable, route: Route) -> None:
        """Store a route, and evict the least recently used ones above the limit."""
        with self._lock:
            self._routes[key] = route
            while len(self._routes) > self.limit:
                self._routes.popitem(last=False)

    def forget(self, operation: type[Operation] | None = None) -> None:
        """Delete the routes of an operation, or all routes."""
        with self._lock:
            for key in [key for key in self._routes if operation is None or issubclass(key[0], operation)]:
                del self._routes[key]


routes = Routes()
