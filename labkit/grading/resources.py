"""The cores and the memory that this process may use: those of its job or container, not of the machine."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

KERNEL_BYTES = 2 << 30  # for a kernel and its pytest: twice what the book's own answers take
_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_CPU_FILES = (("cpu.max", "cpu.max"), ("cpu.cfs_quota_us", "cpu.cfs_period_us"))  # of cgroup's second and first version
_MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def count_kernels() -> int:
    """Return the number of kernels that may judge at a time: one per core, as far as they find memory."""
    return max(1, min(count_cores(), free_bytes() // KERNEL_BYTES))


def count_cores(root: Path = _ROOT, own: Path = _OWN) -> int:
    """Return the number of cores."""
    affinity = getattr(os, "sched_getaffinity", None)  # of Linux
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    for folder in _find_groups(root, own):
        for quota_file, period_file in _CPU_FILES:
            with suppress(OSError, ValueError):  # there is no such file, or no limit in it
                quota, period = _words(folder / quota_file)[0], _words(folder / period_file)[-1]
                if int(quota) > 0:
                    cores = min(cores, math.ceil(int(quota) / int(period)))
    return cores


def free_bytes(root: Path = _ROOT, own: Path = _OWN) -> int:
    """Return the memory that is free, or would be if files that are cached gave way."""
    free = psutil.virtual_memory().available
    for folder in _find_groups(root, own):
        for limit_file, usage_file, cached in _MEMORY_FILES:
            with suppress(OSError, ValueError):
                words = _words(folder / "memory.stat")
                used = int(_words(folder / usage_file)[0]) - int(words[words.index(cached) + 1])
                free = min(free, int(_words(folder / limit_file)[0]) - used)
    return max(free, 0)


def _words(path):
    return path.read_text().split()


def _find_groups(root: Path, own: Path) -> Iterator[Path]:
    """Yield the folders of this process's control groups and of all groups around them.

    A line of `own` is `0::/job/step` in the second version, and `4:cpu,cpuacct:/job/step` in the first, where each
    controller has a folder below the root. In a container the inner folders may be missing: the root has its limits.
    """
    lines = own.read_text().splitlines() if own.exists() else []
    for line in lines or ["0::/"]:
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            parts = [part for part in path.split("/") if part not in ("", "..")]
            for depth in range(len(parts) + 1):
                yield root.joinpath(name, *parts[:depth])
