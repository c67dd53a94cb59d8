"""How far a launch is, and how long it is checked."""

import time


class Pace:
    """Progress of a launch, and the time limit of its checks.

    Beyond the limit the launch goes on to its end, so that its results are right. Only what costs most is left out:
    the checks for races and for reads of unwritten elements, counters and caches.

    Attributes
    ----------
    option
        The option of the command line that sets the limit; empty if no command runs the launch.
    start_s
        When the launch began, by `time.perf_counter`.
    run, runs
        The number of the present run among those that are planned, an order each.
    blocks, done
        Blocks in a run, and those of the present one that have ended. 0 blocks: the launch has not begun to run.
    """

    def __init__(self, time_limit_s: float | None = None, option: str = ""):
        self.time_limit_s, self.option = time_limit_s, option
        self.start_s = time.perf_counter()
        self.run = self.runs = 1
        self.blocks = self.done = 0
        self._not_counted_s = 0.0
        self.mark()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the launch began, without those left out."""
        return time.perf_counter() - self.start_s - self._not_counted_s

    @property
    def is_over(self) -> bool:
        """Whether the time limit has passed."""
        return self.time_limit_s is not None and self.elapsed_s >= self.time_limit_s

    def leave_out(self, time_s: float) -> None:
        """Count so many seconds up to now neither for the limit nor for the pace of blocks."""
        self._not_counted_s += time_s
        self.mark()

    def begin(self, blocks: int) -> None:
        """Begin a run of so many blocks; it may begin anew with other sets of warps."""
        self.blocks, self.done = blocks, 0
        self.mark()

    def mark(self) -> None:
        """Note that from now on blocks take another time than before."""
        self._mark = time.perf_counter(), self.done

    @property
    def left_s(self) -> float | None:
        """Seconds that the rest of the run takes at the present pace; None if that is not known yet."""
        since_s, before = self._mark
        if self.done == before:
            return None
        return (time.perf_counter() - since_s) / (self.done - before) * (self.blocks - self.done)
