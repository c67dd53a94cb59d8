"""Asynchronous operations in groups: `commit` closes a group, and a wait covers all groups but the newest."""

import numpy as np


class Groups:
    """The operations that the lanes of a warp set have in flight."""

    def __init__(self, lanes: int):
        self._closed = np.zeros(lanes, np.int64)  # groups that each lane has committed
        self._waited = np.full(lanes, -1, np.int64)  # groups that each lane had committed at its last wait; -1: none
        self._pending = np.zeros(lanes, np.int64)  # groups that this wait left in flight
        self.running: list[tuple] = []  # (operation, its lanes in flight, the number of each lane's group)

    def begin(self, operation, lanes: np.ndarray):
        """Add an operation to the open group of each of these lanes."""
        self.running.append((operation, lanes.copy(), self._closed.copy()))

    def commit(self, lanes: np.ndarray):
        """Close the open group of these lanes."""
        self._closed += lanes

    def finish(self, lanes: np.ndarray, pending: int) -> list[tuple]:
        """Return (operation, lanes) of what is done when these lanes wait for all but their `pending` newest groups."""
        self._waited[lanes], self._pending[lanes] = self._closed[lanes], pending
        done, running = [], []
        for operation, op_lanes, group in self.running:
            due = op_lanes & lanes & (group < self._closed - pending)
            if due.any():
                done.append((operation, due))
            rest = op_lanes & ~due
            if rest.any():
                running.append((operation, rest, group))
        self.running = running
        return done

    def newer_at_last_wait(self, group: int, lane: int) -> tuple[int, int] | None:
        """Return how many groups were newer than this one at a lane's last wait, and how many that left in flight.

        The number of newer ones is negative for a group that was open or began later. None if there was no wait.
        """
        if self._waited[lane] < 0:
            return None
        return int(self._waited[lane] - 1 - group), int(self._pending[lane])
