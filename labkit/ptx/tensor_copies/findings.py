"""Findings of TMA copies."""

import numpy as np

from labkit.ptx.finding import log_error
from labkit.ptx.tile_findings import note_tile


def note_misaligned(w, site_number, array, lanes, index, byte):
    """Note tiles that do not begin at multiples of 1024 bytes; `byte` is where each lane's tile begins."""
    lane = int(np.argmax(lanes))
    cure = "Make the tile's size a multiple of 1024 bytes."
    what = f"which is byte {int(byte[lane]):,} of shared memory, but a tile begins at a multiple of 1024 bytes"
    if array.alignment < 1024:
        what = f"but {array.name} may begin at any multiple of {array.alignment} bytes, and a tile at one of 1024 alone"
        cure = f"Pass `alignment=1024` where {array.name} is made."
    note_tile(w, site_number, array, lanes, index, "misaligned", what, cure)


def cure_race(race, loads: set[int]) -> str:
    """Return the fix of a race between a load's write to its tile and another thread's read of it; else ""."""
    copies = {race.sites[number] for number in loads}
    site, other = race.site, race.other
    if site in copies and other.kind == "load":
        if race.is_too_early:
            return f"{_wait_for_copy(site.line, other.line)}."
        return (
            f"Let the threads that read the tile at line {other.line} arrive at an mbarrier after their reads, and let "
            f"the copying thread wait for that mbarrier before line {site.line} begins the next copy."
        )
    if other in copies and site.kind == "load":
        return f"{_wait_for_copy(other.line, site.line)}."
    return ""


def cure_unwritten(launch, site, loads: set[int]) -> str:
    """Return the fix of a read of a tile before a load has filled it; "" for an array that no load writes."""
    copies = [launch.sites[number] for number in loads if launch.sites[number].array == site.array]
    if site.space != "shared" or not copies:
        return ""
    return f"{_wait_for_copy(min(copy.line for copy in copies), site.line)}, and let the copy fill all that is read."


def _wait_for_copy(line, read_line) -> str:
    return (
        f"Let each thread wait for the copy of line {line} with `ptx.mbarrier_wait` before it reads the tile at line "
        f"{read_line}"
    )


def note_unfinished_stores(w, running):
    """Note stores that their thread had not waited for when it ended."""
    cure = "Close the group with `ptx.tma_store_commit()` and wait with `ptx.tma_store_wait(0)` in the same thread."
    for store, lanes, _ in running:
        log = w.chunk.launch.log
        site = log.launch.sites[store.site]
        who = log.lane(w, int(np.argmax(lanes)))
        what = (
            f"{log.name(who)} ends before the store that it began here has read {site.array}, and the block's shared "
            "memory may be gone by then"
        )
        key = ("in-flight", site.line, site.column, "end")
        log_error(log, key, site, "in-flight", what, cure, array=site.array, threads=(who,))
