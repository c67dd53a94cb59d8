"""How the figures of GPUs grew from generation to generation, relative to the first one."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from labkit.forecast import roofline
from labkit.machine.gpus import gpu as find_gpu
from labkit.table import short_number
from labkit.views import chart
from labkit.views.base import COLOURS, View, table

LINES = {  # marker and colour of each figure
    "peak": ("o-", "D"),
    "DRAM bandwidth": ("s-", "A"),
    "ridge": ("D--", "fg"),
    "SMs": ("^-", "C"),
    "shared memory of all SMs": ("v-", "B"),
}


def generations(
    title: str,
    gpus: Sequence[str] = ("V100", "A100 SXM", "H100 SXM", "B200"),
    precision: str = "float16 tensor",
    steps: Mapping[str, int] | None = None,
) -> View:
    """Draw peak, bandwidth, ridge point, SMs and shared memory of GPUs, relative to the first.

    Parameters
    ----------
    title
        The message, in a sentence.
    gpus
        Names of GPUs, the oldest first.
    precision
        Whose peak is drawn.
    steps
        How many steps run on each GPU; written under its name.
    """
    found = [find_gpu(name) for name in gpus]
    if len(found) < 2:
        raise ValueError("generations compares GPUs: name at least two.")
    figures = {
        "peak": [roofline.peak_tflops(gpu, precision) for gpu in found],
        "DRAM bandwidth": [gpu.dram_gb_s for gpu in found],
        "ridge": [roofline.ridge_point(gpu, precision) for gpu in found],
        "SMs": [gpu.sms for gpu in found],
        "shared memory of all SMs": [gpu.sms * gpu.shared_bytes_per_sm / 2**20 for gpu in found],
    }
    counts = [(steps or {}).get(name) for name in gpus]

    def draw_content(axes: Axes):
        _draw(axes, figures, gpus, counts)

    units = dict(zip(figures, ["TFLOP/s", "GB/s", "FLOP/byte", "", "MB"], strict=True))
    ridges = figures["ridge"]
    peak, bandwidth = (figures[name][-1] / figures[name][0] for name in ("peak", "DRAM bandwidth"))
    data = {
        "say": f"From {gpus[0]} to {gpus[-1]} the peak ({precision}) grows **{short_number(peak)}x**, bandwidth "
        f"**{short_number(bandwidth)}x**. The ridge moves from {ridges[0]:.0f} to **{ridges[-1]:.0f} FLOP/byte**.",
        "charts": chart.svgs(draw_content, 4.2),
        "legend": [(marker, LINES[name][1], name) for marker, name in zip("●■◆▲▼", LINES, strict=True)],
        "table": table(
            ["GPU", *(f"{name}, {units[name]}" if units[name] else name for name in figures), "steps that run"],
            [
                [
                    name,
                    *(short_number(values[at]) for values in figures.values()),
                    "" if counts[at] is None else str(counts[at]),
                ]
                for at, name in enumerate(gpus)
            ],
        ),
    }

    def draw_still(figure, data, step):
        chart.draw(figure, "wide", draw_content, 4.2)

    return View("chart", title, data, draw_still)


def _draw(axes, figures, gpus, counts):
    for name, values in figures.items():
        style, colour = LINES[name]
        axes.plot(range(len(gpus)), [value / values[0] for value in values], style, color=COLOURS[colour], ms=6)
    for at, ridge in enumerate(figures["ridge"]):
        axes.annotate(
            f"ridge {ridge:.0f}",
            (at, ridge / figures["ridge"][0]),
            (0, 9 if ridge > 1.5 * figures["ridge"][0] else -15),
            textcoords="offset points",
            ha="center",
            weight="bold",
            fontsize=8.5,
        )
    for name, marker in (("peak", "peak"), ("DRAM bandwidth", "bandwidth")):
        last = figures[name][-1]
        axes.annotate(
            f"{marker} {last / figures[name][0]:.1f}x", (len(gpus) - 1, last / figures[name][0]), (8, 0),
            textcoords="offset points", va="center", weight="bold", color=COLOURS[LINES[name][1]],
        )  # fmt: skip
    axes.set(yscale="log", xlim=(-0.4, len(gpus) - 0.25), ylim=(0.72, None), ylabel=f"relative to {gpus[0]}")
    ticks = [1, 2, 4, 8, 16]
    axes.set_yticks(ticks, [f"{tick}x" for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    labels = [name if n is None else f"{name}\n{n} steps" for name, n in zip(gpus, counts, strict=True)]
    axes.set_xticks(range(len(gpus)), labels)
