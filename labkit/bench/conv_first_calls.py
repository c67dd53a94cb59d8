"""`labkit bench conv_first_calls`: times of the first and of later calls of each layer, by library.

Each library has a process of its own, in which a call of another layer has loaded it before. The host's clock times a
first call until its result is there; later calls are timed as in every bench.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from labkit import conv, cuda
from labkit.bench import _harness, _record, _torch
from labkit.calls import timing
from labkit.conv.layers import RESNET_50_3X3, TABLE_2, VGG_16, batched
from labkit.formats import FP32

NAME = "conv_first_calls"
PAPERS_LAYERS = *batched(16, TABLE_2), *batched(128, TABLE_2)
LAYERS = [
    conv.Forward(*sizes) for sizes in (*PAPERS_LAYERS, *batched(64, VGG_16[5:], 1), *batched(64, RESNET_50_3X3, 1))
]
WARM_UP_LAYER = conv.Forward(2, 8, 20, 20, 8, 3, 3)
CANDIDATES = 10  # that torch's benchmark mode tries by default


def torch_contender(benchmark: bool, limit: int = CANDIDATES) -> Callable:
    """Return a contender: cuDNN as torch calls it, by its heuristic or by timing `limit` candidates (0: all)."""

    def contender(problem, x, w, y):
        import torch

        torch.backends.cudnn.benchmark_limit = limit
        x, w, y = _torch.tensors(FP32, x, w, y)
        sizes = [problem.top, problem.left], [problem.stride_h] * 2, [1, 1], 1
        return _torch.launch_on_stream(
            lambda: torch.ops.aten.cudnn_convolution.out(x, w, *sizes, benchmark, False, False, out=y)
        )

    return contender


def labkit_forward(problem, x, w, y):
    """`conv.forward`, which ranks the algorithms, and compiles the kernels of the first."""
    return lambda stream: conv.forward(x, w, y=y, padding=problem.top, stream=stream)


CONTENDERS = {
    "torch": torch_contender(benchmark=False),
    "torch, benchmark": torch_contender(benchmark=True),
    "torch, all candidates": torch_contender(benchmark=True, limit=0),
    "conv.forward": labkit_forward,
}


def main(record: bool = False, out: Path | None = None) -> None:
    gpu = _record.require_gpu("times calls")
    rows = []
    for name in CONTENDERS:
        process = subprocess.run([sys.executable, "-m", __name__, name], capture_output=True, text=True)
        rows += [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
        if process.returncode:
            print(f"{name} ended early: {process.stderr[-400:]}", file=sys.stderr)
    columns = {"step": "", "problem": "", "first_ms": ".2f", "time_ms": ".4f"}
    _record.print_table(f"first calls on {gpu.name}", rows, columns)
    _record.store_if_requested(NAME, rows, gpu.name, record, out)


def measure(name: str, layer) -> dict:
    """Time the first call of a layer in this process, and later ones."""
    sets = _harness.copies_on_gpu(layer.operands(), _harness.count_operand_sets(layer.min_bytes()))
    launches = [CONTENDERS[name](layer, *operands[:3]) for operands in sets]
    stream = timing.timing_stream()
    cuda.synchronize()
    start = perf_counter()
    launches[0](stream)
    stream.synchronize()
    first_ms = 1e3 * (perf_counter() - start)
    row = {"operation": NAME, "step": name, "problem": str(layer), **layer.fields, "dtype": FP32.name}
    return row | {"first_ms": first_ms, "time_ms": timing.gpu_time_ms(launches)}


if __name__ == "__main__":
    measure(sys.argv[1], WARM_UP_LAYER)
    for layer in LAYERS:
        print(json.dumps(measure(sys.argv[1], layer)), flush=True)
