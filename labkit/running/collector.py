"""Findings and counters of all launches of a program, merged: one entry per cause, one per kernel."""

import pickle
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from types import FrameType

from labkit.simulator.unwritten import LastStore
from labkit.trace import Finding, Trace

PACKAGE = str(Path(__file__).parents[1])  # labkit's folder
# Counters that are summed over the launches of a kernel, by their names in `Counters`.
SUMMED = (
    "global_loads", "global_stores", "global_load_requests", "global_store_requests", "global_load_sectors",
    "global_store_sectors", "shared_load_wavefronts", "shared_store_wavefronts", "bank_conflicts", "flops", "barriers",
)  # fmt: skip


@dataclass
class MergedFinding:
    """A finding, and how often it was made.

    `kernel_line` is the first line of the kernel, which tells kernels of one name apart. `launch_file` and
    `launch_line` are those of the first launch that had the finding, `launches` the number of launches with it, and
    `count` the occurrences in all of these.
    """

    finding: Finding
    kernel: str
    file: str
    kernel_line: int
    launch_file: str
    launch_line: int
    launches: int = 0
    count: int = 0

    @property
    def line_and_kind(self) -> tuple[str, int, str]:
        """File, line and kind, which findings about several arrays share."""
        return self.file, self.finding.line, self.finding.kind


@dataclass
class KernelTotals:
    """A kernel's launches, threads, seconds of simulation, and counters summed over its launches."""

    kernel: str
    file: str
    line: int
    launches: int = 0
    threads: int = 0
    time_s: float = 0.0
    counters: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SUMMED, 0))


@dataclass
class Collector:
    """Findings and counters of a program's launches.

    `on_new` is called with each finding that no earlier launch had; `orders` counts the orders that a launch runs in.
    """

    on_new: Callable[[MergedFinding], None] = lambda finding: None
    orders: int = 1
    _all: dict[tuple, MergedFinding] = field(default_factory=dict)
    kernels: dict[tuple, KernelTotals] = field(default_factory=dict)
    launches_by_line: Counter[tuple] = field(default_factory=Counter)  # by `MergedFinding.line_and_kind`

    def add(self, trace: Trace, time_s: float) -> None:
        """Add a launch that took `time_s` to simulate."""
        self._add_totals(trace, time_s)
        kernel = trace.kernel, trace.filename, trace.first_line
        self._count_launch({self._add(finding, *kernel) for finding in trace.findings})

    def add_copy(self, finding: Finding, store: LastStore | None) -> None:
        """Add what a copy to the host showed of an array, and of the last launch that stored to it."""
        if store:
            key = self._add(finding, store.kernel, store.filename, store.first_line)
        else:
            frame = calling_frame()
            key = self._add(replace(finding, line=frame.f_lineno), "", frame.f_code.co_filename, 0)
        self._count_launch({key})

    def _count_launch(self, keys):
        """Count one launch, or copy, for the findings that it had."""
        for key in keys:
            self._all[key].launches += 1
        self.launches_by_line.update({self._all[key].line_and_kind for key in keys})

    def _add(self, finding, kernel, file, kernel_line):
        cause = finding.remedy if finding.is_between_blocks else (finding.line, finding.column, finding.other_line)
        key = kernel, file, kernel_line, finding.kind, finding.severity, finding.array, cause
        if is_new := key not in self._all:
            frame = calling_frame()
            self._all[key] = MergedFinding(finding, kernel, file, kernel_line, frame.f_code.co_filename, frame.f_lineno)
        self._all[key].count += finding.count
        if is_new:
            self.on_new(self._all[key])
        return key

    def _add_totals(self, trace, time_s):
        key = trace.filename, trace.kernel, trace.first_line
        kernel = self.kernels.setdefault(key, KernelTotals(trace.kernel, trace.filename, trace.first_line))
        kernel.launches += 1
        kernel.threads += prod(trace.grid) * prod(trace.block)
        kernel.time_s += time_s
        for name in SUMMED:
            kernel.counters[name] += getattr(trace.counters, name)

    def merge(self, other: "Collector") -> None:
        """Add the launches of another process, whose order in time is not known."""
        for key, merged in other._all.items():
            if mine := self._all.get(key):
                mine.launches += merged.launches
                mine.count += merged.count
            else:
                self._all[key] = merged
        self.launches_by_line.update(other.launches_by_line)
        for key, theirs in other.kernels.items():
            kernel = self.kernels.setdefault(key, KernelTotals(theirs.kernel, theirs.file, theirs.line))
            kernel.launches += theirs.launches
            kernel.threads += theirs.threads
            kernel.time_s += theirs.time_s
            for name in SUMMED:
                kernel.counters[name] += theirs.counters[name]

    def to_bytes(self) -> bytes:
        """Return what `merge` takes, for another process of the same program."""
        return pickle.dumps((self._all, self.kernels, self.launches_by_line))

    @staticmethod
    def from_bytes(data: bytes) -> "Collector":
        findings, kernels, launches_by_line = pickle.loads(data)
        return Collector(_all=findings, kernels=kernels, launches_by_line=launches_by_line)

    def of_kernel(self, kernel: KernelTotals, severity: str) -> list[MergedFinding]:
        """Return a kernel's errors, or its advice."""
        key = kernel.kernel, kernel.file, kernel.line
        findings = (f for f in self.findings if (f.kernel, f.file, f.kernel_line) == key)
        return [f for f in findings if f.finding.severity == severity]

    @property
    def findings(self) -> list[MergedFinding]:
        """All findings; of launches that had nothing to store, only those of kernels that never stored there."""
        return [f for f in self._all.values() if not self._stored_in_another_launch(f)]

    def _stored_in_another_launch(self, merged):
        if merged.finding.kind != "unwritten" or not merged.finding.array:
            return False
        return merged.launches < self.kernels[merged.file, merged.kernel, merged.kernel_line].launches

    @property
    def errors(self) -> list[MergedFinding]:
        return [f for f in self.findings if f.finding.severity == "error"]

    @property
    def advice(self) -> list[MergedFinding]:
        return [f for f in self.findings if f.finding.severity == "advice"]


def calling_frame() -> FrameType:
    """Return the innermost frame that is not labkit's: the line that launched."""
    frame = sys._getframe()
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back:
        frame = frame.f_back
    return frame
