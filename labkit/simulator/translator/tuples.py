"""Tuples: made of values, joined, and indexed."""

import ast

from labkit.simulator.limits import MAX_ENTRIES
from labkit.simulator.seam import types
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import (
    MISSING,
    NamedTuple,
    Tuple,
    Value,
    Vector,
    common_type,
    count_entries,
    describe,
    is_tuple,
    items_of,
)


class Tuples(Variables):
    """Operations on whole tuples."""

    def tuple_of(self, node, items, fields=None) -> Value:
        """Return the tuple of these values, a named one if it has fields."""
        if sum(count_entries(i.type) for i in items) > MAX_ENTRIES:
            self.fail(node, f"a tuple of more than {MAX_ENTRIES:,} values is too long for a kernel; use an array")
        code = f"({', '.join(i.code for i in items)}{',' if len(items) == 1 else ''})"
        static = tuple(i.static for i in items) if all(i.static is not MISSING for i in items) else MISSING
        kinds = tuple(i.type for i in items)
        return Value(code, NamedTuple(kinds, fields) if fields else Tuple(kinds), static)

    def tuple_sum(self, node, left, right) -> Value:
        """Translate `s + t`."""
        return self.tuple_of(node, [item for side in (left, right) for item in items_of(self.kept(side))])

    def named_tuple(self, node, fields) -> Value:
        """Translate `Point(x, y)`, of a namedtuple of the module."""
        arguments = dict(zip(fields, node.args)) | {k.arg: k.value for k in node.keywords}
        if len(node.args) + len(node.keywords) != len(fields) or arguments.keys() != set(fields):
            self.fail(node, f"`{self.written(node.func)}` takes a value each for {', '.join(fields)}")
        values = {name: self.expression(argument) for name, argument in arguments.items()}
        return self.tuple_of(node, [values[name] for name in fields], fields)

    def tuple_entry(self, node, value) -> Value:
        """Translate `t[i]`: one of a tuple's values, all of one type if i is not known at compile time."""
        name, kinds = self.written(node.value), value.type.items
        if isinstance(value.type, Vector):
            self.fail(node, f"`{name}` is a vector, whose numbers are `{name}.x` and so on")
        if not is_tuple(value.type):
            self.fail(node, f"`{name}` is {describe(value.type)} and takes no index in a kernel")
        if isinstance(node.slice, ast.Slice):
            return self.tuple_slice(node, value)
        position, number = self.index(node.slice), self.literal(node.slice)
        if number is MISSING:
            kind = common_type(kinds)
            if kind is None:
                self.fail(
                    node, f"`{name}` holds values of several types, so its index must be a plain number, such as 0"
                )
            index = self.converted(position, types.int64)
            self.emit(f"w.check_entry({self.mask}, {index}, {len(kinds)}, {name!r}, {node.lineno})")
            return self.temp(f"select_entry({self.mask}, {value.code}, {index})", kind)
        number = int(number)
        if not -len(kinds) <= number < len(kinds):
            self.fail(node, f"`{name}` has {len(kinds)} entries; there is no number {number}")
        return items_of(value)[number]

    def tuple_slice(self, node, value) -> Value:
        """Translate `t[1:3]`, with ends that are known at compile time."""
        parts = node.slice.lower, node.slice.upper, node.slice.step
        ends = [part and self.index(part) and self.literal(part) for part in parts]
        if MISSING in ends or ends[2] == 0:
            self.fail(node, "a slice of a tuple needs plain numbers, such as `1:3`, and a step other than 0")
        chosen = slice(*(None if end is None else int(end) for end in ends))
        return self.tuple_of(node, items_of(self.kept(value))[chosen])
