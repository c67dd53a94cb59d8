"""Lanes that run on their own, where one lane of a warp waits for another of it.

In lockstep such a wait would never end: the lane that could end it stays behind the loop until all lanes have left it.
GPUs since Volta let lanes go on one by one (CUDA C++ Programming Guide, "Independent Thread Scheduling"). So a launch
that gets stuck in this way runs again, with a warp set for each lane of these warps. Its collectives are waits too.
"""

from dataclasses import dataclass, field

import numpy as np


class Part(Exception):
    """The lanes of these warps, (block, warp), must run on their own; they wait for one another in a line."""

    def __init__(self, warps: set[tuple[int, int]], line: int):
        super().__init__(line)
        self.warps, self.line = warps, line


class CannotPart(Exception):
    """Lanes on their own have come to an instruction that a warp executes as one."""


@dataclass
class Parting:
    """The warps of a launch whose lanes run on their own, and the line where they wait for one another."""

    warps: set[tuple[int, int]] = field(default_factory=set)
    line: int = 0
    is_possible: bool = True


@dataclass
class _Meeting:
    arguments: dict[int, tuple] = field(default_factory=dict)  # of each lane that has come
    is_over: bool = False


def meet(w, function, position, mask, *arguments):
    """Run a collective of lanes that are on their own: wait until all lanes that its mask names have come or ended."""
    named = arguments[isinstance(arguments[0], str)]
    own = int(w.active(mask).argmax())
    named = int(w.fill(named)[own])
    meetings = w.chunk.kept.setdefault("meetings", {})
    key = w.members[0], function, named
    meeting = meetings.setdefault(key, _Meeting())
    meeting.arguments[own] = arguments
    while not meeting.is_over:
        ended = w.chunk.has_ended(w)
        if any(named >> lane & 1 and not ended[lane] and lane not in meeting.arguments for lane in range(w.lanes)):
            yield position[0], mask, ()
        else:
            meeting.is_over = True
            del meetings[key]
    together = np.isin(np.arange(w.lanes), [*meeting.arguments])
    own_exited, w.exited = w.exited, w.chunk.has_ended(w) & ~together
    try:
        return function(w, position, together, *_merged(w, meeting.arguments))
    finally:
        w.exited = own_exited


def _merged(w, arguments):
    """Return the arguments of all lanes: text, which is the same in all, or a number for each lane."""
    for column in zip(*arguments.values()):
        if isinstance(column[0], str):
            yield column[0]
            continue
        merged = np.zeros(w.lanes, column[0].dtype)
        for lane, value in zip(arguments, column):
            merged[lane] = w.fill(value)[lane]
        yield merged
