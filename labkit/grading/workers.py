"""The workers that judge batches of students' answers: the cores of this machine, or a Dask cluster."""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from labkit.grading.process import kill_running_commands
from labkit.grading.resources import count_kernels


class SchedulerError(Exception):
    """A cluster cannot be used; the message says what to do."""


@contextmanager
def start_workers(scheduler: str | None, workers: int | None = None) -> Iterator[tuple[Executor, int]]:
    """Start workers; yield their executor, and the number of batches that it judges at a time.

    Without a scheduler they are `workers` threads, or as many as the cores and the memory of this process allow.
    The workers of a cluster need this version of labkit (distributed.dask.org, "Client").
    """
    if scheduler is None:
        workers = workers or count_kernels()
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
