"""Waves of tiles on a GPU's SMs: which of them are busy, by the width of a tile."""

from collections.abc import Sequence

from matplotlib.patches import Rectangle

from labkit.machine import gpus
from labkit.views import stills
from labkit.views.base import COLOURS, View, table

MAX_WAVES = 4  # that the picture has room for


def waves(M: int, N: int, rows: int, widths: Sequence[int], gpu: str = "H100 SXM") -> View:
    """Step through widths of a tile: an M x N matrix is cut into tiles, and each SM takes one tile per wave.

    Parameters
    ----------
    M, N
        Rows and columns of the matrix.
    rows
        Rows of a tile.
    widths
        Columns of a tile, a step each.
    gpu
        Whose SMs.

    Raises
    ------
    ValueError
        A width makes more waves than the picture has room for.
    """
    figures = gpus.gpu(gpu)
    steps = [_step(M, N, rows, width, figures.sms) for width in widths]
    if not steps or max(step["waves"] for step in steps) > MAX_WAVES:
        raise ValueError(f"waves shows up to {MAX_WAVES} waves: choose wider tiles, or a smaller matrix.")
    best = max(steps, key=lambda step: step["useful"])
    lines = [[s["width"], s["tiles"], s["waves"], s["busy_last"], f"{s['useful']:.0%}"] for s in steps]
    data = {
        "say": [_sentence(step, rows, figures.sms) for step in steps],
        "counter": [f"{rows} x {width}" for width in widths],
        "start": 0,
        "steps": steps,
        "best": steps.index(best),
        "sms": figures.sms,
        "gpu": figures.name,
        "rows": rows,
        "table": table(["width", "tiles", "waves", "busy in the last", "useful"], lines, by_step=True),
    }
    return View("waves", f"Waves: {M:,} x {N:,} in tiles of {rows} rows", data, draw_still)


def _step(M, N, rows, width, sms) -> dict:
    tiles = -(-M // rows) * -(-N // width)
    count = -(-tiles // sms)
    useful = M * N / (count * sms * rows * width)
    return {"width": width, "tiles": tiles, "waves": count, "busy_last": tiles - (count - 1) * sms, "useful": useful}


def _sentence(step, rows, sms) -> str:
    in_waves = "one wave" if step["waves"] == 1 else f"{step['waves']} waves"
    idle = sms - step["busy_last"]
    idle_text = f"**{idle} of {sms} SMs idle** in the last" if idle else "no SM idles"
    return (
        f"{step['tiles']} tiles of {rows} x {step['width']} take {in_waves}, and {idle_text}. Of all that the SMs "
        f"could do in that time, **{step['useful']:.0%}** is useful."
    )


def draw_still(figure, data, step):
    """Draw the SMs of each wave as boxes, and the useful share over the width."""
    stills.set_size_and_title(figure, data, step, 9.5, 3.4)
    above, below = figure.subplots(2, 1)
    now, sms = data["steps"][step], data["sms"]
    for wave in range(now["waves"]):
        busy = sms if wave < now["waves"] - 1 else now["busy_last"]
        for sm in range(sms):
            x, y = sm % 44 + wave % 2 * 48, sm // 44 + wave // 2 * 4
            above.add_patch(Rectangle((x, y), 0.9, 0.9, facecolor=COLOURS["C" if sm < busy else "cell"]))
    above.set(xlim=(-1, 93), ylim=(8, -1), xticks=[], yticks=[])
    stills.hide_marks(above)
    colours = [COLOURS["hot" if n == step else "A"] for n in range(len(data["steps"]))]
    below.bar([s["width"] for s in data["steps"]], [100 * s["useful"] for s in data["steps"]], 6, color=colours)
    below.set(xlabel="columns of a tile", ylabel="useful, %", ylim=(0, 100))
    stills.hide_top_and_right(below)
