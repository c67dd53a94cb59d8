"""Values with parts: attributes of arrays, fields of records, lanes of vector types, members of enumerations."""

import ast
from dataclasses import replace
from enum import IntEnum

from labkit.simulator.language import VECTORS
from labkit.simulator.numba_types import stored_dtype
from labkit.simulator.reading.trusted import member_of
from labkit.simulator.seam import types
from labkit.simulator.translator.refused import ARRAY_METHODS
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import (
    Array,
    Member,
    NamedTuple,
    Record,
    Tuple,
    Value,
    Vector,
    describe,
    is_tuple,
    items_of,
)


class Structures(Variables):
    """Takes a part out of a value, by a dot or by a field's name in brackets."""

    def attribute(self, node, base) -> Value:
        """Translate `base.attr`."""
        if isinstance(base.type, Array):
            return self.array_attribute(node, base)
        if isinstance(base.type, Vector) and node.attr in "xyzw"[: len(base.type.items)]:
            number = "xyzw".index(node.attr)
            return Value(f"{base.code}[{number}]", base.type.items[number])
        if isinstance(base.type, Record):
            return self.of_field(node, base)
        if isinstance(base.type, NamedTuple) and node.attr in base.type.fields:
            number = base.type.fields.index(node.attr)
            return Value(f"{base.code}[{number}]", base.type.items[number])
        part = self.number_part(base, node.attr)
        if part is not None:
            return part
        if node.attr in ("astype", "item"):
            self.fail(
                node,
                f"`{self.written(node.value)}` is a number already: convert it with `float32(...)` or `int32(...)`",
            )
        self.fail(node, f"`{self.written(node.value)}` is {describe(base.type)} and has no `{node.attr}` in a kernel")

    def array_attribute(self, node, base) -> Value:
        rank, dtype = base.type.ndim, base.type.dtype
        if isinstance(dtype, types.Record) and node.attr in dtype.fields:
            return self.field(node, base, node.attr)
        if node.attr in ("shape", "strides"):
            return Value(f"{base.code}.{node.attr.removesuffix('s')}_values", Tuple((types.int64,) * rank))
        if node.attr in ("real", "imag"):
            return self.array_part(node, base)
        if node.attr == "T":
            return self.temp(f"transpose({base.code})", base.type)
        if node.attr == "size":
            return Value(f"{base.code}.size_value", types.int64)
        if node.attr == "nbytes":
            return Value(f"({base.code}.size_value * {stored_dtype(dtype).itemsize})", types.int64)
        if node.attr == "ndim":
            return self.compile_time_value(rank, node)
        if node.attr == "itemsize":
            return self.compile_time_value(stored_dtype(dtype).itemsize, node)
        name = self.written(node.value)
        if node.attr in ARRAY_METHODS:
            self.fail(node, ARRAY_METHODS[node.attr].format(name=name))
        self.fail(
            node,
            "an array in a kernel has `shape`, `strides`, `size`, `ndim`, `dtype`, `itemsize` and `nbytes`, not "
            f"`{node.attr}`; loop over its elements",
        )

    def reshape(self, node):
        """Translate `A.reshape(4, 8)`."""
        base = self.expression(node.func.value)
        arguments = [self.expression(argument) for argument in node.args]
        if not isinstance(base.type, Array) or not arguments:
            self.fail(node, f"`{self.written(node.func)}` makes a shape of an array: write `A.reshape(rows, columns)`")
        sizes = items_of(self.kept(arguments[0])) if len(arguments) == 1 and is_tuple(arguments[0].type) else arguments
        if not all(isinstance(size.type, types.Integer) for size in sizes):
            self.fail(node, f"the shape in `{self.written(node)}` must be whole numbers")
        codes = ", ".join(self.converted(size, types.int64) for size in sizes)
        others = tuple(replace(other, ndim=len(sizes)) for other in base.type.others)
        kind = replace(base.type, ndim=len(sizes), others=others)
        return self.temp(f"reshape(w, {self.mask}, {node.lineno}, {base.code}, {codes})", kind)

    # --- vectors ---

    def vector(self, node, name) -> Value:
        """Translate `cuda.float32x4(...)`, of numbers and shorter vectors."""
        kind, length = VECTORS[name]
        items = []
        for argument in node.args:
            value = self.expression(argument)
            if isinstance(value.type, Vector):
                items += [f"cast({value.code}[{i}], {self.dtype(kind)})" for i in range(len(value.type.items))]
            else:
                items.append(self.converted(self.scalar(argument, f"`{self.written(node.func)}`"), kind))
        if len(items) != length:
            self.fail(node, f"`{self.written(node.func)}` takes {length} numbers in all, not {len(items)}")
        return self.temp(f"({', '.join(items)},)", Vector((kind,) * length))

    # --- records ---

    def record(self, array, index) -> Value:
        """Return one record of a structured array: the array, and its index there."""
        kind = Record((array.type, *(i.type for i in index)))
        return self.temp(f"({array.code}, {', '.join(i.code for i in index)})", kind)

    def field(self, node, array, name) -> Value:
        """Return one field of all the records of an array."""
        kind = array.type.dtype.fields.get(name)
        if kind is None:
            self.fail(node, f"the records have no field `{name}`; they have {', '.join(array.type.dtype.fields)}")
        inner, nested = kind.type, 0
        if isinstance(inner, types.NestedArray):
            inner, nested = inner.dtype, inner.ndim

        def field_type(records):
            offset = records.offset_bytes + kind.offset
            return replace(records, dtype=inner, ndim=records.ndim + nested, offset_bytes=offset)

        field_array = replace(field_type(array.type), others=tuple(map(field_type, array.type.others)))
        return self.temp(f"field({array.code}, {name!r})", field_array)

    def field_element(self, node, base):
        """Return the field's array, and the index there, of `base.field` or `base["field"]`."""
        name = node.attr if isinstance(node, ast.Attribute) else node.slice.value
        if isinstance(base.type, Array) and isinstance(base.type.dtype, types.Record):
            return self.field(node, base, name), []
        if not isinstance(base.type, Record):
            self.fail(node, f"`{self.written(node.value)}` is {describe(base.type)} and has no fields")
        return self.field_of_record(node, base, name)

    def field_of_record(self, node, record, name):
        array, *index = record.type.items
        field_array = self.field(node, Value(f"{record.code}[0]", array), name)
        return field_array, [Value(f"{record.code}[{i + 1}]", kind) for i, kind in enumerate(index)]

    # --- enumerations ---

    def enum_member(self, node):
        """Translate `Colour.RED`, of a captured Enum, or `Colour.RED.value`; return None for anything else."""
        asks_value = node.attr == "value" and isinstance(node.value, ast.Attribute)
        named = node.value if asks_value else node
        family = self.value_outside_kernel(named.value)
        value = (
            self.compile_time_value(member_of(family, named.attr), node)
            if member_of(family, named.attr) is not None
            else None
        )
        if value is None or asks_value or issubclass(family, IntEnum):
            return value
        name = self.written(named.value)
        return Value(f"({value.code},)", Member((value.type,), ("value",), name))
