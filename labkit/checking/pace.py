"""How long runs beyond the limits in a learner's code may take, foretold from how long other runs took."""

import time
from typing import Any

import numpy as np

MOST_S = 0.7  # of computing, for all these runs together


def count_elements(launch: Any) -> int:
    """Return the number of elements of all arguments of a launch."""
    return sum(np.size(argument) for argument in launch.args)


class Pace:
    """The time per element of the runs so far, without the slowest (in which something compiles), and the time left."""

    def __init__(self):
        self._runs: list[tuple[float, int]] = []  # seconds and elements
        self._left_s = MOST_S
        self._begin_s = 0.0

    def start(self) -> None:
        """Begin a run."""
        self._begin_s = time.process_time()

    def stop(self, launch: Any) -> None:
        """Take the time of the run that began."""
        taken_s = time.process_time() - self._begin_s
        self._runs.append((taken_s, count_elements(launch)))
        self._left_s -= taken_s * launch.may_stop

    def is_too_slow_for(self, launch: Any) -> bool:
        """Tell whether a run would take longer than is left, at the pace so far."""
        usual = sorted(self._runs)[:-1]
        total_s, elements = sum(seconds for seconds, _ in usual), sum(elements for _, elements in usual)
        return self._left_s <= 0 or (elements > 0 and total_s / elements * count_elements(launch) > self._left_s)
