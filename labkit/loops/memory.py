"""What an instrumented loop calls at every access, and what the caches make of it; compiled.

A loop only notes its accesses in a log and pauses when that is full; then the log goes through one cache
level after the other. So the loop compiles fast, and this file once for all loops.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int64, UInt32
from numba import njit, types
from numba.core.errors import TypingError
from numba.extending import overload

from labkit.simulator.caches import Cache, touch

LOGGED, FLOPS, ROUNDS = range(3)
OUTSIDE, WRAPPED = range(2)


class Notes(NamedTuple):
    """What the loop itself writes.

    tally: totals, by the names above. log: site and element (in memory order) of each access since the last
    pause. strays: for each site the accesses out of bounds and the negative ones that wrapped: how many,
    the first index. rounds: of each loop since it was entered, 0 where none is being run.
    """

    tally: Int64[np.ndarray, "3"]
    log: Int64[np.ndarray, "capacity 2"]
    strays: Int64[np.ndarray, "sites 2 4"]
    rounds: Int64[np.ndarray, " loops"]


@njit(cache=True)
def _note(notes, array, site, index):
    """Log an access; whether it is inside the array."""
    offset, inside, wrapped = 0, True, False
    for axis in range(array.ndim):
        position = index[axis]
        if position < 0:
            wrapped = True
            position += array.shape[axis]
        inside = inside and 0 <= position < array.shape[axis]
        offset += position * array.strides[axis]
    if wrapped or not inside:
        strays = notes.strays[site, WRAPPED if inside else OUTSIDE]
        if strays[0] == 0:
            for axis in range(array.ndim):
                strays[1 + axis] = index[axis]
        strays[0] += 1
    if inside:
        row = notes.tally[LOGGED]
        notes.log[row, 0] = site
        notes.log[row, 1] = offset // array.itemsize
        notes.tally[LOGGED] = row + 1
    return inside


@njit(cache=True)
def load(notes, array, site, index):
    """array[index], noted; 0 where the index is outside."""
    if _note(notes, array, site, index):
        return array[index]
    return array.dtype.type(0)


@njit(cache=True)
def store(notes, array, site, index, value):
    """array[index] = value, noted; nothing where the index is outside."""
    if _note(notes, array, site, index):
        array[index] = value


@njit(cache=True)
def full(notes, loop):
    """Whether to pause: called once a round of every loop, between which a site is reached once at most."""
    notes.rounds[loop] += 1
    notes.tally[ROUNDS] += 1
    return notes.tally[LOGGED] + notes.strays.shape[0] > notes.log.shape[0] or notes.tally[ROUNDS] % (1 << 22) == 0


@njit(cache=True)
def left(notes, loop):
    """Called after each loop."""
    notes.rounds[loop] = 0


def flop(notes, value):
    """The value; counted if it is a floating-point result."""


@overload(flop)
def _flop(notes, value):
    if isinstance(value, types.Float):

        def counted(notes, value):
            notes.tally[FLOPS] += 1
            return value

        return counted
    return lambda notes, value: value


def whole(value):
    """An index as int64; refused by the compiler if it is not a whole number."""


@overload(whole)
def _whole(value):
    if isinstance(value, types.Integer):
        return lambda value: np.int64(value)
    raise TypingError(f"an index must be a whole number, and this one is a {value}: divide with //")


@njit(cache=True)
def look_up(cache: Cache, depth: int, lines: Int64[np.ndarray, " n"], stored, level) -> int:
    """Send the accesses that no level above could serve to one level; the dirty lines it put out.

    `level` moves to depth + 1 where this level has not got the line either. Stores go all the way down, so
    that the last level knows which lines it will have to write back.
    """
    evicted = 0
    for n in range(lines.size):
        if stored[n] or level[n] == depth:
            hit, dirty = touch(cache, 0, lines[n], stored[n], True)
            evicted += dirty
            if level[n] == depth and not hit:
                level[n] += 1
    return evicted


@njit(cache=True)
def add_up(log, level, first_element, served, elements: UInt32[np.ndarray, "elements levels"]):
    """Count accesses by the level that served them, for each site and, if it has rows, in `elements`."""
    for n in range(level.size):
        site = log[n, 0]
        served[site, level[n]] += 1
        if elements.shape[0]:
            elements[first_element[site] + log[n, 1], level[n]] += 1
