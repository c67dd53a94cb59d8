"""The roofline view: where kernels stand, what limits them, and a chart that follows the theme."""

import re
from itertools import combinations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.path import Path

from labkit.gemm import Problem
from labkit.machine.gpus import GPUS
from labkit.trace import Counters
from labkit.views import chart, roofline_figure
from labkit.views.roofline import roofline
from labkit.views.roofline_figure import RooflinePoint
from tests.views.made import trace


def launch(flops=4 * 10**9, dram=10**9, wavefronts=0):
    counted = Counters(
        flops=flops,
        flops_by_dtype={"float32": flops},
        dram_read_bytes=dram,
        shared_load_wavefronts=wavefronts,
    )
    return trace([], {}, counters=counted, grid=(1000, 1, 1))


def test_memory_bound_kernels_stand_on_the_memory_roof():
    view = roofline({"naive": launch()})
    assert view.sentence == "naive is at 4 FLOP/byte: the memory roof allows 13.4 TFLOP/s."
    assert view.data["table"]["rows"] == [["naive", "4", "13,400", ""]]


def test_another_limiter_puts_the_place_below_the_roof():
    view = roofline({"tiled": launch(wavefronts=261_360_000)}, measured={"tiled": 3.2})
    assert ", limited to 4 TFLOP/s by shared memory; 3.2 TFLOP/s were measured." in view.sentence
    assert view.data["table"]["rows"][0][2:] == ["4,000", "3,200"]


def test_what_was_measured_with_another_problem_stands_at_that_problems_intensity():
    def view(problem):
        return roofline({"tiled": launch()}, measured={"tiled": 3.2}, problem=problem)

    large = view(Problem(4096, 4096, 4096))
    assert large.sentence.endswith("3.2 TFLOP/s were measured with 4096x4096x4096.")
    assert ("with 4096x4096x4096, where it would be if each byte moved once") in large.data["legend"][1][-1]
    (same,), (other,) = (_places(data) for data in (view(None).data, large.data))
    assert other > same + 100


def _places(data):
    """Where the filled marks stand, in points from the left."""
    return [float(x) for x in re.findall(r'<use [^>]*x="([\d.]+)"[^>]*fill: var\(--D\)', data["charts"]["wide"])]


def test_a_cpu_loop_is_held_to_one_core():
    view = roofline({"ikj": launch(dram=10**7)}, "Ryzen 7 5800X")
    assert "compute roof allows 973 GFLOP/s, limited to 122 GFLOP/s by one core" in view.sentence


def test_another_precision_has_another_roof():
    assert "989 TFLOP/s float16 tensor" in roofline({"a": launch()}, precision="float16 tensor").data["charts"]["wide"]


def test_the_chart_takes_its_colours_from_the_theme_and_is_the_same_each_time():
    chart, again = (roofline({"a": launch()}).data["charts"] for _ in range(2))
    assert chart == again
    for svg in chart.values():
        assert "var(--fg)" in svg and "var(--A)" in svg
        assert "#1b1f24" not in svg
        assert ">a</text>" in svg


@pytest.mark.parametrize("counts", [{"flops": 0}, {"dram": 0}])
def test_a_trace_without_place_is_refused(counts):
    with pytest.raises(ValueError, match="a has no place under a roof"):
        roofline({"a": launch(**counts)})


def test_a_still_picture_is_drawn(tmp_path):
    roofline({"a": launch()}).save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 10_000


def test_a_small_grid_says_how_much_of_the_gpu_it_fills():
    counted = Counters(flops=4 * 10**9, flops_by_dtype={"float32": 4 * 10**9}, dram_read_bytes=10**9)
    view = roofline({"small": trace([], {}, counters=counted, grid=(2, 4, 1))})
    assert "on the 8 of 132 SMs that get a block" in view.sentence


@pytest.mark.parametrize("given", [{}, [launch()], launch(), {"a": None}, None])
def test_traces_are_given_by_their_names(given):
    with pytest.raises(TypeError, match="roofline takes traces by their names"):
        roofline(given)


def test_pictures_over_the_same_intensities_have_the_same_axes(tmp_path):
    def axes(flops, **options):
        roofline({"batch": launch(flops)}, **options).save_png(tmp_path / "view.svg")
        return re.findall(r"<!-- (.*?) -->", (tmp_path / "view.svg").read_text())

    fixed = {"intensities": (0.1, 1000)}
    assert axes(10**9, **fixed) == axes(50 * 10**9, **fixed) != axes(50 * 10**9)


def outline(text):
    """Where a text stands, turned as it is, in pixels."""
    degrees = text.get_rotation()
    text.set_rotation(0)
    box = text.get_window_extent()
    text.set_rotation(degrees)
    turn = np.exp(1j * np.radians(degrees))
    anchor = complex(*text.get_transform().transform(text.get_position()))
    corners = [(complex(x, y) - anchor) * turn + anchor for x in (box.x0, box.x1) for y in (box.y0, box.y1)]
    first, second, third, fourth = ((corner.real, corner.imag) for corner in corners)
    return Path([first, second, fourth, third, first], closed=True)


ON_THE_ROOF = {
    "launches of a Winograd step": {"filters": 1.40, "pixels": 2.55, "products": 62, "outputs": 1.71},
    "two together at its middle": {"naive": 1.9, "swapped": 2.1},
    "a long name": {"s07_many_outputs_a_thread": 2.2},
    "one to its left": {"axpy": 0.17, "batch": 30},
}


@pytest.mark.parametrize("size", chart.SIZES)
@pytest.mark.parametrize("intensities", ON_THE_ROOF.values(), ids=ON_THE_ROOF)
def test_no_name_stands_on_another(size, intensities):
    gpu = GPUS["H100 SXM"]
    places = [RooflinePoint(name, at, min(at * gpu.dram_gb_s / 1000, 18.0)) for name, at in intensities.items()]
    figure = Figure(layout="constrained")
    chart.draw(figure, size, lambda axes: roofline_figure.draw_roofline(axes, places, gpu, "float32"))
    figure.draw_without_rendering()
    texts = [text for text in figure.axes[0].texts if text.get_text()]
    assert {text.get_text() for text in texts} == {*intensities, "3.35 TB/s DRAM", "66.9 TFLOP/s float32"}
    outlines = {text.get_text(): outline(text) for text in texts}
    for (one, first), (other, second) in combinations(outlines.items(), 2):
        assert not first.intersects_path(second), f"{one} stands on {other}"
