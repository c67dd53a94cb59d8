"""What is wrong with a tile of shared memory, of the copy engine or of tensor cores, in a learner's words."""

import numpy as np


def too_short(w, site_number, array, lanes, index, elements):
    what = f"{elements:,} elements from there on, and the array ends before"
    note_tile(w, site_number, array, lanes, index, "bounds", what, "Make it as large as all of its tiles.")


def note_tile(w, site_number, array, lanes, index, kind, what, cure):
    log = w.chunk.launch.log
    site = log.launch.sites[site_number]
    key = (kind, site.line, site.column, site.kind)
    if log.known(key, w.count(lanes)):
        return
    lane = int(np.argmax(lanes))
    place = tuple(int(i[lane]) if isinstance(i, np.ndarray) else int(i) for i in index)
    who = log.lane(w, lane)
    log.add(
        key,
        w.count(lanes),
        kind=kind,
        message=(
            f"Line {site.line}: the tile that {log.name(who)} names begins at "
            f"{array.name}[{', '.join(map(str, place))}], {what}. {cure}"
        ),
        remedy=cure,
        site=site,
        array=array.name,
        index=place,
        threads=(who,),
    )
