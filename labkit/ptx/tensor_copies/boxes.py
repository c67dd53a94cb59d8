"""Bytes of an array that a TMA copy moves: boxes of it, or pixels of a convolution's windows."""

import numpy as np

from labkit.simulator.checks import early
from labkit.simulator.counters import ACCESSES, MAX_WARPS, REQUESTS, SECTORS
from labkit.simulator.errors import KernelError
from labkit.simulator.seam import njit
from labkit.simulator.tensor_maps import WindowedImages
from labkit.simulator.warps import BLOCK, SM, START, THREAD
from labkit.trace import SECTOR_BYTES, WARP_LANES

MAX_OFFSET = 255  # of a pixel in its window
UNIT_BYTES = 16  # alignment of a box, without which an H100 stops


class Boxes:
    """Boxes of an array, clipped to it: rows of 32, 64 or 128 bytes each."""

    def __init__(self, boxed, first, inside, column):
        """Make boxes of rows that begin at the elements `first`, with columns from `column` on, if `inside`."""
        self.array, self.row_bytes, self.to_tf32 = boxed.array, boxed.row_bytes, boxed.to_tf32
        self.count, self.rows = first.shape
        columns, width = boxed.array.shape[-1], boxed.box[-1]
        self.skipped = np.clip(-column, 0, width)  # elements of each row of a box before the array
        self.used = np.clip(columns - column, 0, width) - self.skipped
        self.used = np.maximum(self.used, 0)
        self.first = self.array.offset + first + (column + self.skipped)[:, None]
        self.inside = inside & (self.used > 0)[:, None]

    def read(self) -> np.ndarray:
        """Return the bytes of each row of each box, zeros outside of the array."""
        rows = np.zeros((self.count, self.rows, self.row_bytes), np.uint8)
        _move(self.array.data.view(np.uint8), *self._rows, self.array.itemsize, rows, False)
        return _round_to_tf32(rows.view(np.uint32)).view(np.uint8) if self.to_tf32 else rows

    def write(self, rows):
        """Write the bytes of rows to the array, as far as they are inside of it."""
        _move(self.array.data.view(np.uint8), *self._rows, self.array.itemsize, rows, True)

    @property
    def _rows(self):
        return self.first, self.inside, self.skipped, self.used

    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices of the boxes' elements in the array's memory, and a mask of those inside of the array."""
        along = np.arange(self.row_bytes // self.array.itemsize)
        inside = self.inside[:, :, None] & (along < self.used[:, None, None])
        return np.where(inside, self.first[:, :, None] + along, 0).reshape(-1), inside.reshape(-1)

    def matches(self, rows) -> np.ndarray:
        """Return for each of the `places` whether the array equals these rows."""
        values = rows.view(f"u{self.array.itemsize}")
        along = np.arange(values.shape[2]) + self.skipped[:, None, None]
        values = np.take_along_axis(values, np.minimum(along, values.shape[2] - 1), axis=2).reshape(-1)
        return self.array.data.view(values.dtype).take(self.places()[0]) == values

    def count_accesses(self, w, lanes, site, is_load):
        """Add the boxes, one per lane of `lanes`, to a site's totals."""
        used = self.inside * self.used[:, None]
        count_rows(w, lanes, site, self.array, self.first, used, is_load)


def count_rows(w, lanes, site, array, first, used, is_load):
    """Add copies, one per lane of `lanes`, to a site's totals; L2 gets each sector once per row, L1 none.

    A copy moves `used` elements of each of its rows, which begin at the elements `first`.
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
    """Return the boxes of a map at `places`: per axis an array over all boxes, then the same per axis of `offset`."""
    find_rows = _pixels_at if isinstance(boxed, WindowedImages) else _rows_at
    return Boxes(boxed, *find_rows(boxed, places, line), places[len(boxed.array.shape) - 1])


def _rows_at(boxed, places, line):
    """Return where the rows of boxes begin in the array's memory, without the column, and a mask of those inside."""
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
        inside = (inside[:, :, None] & _is_inside(along, array.shape[axis])).reshape(len(first), -1)
        first = (first[:, :, None] + along * array.strides[axis]).reshape(len(first), -1)
    return first, inside


def _pixels_at(images, places, line):
    """Return the same for one pixel of each of consecutive windows.

    `places`: image, row, column and channel of the first window's corner, then the pixel's vertical and horizontal
    offset in its window, if it is not the corner.
    """
    image, *corner, _ = places[:4]
    offset, array, number = places[4:] or 2 * [np.zeros_like(image)], images.array, image
    for axis, name in enumerate(("row", "column")):
        first, step, count = images.first[axis], images.steps[axis], images.windows[axis]
        window = (corner[axis] - first) // step
        # Beyond the last window an H100 stops with an illegal instruction; between two it continues from there.
        wrong = (window < 0) | (window >= count) | (first + window * step != corner[axis])
        if wrong.any():
            raise KernelError(
                f"no window of this pixel map begins at {name} {corner[axis][wrong][0]}: an image has {count}, from "
                f"{name} {first} on and {step} apart",
                line,
            )
        outside = (offset[axis] < 0) | (offset[axis] > MAX_OFFSET)
        if outside.any():
            raise KernelError(
                f"a pixel lies 0 to {MAX_OFFSET} {name}s from its window's corner, not {offset[axis][outside][0]}", line
            )
        number = number * count + window
    number = number[:, None] + np.arange(images.box[0])
    begin, inside = np.zeros(number.shape, np.int64), np.ones(number.shape, np.bool_)
    for axis in (1, 0):
        number, window = np.divmod(number, images.windows[axis])
        along = images.first[axis] + window * images.steps[axis] + offset[axis][:, None]
        inside &= _is_inside(along, array.shape[1 + axis])
        begin += along * array.strides[1 + axis]
    return begin + number * array.strides[0], inside & _is_inside(number, array.shape[0])


def _is_inside(along, size):
    return (along >= 0) & (along < size)


def _round_to_tf32(bits):
    """Round the bits of float32 to TF32, to the nearest, ties to even, as an H100's TMA does."""
    finite = bits & 0x7F800000 != 0x7F800000
    return np.where(finite, (bits + 0xFFF + (bits >> 13 & 1)) & 0xFFFFE000, bits).astype(np.uint32)


@njit(cache=True)
def _move(data, first, inside, skipped, used, itemsize, rows, into_array):
    """Copy the rows of boxes, clipped to the array, from it or to it."""
    for box in range(first.shape[0]):
        begin, size = skipped[box] * itemsize, used[box] * itemsize
        for row in range(first.shape[1]):
            if inside[box, row]:
                byte = first[box, row] * itemsize
                if into_array:
                    data[byte : byte + size] = rows[box, row, begin : begin + size]
                else:
                    rows[box, row, begin : begin + size] = data[byte : byte + size]


@njit(cache=True)
def _list_sectors(first, sectors, clock, warp, sm, to_l2):
    """Fill the rows (clock, warp, sector, SM) that are sent to L2, and return their number."""
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
