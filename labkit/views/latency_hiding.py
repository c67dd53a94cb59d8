"""Latency hiding: a model of one SM whose warps load, wait and work; latency recorded, bandwidth published."""

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from labkit import results
from labkit.machine.gpus import GPU_BY_DRIVER_NAME, GPUS
from labkit.results import Results
from labkit.table import count_text
from labkit.trace import WARP_LANES
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack

WARPS = 1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 64
LOADS = 1, 2, 4  # loads that a warp starts before it waits
WORK_NS = 10  # what a warp does with a loaded value before it loads the next
LOAD_BYTES = 4 * WARP_LANES  # one float32 per lane
SHOWN_NS = 1400
SETTLED_NS, COUNTED_NS = 20_000, 40_000  # shares are counted between these times


def latency_hiding(
    record: str | Results = "latency", *, warps: Sequence[int] = WARPS, loads: Sequence[int] = LOADS
) -> View:
    """Show how the loads of several warps fill the time in which each of them waits.

    Each warp starts its loads, waits until the last of them has arrived, works, and begins again. Memory answers one
    load at a time, at the SM's share of the DRAM bandwidth, and no load sooner than the latency.

    Parameters
    ----------
    record
        Record of latencies, whose row of DRAM is taken; or its name, which `results.load` finds.
    warps
        Warps on the SM: the steps.
    loads
        Loads that a warp starts before it waits; a menu chooses.
    """
    loaded = results.as_results(record)
    gpu = GPUS[GPU_BY_DRIVER_NAME[loaded.gpu]]
    latency_ns = loaded.select(level="DRAM")[0]["latency_ns"]
    service_ns = LOAD_BYTES / (gpu.dram_gb_s / gpu.sms)
    if max(warps) > gpu.warps_per_sm:
        raise ValueError(f"An SM of {gpu.name} holds at most {gpu.warps_per_sm} warps, not {max(warps)}.")
    kept = []
    for count in loads:
        runs = [run_model(n, count, latency_ns, service_ns) for n in warps]
        shares = [share for _, _, share in runs]
        kept.append(
            {
                "name": count_text(count, "load"),
                "say": [_sentence(n, count, share) for n, share in zip(warps, shares, strict=True)],
                "waits": pack(np.concatenate([waits for waits, _, _ in runs])),
                "wait_offsets": np.cumsum([0, *(len(waits) for waits, _, _ in runs)]).tolist(),
                "served": pack(np.concatenate([served for _, served, _ in runs])),
                "served_offsets": np.cumsum([0, *(len(served) for _, served, _ in runs)]).tolist(),
                "shares": shares,
            }
        )
    rows = [[n, *(f"{run['shares'][i]:.0%}" for run in kept)] for i, n in enumerate(warps)]
    start = list(warps).index(8) if 8 in warps else 0
    data = {
        **kept[0],
        "kept": kept,
        "chosen": 0,
        "start": start,
        "counter": [count_text(n, "warp") for n in warps],
        "warps": list(warps),
        "loads": list(loads),
        "most_warps": gpu.warps_per_sm,
        "shown_ns": SHOWN_NS,
        "service_ns": service_ns,
        "gb_s": gpu.dram_gb_s,
        "caption": (
            f"A model, not a run: one SM of an {gpu.name}. Latency {latency_ns:.0f} ns, recorded on an idle GPU "
            f"({loaded.header['date']}); a load of {LOAD_BYTES} bytes takes {service_ns:.1f} ns of the SM's share of "
            f"{gpu.dram_gb_s:,} GB/s; {WORK_NS} ns of work between loads. A busy memory answers later than this."
        ),
        "table": table(["warps", *(f"memory busy, {run['name']} per warp" for run in kept)], rows),
    }
    return View("latency_hiding", "Latency hiding: the warps of one SM", data, draw_still)


def run_model(warps, loads, latency_ns, service_ns):
    """Run the model, and return what it did in the time shown and how busy memory was.

    Returns
    -------
    tuple
        Rows (warp, start, arrival, end of work) in ns; starts of the intervals in which memory answers; share of time.
    """
    ready = [(0.0, warp) for warp in range(warps)]
    memory_free_ns, answered = 0.0, 0
    waits, served = [], []
    while ready:
        start_ns, warp = heappop(ready)
        if start_ns >= COUNTED_NS:
            continue
        for _ in range(loads):
            arrival_ns = max(start_ns + latency_ns, memory_free_ns + service_ns)
            memory_free_ns = arrival_ns
            answered += SETTLED_NS <= arrival_ns < COUNTED_NS
            if arrival_ns - service_ns < SHOWN_NS:
                served.append(arrival_ns - service_ns)
        if start_ns < SHOWN_NS:
            waits.append((warp, start_ns, memory_free_ns, memory_free_ns + WORK_NS))
        heappush(ready, (memory_free_ns + WORK_NS, warp))
    share = min(1.0, answered * service_ns / (COUNTED_NS - SETTLED_NS))
    return np.array(waits).round().astype(int), np.array(served).round().astype(int), round(share, 4)


def _sentence(warps, loads, share):
    each = f", each with {count_text(loads, 'load')} in flight" if loads > 1 else ""
    what = f"**memory is busy {share:.0%} of the time**"
    if share > 0.99:
        return f"{count_text(warps, 'warp')}{each}: {what}. More warps would only wait longer."
    return f"{count_text(warps, 'warp')}{each}: {what}. The rest of the time, nothing has arrived yet."


def draw_still(figure, data, step):
    """Draw the warps of a step over time, with the answers of memory below them, and its share over all steps."""
    stills.set_size_and_title(figure, data, step, 9.5, 4.6)
    left, right = figure.subplots(1, 2, width_ratios=[3, 1])
    first, end = data["wait_offsets"][step : step + 2]
    for warp, start, arrival, work_end in unpack(data["waits"])[first:end]:
        left.barh(-warp, arrival - start, 0.7, start, color=COLOURS["A"], alpha=0.35)
        left.barh(-warp, work_end - arrival, 0.7, arrival, color=COLOURS["C"])
    first, end = data["served_offsets"][step : step + 2]
    served = unpack(data["served"])[first:end]
    left.barh(3, np.full(len(served), data["service_ns"]), 2.4, served, color=COLOURS["B"])
    left.set(
        xlim=(0, data["shown_ns"]),
        ylim=(-data["most_warps"], 5),
        xlabel="ns",
        yticks=[3, 0],
        yticklabels=["memory", "warp 0"],
    )
    for run in data["kept"]:
        right.plot(data["warps"], run["shares"], color=COLOURS["A"], lw=1)
    right.text(2, 1.02, "loads per warp: " + ", ".join(map(str, reversed(data["loads"]))), fontsize=7)
    right.plot([data["warps"][step]], [data["shares"][step]], "o", color=COLOURS["hot"])
    right.set(xlabel="warps", title="memory busy", ylim=(0, 1.05))
    for axes in (left, right):
        stills.hide_top_and_right(axes)
