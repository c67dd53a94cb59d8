"""Accumulators that the tensor cores of a warpgroup add to, beside the threads that hold them.

A product under way may read and write them at any time, so that nobody else touches them until it is done; and what
a thread did to them before is seen by a product only behind a `wgmma_fence` (PTX ISA, "Asynchronous wgmma
Instructions", "wgmma.fence").
"""

import numpy as np

from labkit.simulator.family import LocalState


class Accumulators(LocalState):
    """Which elements of a thread's own array, in which lanes, products under way add to."""

    def __init__(self, shape):
        self._products = np.zeros(shape, np.int16)  # how many
        self._under_way = 0
        self._site = 0
        self.is_touched = True  # since the last fence

    def begin(self, rows, lanes, site):
        """A product begins that adds to these elements of the lanes."""
        self._products[rows, lanes] += 1
        self._under_way += int(lanes.sum())
        self._site = site

    def end(self, rows, lanes):
        """It is done."""
        self._products[rows, lanes] -= 1
        self._under_way -= int(lanes.sum())

    def note_access(self, w, site_number, array, place, mask):
        """An ordinary access by the lanes of `mask` to the elements at `place`."""
        self.is_touched = True
        if not self._under_way:
            return
        early = (self._products[place] > 0) & w.active(mask)
        if early.any():
            self._note(w, site_number, array, place, early)

    def _note(self, w, site_number, array, place, early):
        launch = w.chunk.launch
        log, site, begun = launch.log, launch.sites[site_number], launch.sites[self._site]
        key = ("in-flight", site.line, site.column, site.kind)
        if log.known(key, int(early.sum())):
            return
        lane = int(np.argmax(early))
        who = log.lane(w, lane)
        element = array.position(array.c_order(int(place if isinstance(place, int) else place[0][lane])))
        cure = "Close its group with `ptx.wgmma_commit()`, and wait for it with `ptx.wgmma_wait(0)` first."
        does = "reads" if site.kind == "load" else "writes"
        log.add(
            key,
            int(early.sum()),
            kind="in-flight",
            message=(
                f"Line {site.line}: {log.name(who)} {does} {array.name}[{', '.join(map(str, element))}] while the "
                f"product that its warpgroup began in line {begun.line} adds to it, so that it can hold anything. "
                f"{cure}"
            ),
            remedy=cure,
            site=site,
            array=array.name,
            index=element,
            threads=(who,),
            other_line=begun.line,
        )
