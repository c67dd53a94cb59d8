"""`labkit bench conv_planes`: direct convolution on large images, where many tiles with a halo fit into each plane."""

from labkit import conv
from labkit.bench import _harness, _record
from labkit.bench.conv import baselines
from labkit.formats import FP32

PROBLEMS = (
    conv.Forward(8, 3, 128, 128, 96, 11, 11),
    conv.Forward(8, 64, 112, 112, 64, 3, 3),
    conv.Forward(8, 16, 224, 224, 16, 3, 3),
)
STEPS = "naive", "coalesced", "halo", "registers"
TABLE = _harness.Benchmark("conv_planes", "Direct convolution of 8 large images", ladders=(), baselines=baselines)


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("times kernels")
    steps = [conv.ladder("direct").step(slug) for slug in STEPS]
    rows = [row for problem in PROBLEMS for row in _harness.measure(TABLE, problem, FP32, steps)]
    _harness.print_comparison(f"{TABLE.title}, on {gpu.name}", rows)
    _record.store_if_requested(TABLE.name, rows, gpu.name, record, out)
