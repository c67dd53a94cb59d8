"""The shadow of memory that is accessed as elements of several sizes: it has a cell for each of the smallest."""

import math

import numpy as np

from labkit.simulator.checks import races
from labkit.simulator.checks.shadow import GlobalShadow, SharedShadow


def units_per_element(dtype, sizes) -> int:
    """Return the number of cells that an element needs, if an array is taken apart into pieces of these sizes."""
    return dtype.itemsize // math.gcd(dtype.itemsize, *sizes)


class ShadowOfUnits:
    """The shadow of memory whose elements are several units each: an access to one checks all of its units."""

    def __init__(self, units: GlobalShadow | SharedShadow, units_per_element: int):
        self._units = units
        self._units_per_element = units_per_element

    def cells(self, flat):
        """Return (cells, their rows) for each unit of the elements `flat`, for an access that may write."""
        return [
            part
            for i in range(self._units_per_element)
            for part in self._units.cells(flat * self._units_per_element + i)
        ]

    @property
    def units(self) -> tuple:
        """The shadow of the units, and how many of them an element has."""
        return self._units, self._units_per_element

    def element(self, cell: int) -> int:
        """Return the element of a cell."""
        return self._units.element(cell) // self._units_per_element

    def mark_blank(self, flat):
        """Mark elements that nothing has written, not even the host."""
        for i in range(self._units_per_element):
            self._units.mark_blank(flat * self._units_per_element + i)

    def blank(self, flat):
        """Return a mask of the elements of which nothing has written some part so far."""
        parts = [self._units.blank(flat * self._units_per_element + i) for i in range(self._units_per_element)]
        return np.logical_or.reduce(parts)

    def for_elements(self, elements: int):
        """Return a shadow of the same memory, divided into this many elements."""
        units_per_element = self._units.size // elements if elements else 1
        return self._units if units_per_element == 1 else ShadowOfUnits(self._units, units_per_element)

    def forget(self):
        """Free the units' overflow lists."""
        self._units.forget()

    def check_loads(self, w, site, flat, lanes):
        """Check the reads of one instruction; return as `races.check_loads`."""
        parts = range(self._units_per_element)
        return races.combine_units(
            self._units.check_loads(w, site, flat * self._units_per_element + i, lanes) for i in parts
        )
