"""Loads and stores of a warp set.

`w` is the warp set, `site` the number of the access in the source, `mask` its lanes (None: all, False: none), and
`flat` each lane's element, as an offset in `array.data`.
"""

import numpy as np

from labkit.simulator.checks import early, races
from labkit.simulator.counters import ACCESSES, ALONE, count_global, count_plain, count_shared
from labkit.simulator.disturbance import COPIES, SHARED_LOADS
from labkit.simulator.lanes import intersect, lane_range
from labkit.simulator.slices import Either, select_parts


def flatten(w, site, array, mask, index):
    """Return each lane's element (its offset in `data`), and the lanes whose index is inside the array.

    Negative indices count from the end, as numba's do; one outside stops that lane's access.
    """
    flat, mask = _flatten(w, site, array, mask, index)
    return (None, False) if mask is False else (w.fill(flat), mask)


def _flatten(w, site, array, mask, index):
    """Return as `flatten`, with one number where the element is the same for all lanes."""
    if array.varies:
        return _flatten_varying(w, site, array, mask, index)
    terms = [w.instance_base(array.root)] if array.space == "shared" else []
    constant_part = array.offset
    outside = False
    for axis, i in enumerate(index):
        size, stride = array.shape[axis], array.strides[axis]
        if not isinstance(i, np.ndarray):
            i = int(i)
            if not -size <= i < size:
                w.chunk.launch.log.out_of_bounds(w, site, array, mask, index)
                return None, False
            if i < 0:
                w.chunk.launch.log.negative_index(w, site, array, mask, index, axis)
                i += size
            constant_part += i * stride
            continue
        term = w.cached_term(i, size, stride)
        if term is None:
            original_index, i = i, i.astype(np.int64, copy=False)
            if i.min() >= 0 and i.max() < size:
                term = i if stride == 1 else i * stride
                w.cache_term(original_index, size, stride, term)
            else:
                active = w.active(mask)
                below = (i < 0) & (i >= -size)
                if (below & active).any():
                    w.chunk.launch.log.negative_index(w, site, array, below & active, index, axis)
                    i = np.where(below, i + size, i)
                is_outside = (i < 0) | (i >= size)
                if (is_outside & active).any():
                    outside = is_outside if outside is False else outside | is_outside
                term = np.where(is_outside, 0, i) * stride
        terms.append(term)
    if outside is not False:
        mask = _keep_inside(w, site, array, mask, index, outside)
        if mask is False:
            return None, False
    return (_sum(terms, constant_part) if terms else constant_part), mask


def _sum(terms, constant_part):
    """Return the sum of the terms of an offset."""
    if len(terms) == 1:
        return terms[0] + constant_part if constant_part else terms[0]
    flat = terms[0] + terms[1]
    for term in terms[2:]:
        flat += term
    if constant_part:
        flat += constant_part
    return flat


def _flatten_varying(w, site, array, mask, index):
    """Return as `flatten`, for a view whose form differs from lane to lane."""
    active = w.active(mask)
    flat = w.fill(array.offset)
    outside = np.zeros(w.lanes, np.bool_)
    for axis, i in enumerate(index):
        size, stride = array.shape[axis], array.strides[axis]
        i = w.fill(i).astype(np.int64, copy=False)
        below = (i < 0) & (i >= -size)
        if (below & active).any():
            w.chunk.launch.log.negative_index(w, site, array, below & active, index, axis)
            i = np.where(below, i + size, i)
        is_outside = (i < 0) | (i >= size)
        outside |= is_outside & active
        flat = flat + np.where(is_outside, 0, i) * stride
    if outside.any():
        mask = _keep_inside(w, site, array, mask, index, outside)
        if mask is False:
            return None, False
    flat = np.where(w.active(mask), flat, 0)  # lanes that take no part may have an empty view
    if array.space == "shared":
        flat = flat + w.instance_base(array.root)
    return flat, mask


def _keep_inside(w, site, array, mask, index, outside):
    """Note the lanes outside the array; return the others."""
    active = w.active(mask)
    w.chunk.launch.log.out_of_bounds(w, site, array, outside & active, index)
    inside = active & ~outside
    return inside if inside.any() else False


def access_each(w, array, mask, access):
    """Make an access to each array of a choice, in its own lanes; blend the results."""
    result = None
    for part, lanes in array.parts:
        part_mask = mask if lanes is None else intersect(mask, lanes)
        if part_mask is not False:
            result = select_parts(part_mask, access(part, part_mask), result)
    return result


