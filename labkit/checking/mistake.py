"""Usual mistakes: what comes out of them, so that a wrong result can be told by its cause."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.checking.unwritten import is_unwritten
from labkit.ladder import Expected


@dataclass(frozen=True)
class Mistake:
    """A usual mistake, with the outputs of a launch that it leads to.

    Attributes
    ----------
    cause
        What was done, in words that follow "as if": "y were left out".
    make_outputs
        Makes the outputs that are not as they should be, by position of the argument. It is called only for a wrong
        result. NaN stands for NaN, and for an element that is never written.
    cure
        A sentence on where to look and what to write, told after the cause: "Subtract `left` where `x` is loaded."
    """

    cause: str
    make_outputs: Callable[[], Mapping[int, Expected]]
    cure: str = ""


def find_mistake(mistakes: Sequence[Mistake], right: Mapping[int, Expected], outputs: Sequence[Any]) -> Mistake | None:
    """Return the first mistake that explains all outputs; `right` has the right ones."""
    return next((mistake for mistake in mistakes if explains(mistake, right, outputs)), None)


def explains(mistake: Mistake, right: Mapping[int, Expected], outputs: Sequence[Any]) -> bool:
    """Return whether all outputs are as the mistake makes them."""
    expected = {**right, **mistake.make_outputs()}
    return all(_agrees(outputs[position], value) for position, value in expected.items())


def _agrees(output, expected):
    with np.errstate(invalid="ignore"):
        near = np.abs(output.astype(np.float64) - expected.value) <= expected.bound
        has_none = np.isnan(expected.value) & (is_unwritten(output) | np.isnan(output))
        return bool((near | (output == expected.value) | has_none | _overflows(output, expected)).all())


def _overflows(output, expected):
    """Mark values beyond the range of the output's format, which holds infinity or NaN in their place."""
    if not np.issubdtype(output.dtype, np.floating):
        return False
    return (np.abs(expected.value) > np.finfo(output.dtype).max) & ~np.isfinite(output) & ~is_unwritten(output)
