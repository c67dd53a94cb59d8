"""An outlier that a rotation spreads, stage by stage, and the error of attention in e4m3."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, stats_by_step, unpack

LINE_COLOURS = "A", "C"  # of the errors of O


def rotation(
    row: Float[np.ndarray, "stages D"],
    rounded: Float[np.ndarray, "stages D"],
    score_errors: Mapping[str, Sequence[float]],
    errors: Mapping[str, Sequence[float]],
) -> View:
    """Step through the stages of a rotation: the values of a row, their rounding errors, and the error of O.

    The arguments are those of `labkit.attention.rotation_study`.

    Parameters
    ----------
    row, rounded
        A row of K after each stage, exact and rounded.
    score_errors
        Root mean square errors of scores at each stage, by which scores count.
    errors
        Root mean square errors of O at each stage, by the scales of the quantisation.
    """
    row, rounded = (np.asarray(X, float) for X in (row, rounded))
    stages = len(row)
    if row.ndim != 2 or rounded.shape != row.shape or any(len(values) != stages for values in score_errors.values()):
        raise ValueError("rotation takes a row after each stage, its rounded values, and errors for each stage.")
    if not 0 < len(errors) <= len(LINE_COLOURS) or any(len(values) != stages for values in errors.values()):
        raise ValueError(f"rotation draws 1 or {len(LINE_COLOURS)} lines of errors, with a value for each stage.")
    largest, off = np.abs(row).max(1), np.abs(rounded - row)
    share = (off**2).max(1) / (off**2).sum(1)  # of the squared error, in one element
    says = [
        _sentence(n, stages, largest[n], share[n], [values[n] for values in errors.values()]) for n in range(stages)
    ]
    labels = [
        "largest of the row",
        "largest rounding error",
        *(f"error of {name}" for name in score_errors),
        *(f"error of O, {name}" for name in errors),
    ]
    stats = [
        [f"{largest[n]:.1f}", f"{off[n].max():.2f}", *(f"{values[n]:.3f}" for values in score_errors.values())]
        + [f"{values[n]:.1e}" for values in errors.values()]
        for n in range(stages)
    ]
    data = {
        "say": says,
        "row": pack(row),
        "off": pack(rounded - row),
        "names": list(errors),
        "errors": pack(np.array([list(values) for values in errors.values()])),
        **stats_by_step(["stage"], [[n] for n in range(stages)], labels, stats),
    }
    # below the picture the lines are named as in its legend: the names of their scales would not fit in one row
    lines = ["solid line", "dashed line"][: len(errors)]
    data["stats"]["labels"] = [*labels[: -len(errors)], *(f"error of O, {line}" for line in lines)]
    return View("rotation", "A rotation spreads an outlier", data, draw_still)


def _sentence(stage, stages, largest, share, errors) -> str:
    if stage == 0:
        return (
            f"A row of K as it is: its largest element is {largest:.1f}, an outlier. **{share:.0%} of the squared "
            "rounding error** comes from one element."
        )
    return (
        f"Stage {stage} of {stages - 1}: the outlier is spread over {2**stage} elements. One element has {share:.0%} "
        f"of the squared error now. The smaller error of O is **{min(errors):.1e}**."
    )


def draw_still(figure, data, step):
    """Draw the row and its rounding errors at a stage, and the error of O over all stages."""
    stills.set_size_and_title(figure, data, step, 10, 3.6)
    grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
    for line, (name, colour, label) in enumerate((("row", "A", "row of K"), ("off", "D", "rounding error"))):
        axes, values = figure.add_subplot(grid[line, 0]), unpack(data[name])
        axes.vlines(np.arange(values.shape[1]), 0, values[step], color=COLOURS[colour], linewidth=1.5)
        limit = 1.05 * np.abs(values).max()
        axes.set_ylim(-limit, limit)
        axes.set_ylabel(label, fontsize=8)
        stills.hide_top_and_right(axes)
    axes = figure.add_subplot(grid[:, 1])
    for values, name, colour in zip(unpack(data["errors"]), data["names"], LINE_COLOURS):
        axes.plot(values, "-o", color=COLOURS[colour], label=name, markersize=3)
    axes.axvline(step, color=COLOURS["hot"], linewidth=6, alpha=0.2)
    axes.set(xlabel="stages of the rotation", ylabel="error of O", ylim=(0, None))
    axes.legend(fontsize=7)
    stills.hide_top_and_right(axes)
