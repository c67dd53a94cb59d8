"""`labkit bench torch_kernels`: into which kernels torch divides batch norm and ReLU, by its own profiler.

Images are float32, in either layout, as in the record of batch norm.
"""

import json
from math import prod
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from labkit.bench import _record, _torch

SHAPES = (64, 256, 56, 56), (32, 64, 112, 112)
CALLS = 20
COLUMNS = {"problem": "", "layout": "", "kernel": "", "launches": ",d", "blocks": ",d", "time_ms": ".3f"}


def main(record=False, out=None) -> None:
    gpu = _record.require_gpu("profiles torch")
    if not _torch.is_installed():
        raise SystemExit("This bench profiles torch, which is not installed: pip install torch.")
    rows = [row for shape in SHAPES for channels_last in (False, True) for row in measure(shape, channels_last)]
    _record.print_table(f"torch's kernels of batch norm and ReLU on {gpu.name}", rows, COLUMNS)
    _record.store_if_requested("torch_kernels", rows, gpu.name, record, out)


def measure(shape: tuple[int, ...], channels_last: bool) -> list[dict]:
    """Return a row for each kernel that one call launches, in order, with the mean time of a launch."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    x = torch.randn(shape, device="cuda").contiguous(memory_format=_torch.memory_format(channels_last))
    of_channels = [torch.ones(shape[1], device="cuda") for _ in range(4)]  # mean, variance, weight, bias

    def call():
        torch.relu(torch.nn.functional.batch_norm(x, *of_channels, True))

    for _ in range(3):
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
    with TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiled.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    launches: dict[str, list] = {}
    for event in events:
        if event.get("cat") == "kernel":
            launches.setdefault(event["name"], []).append(event)
    problem, layout = "x".join(map(str, shape)), "NHWC" if channels_last else "NCHW"
    where = {"operation": "torch_kernels", "step": "torch", "problem": problem, "layout": layout, "dtype": "float32"}
    return [
        {
            **where,
            "kernel": name,
            "launches": len(found) // CALLS,
            "blocks": prod(found[0]["args"]["grid"]),
            "time_ms": mean(event["dur"] for event in found) / 1e3,
        }
        for name, found in launches.items()
    ]
