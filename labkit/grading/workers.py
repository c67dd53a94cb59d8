"""The workers that judge batches of students' answers: the cores of this machine, or a Dask cluster."""

import math
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from labkit.grading.process import kill_running_commands

_CGROUP = Path("/sys/fs/cgroup")


class SchedulerError(Exception):
    """A cluster cannot be used; the message says what to do."""


def count_cores(cgroup: Path = _CGROUP) -> int:
    """Return the number of cores that this process may use: those of its job or container, not of the machine."""
    affinity = getattr(os, "sched_getaffinity", None)  # of Linux
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    for name, period_name in (("cpu.max", None), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with suppress(OSError, ValueError):  # there is no such file, or no limit in it
            words = (cgroup / name).read_text().split()
            quota, period = words if period_name is None else (words[0], (cgroup / period_name).read_text())
            if int(quota) > 0:
                cores = min(cores, math.ceil(int(quota) / int(period)))
    return cores


@contextmanager
def start_workers(scheduler: str | None, workers: int | None = None) -> Iterator[tuple[Executor, int]]:
    """Start workers; yield their executor, and the number of batches that it judges at a time.

    Without a scheduler they are `workers` threads, or one per core that this process may use.
    The workers of a cluster need this version of labkit (distributed.dask.org, "Client").
    """
    if scheduler is None:
        workers = workers or count_cores()
        with ThreadPoolExecutor(workers) as executor:
            try:
                yield executor, workers
            except BaseException:  # an interrupt above all; the journal, a file, has the judgements
                executor.shutdown(wait=False, cancel_futures=True)
                kill_running_commands()
                raise
        return
    try:
        from distributed import Client  # pyright: ignore[reportMissingImports] - only the extra `cluster` brings it
    except ImportError:
        raise SchedulerError("--scheduler needs Dask: pip install 'labkit-gpu[cluster]'") from None
    try:
        client = Client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise SchedulerError(f"there is no Dask scheduler at {scheduler}: {error}") from error
    with client, client.get_executor(pure=False) as executor:
        yield executor, sum(client.ncores().values()) or 1
