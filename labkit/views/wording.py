"""Words and look-ups that several views share."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from labkit.loops import LoopTrace
from labkit.trace import Trace

ANY_TRACE = (Trace, LoopTrace)
_SOURCES = {
    Trace: "`labkit.simulate`",
    LoopTrace: "`labkit.loops.trace`",
    ANY_TRACE: "`labkit.simulate` or `labkit.loops.trace`",
}


def block_name(index) -> str:
    """Return a block as a learner writes it: (1, 0), not (1, 0, 0)."""
    shown_axes = list(index)
    while len(shown_axes) > 2 and shown_axes[-1] == 0:
        shown_axes.pop()
    return f"({', '.join(map(str, shown_axes))})"


def join(parts) -> str:
    """Join words: "a", "a and b", or "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def type_name(thing) -> str:
    """Return a value's type in words: None, a list, an int."""
    if thing is None:
        return "None"
    kind = type(thing).__name__
    return f"a{'n' * (kind[0] in 'aeiouAEIOU')} {kind}"


def element_name(info, element: int) -> str:
    """Return an element, given by its flat index, as a kernel names it: `A[2, 0]`."""
    return f"`{info.name}[{index_text(info.shape, element)}]`"


def index_text(shape, element: int) -> str:
    """Return the index of a flat element as a kernel writes it: `2, 0`."""
    return ", ".join(str(int(i)) for i in np.unravel_index(int(element), shape))


def value_text(value, digits: int = 7) -> str:
    """Return a value of a thread or of an array as text."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def elements_in(info, piece: int, piece_bytes: int) -> str:
    """Return the first and the last element in a piece of memory: `A[0, 0]` to `A[7, 0]`."""
    ends = info.elements_in(piece, piece_bytes)[[0, -1]].tolist()
    return " to ".join(element_name(info, element) for element in dict.fromkeys(ends))


def global_outputs(trace: Trace) -> dict[str, np.ndarray]:
    """Return the global arrays of a launch as it left them, by their names in the kernel."""
    names = [info.name for info in trace.arrays if info.space == "global"]
    return dict(zip(names, (value for value in trace.outputs if isinstance(value, np.ndarray))))


def check_trace(view: str, trace, kind: Any = Trace):
    """Raise a TypeError unless the view can show this trace."""
    if not isinstance(trace, kind):
        raise TypeError(f"{view} takes a trace, what {_SOURCES[kind]} returned, not {type_name(trace)}.")


def check_traces(view: str, traces):
    """Raise an error unless this is a mapping from names to traces of whole launches."""
    is_mapping = (
        isinstance(traces, Mapping) and traces and all(isinstance(trace, ANY_TRACE) for trace in traces.values())
    )
    if not is_mapping:
        raise TypeError(f"{view} takes traces by their names, at least one: {view}({{'naive': trace}}).")
    for name, trace in traces.items():
        if isinstance(trace, Trace) and trace.counters.sample:
            raise ValueError(
                f"{view} compares whole launches, and only a sample of `{name}` ran: leave `sample` out, or "
                "take a smaller problem."
            )


def recorded_block(trace: Trace, block=None):
    """Return a recorded block's index (the first one by default) and its rows in the samples."""
    recorded = trace.samples.blocks
    if not recorded:
        raise ValueError("This trace recorded no block; simulate with record=((0, 0, 0),) to see one.")
    block_index = recorded[0] if block is None else (*np.atleast_1d(block).tolist(), 0, 0)[:3]
    if block_index not in recorded:
        raise ValueError(
            f"Block {block_name(block_index)} was not recorded, only {join([block_name(b) for b in recorded])}; "
            f"simulate with record=({block_index},)."
        )
    return block_index, np.flatnonzero(trace.samples.block == recorded.index(block_index))
