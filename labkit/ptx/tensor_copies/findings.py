"""What goes wrong with copies of tiles, in a learner's words."""

import numpy as np

from labkit.ptx.tile_findings import note_tile


def misaligned(w, site_number, array, lanes, index, byte):
    lane = int(np.argmax(lanes))
    cure = "Make the tile's size a multiple of 1024 bytes."
    what = f"which is byte {int(byte[lane]):,} of shared memory, but a tile begins at a multiple of 1024 bytes"
    if array.alignment < 1024:
        what = f"but {array.name} may begin at any multiple of {array.alignment} bytes, and a tile at one of 1024 alone"
        cure = f"Ask for `alignment=1024` where {array.name} is made."
    note_tile(w, site_number, array, lanes, index, "misaligned", what, cure)


def left_behind(w, running):
    """Stores for which their thread had not waited when it ended."""
    for store, lanes, _ in running:
        log = w.chunk.launch.log
        site = log.launch.sites[store.site]
        key = ("in-flight", site.line, site.column, "end")
        if log.known(key):
            continue
        who = log.lane(w, int(np.argmax(lanes)))
        cure = "Close the group with `ptx.tma_store_commit()` and wait with `ptx.tma_store_wait(0)` in the same thread."
        log.add(
            key,
            kind="in-flight",
            message=(
                f"Line {site.line}: {log.name(who)} ends before the store that it began here has read {site.array}, "
                f"and the block's shared memory may be gone by then. {cure}"
            ),
            remedy=cure,
            site=site,
            array=site.array,
            threads=(who,),
        )
