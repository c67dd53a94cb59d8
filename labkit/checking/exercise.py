"""The parts of an exercise: plain data, one `EXERCISE` per file."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

import numpy as np

from labkit.checking.budget import Budget
from labkit.checking.duty import Dependence, Duty, InputDependence
from labkit.checking.mistake import Mistake
from labkit.ladder import Expected

MOST_WORK = 2**22  # product of the sizes of a run beyond a limit


@dataclass(frozen=True)
class Launch:
    """One run of the learner's code: its arguments, its geometry, the results and counts that it must have."""

    label: str  # names the run in the verdict
    args: tuple[Any, ...]  # arrays that are not in `outputs` must come back unchanged
    outputs: Mapping[int, Expected]  # position of an argument -> its values after the run
    grid: tuple[int, ...] = ()  # none for a compiled loop
    block: tuple[int, ...] = ()
    shared_bytes: int = 0  # dynamic shared memory per block
    budgets: tuple[Budget, ...] = ()  # upper limits of counters
    duties: tuple[Duty, ...] = ()  # limits of counters that show the technique, such as a least number of barriers
    dependences: tuple[Dependence | InputDependence, ...] = ()  # what the result must depend on
    mistakes: tuple[Mistake, ...] = ()  # usual ones; the first that explains a wrong result names its cause
    may_stop: bool = False  # whether it is no fault that a run is stopped for its time
    nan_sources: str = "infinity - infinity, infinity / infinity, 0 * infinity, or memory that was never written"


@dataclass(frozen=True)
class Questions:
    """Calls of a learner's plain function, with the judgement on its answers."""

    label: str  # names the calls in the verdict
    calls: tuple[tuple[Any, ...], ...]  # arguments of each call
    find_mistake: Callable[[Sequence[Any]], str]  # from all answers in order to a sentence; "" if all are right
    # usual causes, each with the answer that it gives a call, and with its cure, a sentence, if there is more to say
    mistakes: tuple[tuple[str, Callable[..., Any]] | tuple[str, Callable[..., Any], str], ...] = ()


@dataclass(frozen=True)
class Above:
    """A random size above the published range: `Above(96)` draws 121 or more, 216 on average, without an upper end."""

    largest: int  # greatest published size
    step: int = 1  # draws exceed `largest` by a multiple of this

    def draw(self, rng: np.random.Generator) -> int:
        """Draw a size: at least 1.25 times `largest`, about twice as large on average."""
        steps = self.largest // 4 // self.step + int(rng.geometric(min(1.0, self.step / self.largest)))
        return self.largest + self.step * steps

    @property
    def least_drawn(self) -> int:
        """The least size that is drawn."""
        return self.largest + self.step * (self.largest // 4 // self.step + 1)

    def draw_beyond(self, limit: int, rng: np.random.Generator) -> int:
        """Draw a size a little beyond a limit."""
        steps = (limit - self.largest) // self.step + int(rng.integers(1, 4))
        return self.largest + self.step * steps


@dataclass(frozen=True)
class Exercise:
    """A task and all that its check needs.

    Attributes
    ----------
    function
        The name that the learner's cell defines.
    make_launch
        Makes one run from a random generator, sizes, and the values of `constants`.
    sizes
        Sizes of the runs that every check makes: few, and chosen to expose mistakes.
    random_sizes
        Choices for the sizes of further runs, one run per entry, so that no answer can rely on the fixed sizes.
    constants
        Names of positive integers that the learner's cell chooses, such as TILE.
    machine
        "gpu": a kernel for the simulator; "cpu": a compiled loop, traced through a CPU's caches; "python": a plain
        function, for which `make_launch` makes `Questions`.
    finds_fault
        Whether the task is to find a fault in code that is given: then no verdict names the change that is needed.
    id, number
        The slug, "pad-the-tile", which is the name of the exercise's file; and the number shown to learners, "03.2",
        which follows from the table of contents. No file states them: `labkit.exercises.exercise` sets both.
    """

    title: str
    task: str
    points: int
    function: str
    make_launch: Callable[..., Launch | Questions]
    sizes: tuple[tuple[float, ...], ...]
    random_sizes: tuple[tuple[Sequence[float] | Above, ...], ...]
    constants: tuple[str, ...] = ()
    machine: Literal["gpu", "cpu", "python"] = "gpu"
    finds_fault: bool = False
    id: str = ""
    number: str = ""

    @property
    def headline(self) -> str:
        """The number and the title, as they are shown together."""
        return f"{self.number or self.id} {self.title}"

    def make_launches(self, seed: int, draws: int = 1, **constants: int) -> Iterator[Launch | Questions]:
        """Make the runs of one check: on the fixed sizes, then on sizes drawn with `seed` and the next `draws` - 1."""
        rng = np.random.default_rng(seed)
        for size in self.sizes:
            yield self.make_launch(rng, *size, **constants)
        for drawn_seed in range(seed, seed + draws):
            rng = np.random.default_rng([drawn_seed, 2])
            for spans in self.random_sizes:
                sizes = (span.draw(rng) if isinstance(span, Above) else rng.choice(span).item() for span in spans)
                launch = self.make_launch(rng, *sizes, **constants)
                yield replace(launch, label=f"{launch.label}, drawn with seed {drawn_seed}")

    def make_launches_beyond(
        self, groups: Iterable[Iterable[int]], seed: int, **constants: int
    ) -> Iterator[Launch | Questions]:
        """Make runs beyond limits, for each size without an upper end.

        Of each group of limits, the greatest is exceeded that there is time for. One that each drawn size exceeds is
        left out.
        """
        for position in range(max(map(len, self.random_sizes), default=0)):
            rng = np.random.default_rng([seed, 3, position])
            choices = [spans for spans in self.random_sizes if isinstance((*spans[position:], 0)[0], Above)]
            found = {limit: sizes for group in groups for limit, sizes in _find_beyond(choices, position, group, rng)}
            for limit, sizes in found.items():
                launch = self.make_launch(rng, *sizes, **constants)
                yield replace(launch, label=f"{launch.label}, beyond the {limit} in the code", may_stop=True)


def _find_beyond(choices, position, limits, rng):
    """Yield the greatest limit that there is time to exceed, with the sizes of the run that does."""
    for limit in sorted(limits, reverse=True):
        drawn = [_draw_beyond(spans, position, limit, rng) for spans in choices if limit >= spans[position].least_drawn]
        sizes = min(drawn, key=_count_work, default=())
        if sizes and _count_work(sizes) <= MOST_WORK:
            yield limit, sizes
            return


def _draw_beyond(spans, position, limit, rng):
    """Draw sizes of which one exceeds a limit, and the others are small."""
    sizes = [span.least_drawn if isinstance(span, Above) else rng.choice(span).item() for span in spans]
    sizes[position] = spans[position].draw_beyond(limit, rng)
    return sizes


def _count_work(sizes):
    return prod(size for size in sizes if isinstance(size, int) and size > 1)  # a float is no size
