"""How long things take: on a GPU by device events, on the host by its clock.

A time is the median of many runs after a warm-up. On a GPU the launches are put into a graph, so that the
gaps between them, which cost microseconds each, stay out of the time of a kernel. The graph of short launches is
replayed once more just before, so that the time to launch it, some 100 us for 80 kernels, stays out as well.
"""

import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import cycle, islice
from math import ceil
from statistics import median

SHORTEST_REPLAY_MS = 2.0
REPLAYS = 21
REPLAYS_OF_LONG = 5  # a launch of over LONG_MS varies little
LONG_MS = 50.0
CALLS_IN_QUEUE = 20


def host_time_ms(call: Callable[[], object], repeats: int = 7) -> float:
    """Median time of `call()` by the host's clock, after one call as a warm-up."""
    call()
    times_ms = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times_ms.append((time.perf_counter() - start) * 1e3)
    return median(times_ms)


def host_us(launch: Callable[[object], object], calls: int = 200) -> float:
    """Median time of the host for one launch, in microseconds: how long it is before the next can be asked for.

    Parameters
    ----------
    launch
        A function of a numba stream that launches work on it.
    calls
        How many launches.
    """
    stream, times_us = own_stream(), []
    launch(stream)
    for call in range(calls):
        if call % CALLS_IN_QUEUE == 0:
            stream.synchronize()  # else the queue fills, and a call waits for the GPU
        start = time.perf_counter()
        launch(stream)
        times_us.append((time.perf_counter() - start) * 1e6)
    stream.synchronize()
    return median(times_us)


@cache
def own_stream():
    """The stream on which launches are timed, always the same: each stream has memory that is kept for it."""
    from labkit import cuda

    return cuda.stream()


def gpu_time_ms(launches: Sequence[Callable[[object], object]]) -> float:
    """Median time of one launch by device events.

    Parameters
    ----------
    launches
        Functions of a numba stream that launch the same work on it, each on operands of its own: together
        these should be larger than the L2 cache, which otherwise keeps what a first launch read.
    """
    return gpu_times_ms({"": launches})[""]


def gpu_times_ms(contenders: dict[str, Sequence[Callable[[object], object]]]) -> dict[str, float]:
    """As `gpu_time_ms` for several kinds of work, by name, that take turns: so a clock that changes is fair to all."""
    return {name: median(times_ms) for name, times_ms in gpu_samples_ms(contenders).items()}


def gpu_samples_ms(contenders: dict[str, Sequence[Callable[[object], object]]]) -> dict[str, list[float]]:
    """As `gpu_times_ms`, with the time of one launch in each replay."""
    from numba import cuda

    stream, start, end = own_stream(), cuda.event(), cuda.event()

    def elapsed_ms(work):
        start.record(stream)
        work()
        end.record(stream)
        end.synchronize()
        return start.elapsed_time(end)

    graphs, replays = {}, {}
    for name, launches in contenders.items():
        for launch in launches:
            launch(stream)
        stream.synchronize()
        once_ms = min(elapsed_ms(lambda: launches[0](stream)) for _ in range(3))  # noqa: B023
        in_graph = max(len(launches), ceil(SHORTEST_REPLAY_MS / once_ms))
        graphs[name] = _graph(stream, islice(cycle(launches), in_graph)), in_graph
        replays[name] = REPLAYS if once_ms < LONG_MS else REPLAYS_OF_LONG
        graphs[name][0]()
    times_ms = {name: [] for name in contenders}
    for turn in range(REPLAYS):
        for name, (replay, in_graph) in graphs.items():
            if turn < replays[name]:
                if in_graph > 1:
                    replay()  # keeps the GPU at work while the host launches the graph that is timed
                times_ms[name].append(elapsed_ms(replay) / in_graph)
    return times_ms


def _graph(stream, launches) -> Callable[[], None]:
    """A function that replays the launches, captured once."""
    from labkit.arrays.driver import import_bindings

    binding, driver = import_bindings()
    handle = binding.CUstream(int(stream))
    driver.cuStreamBeginCapture(handle, binding.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    for launch in launches:
        launch(stream)
    executable = driver.cuGraphInstantiate(driver.cuStreamEndCapture(handle), 0)
    return lambda: driver.cuGraphLaunch(executable, handle)
