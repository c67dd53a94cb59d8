"""`explore`: one launch in many orders of its warps, and the outcome of each order.

A run in lockstep hides the effect of a race. Here each warp runs alone, and between any two accesses another may come
first. The search begins with plain orders (in turn, backwards, one warp early or late), and then reverses each race of
every new run. Orders that differ only in accesses to different elements count as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from random import Random
from typing import Any

import numpy as np

from labkit.simulator.arrays import Array
from labkit.simulator.errors import LaunchError
from labkit.simulator.explorer.divergence import find_divergence
from labkit.simulator.explorer.happens_before import find_races
from labkit.simulator.explorer.interleaving import CannotRun, Order, run_in
from labkit.simulator.run import Dimensions, prepare_launch, simulate
from labkit.trace import WARP_LANES, ArrayInfo, Finding

MAX_WARPS = 64
MAX_ALL_TURNS = 100_000  # over all orders; a turn takes about 0.1 ms
SHUFFLE_PROBABILITIES = (0.0, 0.1, 0.5)


@dataclass(frozen=True)
class Step:
    """An access of a warp in its turn (`kind`: load, store, atomic), or a barrier that its block, or the grid, passed.

    Attributes
    ----------
    elements, values
        The elements of `array` that it touched (C order; of a shared array, within its block's), and their values
        afterwards.
    unordered
        Positions in the schedule of other warps' accesses that could as well be on the other side of it, with other
        effects.
    races
        Those of `unordered` that race with it, which two atomics do not.
    stands
        The line of each warp of the launch afterwards, block by block; 0 if it had ended.
    """

    block: tuple[int, int, int]
    warp: int
    line: int
    kind: str
    array: str | None = None
    elements: tuple[int, ...] = ()
    values: tuple[Any, ...] = ()
    unordered: tuple[int, ...] = ()
    races: tuple[int, ...] = ()
    stands: tuple[int, ...] = ()


@dataclass(frozen=True)
class Difference:
    """The point where two orders differ: the first access that finds another value, because of an earlier write in one.

    Where all accesses read the same and only the last of several writes differs, that is the access. A warp is a block
    and a number in it.

    Attributes
    ----------
    line, warp
        Of the access.
    other_line, other_warp
        Of the write.
    steps
        Positions of the access in both schedules.
    values
        What it finds (or leaves) in each.
    """

    array: str
    index: tuple[int, ...]
    line: int
    other_line: int
    warp: tuple[tuple[int, int, int], int]
    other_warp: tuple[tuple[int, int, int], int]
    steps: tuple[int, int]
    values: tuple[Any, Any]


@dataclass(frozen=True)
class Outcome:
    """A result of some of the orders; `schedule` is the one with the fewest changes of warp.

    Attributes
    ----------
    outputs
        The arguments after the run.
    errors
        What the simulator found in that order.
    difference
        Where the schedule differs from that of the commonest outcome.
    deadlock
        Where the launch hangs: which threads wait for which.
    """

    outputs: tuple[Any, ...]
    orders: int
    schedule: tuple[Step, ...]
    errors: tuple[Finding, ...]
    difference: Difference | None = None

    @property
    def deadlock(self) -> Finding | None:
        """The deadlock of a launch that hangs, else None."""
        return next((f for f in self.errors if f.kind == "deadlock"), None)


@dataclass(frozen=True)
class Exploration:
    """The different outcomes of a launch under many orders of its warps, the commonest first.

    Of equally common outcomes, that of `simulate` comes first.

    Attributes
    ----------
    orders
        Orders run; those that differ only in accesses to different elements count as one.
    complete
        Whether there are no other orders (with these arguments, warps in lockstep, and accesses seen by all at once).
    difference
        Where the first two outcomes differ.
    findings
        The errors that `simulate` reports.
    explained_by
        The race among them that causes the difference.
    """

    kernel: str
    source: str
    filename: str
    first_line: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arrays: tuple[ArrayInfo, ...]
    inputs: tuple[Any, ...]
    outcomes: tuple[Outcome, ...]
    orders: int
    complete: bool
    difference: Difference | None
    findings: tuple[Finding, ...]
    explained_by: Finding | None

    @property
    def warps_per_block(self) -> int:
        return -(-prod(self.block) // WARP_LANES)

    def __repr__(self):
        outcomes = f"{len(self.outcomes)} outcomes" if len(self.outcomes) > 1 else "one outcome"
        orders = f"{self.orders} orders" if self.orders > 1 else "one order"
        if self.complete:
            orders = f"all {orders}" if len(self.outcomes) > 1 else "every order"
        return f"<Exploration of {self.kernel}: {outcomes} in {orders}>"


Schedule = Sequence[Step | tuple[int | Sequence[int], int] | int]


def explore(
    kernel: Callable,
    grid: Dimensions,
    block: Dimensions,
    *args: Any,
    orders: int | Sequence[Schedule] = 200,
    seed: int = 0,
    shared_bytes: int = 0,
    gpu: str = "H100 SXM",
) -> Exploration:
    """Run one launch in many orders of its warps, and compare the results.

    Warps may switch at every access of shared or global memory; the lanes of a warp stay in lockstep. Every outcome can
    happen on a GPU, but not all are found: a GPU may also show one thread's accesses to another in a different order.

    Parameters
    ----------
    kernel, grid, block, *args, shared_bytes, gpu
        As for `simulate`; at most 64 warps. The arguments stay as they are.
    orders
        The greatest number of orders to run. Or the orders themselves: each a sequence of steps of a schedule, of
        (block, warp) pairs, or, in a grid of one block, of warps. After the sequence, the rest is run warp by warp.
    seed
        Seed of the random choices: the same seed runs the same orders.

    Returns
    -------
    Exploration
        The outcomes, the number of orders that gave each, and an example of each.

    Raises
    ------
    LaunchError
        For a launch that `simulate` refuses, one too large to explore, or an order that no run can have.
    KernelError
        For code outside the kernel language; it names the line.
    """
    trace = simulate(kernel, grid, block, *args, shared_bytes=shared_bytes, gpu=gpu, record=())
    if any(finding.kind == "lane-wait" for finding in trace.findings):
        raise LaunchError(
            "lanes of one warp wait for one another in this launch, and in the orders that are explored they stay "
            "together; let one lane of each warp wait"
        )
    make_launch, arguments = prepare_launch(kernel, grid, block, args, shared_bytes, gpu, pauses=True)
    if any(isinstance(argument, tuple) for argument in arguments):
        raise LaunchError("orders of a launch with a tuple for an argument cannot be explored; pass what it holds")
    search = _Search(make_launch, arguments, seed)
    if isinstance(orders, (int, np.integer)):
        if orders < 1:
            raise LaunchError(f"orders is {orders}, so nothing would run; give a number of orders, such as 100")
        complete = search.search(int(orders))
    else:
        complete = False
        for schedule in orders:
            search.follow(schedule)
    outcomes = search.outcomes(trace.outputs)
    difference = outcomes[1].difference if len(outcomes) > 1 else None
    return Exploration(
        kernel=trace.kernel,
        source=trace.source,
        filename=trace.filename,
        first_line=trace.first_line,
        grid=trace.grid,
        block=trace.block,
        arrays=trace.arrays,
        inputs=tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments),
        outcomes=outcomes,
        orders=len(search.runs_seen),
        complete=complete,
        difference=difference,
        findings=trace.errors,
        explained_by=_explanation(difference, trace.errors),
    )


class _Search:
    """The orders run so far and their outcomes."""

    def __init__(self, make_launch, arguments, seed):
        self.make_launch, self.arguments = make_launch, arguments
        self.random = Random(seed)
        first = self._launch()
        self.per_block = first.warps_per_block
        self.warps = first.blocks * self.per_block
        self.blocks = first.blocks
        if self.warps > MAX_WARPS:
            raise LaunchError(
                f"this launch has {self.warps} warps, and orders of at most {MAX_WARPS} can be explored; use fewer "
                "blocks or smaller ones"
            )
        self.grid = first.grid
        self.runs_seen: dict[frozenset, None] = {}  # by `Races.key`
        self.found_outcomes: dict[Any, dict] = {}  # by their outputs, or the lines of their deadlock
        self.turns = 0

    def _launch(self):
        launch = self.make_launch(labels=lambda block, warp: (block, warp))
        launch.record((), None)
        return launch

    def search(self, max_orders: int) -> bool:
        """Run plain orders, then others with their races reversed; return whether those were all."""
        plain, pending_races, tried_prefixes = self._plain_orders(), [], set()
        for _ in range(max_orders):
            order = next(plain, None) or self._reversal(pending_races, tried_prefixes)
            if order is None or self.turns > MAX_ALL_TURNS:
                break
            try:
                races = self.run(order)
            except CannotRun:  # the second access of the race waits for the first
                continue
            if races:
                pending_races += [(races, pair) for pair in races.pairs]
            if not pending_races:
                break
        return not pending_races

    def _reversal(self, pending_races, tried_prefixes) -> Order | None:
        """Return an order that begins with a random race reversed and continues at random."""
        while pending_races:
            index = self.random.randrange(len(pending_races))
            pending_races[index], pending_races[-1] = pending_races[-1], pending_races[index]
            races, pair = pending_races.pop()
            prefix, prefix_key = races.reversed(*pair)
            if prefix_key not in tried_prefixes:
                tried_prefixes.add(prefix_key)
                ranks = self.random.sample(range(self.warps), self.warps)
                return Order(ranks, prefix, self.random.choice(SHUFFLE_PROBABILITIES), self.random)
        return None

    def _plain_orders(self):
        """Yield the warps in turn, backwards, then with each of them first and each last."""
        warps = list(range(self.warps))
        yield Order(warps)
        yield Order(warps[::-1])
        for w in warps:
            yield Order([w, *warps[:w], *warps[w + 1 :]])
            yield Order([*warps[:w], *warps[w + 1 :], w])

    def follow(self, schedule):
        """Run a given order."""
        prefix = [self._warp_number(step) for step in schedule if not (isinstance(step, Step) and step.warp < 0)]
        try:
            self.run(Order(range(self.warps), prefix))
        except CannotRun as wrong:
            block, warp = self._block_and_warp(wrong.warp)
            block = block[0] if self.grid[1:] == (1, 1) else block
            raise LaunchError(
                f"turn {wrong.turn} of the order (counted from 0) goes to warp {warp} of block {block}, which cannot "
                "run then: it waits, or has ended; leave that turn out, or let the others go first"
            ) from None

    def run(self, order):
        """Run one order; return its races if the run is new."""
        launch = self._launch()
        turns, ended = run_in(order, launch)
        self.turns += order.turns
        races = find_races(turns, self.warps)
        if races.key in self.runs_seen:
            return None
        self.runs_seen[races.key] = None
        outputs = launch.outputs(self.arguments)
        launch.log.drop_undefined()  # `simulate` tells whether anything depends on those
        errors = tuple(f for f in launch.log.finished() if f.severity == "error")
        key = _bytes(outputs) if ended else tuple(f.line for f in errors if f.kind == "deadlock")
        changes = sum(a.warp != b.warp for a, b in pairwise(turns))
        outcome = self.found_outcomes.setdefault(key, {"orders": 0, "changes": changes + 1})
        outcome["orders"] += 1
        if changes < outcome["changes"]:
            outcome |= {"changes": changes, "outputs": outputs, "errors": errors, "races": races, "launch": launch}
        return races

    def outcomes(self, usual) -> tuple[Outcome, ...]:
        """Return the outcomes so far, the commonest first; of equals, the one with the outputs `usual`."""
        found = [self.found_outcomes[key] for key in sorted(self.found_outcomes, key=lambda k: k != _bytes(usual))]
        found.sort(key=lambda o: -o["orders"])
        return tuple(
            Outcome(
                o["outputs"],
                o["orders"],
                self._steps(o["races"], o["launch"]),
                o["errors"],
                self._difference(found[0]["races"], o["races"], o["launch"]),
            )
            for o in found
        )

    def _difference(self, first, second, launch) -> Difference | None:
        divergence = find_divergence(first, second)
        if divergence is None:
            return None
        turn, write = divergence.turn, divergence.write
        site = launch.sites[turn.site]
        element = turn.elements[turn.cells.index(divergence.cell)]
        return Difference(
            array=site.array,
            index=_position(launch, site, element),
            line=turn.line,
            other_line=write.line,
            warp=self._block_and_warp(turn.warp),
            other_warp=self._block_and_warp(write.warp),
            steps=divergence.positions,
            values=divergence.values,
        )

    def _steps(self, races, launch) -> tuple[Step, ...]:
        kinds = [None if turn.members else launch.sites[turn.site].kind for turn in races.turns]
        unordered = [[] for _ in kinds]
        for i, j in races.pairs:
            unordered[i].append(j)
            unordered[j].append(i)
        steps = []
        for turn, kind, others in zip(races.turns, kinds, unordered):
            block, warp = self._block_and_warp(turn.warp)
            if kind is None:
                kind = "grid barrier" if len(turn.members) > self.per_block else "barrier"
                steps.append(Step(block, -1, turn.line, kind, stands=turn.stands))
                continue
            array = launch.sites[turn.site].array
            others = tuple(sorted(others))
            racing = tuple(k for k in others if (kind, kinds[k]) != ("atomic", "atomic"))
            accessed = tuple(turn.elements), tuple(turn.values)
            steps.append(Step(block, warp, turn.line, kind, array, *accessed, others, racing, turn.stands))
        return tuple(steps)

    def _block_and_warp(self, number):
        """Return the block of a warp, and its number there."""
        block, warp = divmod(number, self.per_block)
        x, y, _ = self.grid
        return (block % x, block // x % y, block // (x * y)), warp

    def _warp_number(self, step):
        """Return the number in the launch of a schedule's warp."""
        block, warp = (
            (step.block, step.warp)
            if isinstance(step, Step)
            else (0, step)
            if isinstance(step, (int, np.integer))
            else step
        )
        x, y, z = (int(n) for n in (*np.atleast_1d(block), 0, 0)[:3])
        number = x + self.grid[0] * (y + self.grid[1] * z)
        if not (0 <= number < self.blocks and 0 <= warp < self.per_block):
            raise LaunchError(
                f"there is no warp {warp} in block {block}: the launch has {self.blocks} blocks of {self.per_block} "
                "warps; an order names (block, warp) pairs, or warps of block 0"
            )
        return number * self.per_block + int(warp)


def _bytes(outputs):
    return tuple(o.tobytes() for o in outputs if isinstance(o, np.ndarray))


def _position(launch, site, element) -> tuple[int, ...]:
    """Return the index of an element of a site's array."""
    shapes = {a.name: a.shape for a in launch.arguments if isinstance(a, Array)}
    for number, a in enumerate(launch.program.allocations.values()):
        if a.space == "shared":
            shapes[a.name] = launch.shared_layout[number][0]
    return tuple(int(i) for i in np.unravel_index(element, shapes[site.array]))


def _explanation(difference, findings) -> Finding | None:
    """Return the race behind a difference: that of its two lines, else one on its array."""
    races = [f for f in findings if f.kind == "race" and difference and f.array == difference.array]
    exact = [f for f in races if {f.line, f.other_line} == {difference.line, difference.other_line}]
    return next(iter([*exact, *races]), None)
