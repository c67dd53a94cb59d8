"""What filters do to a picture: an image, the window under the pointer, and each filter's outputs."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32

from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack

ZERO_SUM = 1e-5  # a sum of taps below this is 0, but for rounding


def filtering(
    x: Float32[np.ndarray, "H W"],
    w: Float32[np.ndarray, "K R S"],
    y: Float32[np.ndarray, "K P Q"],
    names: Sequence[str],
) -> View:
    """Show a grey image and what each filter makes of it; the pointer or two sliders move the window.

    Parameters
    ----------
    x
        Image, from 0 (black) to 1 (white).
    w, y
        Filters, and their outputs as a kernel computed them: without padding, with a stride of 1.
    names
        A name for each filter.
    """
    x, w, y = (np.asarray(X, np.float32) for X in (x, w, y))
    if (x.ndim, w.ndim, y.ndim) != (2, 3, 3) or len(names) != len(w):
        raise ValueError("filtering takes one image H x W, filters K x R x S with a name each, and outputs K x P x Q.")
    if y.shape != (len(w), *(size - taps + 1 for size, taps in zip(x.shape, w.shape[1:], strict=True))):
        raise ValueError(f"Filters {w.shape} on an image {x.shape} do not give {y.shape}: use no padding, stride 1.")
    sums = w.sum(axis=(1, 2))
    is_signed = np.abs(sums) < ZERO_SUM  # others are drawn in grey: 0 is black and 1 is white
    data = {
        "say": [_sentence(*each) for each in zip(names, sums, y, is_signed, strict=True)],
        "counter": list(names),
        "names": list(names),
        "x": pack(x),
        "w": pack(w),
        "y": pack(y),
        "signed": is_signed.tolist(),
        "largest": float(np.abs(y[is_signed]).max(initial=0)) or 1.0,  # one scale for all outputs with a sign
        "labels": ["the taps add up to", "smallest output", "largest output"],
        "stats": [[_number(total), _number(Y.min()), _number(Y.max())] for total, Y in zip(sums, y, strict=True)],
        "table": table(
            ["filter", "taps, row by row", "sum", "smallest output", "largest output"],
            [
                [name, " | ".join(" ".join(map(_number, row)) for row in W), *map(_number, (W.sum(), Y.min(), Y.max()))]
                for name, W, Y in zip(names, w, y, strict=True)
            ],
            by_step=True,
        ),
    }
    return View("filtering", "What a filter does to a picture", data, draw_still)


def _number(value):
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _sentence(name, total, outputs, is_signed):
    if abs(total) < ZERO_SUM:
        flat = "Its taps add up to 0, so a flat area becomes 0 and only changes of brightness are left"
    elif abs(total - 1) < ZERO_SUM:
        flat = "Its taps add up to 1, so a flat area keeps its grey"
    else:
        flat = f"Its taps add up to {_number(total)}, so a flat area is multiplied by that"
    signs = " Orange is above 0, blue below." if is_signed else ""
    return f"**{name}**. {flat}.{signs} Outputs lie between {_number(outputs.min())} and {_number(outputs.max())}."


def draw_still(figure, data, step):
    """Draw the image, one filter with its taps, and its outputs."""
    stills.set_size_and_title(figure, data, step, 9.5, 4.2)
    axes = figure.subplots(1, 3, width_ratios=[3, 1, 3])
    taps, outputs = unpack(data["w"])[step], unpack(data["y"])[step]
    axes[0].imshow(unpack(data["x"]), cmap="gray", vmin=0, vmax=1)
    axes[1].imshow(np.zeros_like(taps), cmap="gray_r")
    for (row, column), tap in np.ndenumerate(taps):
        stills.write(axes[1], column, row, _number(tap), fontsize=8)
    axes[2].imshow(_colours(outputs, data, step))
    for part, title in zip(axes, ("x", "w", "y"), strict=True):
        stills.hide_marks(part, labelbottom=False, labelleft=False)
        part.set_title(title, fontsize=9, color=COLOURS["fg"], loc="left", weight="bold")


def _colours(outputs, data, step):
    """Return red, green and blue of outputs: greys, or blue and orange if they have signs."""
    if not data["signed"][step]:
        return np.repeat(np.clip(outputs, 0, 1)[:, :, None], 3, axis=2)
    share = np.clip(np.abs(outputs) / data["largest"], 0, 1)[:, :, None]
    full = np.where(outputs[:, :, None] > 0, stills.rgb("B"), stills.rgb("A"))
    return share * full + (1 - share) * stills.rgb("cell")
