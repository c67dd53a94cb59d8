"""Child processes that end with their parent, within their limits, and with all of their own children."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1  # of prctl(2)
NOTEBOOK_KERNEL_BYTES = 6 << 30
MIN_FREE_SHARE = 0.04  # of the machine's memory
POLL_S = 0.1
_running: set[subprocess.Popen] = set()


@dataclass(frozen=True)
class Limits:
    """The resources that a child and its own children may use together."""

    seconds: float
    processes: int | None = None
    memory_bytes: int | None = None
    printed_bytes: int = 1 << 20


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str], limits: Limits) -> tuple[int | None, str]:
    """Run a command; return its exit status (None if it broke a limit) and the end of its output."""
    end_s = time.monotonic() + limits.seconds
    with (folder / "printed").open("a+b") as printed:  # a program that opens the file again appends, too
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
    processes = _process_tree(child)
    if limits.processes is not None and len(processes) > limits.processes:
        return True
    used_bytes = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            used_bytes += process.memory_info().rss
    return limits.memory_bytes is not None and (used_bytes > limits.memory_bytes or _is_memory_full())


def _is_memory_full():
    """Tell whether memory runs out; shared memory that is not mapped is not in any process's count."""
    memory = psutil.virtual_memory()
    return memory.available < MIN_FREE_SHARE * memory.total


def end(child: subprocess.Popen) -> None:
    """Kill a running process and its descendants, in any session."""
    for process in _process_tree(child):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    child.wait()


def kill_running_commands() -> None:
    """Kill every running command, so that this process can stop at once."""
    for child in list(_running):
        end(child)


def _process_tree(child):
    try:
        parent = psutil.Process(child.pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def tie_to_parent() -> None:
    """Let the operating system kill this process when its parent dies (on Linux); a child calls it first."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class TooSlow(BaseException):
    """The CPU time of a block is over; no handler of errors on the way takes it for one of its own."""


@contextlib.contextmanager
def limit_cpu_time(seconds: float) -> Iterator[None]:
    """Raise TooSlow where the block takes more CPU time, as soon as Python's own code runs; not on Windows."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)


def _stop(*_):
    raise TooSlow


def limit_memory(max_bytes: int = NOTEBOOK_KERNEL_BYTES) -> None:
    """Make this process fail with a MemoryError before the machine runs out of memory."""
    if sys.platform == "linux":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = max_bytes if hard == resource.RLIM_INFINITY else min(max_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
