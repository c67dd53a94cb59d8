"""`labkit bench channels_last`: convolutions, and all of ResNet-50, with torch in NCHW and with channels last.

torch picks of cuDNN in benchmark mode. Calls are replayed as a graph, over sets of operands that L2 does not hold
together. Kernels that change the layout, which cuDNN adds where its convolution wants another one, are told by
torch's profiler.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median

from labkit.bench import _harness, _record, _torch
from labkit.conv.layers import RESNET_50_1X1, RESNET_50_3X3, TABLE_2

NAME = "channels_last"
IMAGES = 64
# C, H, W, K, R, S, padding
LAYERS = *((*sizes, sizes[4] // 2) for sizes in RESNET_50_3X3 + RESNET_50_1X1), *((*sizes, 0) for sizes in TABLE_2)
LAYOUTS = "NCHW", "NHWC"
LAYER_DTYPES, NETWORK_DTYPES = ("bfloat16", "float32"), ("bfloat16", "tf32")
STAGES = (64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)  # of ResNet-50: width, blocks, stride of the first
REPLAYS = 15  # of a graph, whose median time counts
CHANGES_LAYOUT = "nchwtonhwc", "nhwctonchw", "convert_tensor"  # in the names of cuDNN's kernels
COLUMNS = {"problem": "", "dtype": "", "step": "", "time_ms": ".4f", "layout_share": ".0%"}


def main(record: bool = False, out: Path | None = None) -> None:
    gpu = _record.require_gpu("times torch's convolutions")
    rows = [*layers(), *networks()]
    _record.print_table(f"Channels last on {gpu.name}", rows, COLUMNS)
    _record.store_if_requested(NAME, rows, gpu.name, record, out)


def layers() -> Iterator[dict]:
    """Yield a row for each layer, number format and layout."""
    for sizes in LAYERS:
        for dtype in LAYER_DTYPES:
            for layout in LAYOUTS:
                yield layer(*sizes, dtype=dtype, layout=layout)


def layer(C, H, W, K, R, S, pad, *, dtype: str, layout: str, groups: int = 1) -> dict:
    """Return the row of one convolution."""
    from torch.nn import functional

    sets = [
        (_images(layout, dtype, IMAGES, C, H, W), _images(layout, dtype, K, C // groups, R, S))
        for _ in range(_harness.count_operand_sets(2 * IMAGES * H * W * (C + K)))
    ]
    calls = [partial(functional.conv2d, x, w, padding=pad, groups=groups) for x, w in sets]
    problem = f"{IMAGES}x{C}x{H}x{W} {K}x{R}x{S}" + (f" pad={pad}" if pad else "")
    sizes = {"C": C, "K": K, "R": R}
    if groups > 1:
        problem, sizes = f"{problem} groups={groups}", sizes | {"groups": groups}
    return _row(problem, layout, dtype, calls, sizes)


def networks(dtypes: tuple[str, ...] = NETWORK_DTYPES) -> Iterator[dict]:
    """Yield a row for ResNet-50's inference and its training, for each number format and layout."""
    import torch

    for dtype in dtypes:
        for layout in LAYOUTS:
            x = _images(layout, dtype, IMAGES, 3, 224, 224)
            model = resnet_50().cuda().to(x.dtype).to(memory_format=_torch.memory_format(layout == "NHWC"))

            def infer(model=model, x=x):
                with torch.no_grad():
                    model(x)

            def train(model=model, x=x):
                model.zero_grad(set_to_none=True)
                model(x).sum().backward()

            for phase, call in (("inference", infer), ("training", train)):
                model.train(phase == "training")
                yield _row(f"ResNet-50, {IMAGES} images, {phase}", layout, dtype, [call], {})


def resnet_50():
    """Return the network of He and others (2015), table 1, with the stride in the 3 x 3 convolutions."""
    import torch
    from torch import nn

    def conv_and_norm(C, K, taps, stride=1):
        return nn.Conv2d(C, K, taps, stride, taps // 2, bias=False), nn.BatchNorm2d(K)

    class Bottleneck(nn.Module):
        def __init__(self, C, width, stride):
            super().__init__()
            first, second = conv_and_norm(C, width, 1), conv_and_norm(width, width, 3, stride)
            third = conv_and_norm(width, 4 * width, 1)
            self.residual = nn.Sequential(*first, nn.ReLU(True), *second, nn.ReLU(True), *third)
            self.shortcut = nn.Identity() if 4 * width == C else nn.Sequential(*conv_and_norm(C, 4 * width, 1, stride))

        def forward(self, x):
            return torch.relu(self.residual(x) + self.shortcut(x))

    modules, C = [*conv_and_norm(3, 64, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], 64
    for width, blocks, stride in STAGES:
        for number in range(blocks):
            modules.append(Bottleneck(C, width, 1 if number else stride))
            C = 4 * width
    return nn.Sequential(*modules, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(C, 1000))


def _row(problem: str, layout: str, dtype: str, calls: list[Callable], sizes: dict) -> dict:
    import torch

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    row = {"operation": NAME, "step": layout, "problem": problem, **sizes, "dtype": dtype}
    return row | {"time_ms": _replayed_ms(calls), "layout_share": _layout_share(calls[0])}


def _images(layout, dtype, *shape):
    import torch

    torch_dtype = torch.bfloat16 if dtype == "bfloat16" else torch.float32
    images = torch.randn(shape, device="cuda", dtype=torch_dtype)
    return images.to(memory_format=_torch.memory_format(layout == "NHWC"))


def _replayed_ms(calls: list[Callable]) -> float:
    """Return the median time of one of the calls, which a graph makes one after the other."""
    import torch

    side_stream = torch.cuda.Stream()
    side_stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side_stream):
        for call in [*calls, *calls]:
            call()
    torch.cuda.current_stream().wait_stream(side_stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    times_ms = []
    for _ in range(REPLAYS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times_ms.append(start.elapsed_time(end) / len(calls))
    return median(times_ms)


def _layout_share(call: Callable) -> float:
    """Return the share of a call's GPU time in kernels that change the layout."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        call()
    spent_us = {event.key: event.self_device_time_total for event in profiler.key_averages()}
    changing = sum(us for name, us in spent_us.items() if any(word in name.lower() for word in CHANGES_LAYOUT))
    return changing / sum(spent_us.values())
