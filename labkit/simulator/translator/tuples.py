"""Tuples: their values by number."""

from numba import types

from labkit.simulator.translator.values import MISSING, Value, Vector, one_type
from labkit.simulator.translator.variables import Variables


class Tuples(Variables):
    """What is done with whole tuples."""

    def tuple_entry(self, node, value) -> Value:
        """`t[i]`: one of a tuple's values, which are all of one type if i is not known when the kernel is compiled."""
        name, kinds = self.written(node.value), value.type.items
        if isinstance(value.type, Vector):
            self.fail(node, f"`{name}` is a vector, whose numbers are `{name}.x` and so on")
        position = self.index(node.slice)
        if position.static is MISSING:
            kind = one_type(kinds)
            if kind is None:
                self.fail(
                    node, f"`{name}` holds values of several types, so its index must be a plain number, such as 0"
                )
            index = self.converted(position, types.int64)
            self.emit(f"w.check_entry({self.mask}, {index}, {len(kinds)}, {name!r}, {node.lineno})")
            return self.temp(f"entry({self.mask}, {value.code}, {index})", kind)
        number = int(position.static)
        if not -len(kinds) <= number < len(kinds):
            self.fail(node, f"`{name}` has {len(kinds)} entries; there is no number {number}")
        return Value(
            f"{value.code}[{number}]", kinds[number], value.static[number] if value.static is not MISSING else MISSING
        )
