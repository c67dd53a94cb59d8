"""The measured speed of a ladder's steps as bars, compared with a library and the GPU's peak, one size at a time."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from labkit import results
from labkit.results import Results
from labkit.table import short_number
from labkit.views import stills
from labkit.views.base import COLOURS, View, table
from labkit.views.records import UNITS, caption_text, check_one_value, published_peak
from labkit.views.records_figure import Series

UNIT = UNITS["tflops"]


def ladder(
    record: str | Results,
    title: str,
    steps: Sequence[str],
    baseline: str,
    problems: Mapping[str, str],
    start: str | None = None,
    notes: Mapping[str, Mapping[str, str] | str] | None = None,
) -> View:
    """Draw TFLOP/s of each step of a ladder; the size of the problem is the step of the view, and the scale is fixed.

    Parameters
    ----------
    record
        Name of a record, which `results.load` finds, or the record.
    title
        The message, in a sentence.
    steps
        Slugs of the steps, in the ladder's order.
    baseline
        The library that is drawn as a line.
    problems
        Problems of the record, in order, and the names that are shown.
    start
        The problem that is shown first; the first one if left out.
    notes
        Headings, and under each a short text for each step that has one, or a field of the record's rows of the first
        problem shown; they are written at the right.

    Raises
    ------
    ValueError
        The record has no row of a problem with this baseline.
    """
    loaded = results.as_results(record)
    rows = loaded.select(baseline=baseline)
    tables = [_speeds(rows, steps, baseline, problem) for problem in problems]
    peak = published_peak(loaded, rows, "tflops")
    shown_rows = {row["step"]: row for row in rows if row["problem"] == (start or next(iter(problems)))}
    texts_by_note = {
        name: {step: str(row[note]) for step, row in shown_rows.items()} if isinstance(note, str) else note
        for name, note in (notes or {}).items()
    }
    names = list(problems.values())
    data = {
        "say": [_sentence(*each, baseline, peak.value) for each in zip(names, tables, strict=True)],
        "counter": names,
        "start": 0 if start is None else list(problems).index(start),
        "problems": names,
        "steps": list(steps),
        "speeds": [[speeds.get(step) for step in steps] for speeds in tables],
        "gains": [_gains(steps, speeds) for speeds in tables],
        "baseline": [baseline, [speeds[baseline] for speeds in tables]],
        "peak": [peak.value, peak.text],
        "notes": [[name, [texts.get(step, "") for step in steps]] for name, texts in texts_by_note.items()],
        "caption": caption_text(loaded, rows, [Series(baseline, baseline, {}, is_step=False)], [], []),
        "table": table(
            [
                "step",
                *(f"{name}, {UNIT.strip()}" for name in names),
                *(name.replace("\n", " ") for name in texts_by_note),
            ],
            [
                [
                    step,
                    *(_text(speeds.get(step)) for speeds in tables),
                    *(texts.get(step, "") for texts in texts_by_note.values()),
                ]
                for step in [*steps, baseline]
            ],
        ),
    }
    return View("ladder", title, data, draw_still)


def _speeds(rows, steps, baseline, problem) -> dict[str, float]:
    """Return TFLOP/s of each measured step, and of the baseline."""
    speeds = {}
    for step in steps:
        found = [row for row in rows if row["step"] == step and row["problem"] == problem]
        check_one_value(found, step, "problem", problem, is_step=True)
        for row in found:
            speeds[step] = row["tflops"]
            speeds[baseline] = row["flops"] / row["baseline_time_ms"] / 1e9
    if not speeds:
        raise ValueError(f"No step was measured against {baseline} on {problem}: choose another problem.")
    return speeds


def _gains(steps, speeds) -> list[float | None]:
    """Return by which share each step is faster than the one before it."""
    pairs = pairwise(steps)
    return [None, *(speeds[b] / speeds[a] - 1 if a in speeds and b in speeds else None for a, b in pairs)]


def _sentence(name, speeds, baseline, peak):
    ours = {step: speed for step, speed in speeds.items() if step != baseline}
    best = max(ours, key=ours.__getitem__)
    return (
        f"{name}: `{best}` is the fastest step, **{_text(ours[best])}{UNIT}**, {ours[best] / speeds[baseline]:.0%} of "
        f"{baseline} and {ours[best] / peak:.0%} of the peak."
    )


def _text(value) -> str:
    return "" if value is None else short_number(value)


def draw_still(figure, data, step):
    """Draw the bars of one problem."""
    speeds, (peak, peak_text), (baseline, lines) = data["speeds"][step], data["peak"], data["baseline"]
    stills.set_size_and_title(figure, data, step, 9.5, 1.3 + 0.3 * len(speeds))
    axes = figure.add_subplot()
    for at, (speed, gain) in enumerate(zip(speeds, data["gains"][step], strict=True)):
        if speed is not None:
            axes.barh(at, speed, 0.7, color=COLOURS["A" if gain is None or gain >= 0 else "hot"])
            axes.text(speed + peak / 100, at, _text(speed) + _signed(gain), va="center", fontsize=8)
    for value, text, style in ((lines[step], baseline, "--"), (peak, peak_text, "-")):
        axes.axvline(value, color=COLOURS["fg"], linestyle=style, linewidth=1.2)
        axes.text(value, -0.75, text, fontsize=8, ha="right" if value == peak else "center")
    axes.set_yticks(range(len(speeds)), data["steps"], fontsize=8)
    axes.set(xlim=(0, 1.02 * peak), ylim=(len(speeds) - 0.4, -1.1), xlabel=UNIT.strip())
    stills.hide_marks(axes, labelsize=8)


def _signed(gain) -> str:
    return "" if gain is None else f"  {gain:+.1%}"
