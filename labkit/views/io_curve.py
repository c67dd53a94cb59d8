"""Traffic of attention per score: what three orders of its loops move in runs, and by which law it grows."""

from collections.abc import Mapping, Sequence

from labkit.attention import AttentionForward
from labkit.formats import FP32
from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, table
from labkit.views.wording import check_trace

SECTOR_BYTES = 32
PARTS = {"S and P": ("S",), "Q": ("Q",), "K, V": ("K", "V"), "O": ("O",)}  # the arrays of each part
OTHERS = "maxima and sums"
# Of each loop order: elements moved per score at head_dim 1 and tile side 1, and the parts that grow with N x N.
LAWS = {"standard": (None, ("S and P",)), "KV-outer": (3, ("Q", "O")), "Q-outer": (2, ("K, V",))}
LEAST_STANDARD = 4  # elements per score: S written and read, P written and read
SIDES = [16, 32, 64, 128, 256]
COLOURS_OF_LAWS = {"standard": "D", "KV-outer": "B", "Q-outer": "A"}


def io_curve(
    problem: AttentionForward,
    runs: Mapping[str, tuple[Sequence[Trace], int]],
    head_dims: Sequence[int] = (32, 64, 128, 256),
) -> View:
    """Show elements moved per score: counted in runs, and as curves over the side of the tile.

    Steps go through values of head_dim. A run's dot is what grows with the number of scores, so that it should be on
    its curve: S and P of standard attention, Q and O of KV-outer loops, K and V of Q-outer loops.

    Parameters
    ----------
    problem
        Of one head in float32, whose runs these are; its head_dim is one of `head_dims`.
    runs
        By loop order, "standard", "KV-outer" and "Q-outer": the traces of its launches, and the side of its tile (of
        keys in KV-outer loops, else of queries).
    """
    if not isinstance(runs, Mapping) or set(runs) != set(LAWS):
        raise TypeError("io_curve takes runs by their loop orders: standard, KV-outer and Q-outer.")
    if problem.batch * problem.heads != 1 or problem.head_dim not in head_dims:
        raise ValueError(f"io_curve shows one head with a head_dim of {list(head_dims)}, not {problem}.")
    scores = problem.pairs
    counted = {name: _parts(traces, scores) for name, (traces, _) in runs.items()}
    dots = [
        {"name": name, "side": side, "value": sum(counted[name][part] for part in LAWS[name][1])}
        for name, (_, side) in runs.items()
    ]
    rows = [
        [name, side, *(f"{value:.2f}" for value in counted[name].values()), f"{sum(counted[name].values()):.2f}"]
        for name, (_, side) in runs.items()
    ]
    data = {
        "say": [_sentence(head_dim, problem.head_dim, counted) for head_dim in head_dims],
        "counter": [f"head_dim {head_dim}" for head_dim in head_dims],
        "start": list(head_dims).index(problem.head_dim),
        "head_dims": list(head_dims),
        "counted_at": problem.head_dim,
        "bars": [{"name": name, "parts": list(parts.values())} for name, parts in counted.items()],
        "parts": [*PARTS, OTHERS],
        "sides": SIDES,
        "curves": {name: [_curve(name, head_dim) for head_dim in head_dims] for name in LAWS},
        "colours": COLOURS_OF_LAWS,
        "dots": dots,
        "table": table(["run", "side of its tile", *PARTS, OTHERS, "elements per score"], rows),
    }
    return View("io_curve", "Elements moved per score", data, draw_still)


def _parts(traces, scores) -> dict[str, float]:
    """Return the elements moved per score by part, in whole sectors."""
    parts = dict.fromkeys((*PARTS, OTHERS), 0.0)
    part_of = {array: part for part, arrays in PARTS.items() for array in arrays}
    for trace in traces:
        check_trace("io_curve", trace)
        for counted in trace.sites:
            if counted.site.space == "global":
                parts[part_of.get(counted.site.array, OTHERS)] += (
                    counted.sectors * SECTOR_BYTES / FP32.itemsize / scores
                )
    return parts


def _curve(name, head_dim) -> list[float]:
    factor, _ = LAWS[name]
    return [LEAST_STANDARD if factor is None else factor * head_dim / side for side in SIDES]


def _sentence(head_dim, counted_at, counted) -> str:
    crossing = LAWS["Q-outer"][0] * head_dim / LEAST_STANDARD
    text = (
        f"head_dim {head_dim}: the Q-outer loop moves less than any standard attention once its tile has more than "
        f"**{crossing:.0f} queries**."
    )
    if head_dim == counted_at:
        totals = ", ".join(f"{name} {sum(parts.values()):.1f}" for name, parts in counted.items())
        text += f" Counted in all: {totals} elements per score."
    return text


def draw_still(figure, data, step):
    """Draw the bars of the runs, and the curves at one head_dim."""
    stills.set_size_and_title(figure, data, step, 9.4, 3.8, wrap=True)
    bars, chart = figure.subplots(1, 2)
    for line, run in enumerate(data["bars"]):
        left = 0.0
        for part, colour in zip(run["parts"], ("D", "A", "B", "C", "dim"), strict=True):
            bars.barh(line, part, left=left, color=COLOURS[colour])
            left += part
    bars.set_yticks(range(len(data["bars"])), [run["name"] for run in data["bars"]], fontsize=8)
    bars.invert_yaxis()
    bars.set_xlabel("elements moved per score, counted", fontsize=8)
    for name, curves in data["curves"].items():
        chart.loglog(data["sides"], curves[step], color=COLOURS[data["colours"][name]], label=name)
    if data["head_dims"][step] == data["counted_at"]:
        for dot in data["dots"]:
            chart.plot(dot["side"], dot["value"], "o", color=COLOURS[data["colours"][dot["name"]]])
    chart.set_xticks(data["sides"], data["sides"])
    chart.set_xlabel("side of the tile", fontsize=8)
    chart.legend(fontsize=8, frameon=False)
    for axes in (bars, chart):
        stills.hide_top_and_right(axes)
