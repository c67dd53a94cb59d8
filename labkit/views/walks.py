"""Two loops over the same elements, side by side: what each finds in the cache, and what it evicts."""

from collections.abc import Mapping

import numpy as np

from labkit.loops import LoopTrace
from labkit.machine.gpus import Cpu
from labkit.views import stills
from labkit.views.base import View, layout_data, pack, stats_by_step, unpack
from labkit.views.replay import Replay, replay_loop
from labkit.views.wording import check_trace, element_name

SINGLE_STEPS = 48  # accesses that are shown one by one
FRAME = 16  # later accesses that are shown in one step


def walks(traces: Mapping[str, LoopTrace], cpu: Cpu) -> View:
    """Compare how several loops walk through one array, and how often each misses the first cache.

    Parameters
    ----------
    traces
        A name for each loop, and its trace: of all accesses, `record` them.
    cpu
        The CPU whose first cache is shown.

    Raises
    ------
    ValueError
        A trace lacks accesses, or the loops access the array not equally often.
    """
    for trace in traces.values():
        check_trace("walks", trace, LoopTrace)
        if len(trace.samples) < trace.counters.accesses:
            raise ValueError(f"{trace.kernel} has accesses that were not recorded: trace it with a larger `record`.")
    level = cpu.caches[0]
    replays = {name: replay_loop(trace, level, len(trace.samples)) for name, trace in traces.items()}
    sides = [_side(name, replay) for name, replay in replays.items()]
    counts = {len(unpack(side["missed"])) for side in sides}
    if len(counts) != 1:
        raise ValueError("walks compares loops that access their first array equally often.")
    (accesses,) = counts
    ends = [*range(1, min(SINGLE_STEPS, accesses) + 1), *range(SINGLE_STEPS + FRAME, accesses + FRAME, FRAME)]
    ends = [min(end, accesses) for end in ends]
    misses = [np.cumsum(unpack(side["missed"])) for side in sides]
    values = [[int(counted[end - 1]) for counted in misses] for end in ends]
    array = next(iter(replays.values())).arrays[0]
    data = {
        "say": [_sentence(sides, array, level.line_bytes, end, missed) for end, missed in zip(ends, values)],
        "array": {"name": array.name, **layout_data(array)},
        "line_bytes": level.line_bytes,
        "ends": pack(np.array(ends)),
        "sides": sides,
        "start": int(np.searchsorted(ends, 2 * array.shape[-1])),
        **stats_by_step(["accesses"], [[end] for end in ends], [f"misses of {side['name']}" for side in sides], values),
    }
    capacity = f"{level.bytes // level.line_bytes} lines of {level.line_bytes} bytes"
    return View("walks", f"Two walks through `{array.name}`, and a cache of {capacity}", data, draw_still)


def _side(name, replay: Replay):
    """Return the elements that a loop accesses of its first array, its misses there, and the moves of lines."""
    steps = np.flatnonzero(replay.array == 0)
    arrived = replay.moves[replay.moves[:, 2] == 1, 0]
    moves = replay.moves.copy()
    moves[:, 0] = np.searchsorted(steps, moves[:, 0])
    return {
        "name": name,
        "elements": pack(replay.elements[steps, 0]),
        "missed": pack(np.isin(steps, arrived)),
        "moves": pack(moves),
    }


def _sentence(sides, array, line_bytes, end, missed):
    if end > SINGLE_STEPS:
        parts = [f"`{side['name']}` has missed **{count:,}** times" for side, count in zip(sides, missed)]
        return f"After {end:,} accesses {', '.join(parts)}."
    parts = []
    for side in sides:
        element = element_name(array, int(unpack(side["elements"])[end - 1]))
        miss = f"**misses**: a line of {line_bytes} bytes comes in"
        parts.append(f"`{side['name']}` reads {element}, and {miss if unpack(side['missed'])[end - 1] else 'hits'}")
    return f"Access {end}: {'; '.join(parts)}."


def element_states(data, side, step) -> np.ndarray:
    """Return a state per element after a step: 0 is not accessed yet, 1 evicted again, 2 in the cache."""
    end, shape = int(unpack(data["ends"])[step]), data["array"]["shape"]
    states = np.zeros(int(np.prod(shape)), int)
    states[unpack(side["elements"])[:end]] = 1
    moves = unpack(side["moves"])
    moves = moves[moves[:, 0] < end].astype(int)
    held = np.flatnonzero(np.bincount(moves[:, 1], weights=2 * moves[:, 2] - 1) > 0)
    addresses = data["array"]["base"] + np.arange(states.size) * data["array"]["strides"][-1]
    states[np.isin(addresses // data["line_bytes"], held)] = 2
    return states.reshape(shape)


def draw_still(figure, data, step):
    """Draw each walk's elements after a step."""
    stills.set_size_and_title(figure, data, step, 3.6 * len(data["sides"]), 4.2)
    colours = np.array([stills.rgb("cell"), stills.tint("dim", 0.35), stills.tint("A", 0.6)])
    for axes, side in zip(np.ravel(figure.subplots(1, len(data["sides"]))), data["sides"], strict=True):
        missed = int(unpack(side["missed"])[: unpack(data["ends"])[step]].sum())
        cells = colours[element_states(data, side, step)]
        stills.show_cells(axes, cells, f"{side['name']}: {missed:,} misses")
