"""Says in one sentence how an output differs from what it must hold."""

import numpy as np
from jaxtyping import Bool, Shaped

from labkit.exercises.exercise import Expected
from labkit.exercises.problems import is_unwritten


def difference(name: str, output: Shaped[np.ndarray, "..."], expected: Expected) -> tuple[str, str] | None:
    """The reason and the sentence, or None where every element is within its bound."""
    missing = is_unwritten(output)
    if missing.any():
        first = _index(missing)
        return "unwritten", f"{name}{first} was never written{_where(name, missing)}."
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(output.astype(np.float64) - expected.value) <= expected.bound)
    if not wrong.any():
        return None
    where = np.unravel_index(np.argmax(wrong), wrong.shape)
    sentence = f"{name}{_index(wrong)} is {output[where]:.6g} and should be {expected.value[where]:.6g}"
    if np.isnan(output[where]):
        sentence += f": {name} starts out full of rubbish, so write to it without reading it first"
    return "result", f"{sentence}{_where(name, wrong)}."


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
                return f"{share}, all in {word} {band[0]} to {band[-1]}"
    return share
