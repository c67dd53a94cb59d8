"""Rooflines: the roofs of a named GPU or CPU, and the places of kernels under them."""

from collections.abc import Mapping
from math import prod

from labkit.forecast import roofline as model
from labkit.ladder import Problem
from labkit.loops import LoopTrace
from labkit.machine.gpus import Cpu, Gpu
from labkit.table import short_number
from labkit.trace import Trace
from labkit.views import chart, roofline_figure
from labkit.views.base import View, table
from labkit.views.roofline_figure import RooflinePoint
from labkit.views.wording import check_traces


def roofline(
    traces: Mapping[str, Trace | LoopTrace],
    device: str | Gpu | Cpu | None = None,
    precision: str = "float32",
    measured: Mapping[str, float] | None = None,
    problem: Problem | None = None,
    intensities: tuple[float, float] | None = None,
) -> View:
    """Place kernels under the roofs of a device.

    Parameters
    ----------
    traces : mapping
        A name for each kernel, and its trace: the FLOPs and DRAM bytes that give its place.
    device : str, Gpu or Cpu, optional
        Whose roofs; those of the first trace's GPU or CPU when left out.
    precision : str
        Whose compute roof, such as "float32" or "float16 tensor".
    measured : mapping, optional
        TFLOP/s that were recorded, by the same names.
    problem : labkit.ladder.Problem, optional
        What was measured, if not the traces' own problem: its marks are at the highest intensity that it can have,
        that of each byte moving once.
    intensities : tuple of float, optional
        The FLOP/byte from which to which the picture goes, so that several can be compared; made to fit if left out.
    """
    check_traces("roofline", traces)
    first = next(iter(traces.values()))
    device = model.find_device(device or (first.cpu if isinstance(first, LoopTrace) else first.gpu))
    points = [
        _place(name, trace, device, precision, (measured or {}).get(name), problem) for name, trace in traces.items()
    ]

    def draw_content(axes):
        roofline_figure.draw_roofline(axes, points, device, precision, intensities)

    data = {
        "say": _sentence(points[-1], traces[points[-1].label], device, precision, problem),
        "charts": chart.svgs(draw_content),
        "legend": _legend(points, device, problem),
        "table": table(
            ("kernel", "FLOP / byte", "at best, GFLOP/s", "measured, GFLOP/s"),
            [[p.label, short_number(p.intensity), _giga(p.predicted_tflops), _giga(p.measured_tflops)] for p in points],
        ),
    }
    return View("chart", f"Roofline: {device.name}, {precision}", data, chart.still_function(draw_content))


def _legend(points, device, problem):
    legend = [("○", "A", "at best, from the trace")]
    if any(place.measured_tflops for place in points):
        where = f" with {problem}, where it would be if each byte moved once" if problem else ""
        legend.append(("●", "D", f"measured on {device.name}{where}"))
    return legend


def _place(name, trace, device, precision, measured, problem):
    intensity = model.intensity(trace)
    if not 0 < intensity < float("inf"):
        raise ValueError(
            f"{name} has no place under a roof: it needs FLOPs and DRAM traffic, and the trace counts none"
        )
    if isinstance(device, Cpu):
        core = model.peak_tflops(device, precision) / device.cores
        best = min(model.attainable_tflops(device, intensity, precision), core)
    else:
        best = trace.counters.flops / model.time_bound(trace, device).time_ms / 1e9
    return RooflinePoint(name, intensity, best, measured, problem.flops / problem.min_bytes() if problem else intensity)


def _sentence(point, trace, device, precision, problem):
    roof = model.attainable_tflops(device, point.intensity, precision)
    which = "memory" if point.intensity < model.ridge_point(device, precision) else "compute"
    text = f"`{point.label}` is at **{short_number(point.intensity)} FLOP/byte**: "
    text += f"the {which} roof allows {_speed(roof)}"
    if point.predicted_tflops < 0.95 * roof:
        limit = "one core" if isinstance(device, Cpu) else _limiter(trace, device)
        text += f", limited to {_speed(point.predicted_tflops)} by {limit}"
    if point.measured_tflops:
        text += f"; {_speed(point.measured_tflops)} were measured{f' with {problem}' if problem else ''}"
    return text + "."


def _limiter(trace, gpu):
    limiter = model.time_bound(trace, gpu).limiter
    blocks = prod(trace.grid)
    return limiter if blocks >= gpu.sms else f"{limiter} on the {blocks} of {gpu.sms} SMs that get a block"


def _speed(tflops):
    return f"{short_number(tflops)} TFLOP/s" if tflops >= 1 else f"{short_number(tflops * 1000)} GFLOP/s"


def _giga(tflops):
    if not tflops:
        return ""
    return short_number(tflops * 1000)
