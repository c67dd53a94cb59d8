"""The shadow of an array: cells for its elements, made and updated only where they are needed.

Most reads of a shared array need no cell. A read of a written element is in order if every write to the array is behind
a barrier. It matters to a later write only if no barrier comes between. So these reads wait: a write first notes those
of its own barrier epoch, and the others are dropped.

A global array may be far larger than what a launch accesses: its cells are made page by page.
"""

from functools import cached_property

import numpy as np

from labkit.simulator.checks import cells as layout
from labkit.simulator.checks import races

MAX_WAITING = 64
PAGE = 64  # elements

IN_ORDER = (0, 0, -1)  # what `races.check_loads` returns for reads that are in order


class GlobalShadow:
    """The cells of an argument, which the host filled: those of the accessed pages."""

    def __init__(self, elements: int):
        self._cells = np.empty((0, layout.FIELDS), np.int32)
        self._pages = np.empty(0, np.int64)  # the pages that have cells, in the cells' order
        self._slots = np.full(-(-elements // PAGE), -1, np.int64)  # the number of each page among these, -1 for none
        self._blank = None

    def mark_blank(self, flat):
        """Mark elements that nothing has written, not even the host."""
        if self._blank is None:
            self._blank = np.zeros((len(self._slots), PAGE), np.bool_)
        self._blank.reshape(-1)[flat] = True

    def blank(self, flat):
        """Return a mask of the elements that nothing has written so far."""
        blank = self._blank.reshape(-1)[flat]
        slots = self._slots[flat // PAGE]
        touched = blank & (slots >= 0)
        cells = self._cells[slots[touched] * PAGE + flat[touched] % PAGE]
        blank[touched] = (cells[:, layout.W_THREAD] == layout.NO_THREAD) & (cells[:, layout.A_BLOCK] < 0)
        return blank

    def cells(self, flat):
        """Return (cells, their rows for the elements `flat`), the one pair of this shadow."""
        page = flat // PAGE
        slots = self._slots.take(page)
        if slots.min() < 0:
            self._add_pages(np.unique(page[slots < 0]))
            slots = self._slots.take(page)
        return [(self._cells, slots * PAGE + flat % PAGE)]

    def element(self, cell: int) -> int:
        """Return the element of a cell."""
        return int(self._pages[cell // PAGE]) * PAGE + cell % PAGE

    def for_elements(self, elements: int) -> "GlobalShadow":
        """Return a shadow of the same memory, divided into this many elements."""
        return GlobalShadow(elements)

    def check_loads(self, w, site, flat, lanes):
        """Check the reads of one instruction; return as `races.check_loads`."""
        [(cells, rows)] = self.cells(flat)
        return races.check_loads(rows, lanes, *races.current_order(w, site), site, cells, w.chunk.launch.noted_race)

    def _add_pages(self, pages):
        """Make cells for these pages, in space that at least doubles."""
        count = len(self._pages)
        self._slots[pages] = np.arange(count, count + len(pages))
        self._pages = np.concatenate([self._pages, pages])
        used, needed = count * PAGE, len(self._pages) * PAGE
        if needed > len(self._cells):
            cells = np.empty((min(2 * needed, len(self._slots) * PAGE), layout.FIELDS), np.int32)
            cells[:used] = self._cells[:used]
            self._cells = cells
        layout.clear(self._cells[used:needed], filled=True)
        if self._blank is not None:
            self._cells[used:needed][self._blank[pages].reshape(-1), layout.W_THREAD] = layout.NO_THREAD


class SharedShadow:
    """The cells of a shared array's copies in a chunk, and the reads that wait to be noted there."""

    def __init__(self, elements: int, launch, epochs):
        self.size = elements
        self._launch = launch
        self._epochs = epochs  # current epoch of each block
        self._written_at = epochs.copy()  # at the last write to the array
        self._is_ordered = False
        self._unwritten = None  # mask of unwritten elements, if there are any while `_is_ordered`
        self._waiting = []

    @cached_property
    def _cells(self):
        """Cells, made when first needed: not in a run that restarts before with other warp sets."""
        cells = np.empty((self.size, layout.FIELDS), np.int32)
        layout.clear(cells, filled=False)
        return cells

    def cells(self, flat):
        """Return as `GlobalShadow.cells`, for an access that may write."""
        self._note_waiting()
        self._written_at[:] = self._epochs
        self._is_ordered = False
        return [(self._cells, flat)]

    def element(self, cell: int) -> int:
        """Return the element of a cell."""
        return cell

    def for_elements(self, elements: int) -> "SharedShadow":
        """Return a shadow of the same memory, divided into this many elements."""
        return SharedShadow(elements, self._launch, self._epochs)

    def check_loads(self, w, site, flat, lanes):
        """Check the reads of one instruction, or let them wait; return as `races.check_loads`."""
        order, knowledge = races.current_order(w, site)
        if knowledge is None and self._reads_in_order(flat, lanes):
            if len(self._waiting) == MAX_WAITING:
                self._note_waiting()
            self._waiting.append((flat, lanes, races.snapshot(order), site))
            return IN_ORDER
        self._note_waiting()
        return races.check_loads(flat, lanes, order, knowledge, site, self._cells, self._launch.noted_race)

    def _reads_in_order(self, flat, lanes):
        """Return whether all that is read is written, and every write is behind a barrier of its block."""
        if not self._is_ordered:
            if not (self._epochs > self._written_at).all():
                return False
            unwritten = self._cells[:, layout.W_THREAD] == layout.NO_THREAD
            self._unwritten = unwritten if unwritten.any() else None
            self._is_ordered = True
        return self._unwritten is None or not (self._unwritten.take(flat) & lanes).any()

    def forget(self):
        """Free the cells' overflow lists."""
        if "_cells" in vars(self):
            self._launch.overflow.free(self._cells[:, layout.OVERFLOW])

    def _note_waiting(self):
        for flat, lanes, order, site in self._waiting:
            if (order.epochs == self._epochs).any():
                races.check_loads(flat, lanes, order, None, site, self._cells, self._launch.noted_race)
        self._waiting.clear()
