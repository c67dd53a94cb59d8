"""A program that runs a kernel, read as text from standard input, on the GPU, and prints its fault as JSON."""

import inspect
import json
import sys
from typing import Any

import numpy as np

from labkit import cuda
from labkit.checking.compare import find_wrong_output
from labkit.checking.exercise import Launch
from labkit.checking.source import python_function, run_cell
from labkit.exercises import exercise
from labkit.ptx.capabilities import can_run
from labkit.ptx.tensor_copies import TensorMap


def main():
    """Run every launch; print the fault of the first that fails, or null."""
    task = json.load(sys.stdin)
    kernel = run_cell(task["text"], "<kernel>", {})[task["function"]]
    if not can_run(kernel, 0, tuple(cuda.get_current_device().compute_capability)):
        print(json.dumps(None))  # the GPU lacks an instruction, so the simulator's verdict stands
        return
    names = list(inspect.signature(python_function(kernel)).parameters)
    for launch in exercise(task["exercise"]).make_launches(task["seed"], **task["constants"]):
        assert isinstance(launch, Launch)  # only a plain function is asked questions
        arguments = [_to_device(arg) for arg in launch.args]
        kernel[launch.grid, launch.block, 0, launch.shared_bytes](*arguments)
        cuda.synchronize()
        outputs = [arg.copy_to_host() if hasattr(arg, "copy_to_host") else arg for arg in arguments]
        wrong = find_wrong_output(launch, names, outputs)
        if wrong is not None:
            print(json.dumps({"message": wrong.message, "launch": launch.label}))
            return
    print(json.dumps(None))


def _to_device(argument: Any) -> Any:
    """Return an argument as a launch on the GPU takes it: arrays there, and maps of arrays there."""
    if isinstance(argument, TensorMap):
        return TensorMap(cuda.to_device(argument.array), argument.box)
    return cuda.to_device(argument) if isinstance(argument, np.ndarray) else argument


if __name__ == "__main__":
    main()
