"""Pixels under the windows of a convolution, as TMA's im2col mode writes them to the rows of a swizzled tile."""

import numpy as np
from matplotlib.patches import Rectangle

from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, stats_by_step, unpack
from labkit.views.wording import check_trace, global_outputs, join

VECTOR_WORDS, VECTORS = 4, 8  # words of 16 bytes, and these per row of a tile: 128 bytes
LABELS = "copies, each requested by one thread", "rows with a pixel", "rows of zeros"
OUTSIDE = -1  # pixel of a row of zeros, and vector at a place that holds zeros


def pixel_rows(trace: Trace, images: str = "x_map", tiles: str = "tiles") -> View:
    """Step through copies: first the rows of the first tile one by one, then one tile per tap of the filter.

    Everything is read from the run: which pixel is in which row, and which of its vectors at which place.

    Parameters
    ----------
    trace
        A run of a kernel that loads a tile per tap, and copies it to `tiles` as it is in shared memory.
    images
        Name of the images, N x H x W x C words. Each word holds one more than its index; C is a multiple of 4.
    tiles
        Name of the tiles, R x S x rows x 32 words.

    Raises
    ------
    ValueError
        There are no such arrays, or a row does not hold vectors of one pixel.
    """
    check_trace("pixel_rows", trace)
    arrays = global_outputs(trace)
    if missing := [name for name in (images, tiles) if name not in arrays]:
        raise ValueError(f"The kernel has no array {missing[0]}, it has {join([*arrays])}: say which to show.")
    x, stored = arrays[images], arrays[tiles]
    if x.ndim != 4 or stored.ndim != 4 or stored.shape[-1] != VECTORS * VECTOR_WORDS:
        raise ValueError(
            f"pixel_rows takes images N x H x W x C and tiles R x S x rows x 32 words, not {x.shape} and "
            f"{stored.shape}: give the arrays these axes."
        )
    pixels, vectors = _read(x, stored)
    corners, dilation = _locate(pixels)
    R, S, rows, _ = pixels.shape
    steps = [(0, 0, row) for row in range(rows)] + [(*divmod(tap, S), rows) for tap in range(1, R * S)]
    says = [_sentence(pixels, vectors, corners, *step) for step in steps]
    stats = [_stats(pixels, S, *step) for step in steps]
    cells = [[f"{r}, {s}", row if row < rows else "all", _place(pixels, r, s, row)] for r, s, row in steps]
    data = {
        "say": says,
        "images": list(x.shape[:3]),
        "rim": _rim(x, corners, dilation, R, S),
        "rows": rows,
        "taps": [R, S],
        "reach": [int(dilation[0] * (R - 1) + 1), int(dilation[1] * (S - 1) + 1)],
        "dilation": [int(dilation[0]), int(dilation[1])],
        "steps": [list(step) for step in steps],
        "pixels": pack(pixels),
        "corners": pack(corners),
        "vectors": pack(vectors),
        **stats_by_step(["tap", "row of the tile", "pixel"], cells, list(LABELS), stats),
    }
    return View("pixel_rows", "Pixels of the images become rows of a tile", data, draw_still)


