"""Findings about tiles in shared memory that TMA or the tensor cores access."""

import numpy as np

from labkit.ptx.finding import log_error


def note_too_short(w, site_number, array, lanes, index, elements):
    """Note that the array ends before the tile of `elements` elements at the index does."""
    what = f"{elements:,} elements from there on, and the array ends before"
    note_tile(w, site_number, array, lanes, index, "bounds", what, "Make it as large as all of its tiles.")


def note_tile(w, site_number, array, lanes, index, kind, what, cure):
    """Note what is wrong with the tile at the index in these lanes."""
    log = w.chunk.launch.log
    site = log.launch.sites[site_number]
    lane = int(np.argmax(lanes))
    element = tuple(int(i[lane]) if isinstance(i, np.ndarray) else int(i) for i in index)
    who = log.lane(w, lane)
    what = f"the tile that {log.name(who)} names begins at {array.name}[{', '.join(map(str, element))}], {what}"
    key = (kind, site.line, site.column, site.kind)
    log_error(log, key, site, kind, what, cure, w.count(lanes), array=array.name, index=element, threads=(who,))
