"""Warp collectives: the values that lanes of a warp exchange, and which lanes take part.

A collective joins the lanes that make the call together with the same mask. CUDA requires that each of them is named in
its own mask, and that every named lane which has not returned makes the call too. Lanes that have returned, or that a
partial last warp does not have, need not come. Several groups of a warp may call at once, each with its own mask.
(CUDA C++ Programming Guide, warp shuffle, vote and match functions; PTX ISA, shfl.sync, vote.sync, match.sync.)
"""

import numpy as np

from labkit.simulator.checks import collective_findings
from labkit.simulator.lanes import intersect
from labkit.simulator.parted import CannotPart
from labkit.simulator.seam import njit
from labkit.simulator.warps import START, STOP
from labkit.trace import WARP_LANES

# Results of the check of a lane's mask.
FINE, LANE_UNNAMED, LANE_ABSENT = range(3)


@njit(cache=True)
def _find_groups(named, active, exited, warps, groups):
    """Set in `groups` the bits of the lanes that take part together with each active lane.

    Returns (problem, first lane whose mask is wrong, lane of its warp that is named but does not come).
    """
    problem, faulty_lane, absent = FINE, -1, -1
    for row in range(warps.shape[0]):
        start, stop = warps[row, START], warps[row, STOP]
        group_mask, group = np.uint32(0), np.uint32(0)
        for lane in range(start, stop):
            if not active[lane]:
                continue
            mask = named[lane]
            own_bit = np.uint32(1) << np.uint32(lane - start)
            if problem == FINE and not mask & own_bit:
                problem, faulty_lane = LANE_UNNAMED, lane
            if mask != group_mask or group == 0:
                group_mask, group = mask, np.uint32(0)
                for other in range(start, stop):
                    if mask >> np.uint32(other - start) & np.uint32(1):
                        if active[other] and named[other] == mask:
                            group |= np.uint32(1) << np.uint32(other - start)
                        elif not exited[other] and problem == FINE:
                            problem, faulty_lane, absent = LANE_ABSENT, lane, other - start
            groups[lane] = group | own_bit
    return problem, faulty_lane, absent


def find_participants(w, position, mask, call, named) -> np.ndarray:
    """Return, as bits of an unsigned integer per lane, the lanes that take part in a collective with it.

    `named` is the mask that the lanes of `mask` passed. `position` (line and column) and `call` (the function's name)
    are for the finding about a wrong one.
    """
    active = w.active(mask)
    exited = ~w.all_lanes if w.exited is False else w.active(w.exited)
    groups = np.zeros(w.lanes, np.uint32)
    problem, lane, absent = _find_groups(w.fill(named), active, exited, w.warps, groups)
    if problem == LANE_UNNAMED:
        collective_findings.report_unnamed_lane(w, position, call, lane, int(w.fill(named)[lane]))
    elif problem == LANE_ABSENT:
        collective_findings.report_absent_lane(w, position, call, lane, absent)
    w.launch.clocks.note_collective(w, active)
    return groups


def keep_whole_warps(w, mask, call):
    """Return the lanes of `mask` in warps that are complete there; report the others.

    `call` is the line, the column and the name of an instruction that a warp executes as one.
    """
    if w.is_lane:
        raise CannotPart
    active = w.active(mask)
    present = np.add.reduceat(active, w.warps[:, START], dtype=np.int64)
    partial = (present > 0) & (present < WARP_LANES)
    if partial.any():
        collective_findings.report_partial_warps(w, call, active, partial)
        mask = intersect(mask, ~partial.take(w.row))
    if mask is not False:
        w.launch.clocks.note_collective(w, w.active(mask))
    return mask


# --- shuffles --------------------------------------------------------------------------------------

SOURCES = {
    "shfl_sync": lambda lane, operand: operand,
    "shfl_up_sync": lambda lane, operand: lane - operand,
    "shfl_down_sync": lambda lane, operand: lane + operand,
    "shfl_xor_sync": lambda lane, operand: lane ^ operand,
}


def shuffle(w, position, mask, call, named, value, operand):
    """Return the value of another lane of the warp; a source outside the warp is the lane itself.

    A source that does not take part gives an undefined value, for which `Launch.undefined` stands.
    """
    groups = find_participants(w, position, mask, call, named)
    lane = w.lane
    source = SOURCES[call](lane, operand.astype(np.int32) & 31)
    source = np.where((source < 0) | (source > 31), lane, source)
    participates = groups >> source.astype(np.uint32) & np.uint32(1) != 0
    value = w.fill(value)
    shuffled = value.take(w.first_lane + source, mode="clip")
    silent = w.active(mask) & ~participates
    if silent.any():
        first = int(np.argmax(silent))
        collective_findings.report_silent_source(w, position, mask, call, first, int(source[first]), int(silent.sum()))
        garbage = w.chunk.launch.undefined * (1e30 if value.dtype.kind == "f" else 1 << 20)
        shuffled = np.where(participates, shuffled, value.dtype.type(garbage))
    return shuffled


