"""Variances by several kernels, on data whose mean and spread sliders choose: the error of each, and its cause."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float32

from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack
from labkit.views.wording import join

KERNEL_STYLES = (("D", "●"), ("A", "■"), ("C", "▲"), ("B", "◆"))  # colour and mark of each, in order
SHOWN_VALUES = 96  # values of a place on the number line
LEAST, MOST = 1e-8, 1e4  # errors that are told apart
DIGITS = 7  # of a float32


def variance_errors(
    means: Sequence[float],
    spreads: Sequence[float],
    x: Float32[np.ndarray, "means spreads values"],
    found: Mapping[str, Float32[np.ndarray, "means spreads"]],
) -> View:
    """Show the errors of variances against float64, by mean and spread.

    Parameters
    ----------
    means, spreads
        About which the data were drawn, and their standard deviations, each from the least to the largest.
    x
        The data.
    found
        The variances of x that a kernel found, by its name; at most four.
    """
    x, shape = np.asarray(x, np.float32), (len(means), len(spreads))
    if x.ndim != 3 or x.shape[:2] != shape or any(np.shape(of) != shape for of in found.values()):
        raise ValueError(
            f"variance_errors takes x with a row of values, and variances, for {shape[0]} x {shape[1]} places."
        )
    if not 1 <= len(found) <= len(KERNEL_STYLES):
        most = len(KERNEL_STYLES)
        raise ValueError(f"variance_errors shows one to {most} kernels, not {len(found)}: leave some out.")
    exact = x.astype(float).var(2)
    errors = {name: relative_errors(np.asarray(of, float), exact) for name, of in found.items()}
    digits = {name: right_digits(error) for name, error in errors.items()}
    share_without_digits = {name: float((of == 0).mean()) for name, of in digits.items()}
    worst_kernel = max(share_without_digits, key=share_without_digits.__getitem__)
    first = len(means) * 2 // 3, len(spreads) // 2
    rows = [
        [f"{means[m]:g}", f"{spreads[s]:g}", f"{exact[m, s]:.6g}", *(f"{of[m, s]:.6g}" for of in found.values())]
        for m, s in np.ndindex(exact.shape)
    ]
    data = {
        "say": f"`{worst_kernel}` has **no digit right** at {share_without_digits[worst_kernel]:.0%} of these means "
        f"and spreads. Fewest right digits anywhere: {join([f'`{name}` {of.min()}' for name, of in digits.items()])}.",
        "means": list(map(float, means)),
        "spreads": list(map(float, spreads)),
        "first": first,
        "names": list(found),
        "looks": [list(look) for look in KERNEL_STYLES[: len(found)]],
        "exact": pack(exact),
        "found": pack(np.stack([np.asarray(of, float) for of in found.values()])),
        "errors": pack(np.stack(list(errors.values()))),
        "digits": pack(np.stack(list(digits.values()))),
        "spacing": pack(np.array([np.spacing(np.float32(mean)) for mean in means])),
        "offset": pack(np.array([float(np.float32(mean)) - mean for mean in means])),
        "away": pack(x[..., :SHOWN_VALUES].astype(float) - np.asarray(means, float)[:, None, None]),
        "limits": [LEAST, MOST],
        "table": table(["mean", "spread", "variance in float64", *found], rows),
    }
    return View("variance_errors", "The variance in float32, by mean and spread", data, draw_still)


def relative_errors(found, exact):
    """Return errors relative to the exact values; where these are 0, the error is 0 or the largest shown."""
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.abs(found - exact) / exact
    error = np.where(exact > 0, error, np.where(found == 0, 0.0, MOST))
    return np.minimum(np.nan_to_num(error, nan=MOST), MOST)


def right_digits(error):
    """Return the number of right digits, from 0 to those of a float32."""
    return np.clip(np.floor(-np.log10(np.maximum(error, 10.0**-DIGITS))), 0, DIGITS).astype(int)


def draw_still(figure, data, step):
    """Draw the errors by mean, at the spread that is shown first."""
    stills.set_size_and_title(figure, data, step, 8.4, 4)
    axes, spread = figure.subplots(), data["first"][1]
    least, most = data["limits"]
    for name, (colour, _), errors, marker in zip(data["names"], data["looks"], unpack(data["errors"]), "os^D"):
        shown = np.clip(errors[:, spread], least, most)
        axes.loglog(data["means"], shown, marker=marker, markersize=4, color=COLOURS[colour], label=name)
    axes.axhline(0.1, color=COLOURS["dim"], linewidth=1, linestyle="--")
    axes.set_xlabel(f"mean, where the spread is {data['spreads'][spread]:g}", fontsize=8)
    axes.set_ylabel("error of the variance, over the variance", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=8, frameon=False)
