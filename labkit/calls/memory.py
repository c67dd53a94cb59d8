"""Whose memory launches use beside their operands: that of the moment for a call, a reserve for a plan."""

import weakref
from collections import deque
from functools import cache
from threading import Lock

from labkit.arrays import pool
from labkit.arrays.driver import (
    DEFAULTS,
    PER_THREAD,
    Moment,
    bindings,
    current_device,
    even_while_captured,
    is_capturing,
    number_of,
    synchronize,
)
from labkit.arrays.owners import owner_of
from labkit.arrays.pool import PoolBlock


def run_beside(launches, operands, addresses: tuple[int, ...], stream: int, keeper=None) -> None:
    """Runs launches with memory that is taken on the stream before them and given back behind them.

    It is that of the package of `keeper`, an operand, or else the driver's; while the stream is captured it is the
    graph's.
    """
    if not launches.takes_memory:
        launches.run(operands, addresses, stream, (0, 0))
        return
    if keeper is None or stream == PER_THREAD:  # which torch takes for one stream of all threads
        block = PoolBlock(launches.workspace_bytes, stream)
    else:
        block = _block_of(keeper, launches.workspace_bytes, stream)
    try:
        if launches.counters_bytes:
            pool.clear(block.address, launches.counters_bytes, stream)
        launches.run(operands, addresses, stream, (block.address, block.address + launches.counters_bytes))
    finally:
        block.give_back()


class Reserve:
    """Memory that a plan holds, or several plans that take turns; its runs come one after another on any streams."""

    def __init__(self):
        self._lock, self._turn, self._is_watched = Lock(), _Turn(), False
        self._counters, self._pieces = _Growing(has_zeros=True), _Growing()

    @property
    def size_bytes(self) -> int:
        """Of all that it holds."""
        return self._counters.size_bytes + self._pieces.size_bytes

    def make_room(self, launches, operands, stream: int) -> None:
        """Takes what launches need, for operands like these."""
        if not launches.takes_memory:
            return
        with self._lock:
            self._take_turn(stream)
            if not self._is_watched:
                weakref.finalize(self, _release, self._turn, self._counters, self._pieces).atexit = False
                self._is_watched = True
            self._counters.grow(launches.counters_bytes, operands, stream)
            self._pieces.grow(launches.pieces_bytes, operands, stream)

    def run(self, launches, operands, addresses: tuple[int, ...], stream: int) -> None:
        """Runs launches behind all that used it before."""
        if not launches.takes_memory:
            launches.run(operands, addresses, stream, (0, 0))
            return
        with self._lock:
            self._take_turn(stream)
            launches.run(operands, addresses, stream, (self._counters.address, self._pieces.address))

    def _take_turn(self, stream):
        """Lets the stream wait for the last one that used the memory, if that was another; graphs have their own."""
        turn = self._turn
        if (stream == turn.stream and stream in DEFAULTS) or is_capturing(stream):
            return
        if (number := number_of(stream)) == turn.number:
            return
        if turn.number is not None:
            moment = Moment()
            moment.pass_on(turn.stream)
            moment.wait(stream)
            self._counters.note_use(stream)
            self._pieces.note_use(stream)
        turn.stream, turn.number = stream, number


class _Turn:
    """The stream that used the memory last, by its handle and by the number that no other stream ever has."""

    stream = number = None


class _Growing:
    """Memory of which the last block is in use; others stay, since a graph may hold their addresses."""

    def __init__(self, has_zeros: bool = False):
        self.address = self.size_bytes = self._last_bytes = 0
        self.blocks, self._has_zeros, self._home = [], has_zeros, None

    def grow(self, needed_bytes, operands, stream) -> None:
        """Takes a larger block, if the last one is too small, for work that comes behind on the stream."""
        if needed_bytes <= self._last_bytes:
            return
        own = _own_stream(current_device())
        keeper = None if stream == PER_THREAD or is_capturing(stream) else keeper_of(operands)
        self._home = own if keeper is None else stream
        with even_while_captured():
            block = PoolBlock(needed_bytes, own) if keeper is None else _block_of(keeper, needed_bytes, stream)
            if self._has_zeros:
                pool.clear(block.address, needed_bytes, self._home)
            if keeper is None:
                synchronize(own)
        self.blocks.append(block)
        self.address, self._last_bytes = block.address, needed_bytes
        self.size_bytes += needed_bytes

    def note_use(self, stream) -> None:
        """The last block is used on the stream."""
        if self.blocks and stream != self._home:
            self.blocks[-1].note_use(stream)


_released = deque()  # memory of plans that are gone, and the last streams that used it


def _release(turn, *growing):
    """Gives memory back behind its last use; later, where that cannot be told now, as while a graph is captured."""
    _released.append((turn, [block for each in growing for block in each.blocks]))
    for _ in range(len(_released)):
        turn, blocks = _released.popleft()
        try:
            moment = Moment()
            moment.pass_on(turn.stream)
            moment.wait(_own_stream(current_device()))
        except RuntimeError:
            _released.append((turn, blocks))
            continue
        for block in blocks:
            block.give_back()


def _block_of(like, size_bytes, stream):
    owner = owner_of(like)
    if owner.current_stream(like) == stream:
        return owner.block(like, size_bytes)
    with owner.on_stream(like, stream):
        return owner.block(like, size_bytes)


def keeper_of(operands):
    """The first operand whose package gives memory; None if there is none."""
    return next((X for X in operands if owner_of(X).gives_memory), None)


@cache
def _own_stream(device: int) -> int:
    """A stream of a GPU on which plans take and give back memory; it lives as long as the process."""
    binding, driver = bindings()
    return int(driver.cuStreamCreate(binding.CUstream_flags.CU_STREAM_NON_BLOCKING.value))
