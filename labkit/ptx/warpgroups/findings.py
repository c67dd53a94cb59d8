"""Findings of warpgroups and their tensor cores.

`w` is the warp set that made the call, with one lane per thread of its warps, and `lanes` is a mask over these; `call`
is (line, column, name). A chunk is the blocks of a launch that run together.
"""

import numpy as np

from labkit.ptx.finding import log_error
from labkit.ptx.tile_findings import note_tile

THREADS = 128  # of a warpgroup


def note_partial_warpgroup(w, call, warps):
    """Note warps, a mask over the set's warps, that make a call without the other warps of their warpgroup."""
    line, column, name = call
    log = w.chunk.launch.log
    who = log.lane(w, int(np.argmax(warps[w.row])))  # `row`: the warp of each lane
    what = (
        f"{log.name(who)} calls `{name}` without all four warps of its warpgroup, and what the call does then is "
        "undefined"
    )
    cure = "Make the call in all 128 threads of a warpgroup, whose first is a multiple of 128."
    key = ("warpgroup", line, column)
    log_error(log, key, place=call, kind="warpgroup", what=what, cure=cure, count=int(warps.sum()), threads=(who,))


def note_different_tiles(w, site_number, array, lanes):
    """Note threads whose tile differs from that of the first thread of their warpgroup."""
    cure = "Let the place depend on the warpgroup alone: `cuda.threadIdx.x // 128`."
    does = f"names another tile of {array.name} than the first thread of its warpgroup does"
    _note(w, site_number, array, lanes, does, cure)


def note_not_fenced(w, site_number, array, lanes):
    """Note accumulators that their threads accessed since the last fence."""
    cure = "Call `ptx.wgmma_fence()` between the last access and the first `wgmma`."
    does = f"has accessed {array.name} since its last fence, and the tensor cores may find what was there before"
    _note(w, site_number, array, lanes, does, cure)


def note_fragment_not_fenced(w, call, mask, written_line):
    """Note the lanes of `mask` (None: all), which multiply registers written in `written_line`, with no fence since."""
    line, column, _ = call
    log = w.chunk.launch.log
    who = log.lane(w, int(np.argmax(w.active(mask))))
    what = (
        f"{log.name(who)} gives the tensor cores registers that it wrote in line {written_line} with no fence since, "
        "and they may find what was there before"
    )
    cure = "Call `ptx.wgmma_fence()` between the two."
    key, where = ("warpgroup", line, column, "fragment"), {"threads": (who,), "other_line": written_line}
    log_error(log, key, place=call, kind="warpgroup", what=what, cure=cure, count=w.count(mask), **where)


def note_misaligned(w, site_number, array, lanes, index, byte, requirement):
    """Note tiles that begin at a wrong byte of shared memory; `requirement` ends the sentence "... is byte 96 and"."""
    cure = (
        "Begin each tile at a multiple of 1024 bytes, eight rows: ask for `alignment=1024` where the array is made, "
        "and step along k by 32 bytes, or by 16 rows of an MN-major tile."
    )
    lane = int(np.argmax(lanes))
    what = f"which is byte {int(byte[lane]):,} of shared memory and {requirement}"
    note_tile(w, site_number, array, lanes, index, "misaligned", what, cure)


def check_registers(chunk, registers, call):
    """Note a block whose warpgroups request more registers than it has."""
    requested = THREADS * registers.per_thread.sum(axis=1)
    available = chunk.launch.threads_per_block * registers.at_launch
    block_in_chunk = int(np.argmax(requested))
    if requested[block_in_chunk] <= available:
        return
    counts = ", ".join(map(str, registers.per_thread[block_in_chunk]))
    what = (
        f"the warpgroups of a block want {counts} registers per thread, {requested[block_in_chunk]:,} in all, and a "
        f"block of {chunk.launch.threads_per_block} threads gets {available:,} at most: `{call[2]}` waits forever"
    )
    cure = "Let the others give back more by `ptx.setmaxnreg_dec`, or ask for less."
    log_error(chunk.launch.log, ("deadlock", call[0]), place=call, kind="deadlock", what=what, cure=cure)


def _note(w, site_number, array, lanes, does, cure):
    """Note an error at an access; the message is "thread 0 of block 0", then `does`, then the cure."""
    log = w.chunk.launch.log
    site = log.launch.sites[site_number]
    who = log.lane(w, int(np.argmax(lanes)))
    key, where = ("warpgroup", site.line, site.column, does), {"array": array.name, "threads": (who,)}
    what = f"{log.name(who)} {does}"
    log_error(log, key, place=site, kind="warpgroup", what=what, cure=cure, count=w.count(lanes), **where)
