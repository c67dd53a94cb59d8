"""The schedule view: accesses of warps in one order, step by step; another order ends in another result."""

from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.simulator.explorer.schedules import Exploration, Step
from labkit.views.base import View, pack, strip_marks, table
from labkit.views.schedule_still import draw_still
from labkit.views.tiling_steps import slice_text
from labkit.views.wording import block_name, index_text, join, type_name, value_text

MOST_STEPS = 500
MOST_OUTCOMES = 12
MOST_ELEMENTS = 1024
CELL_DIGITS = 4  # what fits into an element of the picture; sentences have more
KINDS = ("load", "store", "atomic", "barrier")
_NOW = {"load": "reads", "store": "writes", "atomic": "updates"}
_THEN = {"load": "read", "store": "wrote", "atomic": "updated"}


def schedule(
    exploration: Exploration,
    array: str | None = None,
    right: Callable[[tuple[Any, ...]], bool] | None = None,
    *,
    start: int = 0,
) -> View:
    """Step through one order of the warps' accesses; choose between the outcomes that orders led to.

    Parameters
    ----------
    exploration
        What `labkit.explore` returned.
    array
        Whose contents to show: one that the kernel writes. If not given, that in which orders differ first.
    right
        Says whether an outcome's `outputs` are right; each end is then marked as right or wrong.
    start
        Number of the outcome that is shown first; 0 is the commonest.
    """
    if not isinstance(exploration, Exploration):
        raise TypeError(f"schedule takes what `labkit.explore` returned, not {type_name(exploration)}.")
    arrays = {info.name: info for info in exploration.arrays}
    shown = arrays.get((_shown(exploration) or "") if array is None else array)
    if array is not None and shown is None:
        raise ValueError(f"The kernel has no array {array!r}; it has {join(list(arrays))}.")
    labels = _labels(exploration)
    verdicts = [_verdict(outcome, right) for outcome in exploration.outcomes]
    orders = [
        _order(exploration, number, labels, verdicts[number], shown)
        for number in range(min(len(labels), MOST_OUTCOMES))
    ]
    if not 0 <= start < len(orders):
        raise ValueError(f"There is no outcome {start} to start with: choose one of 0 to {len(orders) - 1}.")
    common = {
        "rows": [_row_name(exploration, block, warp) for block, warp in _places(exploration)],
        "perBlock": exploration.warps_per_block,
        "source": exploration.source.rstrip("\n").split("\n"),
        "first": exploration.first_line,
        "array": _panel(exploration, shown),
        "outcomes": len(exploration.outcomes),
        "orders": exploration.orders,
        "complete": exploration.complete,
        "explained": exploration.explained_by.message if exploration.explained_by else "",
    }
    data = {**orders[start], "chosen": start, "kept": orders, "common": common}
    return View("schedule", _title(exploration), data, draw_still)


def _title(exploration):
    orders = "every order" if exploration.complete else f"{exploration.orders} orders"
    if len(exploration.outcomes) == 1:
        return f"Orders of `{exploration.kernel}`: one outcome in {orders}"
    orders = f"all {exploration.orders} orders" if exploration.complete else orders
    return f"Orders of `{exploration.kernel}`: {len(exploration.outcomes)} outcomes in {orders}"


# --- what is shown -------------------------------------------------------------------------------


def _shown(exploration) -> str | None:
    """Return the array in which orders differ first, else the first shared one, else the first that is written."""
    if exploration.difference:
        return exploration.difference.array
    shared = [info.name for info in exploration.arrays if info.space == "shared"]
    written = [step.array for step in exploration.outcomes[0].schedule if step.kind in ("store", "atomic")]
    return next(iter([*shared, *written]), None)


def _panel(exploration, info):
    """Return the shown array before the launch; None for an unwritten element."""
    if info is None:
        return None
    shape = info.shape or (1,)
    size = min(int(np.prod(shape)), MOST_ELEMENTS)
    columns = shape[-1] if len(shape) > 1 and shape[-1] <= 40 else 16
    filled = [None] * size
    if info.space == "global":
        names = [a.name for a in exploration.arrays if a.space == "global"]
        arrays = [a for a in exploration.inputs if isinstance(a, np.ndarray)]
        filled = [value_text(v, CELL_DIGITS) for v in arrays[names.index(info.name)].ravel()[:size].tolist()]
    return {
        "name": info.name,
        "shape": list(shape),
        "columns": min(columns, size),
        "shared": info.space == "shared",
        "filled": filled,
        "left_out": int(np.prod(shape)) - size,
    }


