"""`labkit bench conv_taps`: one convolution with growing filters, by FFT and by other algorithms."""

from labkit import conv
from labkit.bench import _harness, _record
from labkit.bench.conv import baselines
from labkit.formats import FP32

BATCH, SIDE = 64, 28
CHANNELS = 16, 128  # of images, and as many filters
TAPS = 1, 3, 5, 7, 9, 11
STEPS = {"fft": ("few_taps",), "implicit_gemm": ("gathered",), "winograd": ("f2x2", "f4x4")}
TITLE = f"{BATCH} images of {SIDE} x {SIDE}, padding same"
TABLE = _harness.Benchmark("conv_taps", TITLE, ladders=(), baselines=baselines)


def problem(channels: int, taps: int) -> conv.Forward:
    """Return a problem with equally many outputs and pixels."""
    before, after = conv.pads("same", SIDE, taps)
    return conv.Forward(BATCH, channels, SIDE, SIDE, channels, taps, taps, 1, 1, before, after, before, after)


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("times kernels")
    rows = []
    for channels in CHANNELS:
        for taps in TAPS:
            ladders = [name for name in STEPS if name != "winograd" or taps == 3]
            steps = [conv.ladder(name).step(slug) for name in ladders for slug in STEPS[name]]
            rows += _harness.measure(TABLE, problem(channels, taps), FP32, steps)
    _harness.print_comparison(f"{TABLE.title}, on {gpu.name}", rows)
    _record.store_if_requested(TABLE.name, rows, gpu.name, record, out)
