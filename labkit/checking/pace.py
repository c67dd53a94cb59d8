"""How long runs beyond the limits in a learner's code may take, foretold from how long other runs took."""

import time
from typing import Any

import numpy as np

MOST_S = 3.0  # of computing, for all these runs together


def count_elements(launch: Any) -> int:
    """Return the number of elements of all arguments of a launch."""
    return sum(np.size(argument) for argument in launch.args)


class Pace:
    """The least time per element of the runs so far (what compiles in some does not count), and the time that is left.

    Attributes
    ----------
    least_s
        The least time per element.
    left_s
        The time left for runs beyond limits.
    """

    def __init__(self):
        self.least_s = float("inf")
        self.left_s = MOST_S
        self._begin_s = 0.0

    def start(self) -> None:
        """Begin a run."""
        self._begin_s = time.process_time()

    def stop(self, launch: Any) -> None:
        """Take the time of the run that began."""
        taken_s = time.process_time() - self._begin_s
        self.least_s = min(self.least_s, taken_s / count_elements(launch))
        self.left_s -= taken_s * launch.may_stop

    def is_too_slow_for(self, launch: Any) -> bool:
        """Tell whether a run would take longer than is left, even at this pace."""
        return self.left_s <= 0 or self.least_s < float("inf") and self.least_s * count_elements(launch) > self.left_s
