"""How long a run may take, foretold from how long the runs before it took."""

import time
from typing import Any

import numpy as np

MOST_S = 4.0  # of computing, for a run beyond a limit in the code


def count_elements(launch: Any) -> int:
    """Return the number of elements of all arguments of a launch."""
    return sum(np.size(argument) for argument in launch.args)


class Pace:
    """The least time per element of the runs so far: what compiles in some of them does not count."""

    def __init__(self):
        self.least_s = float("inf")
        self.begin_s = 0.0

    def start(self) -> None:
        """Begin a run."""
        self.begin_s = time.process_time()

    def stop(self, launch: Any) -> None:
        """Take the time of the run that began."""
        self.least_s = min(self.least_s, (time.process_time() - self.begin_s) / count_elements(launch))

    def is_too_slow_for(self, launch: Any) -> bool:
        """Tell whether a run would take too long even at this pace."""
        return self.least_s < float("inf") and self.least_s * count_elements(launch) > MOST_S
