"""The roofs of every named GPU at every precision, and the places of many kernels under them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from labkit.forecast import roofline
from labkit.machine.gpus import GPUS, UnknownDevice
from labkit.trace import Trace
from labkit.views import chart, roofline_figure
from labkit.views.base import View, table
from labkit.views.roofline_figure import RooflinePoint


@dataclass(frozen=True)
class Standing:
    """A kernel's place under a roofline, and the speeds that were measured.

    Attributes
    ----------
    precision
        Of its arithmetic: "float32", "float16 tensor".
    intensity
        Useful FLOPs per byte of a large problem, if each byte moves once: the kernel's place on the x axis.
    measured_tflops
        By the names of `labkit.machine.gpus.GPUS`.
    traces
        The launches of a small run in the simulator, which say how fast it could be at best; they may be left out.
    flops
        That run's useful FLOPs: those of the problem, however many more the kernel makes.
    gpus
        Names of the GPUs that can run it; all of them if left out.
    """

    precision: str
    intensity: float
    measured_tflops: Mapping[str, float] = field(default_factory=dict)
    traces: tuple[Trace, ...] = ()
    flops: int = 0
    gpus: Collection[str] = tuple(GPUS)


def landscape(kernels: Mapping[str, Standing], gpu: str = "H100 SXM", precision: str = "float32") -> View:
    """Choose a GPU and a precision, and see its roofs, its ridge point and the kernels.

    Parameters
    ----------
    kernels : mapping
        A name for each kernel, and what is known of it.
    gpu, precision : str
        What is shown first.
    """
    if gpu not in GPUS:
        raise UnknownDevice(f"there is no GPU called {gpu!r}; choose one of {', '.join(GPUS)}")
    roofline.peak_tflops(gpu, precision)  # raises for a precision that it does not have
    data = {
        "say": "A kernel is at most as fast as the roof above its arithmetic intensity.",
        "gpus": [{"name": one.name, "dram_gb_s": one.dram_gb_s, "peaks": one.peak_tflops} for one in GPUS.values()],
        "gpu": gpu,
        "precision": precision,
        "kernels": [_shown(name, standing) for name, standing in kernels.items()],
        "table": table(
            ("GPU", "DRAM, GB/s", "precision", "peak, TFLOP/s", "ridge, FLOP/byte"),
            (
                (name, f"{figures.dram_gb_s:,}", kind, f"{peak:,}", f"{roofline.ridge_point(name, kind):.3g}")
                for name, figures in GPUS.items()
                for kind, peak in figures.peak_tflops.items()
            ),
        ),
    }
    return View("landscape", "Roofline: kernels under the roofs of any GPU", data, draw_still)


def _shown(name, standing):
    """Return a kernel's place, its best speed on each GPU that can run it, and its measured speeds."""
    gpus = [gpu for gpu in standing.gpus if standing.precision in GPUS[gpu].peak_tflops]
    best = {gpu: _best_tflops(standing, GPUS[gpu]) for gpu in gpus}
    place = {"name": name, "precision": standing.precision, "intensity": standing.intensity}
    return place | {"best": best, "measured": dict(standing.measured_tflops)}


def _best_tflops(standing, gpu):
    """Return the roof, or less if a unit counted in the traces limits a problem that is large enough for all SMs."""
    roof = roofline.attainable_tflops(gpu, standing.intensity, standing.precision)
    if not standing.traces:
        return roof
    time_ms = sum(_time_ms(trace, gpu) for trace in standing.traces)
    return min(standing.flops / time_ms / 1e9, roof)


def _time_ms(trace, gpu):
    terms = roofline.unit_terms(trace, gpu, busy_sms=gpu.sms)
    terms.pop("DRAM bandwidth", None)
    time_ms, *_ = roofline.longest_term(terms)
    return time_ms


def _place(kernel, gpu):
    """Return the place that the still picture draws."""
    intensity = kernel["intensity"]
    return RooflinePoint(kernel["name"], intensity, kernel["best"].get(gpu), kernel["measured"].get(gpu), intensity)


def draw_still(figure, data, step):
    """Draw the roofs of the GPU that is shown first, and the kernels under them."""
    gpu, precision = data["gpu"], data["precision"]
    points = [_place(shown, gpu) for shown in data["kernels"] if gpu in shown["best"] | shown["measured"]]
    content = partial(roofline_figure.draw_roofline, points=points, device=GPUS[gpu], precision=precision)
    chart.draw(figure, "wide", content)