def load(w, site, array, mask, *index):
    """Return the elements that the lanes of `mask` read; 0 where the index is outside.

    `site` is a number, or for a choice of arrays a number by the array's name.
    """
    if isinstance(array, Either):
        return access_each(w, array, mask, lambda a, part_mask: load(w, site, a, part_mask, *index))
    if isinstance(site, dict):
        site = site[array.name]
    if array.space == "local":
        return _load_local(w, site, array, mask, index)
    flat, mask = flatten(w, site, array, mask, index)
    if mask is False:
        return array.dtype.type(0)
    count_accesses(w, site, array, flat, mask, True)
    values = read(w, site, array, mask, flat)
    w.chunk.sample(w, site, array, mask, flat)
    return values


def read(w, site, array, mask, flat):
    """Return the elements at `flat`; note races and reads of unwritten elements."""
    launch = w.chunk.launch
    if site in launch.program.guesses:
        check_atomic(w, site, array, flat, w.active(mask), is_guess=True)
    elif array.shadow is not None and launch.is_checked:
        check_read(w, site, array, mask, flat)
    for state in array.states.values():
        state.note_read(w, site, array, mask, flat)
    values = array.data.take(flat)
    return launch.disturbance.disturb(SHARED_LOADS, values) if array.space == "shared" else values


def check_read(w, site, array, mask, flat):
    """Note the errors of a read."""
    lanes = _drop_early(w, site, array, flat, w.active(mask))
    _report(w, site, array, flat, *array.shadow.check_loads(w, site, flat, lanes))


def check_atomic_order(w, site, array, flat, lanes):
    """Note races of an atomic with plain writes, before it tells its warp anything.

    A thread may learn of a write by an atomic on the written element itself. It could have come before the write, too.
    """
    if array.shadow is not None and w.chunk.launch.is_checked:
        order, race = races.current_order(w, site), w.chunk.launch.noted_race
        parts = array.shadow.cells(flat)
        results = [races.check_atomic_order(rows, lanes, *order, cells, race) for cells, rows in parts]
        _report(w, site, array, flat, *races.combine_units(results))


def check_atomic(w, site, array, flat, lanes, is_guess=False):
    """Note the errors of an atomic, or of a read whose value a compare-and-swap then checks."""
    if array.shadow is not None and w.chunk.launch.is_checked:
        lanes = _drop_early(w, site, array, flat, lanes, is_atomic=not is_guess)
        order, race = races.current_order(w, site), w.chunk.launch.noted_race
        parts = array.shadow.cells(flat)
        results = [races.check_atomics(rows, lanes, is_guess, *order, site, cells, race) for cells, rows in parts]
        _report(w, site, array, flat, *races.combine_units(results))


def _drop_early(w, site, array, flat, lanes, unchanged=None, is_atomic=False):
    """Note the lanes whose element an asynchronous operation still works on; return the others."""
    in_flight = array.in_flight
    early = (
        None if in_flight is None else in_flight.find_early_accesses(w, site, array, flat, lanes, unchanged, is_atomic)
    )
    return lanes if early is None else lanes & ~early


def _report(w, site, array, flat, num_races, num_unwritten, first_lane):
    """Note races, and reads of elements that nothing has written."""
    log = w.chunk.launch.log
    if num_races:
        log.race(w, site, array, num_races)
    if num_unwritten:
        log.uninitialised(w, site, array, flat[first_lane], first_lane, num_unwritten)


def store(w, site, array, mask, value, *index):
    """Write the lanes' values; of two lanes that write one element the later wins."""
    if isinstance(array, Either):
        access_each(w, array, mask, lambda a, part_mask: store(w, site, a, part_mask, value, *index))
        return
    if isinstance(site, dict):
        site = site[array.name]
    if array.space == "local":
        return _store_local(w, site, array, mask, value, index)
    flat, mask = flatten(w, site, array, mask, index)
    if mask is False:
        return
    count_accesses(w, site, array, flat, mask, False)
    write(w, site, array, mask, flat, w.fill(value))
    w.chunk.sample(w, site, array, mask, flat)


def write(w, site, array, mask, flat, value):
    """Put the values at `flat`; note races."""
    launch = w.chunk.launch
    is_checked = array.shadow is not None and launch.is_checked
    before = array.data.take(flat) if is_checked or launch.program.spins else None
    if mask is None:
        array.data[flat] = value
    else:
        array.data[flat[mask]] = value[mask]
    if before is not None:  # else nobody asks what has changed
        unchanged = equal_with_nan(before, value)
        if is_checked:
            check_write(w, site, array, mask, flat, unchanged, equal_with_nan(array.data.take(flat), value))
        launch.version += not unchanged.all()
    for state in array.states.values():
        state.note_write(w, site, array, mask, flat)


