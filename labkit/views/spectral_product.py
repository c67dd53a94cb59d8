"""A circular correlation as a product of spectra: one multiplication per frequency, for filters of any size."""

import numpy as np

from labkit.conv.fft.spectra import Spectra
from labkit.views import stills
from labkit.views.base import View, pack, table, unpack

FLOOR = 1e-4  # of the largest size of a spectrum: what is below has the palest colour


def spectral_product(run: Spectra) -> View:
    """Step through filters; the pointer or two sliders choose the frequency whose product is written out.

    Parameters
    ----------
    run
        What `conv.spectra(x, w)` returned. Filters smaller than the largest are padded with zeros at the end.
    """
    K, T = len(run.w), len(run.x)
    taps = [_taps(w) for w in run.w]
    waves = T * T // 2 + 2
    all_spectra = {"X": run.X[None], "W": run.W, "Y": run.Y}
    largest = [float(np.abs(w).max()) or 1.0 for w in run.w]
    data = {
        "say": [
            f"A filter of **{R} x {S}** taps: sliding takes **{R * S:,}** product{'s' * (R * S > 1)} per output. "
            f"The spectra take **one** per frequency, {waves:,} in all, for any filter."
            for R, S in taps
        ],
        "counter": [f"{R} x {S} taps" for R, S in taps],
        "x": pack(_grey(run.x)),
        "w": [pack(w[:R, :S] / most) for w, (R, S), most in zip(run.w, taps, largest, strict=True)],
        "y": pack(np.stack([_grey(y) for y in run.y])),
        "numbers": {
            name: [pack(part[..., : T // 2 + 1]) for part in (np.real(X), np.imag(X))]
            for name, X in all_spectra.items()
        },
        "tops": {name: [float(one.max()) or 1.0 for one in np.abs(X)] for name, X in all_spectra.items()},
        "floor": FLOOR,
        "stats": {
            "labels": ["products per output, sliding", "complex products, by spectra"],
            "values": [[f"{R * S:,}", f"{waves:,}"] for R, S in taps],
        },
        "start": min(K - 1, 4),
        "table": table(
            ["filter", "products per output, sliding", "products of spectra", "W at 0", "W at one period across"],
            [
                [f"{R} x {S}", R * S, waves, *(_complex(W[0, k]) for k in (0, 1))]
                for (R, S), W in zip(taps, run.W, strict=True)
            ],
            by_step=True,
        ),
    }
    return View("spectral_product", "A correlation is a product, frequency by frequency", data, draw_still)


def _taps(w):
    """Return rows and columns of a filter without the zeros at its end."""
    rows, columns = np.nonzero(w)
    return int(rows.max(initial=0)) + 1, int(columns.max(initial=0)) + 1


def _complex(value):
    return f"{value.real:.3g} {'-' if value.imag < 0 else '+'} {abs(value.imag):.3g}i"


def _grey(x):
    low, high = float(x.min()), float(x.max())
    return np.rint(127 * (x - low) / max(1e-9, high - low)).astype(np.int8)


def draw_still(figure, data, step):
    """Draw the image, three spectra and the outputs."""
    stills.set_size_and_title(figure, data, step, 9.5, 2.8)
    axes = figure.subplots(1, 5)
    pictures = {"x": unpack(data["x"]), "y": unpack(data["y"])[step]}
    for part, name in zip(axes, ("x", "X", "W", "Y", "y"), strict=True):
        if name in pictures:
            part.imshow(pictures[name], cmap="gray", vmin=0, vmax=127)
        else:
            re, im = map(unpack, data["numbers"][name])
            size = np.hypot(*(X[step if len(X) > 1 else 0] for X in (re, im)))
            size = np.concatenate([size, np.roll(size[::-1, -2:0:-1], 1, axis=0)], axis=1)
            part.imshow(np.fft.fftshift(np.log10(np.maximum(size / size.max(), FLOOR))), cmap="gray_r")
        stills.hide_marks(part, labelbottom=False, labelleft=False)
        part.set_title(name, fontsize=9, loc="left", weight="bold")
