"""An image as a sum of waves: its spectrum, each wave, and the sum of the strongest ones."""

import numpy as np
from jaxtyping import Complex, Float

from labkit.table import count_text
from labkit.views import stills
from labkit.views.base import View, pack, table, unpack

LEVELS = 127  # of a grey in what travels to the picture


def spectrum(x: Float[np.ndarray, "T T"], X: Complex[np.ndarray, "T T"]) -> View:
    """Step from one wave to all of them, the strongest first; the pointer or two sliders choose a wave to look at.

    Parameters
    ----------
    x
        Image, from 0 (black) to 1 (white).
    X
        Its spectrum, with all T x T frequencies, as a kernel computed it.
    """
    x, X = np.asarray(x, np.float64), np.asarray(X, np.complex128)
    if x.ndim != 2 or x.shape[0] != x.shape[1] or X.shape != x.shape:
        raise ValueError("spectrum takes a square image and its spectrum, which has the same shape.")
    T = len(x)
    waves = _waves(X)
    counts = [*(2**i for i in range(len(waves).bit_length()) if 2**i < 0.8 * len(waves)), len(waves)]
    used, sums = np.full(X.shape, len(waves)), []
    for index, (u, v) in enumerate(waves):
        used[u, v] = used[-u, -v] = index  # of the wave, from the strongest on
    for count in counts:
        sums.append(np.fft.ifft2(np.where(used < count, X, 0)).real)
    contrast = x.std() or 1.0
    off = [float(np.sqrt(((one - x) ** 2).mean()) / contrast) for one in sums]
    size = np.log10(np.maximum(np.abs(X), np.abs(X).max() * 1e-4))
    last = [waves[count - 1] for count in counts]
    data = {
        "say": [_sentence(*each, len(waves), T) for each in zip(counts, off, last, strict=True)],
        "counter": [count_text(count, "wave") for count in counts],
        "x": pack(_grey(x)),
        "sums": pack(np.stack([_grey(one) for one in sums])),
        "size": pack((size - size.min()) / max(1e-9, size.max() - size.min())),
        "used": pack(used),
        "re": pack(np.real(X) / T**2),
        "im": pack(np.imag(X) / T**2),
        "counts": counts,
        "last": [list(map(int, wave)) for wave in last],
        "start": min(len(counts) - 1, 5),
        "labels": ["waves in the sum", "error of the sum, in % of the contrast"],
        "stats": [[count, _percent(error)] for count, error in zip(counts, off, strict=True)],
        "table": table(
            ["waves", "last one: periods down", "across", "off by"],
            [
                [count, *(_signed(k, T) for k in wave), _percent(error)]
                for count, error, wave in zip(counts, off, last, strict=True)
            ],
            by_step=True,
        ),
    }
    return View("spectrum", "A picture is a sum of waves", data, draw_still)


def _waves(X) -> list[tuple[int, int]]:
    """Return a frequency for each wave, the strongest first; a frequency and its mirror are one wave."""
    T = len(X)
    mirrors = {}
    for u, v in np.ndindex(X.shape):
        mirrors.setdefault(min((u, v), (-u % T, -v % T)), None)
    pairs = [(abs(X[wave]) * (1 if wave == (-wave[0] % T, -wave[1] % T) else 2), wave) for wave in mirrors]
    return [wave for _, wave in sorted(pairs, key=lambda pair: (-pair[0], pair[1]))]


def _signed(k, T):
    """Return a frequency as periods, negative beyond the fastest wave."""
    return int(k) if 2 * k <= T else int(k) - T


def _percent(share):
    return f"{share:.1%}" if 0.0005 <= share < 0.1 else f"{share:.0%}"


def _sentence(count, off, wave, waves, T):
    down, across = (abs(_signed(k, T)) for k in wave)
    if count == waves:
        return f"All **{count:,} waves** give the picture back, up to rounding."
    if wave == (0, 0):
        what = "the mean, the same everywhere"
    else:
        what = f"the last has {down} period{'s' * (down != 1)} down and {across} across"
    subject = "The strongest wave" if count == 1 else f"The strongest **{count:,} of {waves:,} waves**"
    return f"{subject}: {what}. The sum is off by {_percent(off)} of the contrast."


def _grey(x):
    return np.rint(np.clip(x, 0, 1) * LEVELS).astype(np.int8)


def draw_still(figure, data, step):
    """Draw the image, its spectrum with the frequencies used, the last wave, and the sum so far."""
    stills.set_size_and_title(figure, data, step, 9.5, 3.2)
    axes = figure.subplots(1, 4)
    size, used = unpack(data["size"]), unpack(data["used"])
    colours = np.where(
        (used < data["counts"][step])[..., None], stills.tint("A", 0.3 + 0.7 * size), stills.tint("ink", 0.7 * size)
    )
    u, v = data["last"][step]
    re, im = unpack(data["re"])[u, v], unpack(data["im"])[u, v]
    turn = 2 * np.pi * (u * np.arange(len(size))[:, None] + v * np.arange(len(size))) / len(size)
    wave = re * np.cos(turn) - im * np.sin(turn)
    axes[0].imshow(unpack(data["x"]), cmap="gray", vmin=0, vmax=LEVELS)
    axes[1].imshow(np.fft.fftshift(colours, axes=(0, 1)))
    axes[2].imshow(wave, cmap="gray")
    axes[3].imshow(unpack(data["sums"])[step], cmap="gray", vmin=0, vmax=LEVELS)
    for part, title in zip(axes, ("x", "its spectrum X", "the last wave", "the sum"), strict=True):
        stills.hide_marks(part, labelbottom=False, labelleft=False)
        part.set_title(title, fontsize=9, loc="left", weight="bold")
