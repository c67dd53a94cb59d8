"""Atomics: lane after lane reads an element, changes it and writes it back.

The rules are numba-cuda's. `max` and `min` leave an element unchanged if it or the value is NaN, `nanmax` and `nanmin`
only if the value is. `inc` counts up to the value and restarts at 0; `dec` counts down from it.
"""

import numpy as np

from labkit.simulator.disturbance import SHARED_LOADS
from labkit.simulator.memory import access_each, check_atomic, check_atomic_order, count_accesses, flatten
from labkit.simulator.seam import inner_njit, njit
from labkit.simulator.slices import Either

(ADD, SUB, MAX, MIN, NANMAX, NANMIN, AND, OR, XOR, INC, DEC, EXCH, CAS) = range(13)
_NAMES = "add sub max min nanmax nanmin and_ or_ xor inc dec exch cas".split()
OPERATIONS = {**{name: number for number, name in enumerate(_NAMES)}, "compare_and_swap": CAS}


TAKING = {CAS, EXCH}  # that take a lock, if they change it and the kernel asks whether they did


@inner_njit
def _combine_float(operation, old, value):
    if operation == ADD:
        return old + value
    if operation == SUB:
        return old - value
    if operation == MAX or (operation == NANMAX and not np.isnan(old)):
        return value if old < value else old
    if operation == MIN or (operation == NANMIN and not np.isnan(old)):
        return value if old > value else old
    return value


@inner_njit
def _combine_integer(operation, old, value, compare, one):
    if operation == ADD:
        return old + value
    if operation == SUB:
        return old - value
    if operation in (MAX, NANMAX):
        return max(old, value)
    if operation in (MIN, NANMIN):
        return min(old, value)
    if operation == AND:
        return old & value
    if operation == OR:
        return old | value
    if operation == XOR:
        return old ^ value
    if operation == INC:
        return old + one if old < value else old - old
    if operation == DEC:
        return old - one if old - old < old <= value else value
    if operation == CAS and old != compare:
        return old
    return value


@njit(cache=True)
def _change_floats(operation, data, flat, lanes, value, old, changed):
    for i in range(flat.size):
        if lanes[i]:
            old[i] = data[flat[i]]
            data[flat[i]] = _combine_float(operation, old[i], value[i])
            changed[i] = data[flat[i]] != old[i]


@njit(cache=True)
def _change_integers(operation, data, flat, lanes, value, compare, one, old, changed):
    for i in range(flat.size):
        if lanes[i]:
            old[i] = data[flat[i]]
            data[flat[i]] = _combine_integer(operation, old[i], value[i], compare[i], one)
            changed[i] = data[flat[i]] != old[i]


def atomic(w, site, array, mask, operation, value, compare, result_used, *index):
    """Read, change and write an element, one lane after another; return the value that each lane read.

    `operation` is a number of `OPERATIONS`, `compare` the expected value of a compare-and-swap, else None.
    `result_used`: the kernel uses the returned value, so that its warp learns of the atomics before.
    """
    if isinstance(array, Either):
        arguments = operation, value, compare, result_used, *index
        return access_each(w, array, mask, lambda a, part_mask: atomic(w, site, a, part_mask, *arguments))
    if isinstance(site, dict):
        site = site[array.name]
    launch = w.chunk.launch
    flat, mask = flatten(w, site, array, mask, index)
    if mask is False:
        return array.dtype.type(0)
    lanes = w.active(mask)
    value = w.fill(value)
    count_accesses(w, site, array, flat, mask, False)
    old, changed = np.zeros(w.lanes, array.dtype), np.zeros(w.lanes, np.bool_)
    before = array.data.take(flat)
    if array.dtype.kind == "f":
        _change_floats(operation, array.data, flat, lanes, value, old, changed)
    else:
        compare = value if compare is None else w.fill(compare)
        _change_integers(operation, array.data, flat, lanes, value, compare, array.dtype.type(1), old, changed)
    if not np.array_equal(before, array.data.take(flat)):
        launch.version += 1
    check_atomic_order(w, site, array, flat, lanes)
    launch.clocks.exchange(w, array, flat, lanes, changed, result_used, result_used and operation in TAKING)
    check_atomic(w, site, array, flat, lanes)
    w.chunk.sample(w, site, array, mask, flat)
    return launch.disturbance.disturb(SHARED_LOADS, old) if array.space == "shared" else old
