"""The program that ncu profiles: makes every launch once on the GPU, and writes the machine code of each."""

import json
import sys
from pathlib import Path

from labkit import cuda
from labkit.bench.counters.kernels import launches
from labkit.ptx import TensorMap


def main(path: Path) -> None:
    code = []
    for launch in launches():
        arguments = list(map(copy_to_gpu, launch.arguments()))
        launch.kernel[launch.grid, launch.block, 0, launch.shared_bytes](*arguments)
        cuda.synchronize()
        code.append(launch.kernel.inspect_sass(tuple(map(launch.kernel.typeof_pyval, arguments))))
    path.write_text(json.dumps(code), encoding="utf-8")


def copy_to_gpu(argument):
    """Return the argument with its elements in the GPU's memory."""
    if isinstance(argument, TensorMap):
        return argument.of(cuda.to_device(argument.array))
    return cuda.to_device(argument) if hasattr(argument, "nbytes") and argument.ndim else argument


if __name__ == "__main__":
    main(Path(sys.argv[1]))
