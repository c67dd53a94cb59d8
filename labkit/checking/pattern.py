"""The pattern of wrong elements of an array, in words that say exactly which they are, and as a picture."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool

from labkit.table import count_text

LONGEST_PERIOD = 64
MOST_NAMED = 4  # indices that are named one by one
MOST_ROWS, MOST_COLUMNS = 12, 48  # of a picture
ROW_LENGTH = 32  # of a picture of a vector
RIGHT, WRONG, PARTLY = ".", "#", "+"  # cells of a picture


def describe(mask: Bool[np.ndarray, "..."]) -> str:
    """Say which elements are marked, "rows 3 to 7"; "" if they follow no pattern that is known here."""
    return next((words for words, candidate in _candidates(mask) if np.array_equal(candidate, mask)), "")


def describe_extent(mask: Bool[np.ndarray, "..."], name: str, are_marked: str) -> str:
    """Say in one sentence how many elements of an array are marked, and which.

    Parameters
    ----------
    name
        Name of the array.
    are_marked
        What the marked elements are: "are wrong", "were never written".
    """
    count = int(mask.sum())
    if mask.size == 1:
        return ""
    if count == mask.size:
        return f"{'Both' if count == 2 else f'All {count:,}'} elements of {name} {are_marked}."
    if count == 1:
        return "Every other element is right."
    words = describe(mask) or _describe_hull(mask)
    return f"{count:,} of {mask.size:,} elements {are_marked}{f': {words}' if words else ''}."


def _candidates(mask) -> Iterator[tuple[str, np.ndarray]]:
    """Yield sets of elements that could be the marked ones, the simplest first: their words, and their mask."""
    sides = [
        (axis, mask.any(axis=_others(mask, axis)), mask.all(axis=_others(mask, axis))) for axis in range(mask.ndim)
    ]
    touched = [(_name_indices(some, *_words(mask, axis)), _along(mask, axis, some)) for axis, some, _ in sides]
    filled = [(_name_indices(every, *_words(mask, axis)), _along(mask, axis, every)) for axis, _, every in sides]
    yield from ((words, candidate) for words, candidate in touched if words)
    if mask.ndim != 2:
        return
    (rows, in_rows), (columns, in_columns) = touched
    if rows and columns:
        yield f"those of {rows} that are in {columns}", in_rows & in_columns
    (rows, in_rows), (columns, in_columns) = filled
    if rows and columns:
        yield f"{rows}, and {columns}", in_rows | in_columns
    row, column = np.indices(mask.shape)
    yield "those above the diagonal", column > row
    yield "those below the diagonal", column < row
    yield "the diagonal, and those above it", column >= row
    yield "the diagonal, and those below it", column <= row
    yield "all but the diagonal", column != row
    yield "the diagonal", column == row
    yield "those whose row and column add up to an even number", (row + column) % 2 == 0
    yield "those whose row and column add up to an odd number", (row + column) % 2 == 1


def _others(mask, axis):
    return tuple(other for other in range(mask.ndim) if other != axis)


def _along(mask, axis, marked):
    """Return the mask of all elements whose index along an axis is marked."""
    shape = [1] * mask.ndim
    shape[axis] = len(marked)
    return np.broadcast_to(marked.reshape(shape), mask.shape)


def _words(mask, axis):
    """Return what one index along an axis is called, what several are, and what follows."""
    if mask.ndim == 1:
        return "element", "elements", ""
    if mask.ndim == 2:
        return ("row", "rows", "") if axis == 0 else ("column", "columns", "")
    return "slice", "slices", f" of axis {axis}"


def _name_indices(marked: Bool[np.ndarray, "n"], one: str, several: str, where: str) -> str:
    """Name the marked indices; "" if all are marked or none, or if they have nothing in common."""
    indices = np.flatnonzero(marked)
    if len(indices) in (0, len(marked)):
        return ""
    first, last = indices[0], indices[-1]
    if len(indices) == 1:
        return f"{one} {first}{where}"
    if last - first == len(indices) - 1:
        return f"{several} {first} {'and' if last == first + 1 else 'to'} {last}{where}"
    if len(indices) <= MOST_NAMED:
        *most, last = indices
        return f"{several} {', '.join(map(str, most))} and {last}{where}"
    for period in range(2, min(LONGEST_PERIOD, len(marked) // 2) + 1):
        if np.array_equal(np.resize(marked[:period], len(marked)), marked):
            return _name_period(np.flatnonzero(marked[:period]), period, several, where)
    return ""


def _name_period(residues, period, several, where):
    first, last = residues[0], residues[-1]
    if len(residues) == 1:
        return f"{several} {first}, {first + period}, {first + 2 * period} and so on{where}"
    if last - first == len(residues) - 1:
        return f"{several} {first} to {last} of every {period}{where}"
    return ""


def _describe_hull(mask):
    """Say which rows or columns hold all marked elements, if these are at most half of them; else ""."""
    for axis in range(mask.ndim):
        indices = np.flatnonzero(mask.any(axis=_others(mask, axis)))
        first, last = indices[0], indices[-1]
        if 2 * (last - first + 1) <= mask.shape[axis]:
            hull = np.isin(np.arange(mask.shape[axis]), np.arange(first, last + 1))
            return f"all are in {_name_indices(hull, *_words(mask, axis))}"
    return ""


def draw(mask: Bool[np.ndarray, "..."]) -> tuple[str, ...]:
    """Draw a vector or a matrix as lines of text that a last line explains; () for other arrays."""
    if mask.ndim not in (1, 2) or not mask.size:
        return ()
    if mask.ndim == 1:
        height, width = 1, -(-mask.size // (MOST_ROWS * ROW_LENGTH))
        cells = "".join(_cell(mask[i : i + width]) for i in range(0, mask.size, width))
        rows = [cells[i : i + ROW_LENGTH] for i in range(0, len(cells), ROW_LENGTH)]
    else:
        height, width = -(-mask.shape[0] // MOST_ROWS), -(-mask.shape[1] // MOST_COLUMNS)
        bands = (mask[i : i + height] for i in range(0, mask.shape[0], height))
        rows = ["".join(_cell(band[:, j : j + width]) for j in range(0, mask.shape[1], width)) for band in bands]
    each = f"{height} x {width} elements" if height > 1 else count_text(width, "element")
    partly = f", {PARTLY} both" if any(PARTLY in row for row in rows) else ""
    return (*rows, f"{WRONG} wrong, {RIGHT} right{partly}; each sign is {each}")


def _cell(part):
    if part.all():
        return WRONG
    return PARTLY if part.any() else RIGHT
