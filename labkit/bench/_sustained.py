"""A launch repeated for seconds: its rate when the GPU is warm, and the clock and the power meanwhile."""

import subprocess
import time
from collections.abc import Callable
from statistics import median

from labkit.calls import timing

WARM_UP_S, MEASURED_S = 2.0, 3.0
SAMPLE_MS = 100
LAUNCHES_IN_QUEUE = 20  # between two synchronisations


def measure(launch: Callable[[object], object], gpu_uuid: str) -> dict[str, float]:
    """Return the mean time of a launch in ms, with the SM clock in MHz and the power in W while it ran, as medians.

    `launch` is a function of a numba stream. nvidia-smi reports clock and power of the GPU `gpu_uuid`.
    """
    run_for(launch, WARM_UP_S)
    query = ["nvidia-smi", "-i", gpu_uuid, "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits"]
    with subprocess.Popen([*query, "-lms", str(SAMPLE_MS)], stdout=subprocess.PIPE, text=True) as sampler:
        time_ms = run_for(launch, MEASURED_S)
        sampler.terminate()
        said = sampler.communicate()[0]
    samples = [[float(value) for value in line.split(",")] for line in said.splitlines() if line.count(",") == 1]
    clocks_mhz, powers_w = zip(*samples)
    return {"time_ms": time_ms, "clock_mhz": median(clocks_mhz), "power_w": median(powers_w)}


def run_for(launch: Callable[[object], object], seconds: float) -> float:
    """Launch for so many seconds, the queue never empty for long, and return the mean time of a launch in ms."""
    stream, launches = timing.timing_stream(), 0
    launch(stream)  # compiles
    stream.synchronize()
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(LAUNCHES_IN_QUEUE):
            launch(stream)
        stream.synchronize()
        launches += LAUNCHES_IN_QUEUE
    return (time.perf_counter() - start) / launches * 1e3
