"""Every recorded step of the book on one scale, relative to the fastest library: one ladder at a time is unfolded."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from labkit.views import stills
from labkit.views.base import COLOURS, View, table

SCALE = (0.001, 4.0)  # of the library's speed; a slower step is drawn at the left edge


@dataclass(frozen=True)
class Rung:
    """A step of a ladder, what it adds, and its recorded speed.

    Attributes
    ----------
    ladder, step
        Path of the ladder, such as "gemm/fp32", and slug of the step.
    idea
        What the step does, in a sentence.
    chapter
        Number of the chapter that teaches it.
    problem, library
        Recorded problem with its format, and the fastest library there; "" if nothing was recorded.
    ratio
        Speed relative to this library; None if nothing was recorded.
    speed
        Speed with its unit.
    share
        Part of the speed that peak arithmetic and DRAM bandwidth allow, if each byte moves once; None on a CPU.
    needs
        Least compute capability of its instructions.
    gpus
        Names of the GPUs that have its instructions and enough shared memory for its blocks.
    """

    ladder: str
    step: str
    idea: str
    chapter: str
    problem: str = ""
    library: str = ""
    ratio: float | None = None
    speed: str = ""
    share: float | None = None
    needs: tuple[int, ...] = (0, 0)
    gpus: tuple[str, ...] = ()


def whole_ladder(rungs: Sequence[Rung], device: str, start: str = "") -> View:
    """Step through all rungs; the ladder of the current one is unfolded, and the others are rows of dots.

    Parameters
    ----------
    rungs
        The steps in the order of the book, those of a ladder together.
    device
        What was measured, for the caption.
    start
        The ladder whose first step is shown first; the first ladder if left out.
    """
    if not rungs:
        raise ValueError("whole_ladder draws the steps of ladders: give it some.")
    ladders = [(name, list(group)) for name, group in groupby(rungs, key=lambda rung: rung.ladder)]
    names = [name for name, _ in ladders]
    if len(set(names)) < len(names):
        raise ValueError("Steps of one ladder are not next to each other: group them by ladder.")
    if start and start not in names:
        raise ValueError(f"There is no ladder {start!r}: choose one of {', '.join(names)}.")
    firsts = [0]
    for _, group in ladders:
        firsts.append(firsts[-1] + len(group))
    missing = [rung.step for rung in rungs if rung.ratio is None]
    beyond = [rung.step for rung in rungs if rung.ratio is not None and rung.ratio < SCALE[0]]
    data = {
        "say": [_sentence(rung, at + 1, len(group)) for _, group in ladders for at, rung in enumerate(group)],
        "start": firsts[names.index(start)] if start else 0,
        "ladders": names,
        "firsts": firsts,
        "steps": [rung.step for rung in rungs],
        "ratios": [rung.ratio for rung in rungs],
        "chapters": [rung.chapter for rung in rungs],
        "scale": SCALE,
        "caption": _caption(device, missing, beyond),
        "table": table(
            ["chapter", "ladder", "step", "relative to the library", "library", "speed", "of the roof", "problem"],
            [
                [
                    *(rung.chapter, rung.ladder, rung.step, _ratio(rung)),
                    *(rung.library, rung.speed, _share(rung), rung.problem),
                ]
                for rung in rungs
            ],
        ),
    }
    return View(
        "whole_ladder", f"{len(rungs)} steps in {len(names)} ladders, compared with libraries", data, draw_still
    )


def _sentence(rung, number, count):
    start = f"Chapter {rung.chapter}, `{rung.ladder}`, step {number} of {count}, `{rung.step}`: {rung.idea}"
    if rung.ratio is None:
        return f"{start} **Not recorded.**"
    roof = "" if rung.share is None else f" and {_share(rung)} of the roof"
    return f"{start} **{_ratio(rung)} of {rung.library}**{roof}: {rung.speed}, {rung.problem}."


def _ratio(rung):
    return "" if rung.ratio is None else _percent(rung.ratio)


def _share(rung):
    return "" if rung.share is None else _percent(rung.share)


def _percent(value):
    return f"{value:.0%}" if value >= 0.0995 else f"{100 * value:.2g}%" if value >= 0.001 else f"{100 * value:.1g}%"


def _caption(device, missing, beyond):
    text = (
        f"{device}. Each step at the problem by which its ladder is compared; compare only steps with the same problem."
    )
    if missing:
        text += f" Not recorded, and without a dot: {', '.join(missing)}."
    if beyond:
        text += f" Slower than {SCALE[0]:.1%} of the library, and a triangle at the left: {', '.join(beyond)}."
    return text


def draw_still(figure, data, step):
    """Draw all ladders as rows of dots, and the steps of the current ladder by name."""
    firsts, ratios = data["firsts"], data["ratios"]
    chosen = next(at for at, last in enumerate(firsts[1:]) if step < last)
    stills.set_size_and_title(figure, data, step, 9.5, 7.5)
    axes = figure.add_subplot()
    low, high = data["scale"]
    at, places, names = 0, [], []
    for number, ladder in enumerate(data["ladders"]):
        inside = range(firsts[number], firsts[number + 1])
        places.append(at)
        names.append(ladder)
        for rung in inside:
            at += number == chosen
            if ratios[rung] is not None:
                colour = COLOURS["hot" if rung == step else "A" if number == chosen else "dim"]
                marker = "o" if ratios[rung] >= low else "<"
                axes.plot(max(ratios[rung], low), at, marker, color=colour, ms=5)
            if number == chosen:
                places.append(at)
                names.append(data["steps"][rung])
        at += 1
    axes.axvline(1, color=COLOURS["fg"], linewidth=1)
    axes.set(xscale="log", xlim=(low / 1.2, high), ylim=(at, -1), xlabel="speed, relative to the fastest library")
    axes.set_xticks([0.001, 0.01, 0.1, 1], ["0.1%", "1%", "10%", "the library"])
    axes.set_yticks(places, names, fontsize=7)
    stills.hide_marks(axes)
