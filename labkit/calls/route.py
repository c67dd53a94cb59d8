"""Routes: how calls run whose arrays lie alike, found again by these."""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock

from labkit import cuda
from labkit.arrays.driver import Moment, is_capturing
from labkit.arrays.owners import Owner, owner_of
from labkit.calls.memory import run_beside
from labkit.calls.operation import Operation, Result
from labkit.calls.prepared import Prepared

MOST_ROUTES = 1024


@dataclass(frozen=True)
class New:
    """An output that a call makes: its place among all arrays, that of the operand beside it, and what it is."""

    place: int
    beside: int
    owner: Owner
    result: Result

    def make(self, like, stream: int):
        """The array, for work on the stream."""
        if self.owner.current_stream(like) in (None, stream):
            return new_array(self.owner, like, self.result)
        with self.owner.on_stream(like, stream):
            return new_array(self.owner, like, self.result)


def new_array(owner: Owner, like, result: Result):
    """A new array of an owner, whose axes follow one another in memory as the result has it."""
    if result.axes is None:
        return owner.empty(like, result.shape, result.type_name)
    whole = owner.empty(like, tuple(result.shape[axis] for axis in result.axes), result.type_name)
    return owner.permuted(whole, tuple(result.axes.index(axis) for axis in range(len(result.axes))))


@dataclass(frozen=True)
class Route:
    """How a call runs. Arrays are told by their places among all that the operation may have.

    Attributes
    ----------
    prepared
        What runs the kernels.
    device
        The arrays' GPU, if they tell.
    new
        The outputs that are made.
    written
        The arrays that are written, of those that are given.
    outputs
        What is given back.
    keeper
        The operand whose package gives the workspace, if there is one.
    with_streams
        The arrays whose packages have a current stream.
    """

    prepared: Prepared
    device: int | None
    new: tuple[New, ...]
    written: tuple[int, ...]
    outputs: tuple[int, ...]
    keeper: int | None
    with_streams: tuple[int, ...]

    def run(self, arrays: list, addresses: list, stream: int | None, device: int):
        """Runs for arrays that lie alike, on a stream by its handle, or on their current one, in a thread that uses a
        device."""
        if self.device is not None and self.device != device:
            with cuda.gpus[self.device]:
                return self._run(arrays, addresses, stream)
        return self._run(arrays, addresses, stream)

    def _run(self, arrays, addresses, stream):
        currents = [owner_of(arrays[place]).current_stream(arrays[place]) for place in self.with_streams]
        if stream is None:
            stream = next((current for current in currents if current is not None), 0)
        for new in self.new:
            X = arrays[new.place] = new.make(arrays[new.beside], stream)
            addresses[new.place] = new.owner.address(X)
        operands = [X for X in arrays if X is not None]
        at = tuple([address for address in addresses if address is not None])
        if self.written:  # what is new shares memory with nothing
            self.prepared.check_apart(operands, at)
        others = () if self.keeper is not None and len(currents) == 1 else {*currents} - {None, stream}
        for other in others:
            _order(other, stream)
        keeper = None if self.keeper is None else arrays[self.keeper]
        run_beside(self.prepared.launches, operands, at, stream, keeper)
        for other in others:
            _order(stream, other)
        for place in self.written:
            owner_of(arrays[place]).mark_written(arrays[place])
        if len(self.outputs) == 1:
            return arrays[self.outputs[0]]
        return tuple([arrays[place] for place in self.outputs])


def _order(first: int, then: int) -> None:
    """Work that a stream gets from now on begins behind what another one has."""
    if not is_capturing(first) and not is_capturing(then):
        moment = Moment()
        moment.pass_on(first)
        moment.wait(then)


class Routes:
    """Routes by what they are for; there are up to `most`, then the one that was not asked for the longest goes."""

    def __init__(self, most: int = MOST_ROUTES):
        self.most, self._routes, self._lock = most, OrderedDict(), Lock()

    def __len__(self):
        return len(self._routes)

    def get(self, key: Hashable) -> Route | None:
        """The route for this, if there is one."""
        with self._lock:
            found = self._routes.get(key)
            if found is not None:
                self._routes.move_to_end(key)
            return found

    def keep(self, key: Hashable, route: Route) -> None:
        """Keeps a route, instead of the oldest where there are too many."""
        with self._lock:
            self._routes[key] = route
            while len(self._routes) > self.most:
                self._routes.popitem(last=False)

    def forget(self, operation: type[Operation] | None = None) -> None:
        """Forgets those of an operation, or all."""
        with self._lock:
            for key in [key for key in self._routes if operation is None or issubclass(key[0], operation)]:
                del self._routes[key]


routes = Routes()
