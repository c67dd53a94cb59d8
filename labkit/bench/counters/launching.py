"""Makes every launch once on the GPU, and writes the machine code of each: what ncu looks at."""

import json
import sys
from pathlib import Path

from numba import cuda

from labkit.bench.counters.kernels import launches


def main(path: Path) -> None:
    code = []
    for launch in launches():
        arguments = [cuda.to_device(a) if hasattr(a, "nbytes") and a.ndim else a for a in launch.arguments()]
        launch.kernel[launch.grid, launch.block, 0, launch.shared_bytes](*arguments)
        cuda.synchronize()
        code.append(launch.kernel.inspect_sass(tuple(map(launch.kernel.typeof_pyval, arguments))))
    path.write_text(json.dumps(code), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