def _labels(exploration) -> list[str]:
    """Label each outcome with the final values of the elements that distinguish most outcomes."""
    names = [a.name for a in exploration.arrays if a.space == "global"]
    outputs = [[o for o in outcome.outputs if isinstance(o, np.ndarray)] for outcome in exploration.outcomes]
    finished = [end for end, outcome in zip(outputs, exploration.outcomes) if not outcome.deadlock] or outputs
    shown_elements, texts_of_outcome = [], [()] * len(finished)
    while len(shown_elements) < 3 and len(set(texts_of_outcome)) < len(finished):
        best = None
        for which in range(len(names)):
            for element in np.flatnonzero(np.any([e[which] != finished[0][which] for e in finished], axis=0).ravel()):
                values = [value_text(end[which].flat[element].item()) for end in finished]
                texts = [(*known, value) for known, value in zip(texts_of_outcome, values)]
                if best is None or len(set(texts)) > len(set(best[1])):
                    best = (which, int(element)), texts
        if best is None or len(set(best[1])) == len(set(texts_of_outcome)):
            break
        shown_elements.append(best[0])
        texts_of_outcome = best[1]
    if not shown_elements:
        shown_elements = _first_written(exploration, names)
    labels = []
    for end, outcome in zip(outputs, exploration.outcomes):
        texts = [
            f"`{names[w]}[{index_text(end[w].shape, e)}]` = {value_text(end[w].flat[e].item())}"
            for w, e in shown_elements
        ]
        labels.append("a launch that hangs" if outcome.deadlock else join(texts) if texts else "the same end")
    return labels


def _verdict(outcome, right) -> str:
    """Return "right" or "wrong", or "" if no function judges the outcome or the launch hangs."""
    if right is None or outcome.deadlock:
        return ""
    return "right" if right(outcome.outputs) else "wrong"


def _first_written(exploration, names):
    for kind in ("store", "atomic"):
        for step in reversed(exploration.outcomes[0].schedule):
            if step.kind == kind and step.array in names and step.elements:
                return [(names.index(step.array), step.elements[0])]
    return []


def _row_name(exploration, block, warp):
    alone = exploration.grid == (1, 1, 1)
    return f"warp {warp}" if alone else f"block {_block(exploration, block)} warp {warp}"


def _block(exploration, block):
    return str(block[0]) if exploration.grid[1:] == (1, 1) else block_name(block)


# --- one order -----------------------------------------------------------------------------------


def _order(exploration: Exploration, number: int, labels: list[str], verdict: str, shown) -> dict:
    """Return what is drawn of the example schedule of an outcome, as JSON-ready data."""
    outcome = exploration.outcomes[number]
    steps = outcome.schedule[:MOST_STEPS]
    words = _ScheduleSentences(exploration, number, labels, verdict)
    says = [words.say(k) for k in range(len(steps))] or ["No warp touches memory that the kernel changes."]
    if len(outcome.schedule) > len(steps):
        says[-1] += f" The view ends here, {len(outcome.schedule) - len(steps):,} steps before the launch does."
    row_of = {place: row for row, place in enumerate(_places(exploration))}
    rows = [row_of[step.block, max(step.warp, 0)] for step in steps]
    return {
        "say": says,
        "start": min(words.parting, len(says) - 1) if words.parting is not None else 0,
        "label": strip_marks(labels[number]),
        "verdict": verdict,
        "count": outcome.orders,
        "row": pack(np.array(rows, int)),
        "line": pack(np.array([step.line for step in steps], int)),
        "kind": pack(np.array([KINDS.index(step.kind.removeprefix("grid ")) for step in steps], int)),
        "high": pack(np.array([_rows_high(exploration, step) for step in steps], int)),
        "races": [bool(step.races) for step in steps],
        "unordered": [[k for k in step.unordered if k < len(steps)] for step in steps],
        "stands": pack(np.array([step.stands for step in steps], int).reshape(len(steps), len(row_of))),
        "touched": [_touched(step, outcome.schedule, shown) for step in steps],
        "table": table(
            ["step", "warp", "line", "what"],
            [[k, words.who(step), step.line, words.what(step)] for k, step in enumerate(steps, 1)],
            by_step=True,
        ),
    }


def _places(exploration):
    """Return (block, warp) of every warp of the launch, in the order of `Step.stands`."""
    x, y, z = exploration.grid
    blocks = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    return [(block, warp) for block in blocks for warp in range(exploration.warps_per_block)]


def _rows_high(exploration, step) -> int:
    """Return the number of warps that a step covers."""
    return {"barrier": exploration.warps_per_block, "grid barrier": len(_places(exploration))}.get(step.kind, 1)


