"""`labkit bench counters`: the simulator's counters compared with the GPU's own, read with ncu.

`kernels` holds the launches. `compared` reads each counter from a Trace and from the GPU. `machine_code` computes the
compiler's factors. `ncu` runs the profiler.
"""

import tempfile
from pathlib import Path

from labkit.bench import _record
from labkit.bench.counters import ncu
from labkit.bench.counters.compared import COUNTERS
from labkit.bench.counters.kernels import launches

COLUMNS = dict.fromkeys(("kernel", "problem", "counter"), "")
COLUMNS |= {"predicted": ",.10g", "sass_factor": ".4f", "measured": ",.10g", "agreement": ".4f", "bound": ""}


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("reads counters", "ncu")
    with tempfile.TemporaryDirectory() as folder:
        profile = ncu.start(Path(out or folder))
        traces = [launch.simulate() for launch in launches()]
        profiled = ncu.finish(profile)
    rows = [row for matched in zip(launches(), traces, profiled, strict=True) for row in compare(*matched)]
    missed = [row for row in rows if row["held"] is False]
    _record.print_table(f"counters of {gpu.name} that miss their bound", missed, COLUMNS)
    _record.store_if_requested("counters", rows, gpu.name, record, out)


def compare(launch, trace, profiled) -> list[dict]:
    """Return a row for each counter that is not 0 on both sides; `held` is None if the launch leaves it open."""
    rows = []
    for counter in COUNTERS:
        predicted, measured = counter.predicted(trace), counter.measured(profiled.metrics)
        if not counter.concerns(trace) or not (predicted or measured):
            continue
        factor = counter.factor(profiled.sass, trace)
        agreement = counter.agreement(predicted * factor, measured)
        bound, reason = counter.bound(trace), launch.left_open.get(counter.name, "")
        row = {"kernel": launch.title, "problem": launch.problem, "counter": counter.name}
        row |= {"predicted": predicted, "sass_factor": factor, "measured": measured, "agreement": agreement}
        is_held = None if counter.name in launch.left_open else abs(agreement - 1) <= bound
        rows.append(row | {"bound": bound, "held": is_held, "reason": reason})
    return rows
