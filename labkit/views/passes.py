"""Passes over memory: reads and writes of large arrays by each launch of several runs, as growing bars."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import prod

from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, stats_by_step
from labkit.views.wording import check_trace, join

VERBS = {"load": "reads", "store": "writes"}
ACCESSES_BY_KIND = {"load": ("load",), "store": ("store",), "atomic": ("load", "store")}  # by the kind of an access
MIN_SHARE = 0.05  # of an array: less is no pass over it, if no more comes from other places in the source


def passes(runs: Mapping[str, Sequence[Trace]], names: Mapping[str, str] | None = None) -> View:
    """Step through the launches of several runs; each adds to its run's bar what it reads and writes.

    A pass is as many bytes as the largest array has. Arrays that are half as large, or larger, have passes; what is
    loaded of smaller ones is left out. An atomic reads, and writes.

    Parameters
    ----------
    runs
        A name for each run, and the traces of its launches, in their order.
    names
        What an array is called that several kernels know by different names, by each of these.
    """
    is_mapping = isinstance(runs, Mapping) and runs
    if not is_mapping or not all(isinstance(traces, Sequence) and traces for traces in runs.values()):
        raise TypeError("passes takes runs by their names, each a list of traces: passes({'fused': run.traces}).")
    for traces in runs.values():
        for trace in traces:
            check_trace("passes", trace)
    names = names or {}
    sizes = (_bytes_of(info) for traces in runs.values() for trace in traces for info in _global(trace))
    size_bytes = max(sizes, default=1)
    runs_data = [
        {"name": name, "launches": [_launch(trace, size_bytes, names) for trace in traces]}
        for name, traces in runs.items()
    ]
    steps, says, stats = [], [], []
    for number, run in enumerate(runs_data):
        totals = (sum(part["passes"] for part in launch["passes"]) for launch in run["launches"])
        passes_so_far = list(map(_rounded, accumulate(totals)))
        run["total"] = passes_so_far[-1]
        for launch_number, so_far in enumerate(passes_so_far):
            is_last = launch_number + 1 == len(passes_so_far)
            steps.append([number, launch_number])
            compared = is_last and number and so_far and runs_data[0]["total"]
            fewer = f"{_number(runs_data[0]['total'] / so_far)}x" if compared else "-"
            stats.append([_number(so_far), f"{so_far * size_bytes:,.0f}", fewer])
            says.append(_sentence(runs_data, number, launch_number, so_far))
    labels = ["passes so far", "bytes so far", f"fewer passes than {runs_data[0]['name']}"]
    if len(runs_data) == 1:
        labels, stats = labels[:2], [row[:2] for row in stats]
    cells = [[runs_data[run]["name"], runs_data[run]["launches"][launch]["kernel"]] for run, launch in steps]
    all_passes = [one for run in runs_data for launch in run["launches"] for one in launch["passes"]]
    data = {
        "say": says,
        "runs": runs_data,
        "arrays": list(dict.fromkeys(one["array"] for one in all_passes)),
        "steps": steps,
        **stats_by_step(["run", "launch"], cells, labels, stats),
    }
    return View("passes", "Passes over memory, launch by launch", data, draw_still)


def _global(trace):
    return [info for info in trace.arrays if info.space == "global"]


def _bytes_of(info):
    return info.itemsize * prod(info.shape)


def _launch(trace, size_bytes, names):
    """Return the passes of a launch, reads first."""
    large = {info.name for info in _global(trace) if _bytes_of(info) >= size_bytes / 2}
    shares, small = [], Counter()
    for counted in trace.sites:
        site, share = counted.site, counted.bytes / size_bytes
        for kind in ACCESSES_BY_KIND[site.kind] if site.space == "global" and site.array in large else ():
            if share >= MIN_SHARE:
                shares.append((kind, site.array, share))
            else:
                small[kind, site.array] += share
    shares += [(*of, share) for of, share in small.items() if share >= MIN_SHARE]
    shares.sort(key=lambda one: one[0])
    return {
        "kernel": trace.kernel,
        "passes": [
            {"array": names.get(array, array), "kind": kind, "passes": _rounded(share)} for kind, array, share in shares
        ],
    }


def _rounded(share):
    return round(share, 6)  # a sum of parts is one when they are all


def _number(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _sentence(runs, number, at, so_far):
    run = runs[number]
    launch = run["launches"][at]
    counts = {}
    for one in launch["passes"]:
        what = f"{VERBS[one['kind']]} `{one['array']}`"
        counts[what] = counts.get(what, 0) + one["passes"]
    words = [
        what + {"1": "", "2": " twice"}.get(_number(share), f" {_number(share)} times")
        for what, share in counts.items()
    ]
    says = f"`{run['name']}`, launch {at + 1} of {len(run['launches'])}: `{launch['kernel']}` "
    says += join(words) or "touches no large array"
    if at + 1 < len(run["launches"]):
        return says + f". That makes **{_plural(so_far)}** so far."
    says += f". In all **{_plural(so_far)}**"
    if number and _number(before := runs[number - 1]["total"]) != _number(run["total"]):
        more = "fewer" if run["total"] < before else "more"
        says += f", {_number(abs(before - run['total']))} {more} than `{runs[number - 1]['name']}`"
    return says + "."


def _plural(count):
    return f"{_number(count)} pass{'es' * (_number(count) != '1')}"


def draw_still(figure, data, step):
    """Draw the bars at a step."""
    stills.set_size_and_title(figure, data, step, 9.5, 1.2 + 0.38 * len(data["runs"]))
    axes = figure.subplots()
    run, launch = data["steps"][step]
    for row, one in enumerate(data["runs"][: run + 1]):
        x = 0.0
        for at, of_launch in enumerate(one["launches"][: launch + 1 if row == run else None]):
            now = (row, at) == (run, launch)
            for part in of_launch["passes"]:
                colour = COLOURS[pass_colour(part, data["arrays"])]
                axes.barh(row, part["passes"], 0.7, x, color=colour, edgecolor=COLOURS["hot" if now else "bg"])
                label = f"{VERBS[part['kind']][0]} {part['array']}"
                ink = COLOURS["fg" if colour == COLOURS["B"] else "bg"]
                stills.write(axes, x + part["passes"] / 2, row, label, fontsize=7, color=ink)
                x += part["passes"]
        axes.text(x + 0.1, row, _number(x), va="center", fontsize=8, color=COLOURS["fg"])
    axes.set_yticks(range(len(data["runs"])), [one["name"] for one in data["runs"]], fontsize=8)
    axes.set_ylim(len(data["runs"]) - 0.5, -0.5)
    axes.set_xlim(0, max(one["total"] for one in data["runs"]) + 1)
    axes.set_xlabel("passes over memory", fontsize=8)
    stills.hide_marks(axes, labelsize=8)


def pass_colour(part, arrays) -> str:
    """Return blue for reads of the first array, orange for reads of others, green for writes."""
    if part["kind"] == "store":
        return "C"
    return "A" if part["array"] == arrays[0] else "B"
