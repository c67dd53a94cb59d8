"""What goes wrong at the tensor cores of a warpgroup, in a learner's words."""

import numpy as np

from labkit.ptx.tile_findings import note_tile

THREADS = 128  # of a warpgroup


def apart(w, call, warps):
    """`warps` says which warps make a call without the other warps of their warpgroup."""
    line, column, name = call
    log = w.chunk.launch.log
    key = ("warpgroup", line, column)
    if log.known(key, int(warps.sum())):
        return
    who = log.lane(w, int(np.argmax(warps[w.row])))
    cure = "Make the call in all 128 threads of a warpgroup, whose first is a multiple of 128."
    log.add(
        key,
        int(warps.sum()),
        kind="warpgroup",
        message=(
            f"Line {line}: {log.name(who)} calls `{name}` without all four warps of its warpgroup, and what the call "
            f"does then is undefined. {cure}"
        ),
        remedy=cure,
        line=line,
        column=column,
        threads=(who,),
    )


def differ(w, site, array, lanes):
    cure = "Let the place depend on the warpgroup alone: `cuda.threadIdx.x // 128`."
    _note(
        w, site, array, lanes, f"names another tile of {array.name} than the first thread of its warpgroup does", cure
    )


def not_fenced(w, site, array, lanes):
    cure = "Call `ptx.wgmma_fence()` between the last access and the first `wgmma`."
    what = f"has accessed {array.name} since its last fence, and the tensor cores may find what was there before"
    _note(w, site, array, lanes, what, cure)


def fragment_not_fenced(w, call, mask, written):
    """The lanes of `mask` multiply registers that the line `written` wrote, and no fence came since."""
    line, column, _ = call
    log = w.chunk.launch.log
    key = ("warpgroup", line, column, "fragment")
    if log.known(key, w.count(mask)):
        return
    who = log.lane(w, int(np.argmax(w.active(mask))))
    cure = "Call `ptx.wgmma_fence()` between the two."
    log.add(
        key,
        w.count(mask),
        kind="warpgroup",
        message=(
            f"Line {line}: {log.name(who)} gives the tensor cores registers that it wrote in line {written} with no "
            f"fence since, and they may find what was there before. {cure}"
        ),
        remedy=cure,
        line=line,
        column=column,
        threads=(who,),
        other_line=written,
    )


def misaligned(w, site, array, lanes, index, byte, place):
    cure = (
        "Begin each tile at a multiple of 1024 bytes, eight rows: ask for `alignment=1024` where the array is made, "
        "and step along k by 32 bytes, or by 16 rows of an MN-major tile."
    )
    lane = int(np.argmax(lanes))
    what = f"which is byte {int(byte[lane]):,} of shared memory and {place}"
    note_tile(w, site, array, lanes, index, "misaligned", what, cure)


def check_registers(chunk, registers, call):
    """Warpgroups that moved registers must have got no more than their block has."""
    wanted = THREADS * registers.count.sum(axis=1)
    there = chunk.launch.threads * registers.given
    slot = int(np.argmax(wanted))
    if wanted[slot] <= there:
        return
    line, column, name = call
    counts = ", ".join(map(str, registers.count[slot]))
    cure = "Let the others give back more by `ptx.setmaxnreg_dec`, or ask for less."
    chunk.launch.log.add(
        ("deadlock", line),
        kind="deadlock",
        message=(
            f"Line {line}: the warpgroups of a block want {counts} registers a thread, {wanted[slot]:,} in all, and a "
            f"launch of {chunk.launch.threads} threads gets {there:,} at most: `{name}` waits for ever. {cure}"
        ),
        remedy=cure,
        line=line,
        column=column,
    )


def _note(w, site_number, array, lanes, what, cure):
    log = w.chunk.launch.log
    site = log.launch.sites[site_number]
    key = ("warpgroup", site.line, site.column, what)
    if log.known(key, w.count(lanes)):
        return
    who = log.lane(w, int(np.argmax(lanes)))
    log.add(
        key,
        w.count(lanes),
        kind="warpgroup",
        message=f"Line {site.line}: {log.name(who)} {what}. {cure}",
        remedy=cure,
        site=site,
        array=array.name,
        threads=(who,),
    )
