"""State of accumulators to which the tensor cores of a warpgroup add asynchronously.

A product in flight may read and write them at any time, so no thread may access them until it is done. A product sees
a thread's earlier accesses only after a `wgmma_fence` (PTX ISA, "Asynchronous wgmma Instructions", "wgmma.fence").
"""

import numpy as np

from labkit.ptx.finding import log_error
from labkit.simulator.family import LocalState


class Accumulators(LocalState):
    """Elements of a thread's local array, per lane, that products in flight add to."""

    def __init__(self, shape):
        self._products = np.zeros(shape, np.int16)  # in flight, per element and lane
        self._in_flight = 0
        self._site = 0
        self.is_touched = True  # since the last fence

    def begin(self, rows, lanes, site):
        """Begin a product that adds to these elements of the lanes."""
        self._products[rows, lanes] += 1
        self._in_flight += int(lanes.sum())
        self._site = site

    def end(self, rows, lanes):
        """End a product."""
        self._products[rows, lanes] -= 1
        self._in_flight -= int(lanes.sum())

    def note_access(self, w, site_number, array, place, mask):
        """Record an ordinary access by the lanes of `mask` to the elements at `place`."""
        self.is_touched = True
        if not self._in_flight:
            return
        early = (self._products[place] > 0) & w.active(mask)
        if early.any():
            self._note_early(w, site_number, array, place, early)

    def _note_early(self, w, site_number, array, place, early):
        launch = w.chunk.launch
        log, site, begun = launch.log, launch.sites[site_number], launch.sites[self._site]
        lane = int(np.argmax(early))
        who = log.lane(w, lane)
        element = array.position(array.c_order(int(place if isinstance(place, int) else place[0][lane])))
        does = "reads" if site.kind == "load" else "writes"
        what = (
            f"{log.name(who)} {does} {array.name}[{', '.join(map(str, element))}] while the product that its "
            f"warpgroup began in line {begun.line} adds to it, so that it can hold anything"
        )
        cure = "Close its group with `ptx.wgmma_commit()`, and wait for it with `ptx.wgmma_wait(0)` first."
        key = ("in-flight", site.line, site.column, site.kind)
        where = {"array": array.name, "index": element, "threads": (who,), "other_line": begun.line}
        log_error(log, key, site, "in-flight", what, cure, int(early.sum()), **where)
