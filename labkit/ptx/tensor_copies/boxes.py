"""Which bytes of an array a copy moves: boxes of it, or pixels of a convolution's windows."""

import numpy as np
from numba import njit

from labkit.simulator.checks import early
from labkit.simulator.counters import ACCESSES, MAX_WARPS, REQUESTS, SECTORS
from labkit.simulator.errors import KernelError
from labkit.simulator.tensor_maps import WindowedImages
from labkit.simulator.warps import BLOCK, SM, START, THREAD
from labkit.trace import SECTOR_BYTES, WARP_LANES

MOST_OFFSET = 255  # the copy engine's
UNIT_BYTES = 16  # an H100 stops where a box does not begin at a multiple of them


class Boxes:
    """Boxes of an array: rows of 32, 64 or 128 bytes each, as far as they lie in the array."""

    def __init__(self, boxed, first, inside, column):
        """Rows that begin at `first` and lie `inside` of the array, as far as it has the columns from `column` on."""
        self.array, self.row_bytes, self.to_tf32 = boxed.array, boxed.row_bytes, boxed.to_tf32
        self.count, self.rows = first.shape
        columns, each = boxed.array.shape[-1], boxed.box[-1]
        self.skipped = np.clip(-column, 0, each)  # of each row of a box, elements before the array
        self.used = np.clip(columns - column, 0, each) - self.skipped
        self.used = np.maximum(self.used, 0)
        self.first = self.array.offset + first + (column + self.skipped)[:, None]
        self.inside = inside & (self.used > 0)[:, None]

    def read(self) -> np.ndarray:
        """The bytes of each row of each box, zeros outside of the array."""
        rows = np.zeros((self.count, self.rows, self.row_bytes), np.uint8)
        _move(self.array.data.view(np.uint8), *self._rows, self.array.itemsize, rows, False)
        return _rounded_to_tf32(rows.view(np.uint32)).view(np.uint8) if self.to_tf32 else rows

    def write(self, rows):
        """Puts the bytes of rows into the array, as far as they lie there."""
        _move(self.array.data.view(np.uint8), *self._rows, self.array.itemsize, rows, True)

    @property
    def _rows(self):
        return self.first, self.inside, self.skipped, self.used

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the elements of the boxes lie in the array's memory, and which of them lie in it at all."""
        along = np.arange(self.row_bytes // self.array.itemsize)
        inside = self.inside[:, :, None] & (along < self.used[:, None, None])
        return np.where(inside, self.first[:, :, None] + along, 0).reshape(-1), inside.reshape(-1)

    def hold(self, rows) -> np.ndarray:
        """Whether the array holds what these rows bring, for each of the `places`."""
        given = rows.view(f"u{self.array.itemsize}")
        along = np.arange(given.shape[2]) + self.skipped[:, None, None]
        given = np.take_along_axis(given, np.minimum(along, given.shape[2] - 1), axis=2).reshape(-1)
        return self.array.data.view(given.dtype).take(self.places()[0]) == given

    def count_accesses(self, w, lanes, site, is_load):
        """Adds the boxes, one for each of `lanes`, to a site's totals."""
        used = self.inside * self.used[:, None]
        count_rows(w, lanes, site, self.array, self.first, used, is_load)


def count_rows(w, lanes, site, array, first, used, is_load):
    """Adds copies, one for each of `lanes`, to a site's totals; L2 sees each sector once for a row, and L1 none.

    A copy has rows, which begin at the elements `first`, and of which it moves `used`.
    """
    launch = w.chunk.launch
    if launch.early:
        early.check_accesses(w, site, array, np.isin(np.arange(w.lanes), lanes))
    row = np.searchsorted(w.warps[:, START], lanes, side="right") - 1
    slots = w.slot[lanes] if len(launch.counts[site]) > 1 else np.zeros(len(lanes), np.int64)
    low = array.address + first * array.itemsize
    high = low + used * array.itemsize - 1
    sectors = np.where(used > 0, high // SECTOR_BYTES - low // SECTOR_BYTES + 1, 0)
    totals = launch.counts[site]
    np.add.at(totals, (slots, ACCESSES), used.sum(axis=1))
    np.add.at(totals, (slots, REQUESTS), 1)
    np.add.at(totals, (slots, SECTORS), sectors.sum(axis=1))
    to_l2 = launch.l2.rows(int(sectors.sum()))
    warps = w.warps[row]
    number = warps[:, BLOCK] * MAX_WARPS + warps[:, THREAD] // WARP_LANES
    rows = _list_sectors(low // SECTOR_BYTES, sectors, w.warp_clock[row], number, warps[:, SM], to_l2)
    np.add.at(w.warp_clock, row, 1)
    if rows:
        launch.l2.send(to_l2[:rows], site, not is_load)


def boxes_at(boxed, places, line) -> Boxes:
    """The boxes of a map that begin at some places: for each axis an array of all boxes, then for each `offset`."""
    rows_at = _pixels_at if isinstance(boxed, WindowedImages) else _rows_at
    return Boxes(boxed, *rows_at(boxed, places, line), places[len(boxed.array.shape) - 1])


def _rows_at(boxed, places, line):
    """Where the rows of boxes begin in the array's memory, up to the column, and whether they lie in the array."""
    array, box = boxed.array, boxed.box
    column = places[len(box) - 1]
    wrong = column * array.itemsize % UNIT_BYTES != 0
    if wrong.any():
        raise KernelError(
            f"a box begins at a multiple of {UNIT_BYTES} bytes along the last axis, not at element {column[wrong][0]} "
            f"of {array.itemsize} bytes each: a GPU stops there with an illegal instruction",
            line,
        )
    first, inside = np.zeros((len(places[0]), 1), np.int64), np.ones((len(places[0]), 1), np.bool_)
    for axis in range(len(box) - 1):
        along = (places[axis][:, None] + np.arange(box[axis]))[:, None, :]
        inside = (inside[:, :, None] & _lies_in(along, array.shape[axis])).reshape(len(first), -1)
        first = (first[:, :, None] + along * array.strides[axis]).reshape(len(first), -1)
    return first, inside


def _pixels_at(images, places, line):
    """The same of a pixel of each of the windows that follow one another from some window on.

    `places`: image, row, column and channel of the first window's corner, then down and across where the pixel lies in
    its window.
    """
    image, *corner, _ = places[:4]
    offset, array, number = places[4:], images.array, image
    for axis, name in enumerate(("row", "column")):
        first, step, count = images.first[axis], images.steps[axis], images.windows[axis]
        window = (corner[axis] - first) // step
        # Right of the last window an H100 stops with an illegal instruction; between two it walks on from there.
        wrong = (window < 0) | (window >= count) | (first + window * step != corner[axis])
        if wrong.any():
            raise KernelError(
                f"no window of this pixel map begins at {name} {corner[axis][wrong][0]}: an image has {count}, from "
                f"{name} {first} on and {step} apart",
                line,
            )
        outside = (offset[axis] < 0) | (offset[axis] > MOST_OFFSET)
        if outside.any():
            raise KernelError(
                f"a pixel lies 0 to {MOST_OFFSET} {name}s from its window's corner, not {offset[axis][outside][0]}",
                line,
            )
        number = number * count + window
    number = number[:, None] + np.arange(images.box[0])
    begin, inside = np.zeros(number.shape, np.int64), np.ones(number.shape, np.bool_)
    for axis in (1, 0):
        number, window = np.divmod(number, images.windows[axis])
        along = images.first[axis] + window * images.steps[axis] + offset[axis][:, None]
        inside &= _lies_in(along, array.shape[1 + axis])
        begin += along * array.strides[1 + axis]
    return begin + number * array.strides[0], inside & _lies_in(number, array.shape[0])


def _lies_in(along, size):
    return (along >= 0) & (along < size)


def _rounded_to_tf32(bits):
    """The bits of float32 rounded to TF32: to the nearest, ties to even, as an H100's copy engine was seen to do."""
    finite = bits & 0x7F800000 != 0x7F800000
    return np.where(finite, (bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000, bits).astype(np.uint32)


@njit(cache=True)
def _move(data, first, inside, skipped, used, itemsize, rows, into_array):
    """Moves the rows of boxes from an array, as far as they lie in it, or to it."""
    for box in range(first.shape[0]):
        begin, size = skipped[box] * itemsize, used[box] * itemsize
        for row in range(first.shape[1]):
            if inside[box, row]:
                at = first[box, row] * itemsize
                if into_array:
                    data[at : at + size] = rows[box, row, begin : begin + size]
                else:
                    rows[box, row, begin : begin + size] = data[at : at + size]


@njit(cache=True)
def _list_sectors(first, sectors, clock, warp, sm, to_l2):
    """Fills the rows that L2 is sent (clock, warp, sector, SM), and returns how many."""
    rows = 0
    for box in range(first.shape[0]):
        for row in range(first.shape[1]):
            for i in range(sectors[box, row]):
                to_l2[rows, 0] = clock[box]
                to_l2[rows, 1] = warp[box]
                to_l2[rows, 2] = first[box, row] + i
                to_l2[rows, 3] = sm[box]
                rows += 1
    return rows