def _read(x, stored):
    """Return image, row and column of each tile row's pixel, and the vector of the pixel at each place."""
    channels = x.shape[-1]
    words = stored.reshape(*stored.shape[:-1], VECTORS, VECTOR_WORDS).astype(np.int64) - 1  # indices in x, or -1
    pixel = np.where(words < 0, OUTSIDE, words // channels)
    first = words[..., 0]
    begins = first // VECTOR_WORDS * VECTOR_WORDS
    whole = np.where(first[..., None] < 0, OUTSIDE, begins[..., None] + np.arange(VECTOR_WORDS))
    of_row = pixel.max(axis=(-2, -1))
    known = (pixel == of_row[..., None, None]) | (pixel == OUTSIDE)
    wrong = ~((words == whole).all(axis=(-2, -1)) & known.all(axis=(-2, -1))) | (of_row >= x[..., 0].size)
    if wrong.any():
        r, s, row = np.argwhere(wrong)[0]
        raise ValueError(
            f"Row {row} of the tile of tap ({r}, {s}) does not hold vectors of one pixel: let the images hold 1 more "
            "than their index, and copy a tile when its barrier's phase is over."
        )
    places = np.stack(np.unravel_index(np.maximum(of_row, 0), x.shape[:3]), axis=-1)
    vectors = np.where(first < 0, OUTSIDE, first % channels // VECTOR_WORDS)
    return np.where(of_row[..., None] < 0, OUTSIDE, places), vectors


def _locate(pixels):
    """Return image, row and column of each window's corner (image -1: past the last), and the distance of taps."""
    R, S, rows, _ = pixels.shape
    dilation = np.ones(2, np.int64)
    for axis, taps in enumerate((R, S)):
        ends = np.moveaxis(pixels, axis, 0)
        for apart in range(1, taps):
            both = (ends[apart:, ..., 0] >= 0) & (ends[:-apart, ..., 0] >= 0)
            if both.any():
                moved = (ends[apart:] - ends[:-apart])[..., 1 + axis]
                dilation[axis] = moved[both][0] // apart
                break
    offsets = np.stack(np.meshgrid(np.arange(R) * dilation[0], np.arange(S) * dilation[1], indexing="ij"), axis=-1)
    starts = pixels[..., 1:] - offsets[:, :, None]
    inside = pixels[..., 0] >= 0
    corners = np.full((rows, 3), -1)
    for row in range(rows):
        taps = np.argwhere(inside[:, :, row])
        if len(taps):
            r, s = taps[0]
            corners[row] = pixels[r, s, row, 0], *starts[r, s, row]
    return corners, dilation


def _rim(x, corners, dilation, R, S):
    """Return the rows and columns of zeros that windows reach: top, bottom, left, right."""
    used = corners[corners[:, 0] >= 0]
    rim = []
    for axis, taps in enumerate((R, S)):
        first, last = (used[:, 1 + axis].min(), used[:, 1 + axis].max()) if len(used) else (0, 0)
        end = last + dilation[axis] * (taps - 1) + 1
        rim += [max(0, int(-first)), max(0, int(end - x.shape[1 + axis]))]
    return rim


def _sentence(pixels, vectors, corners, r, s, row):
    rows = pixels.shape[2]
    if row == rows:
        zeros = int((pixels[r, s, :, 0] < 0).sum())
        filled = "1 row is a pixel" if rows - zeros == 1 else f"{rows - zeros} rows are pixels"
        return (
            f"**Tap ({r}, {s})**, one more copy: the same {rows} windows, another offset. {filled} and "
            f"{zeros} {'is' if zeros == 1 else 'are'} zeros. No thread computed where they are."
        )
    n, h, w = corners[row]
    if n < 0:
        why = "no tap of this window meets a pixel. TMA writes **zeros**, and the barrier counts them as well."
        return f"Row {row}: {why}"
    begin = f"Row {row}: the window that begins at row {h}, column {w} of image {n}."
    if pixels[r, s, row, 0] < 0:
        return f"{begin} Its pixel ({r}, {s}) is outside: TMA writes **zeros**, with no comparison in the kernel."
    first = int(np.flatnonzero(vectors[r, s, row] == 0)[0])
    return (
        f"{begin} Its pixel ({r}, {s}) becomes 128 bytes of the tile. Vector 0, its first channels, is at "
        f"**place {first}** of the row: TMA swizzles."
    )


def _stats(pixels, S, r, s, row):
    shown = pixels[r, s, : row + 1, 0]
    zeros = int((shown < 0).sum())
    return [r * S + s + 1, len(shown) - zeros, zeros]


def _place(pixels, r, s, row):
    if row == pixels.shape[2]:
        return ""
    n, h, w = pixels[r, s, row]
    return "outside" if n < 0 else f"image {n}, row {h}, column {w}"


def draw_still(figure, data, step):
    """Draw the images with the pixels of this copy, and the tile as it is stored."""
    stills.set_size_and_title(figure, data, step, 9.5, 5.2)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.7])
    pixels, vectors = unpack(data["pixels"]), unpack(data["vectors"])
    r, s, row = data["steps"][step]
    (N, H, W), (top, bottom, west, east) = data["images"], data["rim"]
    tall = H + top + bottom + 1
    shown = range(min(row + 1, data["rows"]))
    for n in range(N):
        left.add_patch(Rectangle((0, n * tall + top), W, H, facecolor=COLOURS["cell"], edgecolor=COLOURS["dim"]))
    for i in shown:
        n, h, w = pixels[r, s, i]
        if n >= 0:
            now = i == row
            left.add_patch(Rectangle((w, n * tall + top + h), 0.94, 0.94, facecolor=COLOURS["hot" if now else "A"]))
            stills.write(left, w + 0.47, n * tall + top + h + 0.5, i, fontsize=7, color="white")
    left.set(xlim=(-west, W + east), ylim=(N * tall, 0), aspect="equal", xticks=[], yticks=[])
    left.set_title("images", fontsize=9, loc="left")
    for i in shown:
        for place, vector in enumerate(vectors[r, s, i]):
            colour = "cell" if vector < 0 else "hot" if i == row else "B" if vector == 0 else "A"
            right.add_patch(Rectangle((place, i), 0.94, 0.9, facecolor=COLOURS[colour]))
            text = COLOURS["dim"] if vector < 0 else COLOURS["ink"] if colour == "B" else "white"
            stills.write(right, place + 0.47, i + 0.47, max(vector, 0), fontsize=6, color=text)
    right.set(xlim=(0, VECTORS), ylim=(data["rows"], 0), xticks=[])
    right.set_yticks(np.arange(data["rows"]) + 0.5, list(map(str, range(data["rows"]))), fontsize=6)
    right.set_title("tile in shared memory: 16-byte vectors", fontsize=9, loc="left")
    for axes in (left, right):
        stills.hide_marks(axes)