def _touched(step: Step, steps, info):
    """Return the shown array's elements that a step touches, those that race, and the new values."""
    if info is None or step.array != info.name:
        return None
    shown = [(e, v) for e, v in zip(step.elements, step.values) if e < MOST_ELEMENTS]
    elements = [e for e, _ in shown]
    racing = {e for k in step.races for e in steps[k].elements}
    values = [] if step.kind == "load" else [value_text(v, CELL_DIGITS) for _, v in shown]
    return {"elements": elements, "racing": [e for e in elements if e in racing], "values": values}


class _ScheduleSentences:
    """The sentences of one schedule."""

    def __init__(self, exploration, number, labels, verdict):
        self.exploration, self.labels = exploration, labels
        self.which = f", which is {verdict}" if verdict else ""
        self.outcome, self.label = exploration.outcomes[number], labels[number]
        self.steps = self.outcome.schedule
        self.arrays = {info.name: info for info in exploration.arrays}
        # Where this order parts from another: the first outcome's from the second, the others' from the first.
        self.difference = self.outcome.difference if number else exploration.difference
        self.side = int(number > 0)
        self.parting = self.difference.steps[self.side] if self.difference else None

    def who(self, step) -> str:
        if step.warp < 0:
            all_of = self.exploration.grid == (1, 1, 1) or step.kind == "grid barrier"
            return "all warps" if all_of else f"block {_block(self.exploration, step.block)}"
        name = _row_name(self.exploration, step.block, step.warp)
        return name.replace(" warp", ", warp")

    def what(self, step) -> str:
        if step.warp < 0:
            return step.kind
        return f"{_NOW[step.kind]} {strip_marks(self._elements(step))}"

    def _elements(self, step) -> str:
        if not step.elements:
            return "nothing, with an index outside the array,"
        info, elements = self.arrays[step.array], np.array(step.elements)
        runs = np.split(elements, np.flatnonzero(np.diff(elements) != 1) + 1)
        if len(info.shape) == 1 and len(runs) == 2:
            return join([slice_text(info, run) for run in runs])
        return slice_text(info, elements)

    def say(self, k) -> str:
        step, number = self.steps[k], f"Step {k + 1} of {len(self.steps)}"
        if step.warp < 0:
            whose = "all warps" if self.who(step) == "all warps" else f"all warps of {self.who(step)}"
            say = f"{number}: the {step.kind} in line {step.line} opens, since {whose} have come."
        else:
            did = f"{_NOW[step.kind]} {self._elements(step)} at line {step.line}{self._value(step)}"
            say = f"{number}: **{self.who(step)}** {did}."
            say += "".join(f" {self._other_sentence(k, other)}" for other in self._nearest(k))
        if k == self.parting:
            say += f" {self._parting_sentence()}"
        return f"{say} {self._end_sentence()}" if k == len(self.steps) - 1 else say

    def _value(self, step) -> str:
        """Return the value in words, if all elements have the same."""
        values = {value_text(v) for v in step.values}
        if len(values) != 1:
            return ""
        verb = "finds" if step.kind == "load" else "leaves"
        return f" and {verb} {values.pop()}" + (" in each" if len(step.elements) > 1 else "")

    def _nearest(self, k) -> list[int]:
        """Return the nearest access before and after this step among those that may run on either side of it."""
        others = self.steps[k].races or self.steps[k].unordered
        return [*[n for n in others if n < k][-1:], *[n for n in others if n > k][:1]]

    def _other_sentence(self, k, other) -> str:
        step, race = self.steps[other], "**Race**: " if other in self.steps[k].races else "Either may be first: "
        if other < k:
            return f"{race}{self.who(step)} {_THEN[step.kind]} there in step {other + 1}; nothing made it come first."
        return f"{race}{self.who(step)} {_NOW[step.kind]} there in step {other + 1}; nothing makes it come later."

    def _parting_sentence(self) -> str:
        difference = self.difference
        name = f"{difference.array}[{', '.join(map(str, difference.index))}]"
        here, there = (value_text(difference.values[side]) for side in (self.side, 1 - self.side))
        end = self.labels[1 - self.side]
        return (
            f"**Here the orders begin to differ**: `{name}` is {here} now, and {there} in the order that "
            f"ends with {end}."
        )

    def _end_sentence(self) -> str:
        if self.outcome.deadlock:
            return f"**The launch hangs.** {self.outcome.deadlock.fact}"
        if len(self.exploration.outcomes) == 1:
            return f"**The end**: {self.label}{self.which}, as in every order."
        orders = self.exploration.orders
        return f"**The end**: {self.label}{self.which}, as in {self.outcome.orders} of {orders} orders."
