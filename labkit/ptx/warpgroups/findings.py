"""Findings of warpgroups and their tensor cores."""

import numpy as np

from labkit.ptx.finding import log_error
from labkit.ptx.tile_findings import note_tile

THREADS = 128  # of a warpgroup


def note_partial_warpgroup(w, call, warps):
    """Note warps, a mask, that make a call without the other warps of their warpgroup."""
    line, column, name = call
    log = w.chunk.launch.log
    who = log.lane(w, int(np.argmax(warps[w.row])))
    what = (
        f"{log.name(who)} calls `{name}` without all four warps of its warpgroup, and what the call does then is "
        "undefined"
    )
    cure = "Make the call in all 128 threads of a warpgroup, whose first is a multiple of 128."
    log_error(log, ("warpgroup", line, column), call, "warpgroup", what, cure, int(warps.sum()), threads=(who,))


def note_different_tiles(w, site, array, lanes):
    """Note threads whose tile differs from that of the first thread of their warpgroup."""
    cure = "Let the place depend on the warpgroup alone: `cuda.threadIdx.x // 128`."
    what = f"names another tile of {array.name} than the first thread of its warpgroup does"
    _note(w, site, array, lanes, what, cure)


def note_not_fenced(w, site, array, lanes):
    """Note accumulators that their threads accessed since the last fence."""
    cure = "Call `ptx.wgmma_fence()` between the last access and the first `wgmma`."
    what = f"has accessed {array.name} since its last fence, and the tensor cores may find what was there before"
    _note(w, site, array, lanes, what, cure)


def note_fragment_not_fenced(w, call, mask, written_line):
    """Note lanes that multiply registers which the line `written_line` wrote, with no fence since."""
    line, column, _ = call
    log = w.chunk.launch.log
    who = log.lane(w, int(np.argmax(w.active(mask))))
    what = (
        f"{log.name(who)} gives the tensor cores registers that it wrote in line {written_line} with no fence since, "
        "and they may find what was there before"
    )
    cure = "Call `ptx.wgmma_fence()` between the two."
    key, where = ("warpgroup", line, column, "fragment"), {"threads": (who,), "other_line": written_line}
    log_error(log, key, call, "warpgroup", what, cure, w.count(mask), **where)


def note_misaligned(w, site, array, lanes, index, byte, requirement):
    """Note tiles that do not begin at a byte of shared memory as required."""
    cure = (
        "Begin each tile at a multiple of 1024 bytes, eight rows: ask for `alignment=1024` where the array is made, "
        "and step along k by 32 bytes, or by 16 rows of an MN-major tile."
    )
    lane = int(np.argmax(lanes))
    what = f"which is byte {int(byte[lane]):,} of shared memory and {requirement}"
    note_tile(w, site, array, lanes, index, "misaligned", what, cure)


def check_registers(chunk, registers, call):
    """Note a block whose warpgroups request more registers than it has."""
    requested = THREADS * registers.count.sum(axis=1)
    available = chunk.launch.threads * registers.given
    slot = int(np.argmax(requested))
    if requested[slot] <= available:
        return
    counts = ", ".join(map(str, registers.count[slot]))
    what = (
        f"the warpgroups of a block want {counts} registers a thread, {requested[slot]:,} in all, and a launch of "
        f"{chunk.launch.threads} threads gets {available:,} at most: `{call[2]}` waits for ever"
    )
    cure = "Let the others give back more by `ptx.setmaxnreg_dec`, or ask for less."
    log_error(chunk.launch.log, ("deadlock", call[0]), call, "deadlock", what, cure)


def _note(w, site_number, array, lanes, what, cure):
    log = w.chunk.launch.log
    site = log.launch.sites[site_number]
    who = log.lane(w, int(np.argmax(lanes)))
    key, named = ("warpgroup", site.line, site.column, what), f"{log.name(who)} {what}"
    log_error(log, key, site, "warpgroup", named, cure, w.count(lanes), array=array.name, threads=(who,))
