"""Says in one sentence how the outputs of a launch differ from what they must hold."""

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
    """What is wrong with the array `name`: the verdict's reason, and a sentence."""

    name: str
    reason: str
    message: str


def wrong_output(launch: Launch, names: Sequence[str], outputs: Sequence[Any]) -> Difference | None:
    """The first array that is not as it must be after the launch: inputs unchanged, outputs right."""
    for name, before, after in zip(names, launch.args, outputs, strict=True):
        is_input = isinstance(before, np.ndarray) and not any(before is launch.args[p] for p in launch.outputs)
        if is_input and not np.array_equal(before, after):
            return Difference(
                name, "input changed", f"{name} is an input, and the kernel changes it: leave it as it is."
            )
    for position, expected in launch.outputs.items():
        difference = _difference(names[position], outputs[position], expected)
        if difference is not None:
            return difference
    return None


def _difference(name: str, output: Shaped[np.ndarray, "..."], expected: Expected) -> Difference | None:
    missing = is_unwritten(output)
    if missing.any():
        message = f"{name}{_index(missing)} was never written{_where(name, missing)}."
        return Difference(name, "unwritten", message)
    with np.errstate(invalid="ignore"):
        near = np.abs(output.astype(np.float64) - expected.value) <= expected.bound
        wrong = ~(near | (output == expected.value))  # infinity is nowhere near infinity
    if not wrong.any():
        return None
    first = np.unravel_index(np.argmax(wrong), wrong.shape)
    digits = ".0f" if np.issubdtype(output.dtype, np.integer) else ".6g"  # of a whole number all
    message = f"{name}{_index(wrong)} is {output[first]:{digits}} and should be {expected.value[first]:{digits}}"
    if np.isnan(output[first]):
        message += ": so are infinity - infinity, infinity / infinity and 0 * infinity, "
        message += f"and a sum that begins with what {name} held"
    return Difference(name, "result", f"{message}{_where(name, wrong)}.")


def _index(mask: Bool[np.ndarray, "..."]) -> str:
    index = np.unravel_index(np.argmax(mask), mask.shape)
    return f"[{', '.join(str(int(i)) for i in index)}]"


def _where(name, mask):
    """How many elements, and the band of rows or columns that holds them all."""
    count = int(mask.sum())
    if count == mask.size:
        return f"; so it is with all of {name}"
    if count == 1:
        return "; every other element is fine"
    share = f"; {count} of {mask.size} elements are like that"
    if mask.ndim == 2:
        for axis, word in ((1, "rows"), (0, "columns")):
            band = np.flatnonzero(mask.any(axis=axis))
            if len(band) < mask.shape[1 - axis]:
                one = band[0] == band[-1]
                return f"{share}, all in {f'{word[:-1]} {band[0]}' if one else f'{word} {band[0]} to {band[-1]}'}"
    return share
