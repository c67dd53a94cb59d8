"""Workspace memory of launches: allocated per run for a call, reserved for a plan."""

import weakref
from collections import deque
from functools import cache
from threading import Lock
from typing import Any

from labkit.arrays import driver, pool
from labkit.arrays.owners import owner_of
from labkit.arrays.pool import PoolBlock
from labkit.calls.streams import use_device


def run_with_workspace(launches, operands, addresses: tuple[int, ...], stream: int, allocator=None) -> None:
    """Run launches with workspace that is allocated on the stream before them and released after them.

    The package of `allocator`, an operand, allocates it if the stream is its current one; else the driver. During a
    capture of the stream the memory belongs to the graph.
    """
    if not launches.takes_memory:
        launches.run(operands, addresses, stream, (0, 0))
        return
    if _allocates_on(allocator, stream):
        block = owner_of(allocator).block(allocator, launches.workspace_bytes)
    else:
        block = PoolBlock(launches.workspace_bytes, stream)
    try:
        if launches.counters_bytes:
            pool.clear(block.address, launches.counters_bytes, stream)
        launches.run(operands, addresses, stream, (block.address, block.address + launches.counters_bytes))
    finally:
        block.release()


class PlanWorkspace:
    """Memory of one plan, or of several in turn.

    Its runs execute one after another, on any streams. The replays of a graph that captured one are ordered by the
    user of the graph.
    """

    def __init__(self):
        self._lock, self._order = Lock(), _RunOrder()
        self._counters, self._buffers = _GrowingBuffer(has_zeros=True), _GrowingBuffer()

    def allocate(self, launches, operands, stream: int) -> None:
        """Allocate the memory that launches need, for operands like these."""
        if not launches.takes_memory:
            return
        with self._lock:
            if self._order.device is None:
                self._order.device = driver.current_device()
                weakref.finalize(self, _release, self._order, self._counters, self._buffers).atexit = False
            with self._order.next_run(stream):
                self._counters.grow(launches.counters_bytes, operands, stream)
                self._buffers.grow(launches.buffers_bytes, operands, stream)

    def run(self, launches, operands, addresses: tuple[int, ...], stream: int) -> None:
        """Run launches after all earlier runs that used the memory."""
        if not launches.takes_memory:
            launches.run(operands, addresses, stream, (0, 0))
            return
        with self._lock, self._order.next_run(stream):
            launches.run(operands, addresses, stream, (self._counters.address, self._buffers.address))


class _RunOrder:
    """The order of the runs that use a memory, on any streams: `with order.next_run(stream)` is one of them.

    After a run its stream records an event, for which the next other stream waits: by then the first stream may be
    gone, or captured. The default streams are always there and never captured, so that they record on demand.
    """

    def __init__(self):
        self.device: int | None = None
        self.was_captured = False
        self._stream: Any = None
        self._stream_id: int | None = None
        self._event: Any = None
        self._is_eager = False

    def next_run(self, stream: int) -> "_RunOrder":
        if stream == self._stream and stream in driver.DEFAULTS:
            self._is_eager = True
        elif driver.is_capturing(stream):
            self._is_eager, self.was_captured = False, True
        else:
            self._is_eager, new_id = True, driver.stream_id(stream)
            if new_id != self._stream_id:
                self.wait_on(stream)
            self._stream, self._stream_id = stream, new_id
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._is_eager and self._stream not in driver.DEFAULTS:
            self._event = self._event or driver.StreamEvent()
            self._event.record(self._stream)

    def wait_on(self, stream: int) -> None:
        """Let a stream wait for the last run."""
        if self._stream_id is None:
            return
        event = self._event
        if self._stream in driver.DEFAULTS:
            event = driver.StreamEvent()
            event.record(self._stream)
        event.wait(stream)


class _GrowingBuffer:
    """Memory of which the last block is in use; the others stay, since a graph may hold their addresses."""

    def __init__(self, has_zeros: bool = False):
        self.address = self._last_bytes = 0
        self.blocks, self._has_zeros = [], has_zeros  # each with the stream on which it is released

    def grow(self, needed_bytes: int, operands, stream: int) -> None:
        """Allocate a larger block if the last one is too small, for later work on the stream."""
        if needed_bytes <= self._last_bytes:
            return
        allocator = None if driver.is_capturing(stream) else _find_allocator(operands)
        by_package = _allocates_on(allocator, stream)
        home = stream if by_package else _memory_stream(driver.current_device())
        with driver.allow_during_capture():
            block = owner_of(allocator).block(allocator, needed_bytes) if by_package else PoolBlock(needed_bytes, home)
            if self._has_zeros:
                pool.clear(block.address, needed_bytes, home)
            if not by_package:
                driver.synchronize(home)
        self.blocks.append((block, home))
        self.address, self._last_bytes = block.address, needed_bytes


_unreleased = deque()  # memory of deleted plans that could not be released yet


def _release(order, *buffers):
    """Release memory after its last use; later, if that is impossible now, as during a capture."""
    _unreleased.append((order, [block for buffer in buffers for block in buffer.blocks]))
    waiting = [_unreleased.popleft() for _ in range(len(_unreleased)) if _unreleased]
    for order, blocks in waiting:
        try:
            driver.current_device()  # this thread may have no context yet
            with use_device(order.device):
                if order.was_captured:  # a replay may be in flight
                    driver.bindings()[1].cuCtxSynchronize()
                for home in {home for _, home in blocks}:
                    if driver.is_capturing(home):
                        raise RuntimeError("the stream is captured")
                    order.wait_on(home)
                for block, _ in blocks:
                    block.release()
        except Exception:  # of numba and the driver: tried again when the next plan is deleted
            _unreleased.append((order, blocks))


def _allocates_on(allocator, stream: int) -> bool:
    """Return whether the package of an operand allocates for a stream: it must be its current, identifiable one."""
    if allocator is None or stream == driver.PER_THREAD:
        return False
    return owner_of(allocator).current_stream(allocator) == stream


def _find_allocator(operands):
    """Return the first operand whose package allocates workspace; None if there is none."""
    return next((X for X in operands if owner_of(X).allocates_workspace), None)


@cache
def _memory_stream(device: int) -> int:
    """Return the stream of a GPU on which plans allocate and release memory; it lives as long as the process."""
    binding, functions = driver.bindings()
    return int(functions.cuStreamCreate(binding.CUstream_flags.CU_STREAM_NON_BLOCKING.value))
