"""Asynchronous operations by groups: `commit` closes a group of them, and a wait covers all groups but the newest."""

import numpy as np


class Groups:
    """What the lanes of a warp set have under way."""

    def __init__(self, lanes: int):
        self._closed = np.zeros(lanes, np.int64)  # groups that each lane has committed
        self.running: list[tuple] = []  # operation, the lanes that it is under way for, the number of their group

    def begin(self, operation, lanes: np.ndarray):
        """Lanes begin an operation, in the group that each has open."""
        self.running.append((operation, lanes.copy(), self._closed.copy()))

    def commit(self, lanes: np.ndarray):
        """Lanes close the group that they have open."""
        self._closed += lanes

    def finish(self, lanes: np.ndarray, pending: int) -> list[tuple]:
        """(operation, lanes) of what is done when these lanes wait for all but their `pending` newest groups."""
        done, running = [], []
        for operation, mine, group in self.running:
            due = mine & lanes & (group < self._closed - pending)
            if due.any():
                done.append((operation, due))
            left = mine & ~due
            if left.any():
                running.append((operation, left, group))
        self.running = running
        return done
