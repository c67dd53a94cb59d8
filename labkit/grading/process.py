"""Child processes that end: with their parent, within their limits, and with all of their own children."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1  # of prctl(2)
KERNEL_BYTES = 6 << 30
MIN_FREE_SHARE = 0.04  # of its memory, whoever takes the rest
POLL_S = 0.1
_running: set[subprocess.Popen] = set()


@dataclass(frozen=True)
class Limits:
    """What a child and its own children may take together."""

    seconds: float
    processes: int | None = None
    memory_bytes: int | None = None
    printed_bytes: int = 1 << 20


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str], limits: Limits) -> tuple[int | None, str]:
    """Run a command; its exit status, None where it broke a limit, and the last of what it printed."""
    end_s = time.monotonic() + limits.seconds
    with (folder / "printed").open("a+b") as printed:  # so that what opens it anew adds to it as well
        child = subprocess.Popen(
            command, cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=printed, stderr=printed
        )
        _running.add(child)
        try:
            while (status := _poll(child)) is None:
                if time.monotonic() > end_s or _breaks_limit(child, limits):
                    break
        finally:
            end(child)
            _running.discard(child)
        printed.seek(max(0, printed.seek(0, os.SEEK_END) - limits.printed_bytes))
        return status, printed.read().decode(errors="replace")


def _poll(child):
    try:
        return child.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return None


def _breaks_limit(child, limits):
    if limits.processes is None and limits.memory_bytes is None:
        return False
    family = _process_tree(child)
    if limits.processes is not None and len(family) > limits.processes:
        return True
    taken = 0
    for process in family:
        with contextlib.suppress(psutil.Error):
            taken += process.memory_info().rss
    return limits.memory_bytes is not None and (taken > limits.memory_bytes or _is_memory_full())


def _is_memory_full():
    """Whether memory runs out; what is shared and not mapped, no process is charged with."""
    memory = psutil.virtual_memory()
    return memory.available < MIN_FREE_SHARE * memory.total


def end(child: subprocess.Popen) -> None:
    """Kill a process and all that it started, in whatever session they are."""
    for process in _process_tree(child):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    child.wait()


def end_all() -> None:
    """End every command that runs, for the sake of those who wait for this process to stop."""
    for child in list(_running):
        end(child)


def _process_tree(child):
    try:
        parent = psutil.Process(child.pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def tie_to_parent() -> None:
    """Let the kernel kill this process when its parent dies; where it cannot, nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def limit_memory(most_bytes: int = KERNEL_BYTES) -> None:
    """Let this process fail with a MemoryError before the machine runs out of memory."""
    if sys.platform == "linux":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = most_bytes if hard == resource.RLIM_INFINITY else min(most_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
