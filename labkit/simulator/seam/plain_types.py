"""numba's types of scalars, arrays, tuples and records, for where numba is not installed: names and meaning are its."""

from collections import namedtuple
from types import ModuleType

import numpy as np

Signature = namedtuple("Signature", "return_type args")


class Type:
    """A type: equal to another of the same class and name."""

    def __init__(self, name: str):
        self.name = name

    def __eq__(self, other):
        return type(self) is type(other) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return self.name

    def __call__(self, *arguments):
        """Return the signature of a function with this result, for `float32(float32, int32)`, or a number as one."""
        if len(arguments) == 1 and not isinstance(arguments[0], Type):
            return np.dtype(self.name).type(arguments[0])
        return Signature(self, arguments)

    def __getitem__(self, axes):
        """Return the type of an array of such elements, for `float32[:, ::1]`."""
        axes = axes if isinstance(axes, tuple) else (axes,)
        steps = [axis.step for axis in axes]
        return Array(self, len(axes), "C" if steps[-1] == 1 else "F" if steps[0] == 1 else "A")


class Number(Type):
    def __init__(self, name, bitwidth):
        super().__init__(name)
        self.bitwidth = bitwidth


class Integer(Number):
    def __init__(self, name, bitwidth):
        super().__init__(name, bitwidth)
        self.signed = not name.startswith("u")
        self.minval = -(1 << (bitwidth - 1)) if self.signed else 0
        self.maxval = (1 << (bitwidth - self.signed)) - 1


class Float(Number):
    pass


class Complex(Number):
    def __init__(self, name, bitwidth):
        super().__init__(name, bitwidth)
        self.underlying_float = Float(f"float{bitwidth // 2}", bitwidth // 2)


class Boolean(Type):
    pass


class Array(Type):
    def __init__(self, dtype, ndim, layout):
        super().__init__(f"array({dtype}, {ndim}d, {layout})")
        self.dtype, self.ndim, self.layout = dtype, ndim, layout


class NestedArray(Type):
    """An array in a field of a record."""

    def __init__(self, dtype, shape):
        super().__init__(f"nestedarray({dtype}, {shape})")
        self.dtype, self.shape, self.ndim = dtype, shape, len(shape)


class BaseTuple(Type):
    pass


class Tuple(BaseTuple):
    def __init__(self, types):
        self.types = tuple(types)
        super().__init__(f"Tuple({', '.join(map(str, self.types))})")


class Record(Type):
    """The type of one element of a structured array; `fields` has a `type` and an `offset` for each name."""

    def __init__(self, dtype, fields):
        parts = ",".join(f"{name}[type={field.type};offset={field.offset}]" for name, field in fields.items())
        super().__init__(f"Record({parts};{dtype.itemsize};{dtype.isalignedstruct})")
        self.dtype, self.fields = dtype, fields


INTEGERS = {f"{sign}int{bits}": Integer(f"{sign}int{bits}", bits) for bits in (8, 16, 32, 64) for sign in ("", "u")}
FLOATS = {f"float{bits}": Float(f"float{bits}", bits) for bits in (16, 32, 64)}
COMPLEX = {f"complex{bits}": Complex(f"complex{bits}", bits) for bits in (64, 128)}
boolean = Boolean("bool")
bfloat16 = Number("bfloat16", 16)
SCALARS = {**INTEGERS, **FLOATS, **COMPLEX, "bool": boolean}


def literal(value: int) -> Integer:
    """Return the type of a number that is known: that which `unliteral` makes of numba's."""
    return INTEGERS["int64" if -(2**63) <= value < 2**63 else "uint64"]


types = ModuleType("numba.types")
vars(types).update(
    **SCALARS,
    **{kind.__name__: kind for kind in Type.__subclasses__() + Number.__subclasses__() + [Type, Tuple]},
    boolean=boolean,
    none=(none := Type("none")),
    void=none,
    integer_domain=frozenset(INTEGERS.values()),
    literal=literal,
    unliteral=lambda kind: kind,
    __all__=[*SCALARS, "boolean", "void"],
)
