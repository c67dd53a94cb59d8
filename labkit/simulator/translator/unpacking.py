"""Unpacking: `a, b = t`, of a tuple, an array or a range."""

import ast

from labkit.simulator.seam import types
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import Array, Range, Value, is_tuple, items_of


class Unpacking(Variables):
    """Takes values apart into several names."""

    def unpacked(self, node, value, count) -> list[Value]:
        """Return the values of a tuple, an array or a range that a statement unpacks into `count` names."""
        source = node.iter if isinstance(node, ast.For) else node.value
        text = f"{count} names take the values of `{self.written(source)}`, which has others"
        if is_tuple(value.type):
            if len(value.type.items) != count:
                self.fail(
                    node,
                    f"there are {count} names on the left, but {len(value.type.items)} on the right of `=`; "
                    "make the numbers equal",
                )
            return items_of(self.temp(value.code, value.type))
        if isinstance(value.type, Array):
            value = self.kept(value)
            length = f"{value.code}.shape_values[0]"
            numbers = [Value(f"np.int64({n})", types.int64) for n in range(count)]
            self.check_length(node, length, count, text)
            return [self.selected_part(source, value, self.written(source), [number]) for number in numbers]
        if isinstance(value.type, Range):
            value, kind = self.kept(value), value.type.items[0]
            self.check_length(node, f"trip_counts(*{value.code})", count, text)
            low, _, step = (f"{value.code}[{part}]" for part in range(3))
            return [Value(f"({low} + {step} * {self.dtype(kind)}.type({n}))", kind) for n in range(count)]
        self.fail(node, f"`{self.written(source)}` is a single value and cannot be unpacked into several names")

    def check_length(self, node, length, count, text):
        """Write the end of the lanes whose `length` is not `count`, by a ValueError of this text."""
        wrong = self.name("m")
        self.flush_flops()
        self.emit(f"{wrong} = intersect({self.mask}, {length} != {count})")
        with self.block(f"if {wrong} is not False:"):
            self.emit_raise(node, wrong, "ValueError", (text,))
