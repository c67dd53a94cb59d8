"""Child processes that end: with their parent, within their limits, and with all of their own children."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1  # of prctl(2)
MEMORY_BYTES = 6 << 30


def run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], limit_s: float, most_bytes: int = 1 << 20
) -> tuple[int | None, str]:
    """Run a command; its exit status, None where it outlived `limit_s`, and the last of what it printed."""
    with (folder / "printed").open("w+b") as printed:
        child = subprocess.Popen(
            command, cwd=folder, env=dict(environment), stdin=subprocess.DEVNULL, stdout=printed, stderr=printed
        )
        try:
            status = child.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end(child)
        printed.seek(max(0, printed.seek(0, os.SEEK_END) - most_bytes))
        return status, printed.read().decode(errors="replace")


def end(child: subprocess.Popen) -> None:
    """Kill a process and all that it started, in whatever session they are."""
    try:
        parent = psutil.Process(child.pid)
        family = [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        family = []
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    child.wait()


def tie_to_parent() -> None:
    """Let the kernel kill this process when its parent dies; where it cannot, nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def limit_memory(most_bytes: int = MEMORY_BYTES) -> None:
    """Let this process fail with a MemoryError before the machine runs out of memory."""
    if sys.platform == "linux":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = most_bytes if hard == resource.RLIM_INFINITY else min(most_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
