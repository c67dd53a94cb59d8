"""Comparison of the outputs of a launch with the values they must hold, told in two sentences and a list."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Shaped

from labkit.checking.exercise import Launch
from labkit.checking.mistake import find_mistake
from labkit.checking.pattern import describe, describe_extent, draw
from labkit.checking.unwritten import is_computed_from_unwritten, is_unwritten
from labkit.ladder import Expected

FEW = 8  # wrong elements, of which it may be chance that they are equal
SMALL_ERROR = 2**-11  # relative, that of rounding to float16: not of a wrong term


@dataclass(frozen=True)
class Difference:
    """The fault of the array `name`.

    Attributes
    ----------
    reason
        That of the verdict.
    facts
        The first element at fault, with its values.
    clues
        Sentences on what explains it.
    guesses
        Sentences on what may explain it.
    extent
        A sentence on all elements at fault, "" where there is but one element.
    element
        Flat index of the first element at fault.
    cause
        That of the usual mistake which explains all outputs.
    cure_line
        The line that the cure of that mistake names.
    picture
        The array's elements at fault, if no words say exactly which they are.
    is_from_unwritten
        Whether the first of them was computed from what the array held when nothing had been written to it.
    mask
        Marks the elements at fault; None if the fault is not of elements.
    """

    name: str
    reason: str
    facts: str
    clues: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()
    extent: str = ""
    element: int | None = None
    cause: str = ""
    cure_line: int | None = None
    picture: tuple[str, ...] = ()
    is_from_unwritten: bool = False
    mask: Any = field(default=None, compare=False, repr=False)

    @property
    def message(self) -> str:
        """Two sentences, then a list."""
        return list_after_two([*filter(None, [self.facts, *self.clues, *self.guesses, self.extent])])

    @property
    def plain(self) -> str:
        """The message without what is guessed."""
        return replace(self, guesses=()).message


def list_after_two(sentences: Sequence[str]) -> str:
    """Return a paragraph of the first two sentences, and a list of the others."""
    return "\n".join([" ".join(sentences[:2]), *(f"- {sentence}" for sentence in sentences[2:])])


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
        difference = _compare(names[position], outputs[position], expected, launch.nan_sources)
        if difference is not None:
            return _explain(difference, launch, names, outputs)
    return None


def _compare(name: str, output: Shaped[np.ndarray, "..."], expected: Expected, nan_sources: str) -> Difference | None:
    missing = is_unwritten(output)
    if missing.any():
        facts = f"{name}{_first_index(missing)} was never written."
        return _make_difference(name, "unwritten", facts, missing, "were never written")
    with np.errstate(invalid="ignore"):
        near = np.abs(output.astype(np.float64) - expected.value) <= expected.bound
        is_nan = np.isnan(output) & np.isnan(expected.value)
        wrong = ~(near | (output == expected.value) | is_nan)  # infinity is nowhere near infinity
    if not wrong.any():
        return None
    first = np.unravel_index(np.argmax(wrong), wrong.shape)
    digits = ".0f" if np.issubdtype(output.dtype, np.integer) else ".6g"  # of a whole number all
    if _format_value(output[first], digits) == _format_value(expected.value[first], digits):
        digits = ".9g"
    facts = f"{name}{_first_index(wrong)} is {_format_value(output[first], digits)} and should be "
    facts += f"{_format_value(expected.value[first], digits)}."
    clues, guesses = _explain_values(name, output, expected, wrong, first, nan_sources)
    difference = _make_difference(name, "result", facts, wrong, "are wrong", clues, guesses)
    is_from_unwritten = bool(np.isnan(output[first])) and is_computed_from_unwritten(output[first])
    return replace(difference, is_from_unwritten=is_from_unwritten)


def _format_value(value, digits):
    return "NaN" if np.isnan(value) else f"{value:{digits}}"


def _make_difference(name, reason, facts, mask, are_marked, clues=(), guesses=()):
    extent = describe_extent(mask, name, are_marked)
    picture = () if describe(mask) or mask.all() else draw(mask)
    element = int(np.argmax(mask))
    return Difference(name, reason, facts, tuple(clues), tuple(guesses), extent, element, picture=picture, mask=mask)


def _explain_values(name, output, expected, wrong, first, nan_sources) -> tuple[list[str], list[str]]:
    """Return what wrong values tell by themselves, and what they let one guess."""
    if np.isnan(output[first]):
        if is_computed_from_unwritten(output[first]):
            said = (
                f"It was computed from what {name} held, and {name} held nothing yet: begin with a value of your own."
            )
            return [said], []
        return [f"NaN comes from {nan_sources}."], []
    largest = np.abs(expected.value[np.isfinite(expected.value)]).max(initial=0)
    with np.errstate(invalid="ignore", over="ignore"):
        errors, values = np.abs(output.astype(np.float64) - expected.value)[wrong], np.abs(expected.value)[wrong]
    are_small = errors < SMALL_ERROR * values  # near 0, a sum of large terms may lose more
    shown_is_small = bool(are_small[0]) and are_small.mean() > 0.5 and bool((errors < SMALL_ERROR * largest).all())
    if np.issubdtype(output.dtype, np.floating) and shown_is_small:
        return [], ["The errors are below 0.05%: look for a value that is rounded too early, or for a small term."]
    constant = _explain_constant(output, wrong)
    return ([], constant) if constant else _explain_ratio(output, expected)


def _explain_constant(output, wrong) -> list[str]:
    """Say that all wrong elements hold one number, if they do."""
    values = np.unique(output[wrong])
    if len(values) > 1 or wrong.sum() < FEW or abs(values[0]) <= 1:
        return []
    if np.isinf(values[0]):
        sources = "the logarithm of 0" if values[0] < 0 else "a division by 0, or a number too large for its type"
        return [f"All wrong elements are {values[0]}: it comes from {sources}, or a start that no value replaced."]
    return ["All wrong elements hold this number: is it one with which your code begins?"]


def _explain_ratio(output, expected) -> tuple[list[str], list[str]]:
    """Say by which factor all values are wrong, if it is one, and what makes such a factor."""
    if output.size == 1 or not expected.value.all():
        return [], []
    with np.errstate(invalid="ignore"):
        ratios = output / expected.value
        spread = np.ptp(ratios)
    if not spread < SMALL_ERROR * abs(ratios.flat[0]):
        return [], []
    ratio = float(np.median(ratios))
    if abs(ratio + 1) < SMALL_ERROR:
        return ["Each has the opposite sign."], []
    told, times = [f"Each is {ratio:.4g} times as large as it should be."], round(ratio)
    if times > 1 and abs(ratio - times) < SMALL_ERROR * times:
        return told, [f"Is each term added {times:,} times, or a division by {times:,} left out?"]
    return told, []


def _first_index(mask: Bool[np.ndarray, "..."]) -> str:
    index = np.unravel_index(np.argmax(mask), mask.shape)
    return f"[{', '.join(str(int(i)) for i in index)}]"


def _explain(difference, launch, names, outputs):
    """Tell a difference by the usual mistake that explains it, if there is one."""
    mistake = find_mistake(launch.mistakes, launch.outputs, outputs)
    if mistake is None:
        return difference
    changed = " and ".join(names[position] for position in _list_wrong(mistake, launch))
    clue = f"{changed} came out as if {mistake.cause}."
    clues = tuple(filter(None, (clue, mistake.cure)))
    return replace(difference, clues=clues, guesses=(), cause=mistake.cause, picture=())


def _list_wrong(mistake, launch):
    """Return the positions of the outputs that a mistake makes wrong, and not only otherwise bounded."""
    made = mistake.make_outputs()
    wrong = [i for i, other in made.items() if not launch.outputs[i].holds(other.value)]
    return wrong or list(made)