def check_write(w, site, array, mask, flat, unchanged, landed):
    """Note the errors of a write; `unchanged` and `landed` are as in `races.check_stores`."""
    launch = w.chunk.launch
    lanes = _drop_early(w, site, array, flat, w.active(mask), unchanged)
    launch.instruction += 2
    order, race, found = races.current_order(w, site), launch.noted_race, 0
    for cells, rows in array.shadow.cells(flat):
        count = races.check_stores(rows, lanes, unchanged, landed, *order, launch.instruction, site, cells, race)
        found = max(found, count)
    if found:
        launch.log.race(w, site, array, found)


def deliver_write(w, site, array, mask, flat, value):
    """Put values at `flat` whose write began earlier, and was checked then."""
    array.data[flat[mask]] = w.chunk.launch.disturbance.disturb(COPIES, value[mask])
    order = races.current_order(w, site)
    for cells, rows in array.shadow.cells(flat):
        races.note_arrivals(rows, mask, *order, site, cells)
    for state in array.states.values():
        state.note_write(w, site, array, mask, flat)
    w.chunk.launch.version += 1


def equal_with_nan(before, value):
    """Return where the values are equal; NaN equals NaN."""
    equal = before == value
    if value.dtype.kind in "fc":
        equal |= np.isnan(before) & np.isnan(value)
    return equal


def count_accesses(w, site, array, flat, mask, is_load, elements=1):
    """Count an access of `elements` adjacent elements per lane, from `flat` on, at its site."""
    launch = w.chunk.launch
    if not launch.is_checked:
        return
    totals = launch.counts[site]
    lanes = w.active(mask)
    if array.space == "constant":
        count_plain(lanes, w.warps, totals)
        return
    if array.space == "shared":
        all_lanes, accesses_before = mask is None, totals[:, ACCESSES].copy()
        count_shared(
            flat, array.address, array.itemsize, elements, array.elements, lanes, all_lanes, is_load, w.warps, totals
        )
        if is_load and array.in_flight is not None and not array.in_flight.busy:
            totals[:, ALONE] += totals[:, ACCESSES] - accesses_before
        return
    if launch.early:
        early.check_accesses(w, site, array, lanes, flat)
    to_l2 = launch.l2.rows(w.lanes)
    in_l1 = is_load and site not in launch.program.past_l1
    rows = count_global(
        flat, array.address, array.itemsize, lanes, w.warps, w.warp_clock, in_l1, *launch.l1, totals, to_l2
    )
    if rows:
        launch.l2.send(to_l2[:rows], site, not is_load)


def _load_local(w, site, array, mask, index):
    flat, mask = _flatten(w, site, array, mask, index)
    if mask is False:
        return array.dtype.type(0)
    offset = (flat, np.arange(w.lanes)) if isinstance(flat, np.ndarray) else flat
    for state in array.states.values():
        state.note_access(w, site, array, offset, mask)
    count_plain(w.active(mask), w.warps, w.chunk.launch.counts[site])
    missing = ~array.written[offset] & w.active(mask)
    if missing.any():
        lane = int(np.argmax(missing))
        w.chunk.launch.log.uninitialised(w, site, array, w.fill(flat)[lane], lane, int(missing.sum()))
    return array.data[offset].copy()


def _store_local(w, site, array, mask, value, index):
    flat, mask = _flatten(w, site, array, mask, index)
    if mask is False:
        return
    count_plain(w.active(mask), w.warps, w.chunk.launch.counts[site])
    if array.states:
        offset = (flat, np.arange(w.lanes)) if isinstance(flat, np.ndarray) else flat
        for state in array.states.values():
            state.note_access(w, site, array, offset, mask)
    if isinstance(flat, np.ndarray):
        lanes = np.arange(w.lanes) if mask is None else np.flatnonzero(mask)
        rows = flat[lanes]
    else:
        lanes = slice(None) if mask is None else mask
        rows = flat
    array.data[rows, lanes] = value[lanes] if isinstance(value, np.ndarray) else value
    array.written[rows, lanes] = True


def elements(w, line, array, mask):
    """Yield (index, the lanes of `mask` whose array has it) for each element, in C order."""
    for number, lanes_left in lane_range(mask, np.int64(0), array.size_value, np.int64(1)):
        w.tick(line, 2)
        own_lanes = mask if lanes_left is None else intersect(mask, lanes_left)
        if own_lanes is not False:
            yield unravel(array, number), own_lanes


def unravel(array, number):
    """Return the index of an array's `number`-th element, in C order."""
    index = []
    for n in reversed(array.shape_values):
        n = np.maximum(n, 1)  # the lanes whose array is empty take no part
        index.append(number % n)
        number = number // n
    return index[::-1]
