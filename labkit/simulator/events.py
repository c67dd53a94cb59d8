"""Events of the warps in recorded blocks: requests to other units, messages and waits, as `trace.Event`s.

They are kept for kernels whose warps do different things at a time.
"""

import numpy as np

from labkit.simulator.limits import MAX_EVENTS
from labkit.trace import TENSOR, WARP_LANES, Event


class Events:
    """The events of a launch, and the work of each warp set's lanes on CUDA cores so far."""

    def __init__(self, launch):
        self.launch = launch
        self.are_kept = launch.program.keeps_events
        self.kept: list[Event] = []
        self.powers = 0  # exp2 of all lanes so far
        self._totals_at_resume = 0, 0  # the totals when the running set resumed

    def _totals(self):
        flops = sum(np.sum(n) for dtype, n in self.launch.flops.items() if not dtype.endswith(TENSOR))
        return int(flops), self.powers

    def resume(self):
        """Count from here on for the warp set that resumes."""
        if self.are_kept:
            self._totals_at_resume = self._totals()

    def pause(self, w):
        """Add what was counted since `resume` to the work of this set's lanes."""
        if not self.are_kept:
            return
        now = self._totals()
        totals = zip(w.work, now, self._totals_at_resume, strict=True)
        w.work = tuple(work + (after - before) / w.lanes for work, after, before in totals)
        self._totals_at_resume = now

    def note(self, w, mask, kind, line=0, array="", barriers="", barrier_number=None, amount=0):
        """Note an event of the recorded warps of `mask`.

        Lanes of a warp that name the same barrier are one event, with the amount of the first of them. `barrier_number`
        is that of a barrier in each lane, in the array `barriers` or of the block.
        """
        if not (self.are_kept and w.sampled):
            return
        self.pause(w)
        lanes = np.flatnonzero(w.active(mask))
        barrier_numbers, amounts = None if barrier_number is None else w.fill(barrier_number), w.fill(amount)
        for _, block, first, last in w.sampled:
            block_lanes = lanes[(first <= lanes) & (lanes < last)]
            warps = w.thread[block_lanes] // WARP_LANES
            keys = warps if barrier_numbers is None else warps * (1 << 32) + barrier_numbers[block_lanes]
            _, firsts, counts = np.unique(keys, return_index=True, return_counts=True)
            for lane, count in zip(block_lanes[firsts], counts):
                if len(self.kept) == MAX_EVENTS:
                    self.kept.clear()
                    self.are_kept = False
                    return
                barrier = "" if barrier_numbers is None else str(barrier_numbers[lane])
                barrier = f"{barriers}[{barrier}]" if barrier and barriers else barrier
                event = Event(
                    self.launch.recorded[block], int(w.thread[lane]) // WARP_LANES, line, kind, barrier, array,
                    int(amounts[lane]), int(count), *w.work,
                )  # fmt: skip
                self.kept.append(event)
