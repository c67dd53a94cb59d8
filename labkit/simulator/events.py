"""What the warps of the recorded blocks ask of other units, tell one another and wait for, as `trace.Event`s.

They are kept of kernels whose warps do different things at a time.
"""

import numpy as np

from labkit.simulator.limits import MAX_EVENTS
from labkit.trace import TENSOR, WARP_LANES, Event


class Events:
    """The events of a launch, and what the lanes of each warp set did on CUDA cores up to now."""

    def __init__(self, launch):
        self.launch = launch
        self.are_kept = launch.program.keeps_events
        self.kept: list[Event] = []
        self.powers = 0  # of two, by all lanes so far
        self._begun = 0, 0  # the totals when the set that runs now went on

    def _totals(self):
        flops = sum(np.sum(n) for dtype, n in self.launch.flops.items() if not dtype.endswith(TENSOR))
        return int(flops), self.powers

    def resume(self):
        """A warp set goes on: what is counted from here on is its work."""
        if self.are_kept:
            self._begun = self._totals()

    def pause(self, w):
        """What was counted since then is the work of this set's lanes."""
        if not self.are_kept:
            return
        now = self._totals()
        w.work = tuple(done + (n - n0) / w.lanes for done, n, n0 in zip(w.work, now, self._begun, strict=True))
        self._begun = now

    def note(self, w, mask, kind, line=0, array="", barriers="", place=None, amount=0):
        """The recorded warps of `mask` do something; `place` numbers a barrier in each lane, in the array `barriers` or
        of the block.

        Lanes of a warp that name the same place are one event, with the amount of the first of them.
        """
        if not (self.are_kept and w.sampled):
            return
        self.pause(w)
        lanes = np.flatnonzero(w.active(mask))
        places, amounts = None if place is None else w.fill(place), w.fill(amount)
        for _, block, first, last in w.sampled:
            mine = lanes[(first <= lanes) & (lanes < last)]
            warps = w.thread[mine] // WARP_LANES
            keys = warps if places is None else warps * (1 << 32) + places[mine]
            _, firsts, counts = np.unique(keys, return_index=True, return_counts=True)
            for lane, count in zip(mine[firsts], counts):
                if len(self.kept) == MAX_EVENTS:
                    self.kept.clear()
                    self.are_kept = False
                    return
                at = "" if places is None else f"{barriers}[{places[lane]}]" if barriers else str(places[lane])
                event = Event(
                    self.launch.recorded[block], int(w.thread[lane]) // WARP_LANES, line, kind, at, array,
                    int(amounts[lane]), int(count), *w.work,
                )  # fmt: skip
                self.kept.append(event)
