"""The parts of an exercise: plain data, one `EXERCISE` per file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from labkit.checking.budget import Budget
from labkit.checking.duty import Dependence, Duty, InputDependence
from labkit.checking.mistake import Mistake
from labkit.ladder import Expected


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
