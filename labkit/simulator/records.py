"""Fields of structured arrays, as arrays whose elements are a record apart."""

import math

import numpy as np

from labkit.simulator.arrays import Array
from labkit.simulator.errors import LaunchError
from labkit.simulator.slices import Either, View


class Field(Array):
    """One field of all the records of an array, in the same memory.

    A field that is a record itself is never read whole, only its own fields are; `itemsize` is then the unit of its
    offsets.
    """

    def __init__(self, array, name):
        record = array.dtype
        kind, start = record.fields[name][:2]
        base, nested = kind.subdtype or (kind, ())
        unit = base.itemsize
        if base.names and array.space != "local":
            unit = math.gcd(array.itemsize, start, base.itemsize if nested else 0)
        elif array.space != "local" and (array.itemsize % unit or start % unit):
            raise LaunchError(
                f"the field `{name}` of {array.name} is not aligned: it lies at byte {start} of {record.itemsize}, "
                f"which should be multiples of {unit}; make the dtype with `np.dtype(..., align=True)`, or add padding"
            )
        inner = tuple(int(s) // unit for s in np.empty(nested, base).strides)
        self.values_per_record = int(np.prod(nested))
        self.records = array.shape
        if array.space == "local":  # its records are never read whole, so each field may have its own memory
            step, first = self.values_per_record, 0
            data = np.zeros((len(array.data) * step, array.data.shape[1]), base)
        else:
            step, first = array.itemsize // unit, start // unit
            data = array.data.view(np.uint8).view(np.dtype(f"V{unit}") if base.names else base)
        self.step = step
        super().__init__(
            array.name, array.space, data, array.shape + nested, tuple(s * step for s in array.strides) + inner,
            offset=array.offset * step + first, address=array.address, elements=array.elements * step, line=array.line,
        )  # fmt: skip
        self.dtype = base
        if array.shadow is not None:
            self.shadow = array.shadow.for_elements(data.size)
        if array.written is not None:
            self.written = np.zeros(data.shape, np.bool_)

    def c_order(self, flat):
        return super().c_order(flat) // self.values_per_record

    def position(self, number):
        return tuple(int(i) for i in np.unravel_index(number, self.records))


def field(array, name):
    """Return the field `name` of an array's records; a write to it writes to them."""
    if isinstance(array, Either):
        return array.each(lambda a: field(a, name))
    root = array.root
    if name not in root.fields:
        root.fields[name] = Field(root, name)
    root_field = root.fields[name]
    if array is root:
        return root_field
    nested = len(root.shape)
    return View(
        root_field,
        (*array.shape, *root_field.shape[nested:]),
        (*(s * root_field.step for s in array.strides), *root_field.strides[nested:]),
        root_field.offset + (array.offset - root.offset) * root_field.step,
    )
