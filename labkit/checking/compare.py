"""Comparison of the outputs of a launch with the values they must hold, told in one sentence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Shaped

from labkit.checking.exercise import Launch
from labkit.checking.unwritten import is_unwritten
from labkit.ladder import Expected


@dataclass(frozen=True)
class Difference:
    """The fault of the array `name`: the verdict's reason, and a sentence."""

    name: str
    reason: str
    message: str


def find_wrong_output(launch: Launch, names: Sequence[str], outputs: Sequence[Any]) -> Difference | None:
    """Find the first array that is wrong after the launch: a changed input, or an output with wrong values.

    Parameters
    ----------
    names, outputs
        The name of each argument, and its value after the launch.
    """
    for name, before, after in zip(names, launch.args, outputs, strict=True):
        is_input = isinstance(before, np.ndarray) and not any(before is launch.args[i] for i in launch.outputs)
        if is_input and not np.array_equal(before, after, equal_nan=True):
            message = f"{name} is an input, and the kernel changes it: leave it as it is."
            return Difference(name, "input changed", message)
    for position, expected in launch.outputs.items():
        difference = _compare(names[position], outputs[position], expected)
        if difference is not None:
            return difference
    return None


def _compare(name: str, output: Shaped[np.ndarray, "..."], expected: Expected) -> Difference | None:
    missing = is_unwritten(output)
    if missing.any():
        message = f"{name}{_first_index(missing)} was never written{_describe_extent(name, missing)}."
        return Difference(name, "unwritten", message)
    with np.errstate(invalid="ignore"):
        near = np.abs(output.astype(np.float64) - expected.value) <= expected.bound
        wrong = ~(near | (output == expected.value))  # infinity is nowhere near infinity
    if not wrong.any():
        return None
    first = np.unravel_index(np.argmax(wrong), wrong.shape)
    digits = ".0f" if np.issubdtype(output.dtype, np.integer) else ".6g"  # of a whole number all
    message = f"{name}{_first_index(wrong)} is {output[first]:{digits}} and should be {expected.value[first]:{digits}}"
    if np.isnan(output[first]):
        message += ": so are infinity - infinity, infinity / infinity and 0 * infinity, "
        message += f"and a sum that begins with what {name} held"
    return Difference(name, "result", f"{message}{_describe_extent(name, wrong)}.")


def _first_index(mask: Bool[np.ndarray, "..."]) -> str:
    index = np.unravel_index(np.argmax(mask), mask.shape)
    return f"[{', '.join(str(int(i)) for i in index)}]"


def _describe_extent(name, mask):
    """Say how many elements are marked, and which rows or columns hold them all."""
    count = int(mask.sum())
    if count == mask.size:
        return f"; so it is with all of {name}"
    if count == 1:
        return "; every other element is fine"
    extent = f"; {count} of {mask.size} elements are like that"
    if mask.ndim == 2:
        for axis, word in ((1, "rows"), (0, "columns")):
            marked = np.flatnonzero(mask.any(axis=axis))
            first, last = marked[0], marked[-1]
            if len(marked) < mask.shape[1 - axis]:
                return f"{extent}, all in {f'{word[:-1]} {first}' if first == last else f'{word} {first} to {last}'}"
    return extent
