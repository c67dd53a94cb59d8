"""The progress of a launch that takes more than a second, on the error stream.

On a terminal it is one line that is rewritten; elsewhere a line every ten seconds.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import TextIO

from labkit.running.text import COLUMNS
from labkit.simulator.pace import Pace
from labkit.simulator.seam import event

SILENT_S = 1.0
REWRITE_S = 0.25
LINE_S = 10.0  # between two lines where none can be rewritten
PREPARING = "labkit: preparing checks for their first use on this machine, about 10 s"


class Progress(event.Listener):
    """Shows launches while they run; hears when numba compiles labkit's own functions."""

    def __init__(self, stream: TextIO | None = None):
        self.stream = stream or sys.stderr
        self.rewrites = self.stream.isatty()
        self._launches: list[tuple[str, Pace]] = []  # the first runs, the others wait for it
        self._lock = Lock()
        self._end = Event()
        self._compiling = 0  # functions, one inside another
        self._compiling_since_s = 0.0
        self._prepares_since_s = 0.0  # when it began, with pauses of less than a second
        self._compiled_s = float("-inf")  # when numba compiled last
        self._line_s = float("-inf")  # when the last line was printed
        self._told_of_preparing = self._told_what_is_left = self._is_shown = False

    @contextmanager
    def running(self) -> Iterator[None]:
        """Show what runs meanwhile."""
        thread = Thread(target=self._watch, daemon=True)
        event.register("numba:compile", self)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            event.unregister("numba:compile", self)

    @contextmanager
    def launch(self, kernel: str, pace: Pace) -> Iterator[None]:
        """Show a launch meanwhile."""
        entry = kernel, pace
        self._launches.append(entry)
        try:
            yield
        finally:
            with self._lock:
                self._launches.remove(entry)
                self._erase()

    def on_start(self, event):
        if _is_ours(event):
            now = time.perf_counter()
            if not self._compiling:
                self._compiling_since_s = now
                if now - self._compiled_s >= SILENT_S:
                    self._prepares_since_s = now
            self._compiling += 1

    def on_end(self, event):
        if _is_ours(event):
            self._compiling -= 1
            self._compiled_s = time.perf_counter()
            if not self._compiling and self._launches:
                _, pace = self._launches[0]
                pace.leave_out(self._compiled_s - self._compiling_since_s)
            if not self._compiling and not self._launches:
                with self._lock:
                    self._erase()

    def _watch(self):
        while not self._end.wait(REWRITE_S):
            with self._lock:
                self._show()

    def _show(self):
        """Show the launch that runs, or that numba compiles, once that has taken a while."""
        now = time.perf_counter()
        if self._compiling:
            is_first = not self._told_of_preparing
            if now - self._prepares_since_s >= SILENT_S and (is_first or self.rewrites):
                self._told_of_preparing = True
                self._write(PREPARING)
        elif self._launches:
            kernel, pace = self._launches[0]
            knows_more = pace.left_s is not None and not self._told_what_is_left
            wait_s = SILENT_S if knows_more else LINE_S
            if pace.elapsed_s >= SILENT_S and (self.rewrites or now - self._line_s >= wait_s):
                self._line_s = now
                self._told_what_is_left = pace.left_s is not None
                self._write(describe(kernel, pace))

    def _write(self, line):
        if self.rewrites:
            self.stream.write(f"\r{line:<{COLUMNS - 1}}")
            self._is_shown = True
        else:
            self.stream.write(f"{line}\n")
        self.stream.flush()

    def _erase(self):
        if self._is_shown:
            self.stream.write(f"\r{'':{COLUMNS - 1}}\r")
            self.stream.flush()
            self._is_shown = False


def _is_ours(event) -> bool:
    return event.data["dispatcher"].py_func.__module__.startswith("labkit.")


def describe(kernel: str, pace: Pace) -> str:
    """Return how far a launch is, in a line of 79 columns at most."""
    parts = [f"order {pace.run} of {pace.runs}"] if pace.runs > 1 else []
    parts.append(f"{pace.done:,} of {pace.blocks:,} blocks" if pace.blocks else "placing its arrays")
    parts.append(f"{pace.elapsed_s:.0f} s")
    if pace.left_s:
        parts.append(f"about {max(1, pace.left_s):.0f} s left")
    line = f", {', '.join(parts)}"
    room = COLUMNS - 1 - len("labkit: ") - len(line)
    return f"labkit: {kernel if len(kernel) <= room else kernel[: room - 3] + '...'}{line}"
