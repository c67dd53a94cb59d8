"""Timing: on a GPU by device events, on the host by its clock.

A time is the median of many runs after a warm-up. On a GPU the launches are captured in a graph, which excludes the
gaps of some microseconds between them. A graph of short launches is replayed once before the timed replay: this hides
the time to launch it, some 100 us for 80 kernels.
"""

import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import cycle, islice
from math import ceil
from statistics import median

SHORTEST_REPLAY_MS = 2.0  # a graph repeats shorter launches until it takes that
REPLAYS = 21  # timed replays of a graph
REPLAYS_OF_LONG = 5  # a launch of over LONG_MS varies little
LONG_MS = 50.0
CALLS_IN_QUEUE = 20  # launches between two synchronisations


def host_time_ms(call: Callable[[], object], repeats: int = 7) -> float:
    """Return the median time of `call()` in ms by the host's clock, after one call as a warm-up."""
    call()
    times_ms = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times_ms.append((time.perf_counter() - start) * 1e3)
    return median(times_ms)


def host_time_us(launch: Callable[[object], object], calls: int = 200) -> float:
    """Return the median time in us that one launch costs the host, until it can request the next, over many calls.

    `launch` is a function of a numba stream that launches work on it.
    """
    stream, times_us = timing_stream(), []
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
def timing_stream():
    """Return the stream on which launches are timed; always the same, since memory is cached per stream."""
    from labkit import cuda

    return cuda.stream()


def gpu_time_ms(launches: Sequence[Callable[[object], object]]) -> float:
    """Return the median time of one launch in ms by device events.

    `launches` are functions of a numba stream that launch the same work on it, each on its own operands. Together these
    should be larger than the L2 cache, else later launches hit in it.
    """
    return gpu_times_ms({"": launches})[""]


def gpu_times_ms(contenders: dict[str, Sequence[Callable[[object], object]]]) -> dict[str, float]:
    """Return `gpu_time_ms` of several kinds of work by name; they alternate, so a changing clock affects all alike."""
    return {name: median(times_ms) for name, times_ms in gpu_samples_ms(contenders).items()}


def gpu_samples_ms(contenders: dict[str, Sequence[Callable[[object], object]]]) -> dict[str, list[float]]:
    """Return the time in ms of one launch in each replay, for several kinds of work by name. See `gpu_times_ms`."""
    from numba import cuda

    stream, start, end = timing_stream(), cuda.event(), cuda.event()

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
        graphs[name] = capture_launches(stream, islice(cycle(launches), in_graph)), in_graph
        replays[name] = REPLAYS if once_ms < LONG_MS else REPLAYS_OF_LONG
        graphs[name][0]()
    times_ms = {name: [] for name in contenders}
    for i in range(REPLAYS):
        for name, (replay, in_graph) in graphs.items():
            if i < replays[name]:
                if in_graph > 1:
                    replay()  # keeps the GPU busy while the host launches the timed graph
                times_ms[name].append(elapsed_ms(replay) / in_graph)
    return times_ms


def capture_launches(stream, launches) -> Callable[[], None]:
    """Capture launches in a graph, and return a function that replays it."""
    from labkit.cuda.driver_calls import import_bindings

    binding, driver = import_bindings()
    handle = binding.CUstream(int(stream))
    driver.cuStreamBeginCapture(handle, binding.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
    for launch in launches:
        launch(stream)
    executable = driver.cuGraphInstantiate(driver.cuStreamEndCapture(handle), 0)
    return lambda: driver.cuGraphLaunch(executable, handle)
