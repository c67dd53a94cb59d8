"""Which of the lines that store an array stored its wrong elements."""

import numpy as np
from jaxtyping import Bool

from labkit.trace import Trace


def tell_stores(trace: Trace, array: str, is_wrong: Bool[np.ndarray, "..."]) -> str:
    """Return a sentence on the lines that stored wrong elements in the recorded blocks; "" if none is told apart."""
    lines = _last_lines(trace, array, is_wrong.size)
    stored = np.unique(lines[lines > 0])
    wrong = np.unique(lines[(lines > 0) & is_wrong.ravel()])
    right = [line for line in stored if line not in wrong]
    if len(wrong) == 1 and right:
        others = _join(right)
        return (
            f"Line {wrong[0]} stores all that is wrong, and what line{'s' * (len(right) > 1)} {others} stored is right."
        )
    if len(wrong) > 1 and not right:
        return f"Lines {_join(wrong)} all store wrong elements: look at what leads to them."
    return ""


def _join(lines):
    *most, last = map(str, lines)
    return f"{', '.join(most)} and {last}" if most else last


def _last_lines(trace, array, size):
    """Return the line that stored each element last, 0 if none of the recorded blocks did."""
    samples, lines = trace.samples, np.zeros(size, int)
    widths = {n: c.site.elements for n, c in enumerate(trace.sites) if c.site.array == array and c.site.kind != "load"}
    for row in np.flatnonzero(np.isin(samples.site, list(widths))):
        index = samples.index[row]
        first = index[index >= 0]
        for step in range(widths[int(samples.site[row])]):
            lines[first + step] = samples.line[row]
    return lines
