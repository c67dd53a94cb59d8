"""The progress of a launch that takes more than a second, on the error stream.

On a terminal it is one line that is rewritten; elsewhere a line every ten seconds.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import TextIO

from numba.core import event

from labkit.running.text import COLUMNS
from labkit.simulator.pace import Pace

SILENT_S = 1.0
REWRITE_S = 0.25
LINE_S = 10.0  # between two lines where none can be rewritten
PREPARING = "labkit: preparing the checks: once on this machine, about 10 s"


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
        self._compiled_s = float("-inf")  # when numba compiled last
        self._line_s = float("-inf")  # when the last line was printed
        self._told_of_preparing = self._is_shown = False

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
            if not self._compiling:
                self._compiling_since_s = time.perf_counter()
            self._compiling += 1

    def on_end(self, event):
        if _is_ours(event):
            self._compiling -= 1
            self._compiled_s = time.perf_counter()
            if not self._compiling and self._launches:
                _, pace = self._launches[0]
                pace.leave_out(self._compiled_s - self._compiling_since_s)

    def _watch(self):
        while not self._end.wait(REWRITE_S):
            with self._lock:
                if self._launches:
                    self._show(*self._launches[0])

    def _show(self, kernel, pace):
        now = time.perf_counter()
        if now - pace.start_s < SILENT_S:
            return
        is_preparing = not pace.done and (self._compiling or now - self._compiled_s < SILENT_S)
        line = PREPARING if is_preparing else describe(kernel, pace)
        if self.rewrites:
            self.stream.write(f"\r{line:<{COLUMNS - 1}}")
            self._is_shown = True
        elif is_preparing:
            if self._told_of_preparing:
                return
            self._told_of_preparing = True
            self.stream.write(f"{line}\n")
        elif now - self._line_s >= LINE_S:
            self._line_s = now
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
    parts.append(f"{pace.done:,} of {pace.blocks:,} blocks" if pace.blocks else "beginning")
    parts.append(f"{time.perf_counter() - pace.start_s:.0f} s")
    if (left_s := pace.left_s) is not None:
        parts.append(f"about {max(1, left_s):.0f} s left")
    line = f", {', '.join(parts)}"
    room = COLUMNS - 1 - len("labkit: ") - len(line)
    return f"labkit: {kernel if len(kernel) <= room else kernel[: room - 3] + '...'}{line}"
