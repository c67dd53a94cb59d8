"""What an exercise is made of: plain data, one `EXERCISE` a file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from labkit.checking.budget import Budget
from labkit.checking.duty import Dependence, Duty, Reliance
from labkit.ladder import Expected


@dataclass(frozen=True)
class Launch:
    """One run of the learner's code: where, on what, and what must come out.

    `outputs` maps the position of an argument to what it must hold afterwards; every other array
    must come back as it went in. A compiled loop has neither grid nor block.
    """

    label: str
    args: tuple[Any, ...]
    outputs: Mapping[int, Expected]
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    shared_bytes: int = 0
    budgets: tuple[Budget, ...] = ()
    duties: tuple[Duty, ...] = ()
    dependences: tuple[Dependence | Reliance, ...] = ()


@dataclass(frozen=True)
class Questions:
    """Calls of a learner's plain function, each by its arguments, and what is wrong with its answers to them.

    `wrong` takes the answers, in the order of the calls, and gives a sentence; "" where all are right.
    """

    label: str
    calls: tuple[tuple[Any, ...], ...]
    wrong: Callable[[Sequence[Any]], str]


@dataclass(frozen=True)
class Beyond:
    """Sizes of which none is the largest: a quarter beyond `most`, and a number of `step`s that has no end."""

    most: int
    step: int = 1

    def draw(self, rng: np.random.Generator) -> int:
        """One of them, about twice as large as `most`."""
        return self.most + self.step * (
            self.most // 4 // self.step + int(rng.geometric(min(1.0, self.step / self.most)))
        )


@dataclass(frozen=True)
class Exercise:
    """A task and all that its check needs.

    Attributes
    ----------
    id
        The exercise's slug, which is the name of its file: "pad-the-tile".
    function
        The name that the learner's cell defines.
    launch
        Makes one run from a random generator and its sizes (and from the values of `constants`).
    sizes
        The sizes that every check runs on: few, and awkward on purpose.
    drawn
        What the sizes of more runs are drawn from, a run each, so that no answer can rely on the fixed ones.
    constants
        Names of whole numbers that the learner's cell chooses, such as TILE.
    number
        What is shown of it, "03.2": it follows from the table of contents, and no file states it.
    machine
        "gpu": a kernel for the simulator; "cpu": a compiled loop, traced through a CPU's caches; "python": a plain
        function, for which `launch` makes `Questions`.
    """

    id: str
    title: str
    task: str
    points: int
    function: str
    launch: Callable[..., Launch | Questions]
    sizes: tuple[tuple[float, ...], ...]
    drawn: tuple[tuple[Sequence[float] | Beyond, ...], ...]
    constants: tuple[str, ...] = ()
    machine: Literal["gpu", "cpu", "python"] = "gpu"
    number: str = ""

    @property
    def headline(self) -> str:
        """The number and the title, as they are shown together."""
        return f"{self.number or self.id} {self.title}"

    def launches(self, seed: int, draws: int = 1, **constants: int) -> Iterator[Launch | Questions]:
        """The runs of one check: on the fixed sizes, then on sizes that the seed and the next ones draw, so many."""
        rng = np.random.default_rng(seed)
        for size in self.sizes:
            yield self.launch(rng, *size, **constants)
        for drawing in range(seed, seed + draws):
            rng = np.random.default_rng([drawing, 2])
            for spans in self.drawn:
                sizes = (span.draw(rng) if isinstance(span, Beyond) else rng.choice(span).item() for span in spans)
                launch = self.launch(rng, *sizes, **constants)
                yield replace(launch, label=f"{launch.label}, drawn with seed {drawing}")
