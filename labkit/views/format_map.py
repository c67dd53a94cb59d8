"""The predicted gain of 16 bits: convolutions in bfloat16 on tensor cores, compared with the best float32 algorithm."""

from collections.abc import Sequence

import numpy as np
from matplotlib.patches import Rectangle

from labkit import conv
from labkit.conv.problem import ForwardNHWC
from labkit.table import count_text
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack

FULL_COLOUR = 8  # the factor, or one over it, from which on a cell has its full colour


def format_map(
    *,
    size: int = 28,
    filters: int = 128,
    taps: Sequence[int] = (1, 3, 5, 7, 9, 11),
    channels: Sequence[int] = (512, 384, 256, 128, 64, 16, 3),
    batches: Sequence[int] = (1, 4, 16, 64, 128),
) -> View:
    """Map how many times faster a convolution is in bfloat16: filters of T x T from left to right, channels up.

    Both times of a cell are predictions of `conv.heuristic`: of the best float32 algorithm with images in NCHW, and of
    the best bfloat16 algorithm in NHWC. A step per number of images. The colour has one scale at all steps.

    Parameters
    ----------
    size
        Rows and columns of an image, and with a padding of (T - 1) / 2 those of the outputs.
    filters
        Number of filters.
    taps, channels, batches
        Columns, rows from the top, and steps.
    """
    shape = len(batches), len(channels), len(taps)
    times_ms = np.zeros((*shape, 2))
    names, rows = [], []
    for b, c, t in np.ndindex(*shape):
        sizes = batches[b], channels[c], size, size, filters, taps[t], taps[t], 1, 1, *[taps[t] // 2] * 4
        best = [conv.heuristic(conv.Forward(*sizes))[0], conv.heuristic(ForwardNHWC(*sizes), "bfloat16")[0]]
        times_ms[b, c, t] = [row.time_ms for row in best]
        names.append([str(row.algorithm) for row in best])
        cells = [name for pair in zip(names[-1], [f"{row.time_ms:.3g}" for row in best], strict=True) for name in pair]
        factor = times_ms[b, c, t, 0] / times_ms[b, c, t, 1]
        rows.append([batches[b], channels[c], f"{taps[t]} x {taps[t]}", *cells, f"{factor:.2f}"])
    factors = times_ms[..., 0] / times_ms[..., 1]
    data = {
        "say": [_sentence(images, of_images) for images, of_images in zip(batches, factors, strict=True)],
        "counter": [count_text(images, "image") for images in batches],
        "taps": list(taps),
        "channels": list(channels),
        "batches": list(batches),
        "factors": pack(factors),
        "full": FULL_COLOUR,
        "start": len(batches) - 2 if len(batches) > 2 else 0,
        "labels": ["cells where bfloat16 is faster", "least factor", "median factor", "greatest factor"],
        "numbers": [_numbers(of_images) for of_images in factors],
        "table": table(
            ["images", "channels", "taps", "float32", "ms", "bfloat16", "ms", "times faster"],
            rows,
        ),
    }
    title = f"Predicted gain of bfloat16: images of {size} x {size}, {filters} filters"
    return View("format_map", title, data, draw_still)


def _numbers(factors):
    faster = int((factors > 1).sum())
    ends = [f"{number:.2f}" for number in (factors.min(), np.median(factors), factors.max())]
    return [f"{faster} of {factors.size}", *ends]


def _sentence(images, factors):
    faster = int((factors > 1).sum())
    return (
        f"{images} image{'s' * (images > 1)}: bfloat16 on tensor cores is **predicted** to be faster than the best "
        f"float32 algorithm in **{faster} of {factors.size}** cells, {factors.min():.2f}x to {factors.max():.1f}x."
    )


def draw_still(figure, data, step):
    """Draw the cells of one number of images: blue where bfloat16 is faster, orange where float32 is."""
    stills.set_size_and_title(figure, data, step, 7.2, 4.4)
    axes, factors = figure.subplots(), unpack(data["factors"])[step]
    for (row, column), factor in np.ndenumerate(factors):
        strength = min(1, abs(np.log(factor)) / np.log(data["full"]))
        colour = stills.tint("A" if factor > 1 else "B", 0.15 + 0.65 * strength)
        axes.add_patch(Rectangle((column, row), 0.96, 0.94, facecolor=colour))
        stills.write(
            axes, column + 0.48, row + 0.5, f"{factor:.{2 if factor < 2 else 1}f}", fontsize=8, color=COLOURS["ink"]
        )
    axes.set(xlim=(0, factors.shape[1]), ylim=(factors.shape[0], 0), xlabel="taps", ylabel="channels")
    axes.set_xticks(np.arange(factors.shape[1]) + 0.5, [f"{T} x {T}" for T in data["taps"]])
    axes.set_yticks(np.arange(factors.shape[0]) + 0.5, list(map(str, data["channels"])))
    stills.hide_marks(axes, labelsize=8)