# --- votes and matches -----------------------------------------------------------------------------


def _bits_where(w, test):
    """Return the bits of the lanes of each lane's warp in which `test` holds."""
    bits = np.add.reduceat(np.where(test, w.lane_bit, np.uint32(0)), w.warps[:, START], dtype=np.uint32)
    return np.repeat(bits, w.warps[:, STOP] - w.warps[:, START])


def ballot(w, position, mask, call, named, predicate):
    """Return the bits of the lanes of the group in which the predicate holds."""
    groups = find_participants(w, position, mask, call, named)
    return (groups & _bits_where(w, w.active(mask) & predicate)).view(np.int32)


def vote(w, position, mask, call, named, predicate):
    """Return whether the predicate holds in all lanes of the group, in any, or equally in all."""
    groups = find_participants(w, position, mask, call, named)
    yes = groups & _bits_where(w, w.active(mask) & predicate)
    if call == "any_sync":
        return yes != 0
    return (yes == groups) | (yes == 0) if call == "eq_sync" else yes == groups


@njit(cache=True)
def _match(keys, groups, active, warps, alike):
    """Set in `alike` the bits of the lanes of each lane's group that hold the same key."""
    for row in range(warps.shape[0]):
        start, stop = warps[row, START], warps[row, STOP]
        for lane in range(start, stop):
            if active[lane]:
                for other in range(start, stop):
                    bit = np.uint32(1) << np.uint32(other - start)
                    if groups[lane] & bit and keys[other] == keys[lane]:
                        alike[lane] |= bit


def _match_lanes(w, position, mask, call, named, value):
    """Return the group of each lane, and the bits of its lanes that hold the same value."""
    groups = find_participants(w, position, mask, call, named)
    value = w.fill(value)
    alike = np.zeros(w.lanes, np.uint32)
    _match(value.view(f"u{value.itemsize}"), groups, w.active(mask), w.warps, alike)
    return groups, alike


def match_any(w, position, mask, call, named, value):
    """Return the bits of the lanes of the group that hold the same bits as this one."""
    return _match_lanes(w, position, mask, call, named, value)[1].view(np.int32)


def match_all(w, position, mask, call, named, value):
    """Return the group's bits and True where all of its lanes hold the same bits; 0 and False elsewhere."""
    groups, alike = _match_lanes(w, position, mask, call, named, value)
    same = groups == alike
    return np.where(same, groups, np.uint32(0)).view(np.int32), same


def active_mask(w, mask):
    """Return the bits of the active lanes of each lane's warp."""
    return _bits_where(w, w.active(mask))


# --- barriers of a warp ----------------------------------------------------------------------------


@njit(cache=True)
def _join_barriers(groups, active, warps, lane_epochs):
    """Count one more barrier for the lanes of each group; they learn all that any of them knows of others' barriers."""
    for row in range(warps.shape[0]):
        start, stop = warps[row, START], warps[row, STOP]
        clocks = lane_epochs[row]
        met = np.uint32(0)
        for lane in range(start, stop):
            group = groups[lane]
            if not active[lane] or met >> np.uint32(lane - start) & np.uint32(1):
                continue
            met |= group
            for lane_index in range(WARP_LANES):
                latest = 0
                for other in range(stop - start):
                    if group >> np.uint32(other) & np.uint32(1):
                        latest = max(latest, clocks[other, lane_index] + (other == lane_index))
                for other in range(stop - start):
                    if group >> np.uint32(other) & np.uint32(1):
                        clocks[other, lane_index] = latest


def sync_warps(w, position, mask, named):
    """Order the accesses of the lanes that take part in a `syncwarp`."""
    groups = find_participants(w, position, mask, "syncwarp", named)
    w.launch.clocks.note_warp_barrier(w, groups, w.active(mask))
    starts = w.warps[:, START]
    if not w.lane_epochs.size:
        active = w.active(mask)
        live = _bits_where(w, True if w.exited is False else ~w.active(w.exited))
        if ((groups == live) | ~active).all():
            w.warp_epochs[np.logical_or.reduceat(active, starts)] += 1
            return
        w.lane_epochs = np.empty((len(starts), WARP_LANES, WARP_LANES), np.int32)
        w.lane_epochs[:] = w.warp_epochs[:, None, None]
    _join_barriers(groups, w.active(mask), w.warps, w.lane_epochs)
