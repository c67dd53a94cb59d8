"""Compiled hooks of an instrumented loop, and the cache model.

A loop only logs its accesses and pauses when the log is full; then the log goes through one cache level after the
other. So a loop compiles fast, and this file once for all loops.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int64, UInt32

from labkit.simulator.caches import Cache, touch
from labkit.simulator.seam import njit, overload, types

LOGGED, FLOPS, ITERATIONS = range(3)
OUTSIDE, NEGATIVE = range(2)
WHOLE_INDEX = "an index must be a whole number"  # of the error in which a learner reads it


class Notes(NamedTuple):
    """Arrays that the loop writes.

    tally: totals, by the names above. log: site and element (in memory order) of each access since the last pause.
    strays: for each site, count and first index of accesses out of bounds and of negative ones that wrapped.
    rounds: iterations of each loop since it was entered, 0 where it is not running.
    """

    tally: Int64[np.ndarray, "3"]
    log: Int64[np.ndarray, "capacity 2"]
    strays: Int64[np.ndarray, "sites 2 4"]
    rounds: Int64[np.ndarray, " loops"]


@njit(cache=True)
def _log_access(notes, array, site, index):
    """Log an access, and return whether it is inside the array."""
    offset, inside, wrapped = 0, True, False
    for axis in range(array.ndim):
        position = index[axis]
        if position < 0:
            wrapped = True
            position += array.shape[axis]
        inside = inside and 0 <= position < array.shape[axis]
        offset += position * array.strides[axis]
    if wrapped or not inside:
        strays = notes.strays[site, NEGATIVE if inside else OUTSIDE]
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
    """Return array[index] and log the access; 0 where the index is outside."""
    if _log_access(notes, array, site, index):
        return array[index]
    return array.dtype.type(0)


@njit(cache=True)
def store(notes, array, site, index, value):
    """Set array[index] = value and log the access; skip it where the index is outside."""
    if _log_access(notes, array, site, index):
        array[index] = value


@njit(cache=True)
def should_pause(notes, loop):
    """Return whether to pause; called in each iteration, between which a site is reached once at most."""
    notes.rounds[loop] += 1
    notes.tally[ITERATIONS] += 1
    return notes.tally[LOGGED] + notes.strays.shape[0] > notes.log.shape[0] or notes.tally[ITERATIONS] % (1 << 22) == 0


@njit(cache=True)
def leave_loop(notes, loop):
    """Mark that a loop is not running; called after each loop."""
    notes.rounds[loop] = 0


def count_flop(notes, value):
    """Return the value, and count it if it is a floating-point result."""


@overload(count_flop)
def _flop(notes, value):
    if isinstance(value, types.Float):

        def counted(notes, value):
            notes.tally[FLOPS] += 1
            return value

        return counted
    return lambda notes, value: value


def whole_index(value):
    """Convert an index to int64; numba refuses any other type than an integer."""


@overload(whole_index)
def _whole(value):
    if isinstance(value, types.Integer):
        return lambda value: np.int64(value)
    from numba import TypingError

    raise TypingError(f"{WHOLE_INDEX}, and this one is a {value}: divide with //")


@njit(cache=True)
def look_up_lines(cache: Cache, depth: int, lines: Int64[np.ndarray, " n"], stored, level) -> int:
    """Send the accesses that missed all levels above to one level; return the number of dirty lines that it evicted.

    `level` is changed in place: it becomes depth + 1 where this level misses too. Stores reach every level, so that the
    last one knows which lines it must write back.
    """
    evicted = 0
    for n in range(lines.size):
        if stored[n] or level[n] == depth:
            hit, dirty = touch(cache, 0, lines[n], stored[n])  # copy 0
            evicted += dirty
            if level[n] == depth and not hit:
                level[n] += 1
    return evicted


@njit(cache=True)
def count_accesses(log, level, first_element, served, elements: UInt32[np.ndarray, "elements levels"]):
    """Count accesses by the level that served them, per site and, if it has rows, in `elements`."""
    for n in range(level.size):
        site = log[n, 0]
        served[site, level[n]] += 1
        if elements.shape[0]:
            elements[first_element[site] + log[n, 1], level[n]] += 1
