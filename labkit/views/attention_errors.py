"""Errors of attention against float64, with scores stored in memory and with scores kept on the chip."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float64

from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack
from labkit.views.wording import join

FORMAT_COLOURS = ("B", "A", "C", "dim")  # keys of `COLOURS`, for the first format, the second, ...


def attention_errors(
    spreads: Sequence[float],
    weights: Float64[np.ndarray, "spreads keys"],
    stored: Mapping[str, Sequence[float]],
    fused: Mapping[str, Sequence[float]],
) -> View:
    """Step through spreads of the scores: a query's probabilities, and the error of O by way and format.

    Parameters
    ----------
    spreads
        Standard deviations of the scores, from the least on.
    weights
        One query's probabilities at each spread.
    stored, fused
        Relative errors of O at each spread, by format: with the matrix of scores in memory, and kept on the chip.
    """
    spreads = [float(spread) for spread in spreads]
    if not spreads or spreads != sorted(spreads) or spreads[0] <= 0:
        raise ValueError(f"spreads are numbers above 0 in rising order, and these are {spreads}.")
    if not fused or set(fused) != set(stored):
        raise ValueError(
            f"stored has the formats {join(sorted(stored)) or 'none'}, and fused {join(sorted(fused)) or 'none'}: give "
            "both in the same formats."
        )
    if len(fused) > len(FORMAT_COLOURS):
        most = len(FORMAT_COLOURS)
        raise ValueError(f"The picture tells {most} formats apart, and these are {len(fused)}: leave some out.")
    for name, values in [("weights", weights), *stored.items(), *fused.items()]:
        if len(values) != len(spreads):
            raise ValueError(
                f"{name} has {len(values)} entries, and there are {len(spreads)} spreads: give one for each."
            )
    errors = {name: [list(map(float, ways[name])) for ways in (stored, fused)] for name in fused}
    ranked = -np.sort(-np.asarray(weights, float), axis=1)
    says = [
        _sentence(spread, ranked[n], {name: [of[n] for of in both] for name, both in errors.items()})
        for n, spread in enumerate(spreads)
    ]
    columns = [f"{name}, {way}" for name in errors for way in ("scores stored", "fused")]
    rows = [
        [f"{spread:g}", f"{ranked[n, 0]:.3f}", *(f"{of[n]:.1e}" for both in errors.values() for of in both)]
        for n, spread in enumerate(spreads)
    ]
    data = {
        "say": says,
        "counter": [f"spread {spread:g}" for spread in spreads],
        "spreads": spreads,
        "weights": pack(ranked),
        "names": list(errors),
        "looks": list(FORMAT_COLOURS[: len(errors)]),
        "errors": pack(np.array(list(errors.values()))),
        "limits": _limits(errors),
        "start": len(spreads) // 2,
        "table": table(["spread of the scores", "largest probability", *columns], rows, by_step=True),
    }
    return View("attention_errors", "Error of attention, by the spread of its scores", data, draw_still)


def _limits(errors):
    """Return the powers of ten between which all errors are."""
    values = np.array(list(errors.values()))
    values = values[np.isfinite(values) & (values > 0)]
    low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))
    return [float(10.0**low), float(10.0 ** max(high, low + 1))]


def _sentence(spread, weights, errors) -> str:
    says = [f"Scores spread by **{spread:g}**: the largest of {len(weights)} probabilities is {weights[0]:.2f}."]
    finite = {name: both for name, both in errors.items() if all(0 < error < np.inf for error in both)}
    if finite:
        times = [f"by **{stored / fused:.1f}** in {name}" for name, (stored, fused) in finite.items()]
        says.append(f"Storing the scores multiplies the error of O {join(times)}.")
    if overflowed := [name for name, (stored, _) in errors.items() if stored == np.inf]:
        says.append(f"With scores stored in {join(overflowed)}, O is no longer a finite number.")
    return " ".join(says)


def draw_still(figure, data, step):
    """Draw the errors by spread, with the step marked, and the probabilities of the step."""
    stills.set_size_and_title(figure, data, step, 9.5, 3.8, fontsize=8, wrap=True)
    bars, chart = figure.subplots(1, 2, width_ratios=[1, 1.8])
    weights = unpack(data["weights"])[step]
    bars.bar(range(len(weights)), weights, color=COLOURS["A"])
    bars.set_xlabel("keys, by probability", fontsize=8)
    bars.set_ylabel("probability of a key", fontsize=8)
    for name, look, (stored, fused) in zip(data["names"], data["looks"], unpack(data["errors"]), strict=True):
        chart.loglog(data["spreads"], stored, "o--", color=COLOURS[look], markerfacecolor="white", markersize=5)
        chart.loglog(data["spreads"], fused, "o-", color=COLOURS[look], markersize=5, label=name)
    chart.axvline(data["spreads"][step], color=COLOURS["hot"], linewidth=6, alpha=0.2)
    chart.set_ylim(*data["limits"])
    chart.set_xlabel("spread of the scores; dashed: with scores stored", fontsize=8)
    chart.set_ylabel("error of O, over O", fontsize=8)
    chart.legend(fontsize=8, frameon=False)
    for axes in (bars, chart):
        stills.hide_top_and_right(axes)
