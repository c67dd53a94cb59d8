"""Parts of still pictures: their heading, mixed colours, grids of cells, and axes without marks."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from labkit.views.base import COLOURS, heading


def set_size_and_title(figure: Figure, data: dict, step: int, width: float, height: float, **style) -> None:
    """Set a figure's size in inches, and write the title and the step's sentence at its top."""
    figure.set_size_inches(width, height)
    figure.suptitle(heading(data, step), **{"fontsize": 9, "x": 0.02, "ha": "left", "color": COLOURS["fg"], **style})


def rgb(name: str) -> np.ndarray:
    """Return red, green and blue of a colour of the theme, from 0 to 1."""
    return np.array(to_rgb(COLOURS[name]))


def tint(name: str, strength) -> np.ndarray:
    """Return a colour of the theme mixed with white; `strength` is a number, or an array that gains an axis of 3."""
    strength = np.asarray(strength)[..., None]
    return strength * rgb(name) + (1 - strength)


def show_cells(axes: Axes, cells: np.ndarray, title: str = "", colour: str = "fg", lines: float = 0, **image) -> None:
    """Draw cells of rows x columns x RGB under their title, with white lines between them if these have a width."""
    axes.imshow(cells, interpolation="nearest", **image)
    if lines:
        axes.set_xticks(np.arange(cells.shape[1] + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(cells.shape[0] + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=lines)
    axes.set_title(title, fontsize=9, color=COLOURS["fg" if colour in "ABC" else colour], loc="left", weight="bold")
    axes.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
    axes.spines[:].set_visible(False)


def write(axes: Axes, x: float, y: float, text, **style) -> None:
    """Write a text whose middle is at a place."""
    axes.text(x, y, text, ha="center", va="center", **style)


def hide_marks(axes: Axes, **labels) -> None:
    """Leave out the frame of axes and the marks of their ticks; `labels` go to `tick_params`."""
    axes.tick_params(length=0, **labels)
    axes.spines[:].set_visible(False)


def hide_top_and_right(axes: Axes) -> None:
    """Leave out the top and the right side of axes, and write small numbers at the others."""
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
