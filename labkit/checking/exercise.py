"""The parts of an exercise: plain data, one `EXERCISE` per file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from labkit.checking.budget import Budget
from labkit.checking.duty import Dependence, Duty, InputDependence
from labkit.ladder import Expected


@dataclass(frozen=True)
class Launch:
    """One run of the learner's code: its arguments, its geometry, and the results and counts it must have.

    Attributes
    ----------
    label
        The run in a few words, as the verdict names it.
    args
        All arguments in order. Arrays that are not in `outputs` must come back unchanged.
    outputs
        Position of an argument -> the values it must hold after the run.
    grid, block
        Launch shape; empty for a compiled loop.
    shared_bytes
        Dynamic shared memory in bytes per block.
    budgets, duties, dependences
        Upper limits of counters, lower limits of counters, and what the result must depend on.
    """

    label: str
    args: tuple[Any, ...]
    outputs: Mapping[int, Expected]
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    shared_bytes: int = 0
    budgets: tuple[Budget, ...] = ()
    duties: tuple[Duty, ...] = ()
    dependences: tuple[Dependence | InputDependence, ...] = ()


@dataclass(frozen=True)
class Questions:
    """Calls of a learner's plain function, with the judgement on its answers.

    Attributes
    ----------
    label
        The calls in a few words, as the verdict names them.
    calls
        The arguments of each call.
    find_mistake
        Takes the answers in the order of the calls; returns the first mistake as a sentence, "" if all are right.
    """

    label: str
    calls: tuple[tuple[Any, ...], ...]
    find_mistake: Callable[[Sequence[Any]], str]


@dataclass(frozen=True)
class Beyond:
    """Random size above the published range, unbounded.

    Attributes
    ----------
    largest
        Greatest published size.
    step
        Draws exceed `largest` by a multiple of this.
    """

    largest: int
    step: int = 1

    def draw(self, rng: np.random.Generator) -> int:
        """Draw a size: at least 1.25 times `largest`, about twice as large on average."""
        steps = self.largest // 4 // self.step + int(rng.geometric(min(1.0, self.step / self.largest)))
        return self.largest + self.step * steps


@dataclass(frozen=True)
class Exercise:
    """A task and all that its check needs.

    Attributes
    ----------
    id
        The exercise's slug, which is the name of its file: "pad-the-tile".
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
    number
        The number shown to learners, "03.2". It follows from the table of contents; no file states it.
    """

    id: str
    title: str
    task: str
    points: int
    function: str
    make_launch: Callable[..., Launch | Questions]
    sizes: tuple[tuple[float, ...], ...]
    random_sizes: tuple[tuple[Sequence[float] | Beyond, ...], ...]
    constants: tuple[str, ...] = ()
    machine: Literal["gpu", "cpu", "python"] = "gpu"
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
                sizes = (span.draw(rng) if isinstance(span, Beyond) else rng.choice(span).item() for span in spans)
                launch = self.make_launch(rng, *sizes, **constants)
                yield replace(launch, label=f"{launch.label}, drawn with seed {drawn_seed}")
