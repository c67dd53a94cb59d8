"""Elements of arrays: indices, loads and stores, and the site that counts each."""

import ast
from contextlib import contextmanager
from dataclasses import replace

from labkit.simulator.language import CALLS, FUNCTIONS
from labkit.simulator.numba_types import bfloat16
from labkit.simulator.seam import types
from labkit.simulator.translator.float64 import in_whole_numbers
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import Array, Maybe, Record, Tuple, Value, describe, example_element
from labkit.trace import Site


class Elements(Variables):
    """Subscripts, read and written."""

    def open_subscripts(self, node):
        """Return the base of a subscript and the subscripts still to apply to it; those of tuples are applied here.

        `A[i][j]` leaves two, for it is `A[i, j]` as long as `A[i]` is a row.
        """
        levels = []
        while (
            isinstance(node, ast.Subscript)
            and not is_field(node)
            and not (levels and any(isinstance(part, ast.Slice) or _is_ellipsis(part) for part in parts_of(node)))
        ):
            levels.insert(0, node)
            node = node.value
        value = self.expression(node)
        while levels and isinstance(value.type, Tuple) and not isinstance(value.type, Record):
            value = self.tuple_entry(levels.pop(0), value)
        return value, levels

    def subscript(self, node):
        """Return (array, its name as written, indices) of a subscript."""
        value, levels = self.open_subscripts(node)
        if not levels:
            self.fail(node, f"`{self.written(node.value)}` is a tuple and cannot be changed")
        return self.indexed(value, levels)

    def indexed(self, array, levels):
        name = self.written(levels[0].value)
        if not isinstance(array.type, Array):
            self.fail(levels[0], f"`{name}` is {describe(array.type)}, not an array, so it has no elements")
        return array, name, self.indices(levels[-1], array, [part for level in levels for part in parts_of(level)])

    def indices(self, node, array, parts) -> list:
        """Return the index of each axis: a Value, or the Values of a slice's (start, stop, step)."""
        values = []
        for part in parts:
            if isinstance(part, ast.Slice):
                values.append(tuple(p and self.index(p) for p in (part.lower, part.upper, part.step)))
            elif _is_ellipsis(part):
                values += [(None, None, None)] * (array.type.ndim - len(parts) + 1)
            elif isinstance(part, ast.Name) and _is_index_tuple(self.env.get(part.id)):
                index_tuple = self.expression(part)
                values += [Value(f"{index_tuple.code}[{i}]", k) for i, k in enumerate(index_tuple.type.items)]
            elif isinstance(part, ast.Constant) and part.value is None:
                self.fail(node, "`None` as an index adds an axis, which does not work in a kernel; leave it out")
            else:
                values.append(self.index(part))
        return values

    def index(self, node) -> Value:
        value = self.number(node, self.expression_not_none(node, "an index"), "an index")
        if not isinstance(value.type, (types.Integer, types.Boolean)):
            cure = "use `//` instead of `/`, or `int(...)`"
            if node in self.integer_quotients:
                cure = f"write `{self.written(in_whole_numbers(node))}`"
            self.fail(
                node,
                f"an index must be a whole number, and `{self.written(node)}` is {describe(value.type)}; {cure}",
            )
        return value

    def element(self, node):
        """Return the array and the index values of a subscript that names one element."""
        if is_field(node):
            array, index = self.field_element(node, self.expression(node.value))
            name = self.written(node)
        else:
            array, name, index = self.subscript(node)
        if any(isinstance(i, tuple) for i in index):
            self.fail(node, f"`{self.written(node)}` is a slice of many elements; name one, or write a loop")
        self.check_rank(node, array, name, len(index))
        return array, index

    def check_rank(self, node, array, name, count, instead=""):
        """Refuse a number of indices other than the array's dimensions; `instead` says what fewer would do."""
        rank = array.type.ndim
        if count != rank == 0:
            self.fail(node, f"`{name}` has no dimensions, and its one element is `{name}[()]`")
        if count != rank:
            expected = f"{rank} {'index' if rank == 1 else 'indices'}"
            self.fail(
                node,
                f"`{name}` has {rank} dimension{'s' * (rank > 1)}: give it {expected}, not {count}, such as "
                f"`{example_element(name, array.type)}`{instead * (count < rank)}",
            )

    def site(self, node, array, kind, elements=1) -> str:
        """Return the number of this access; where several arrays are possible, the constant with the number of each."""
        numbers = {}
        for alternative in array.type.each:
            if kind != "load":
                self.program.stored.add(alternative.name)
            dtype, text = str(alternative.dtype), self.written(node)
            fields = (node.lineno, node.col_offset, alternative.name, kind, alternative.space)
            site = Site(*fields, dtype, text, elements, alternative.offset_bytes)
            numbers[alternative.name] = self.program.sites.setdefault(site, len(self.program.sites))
        if node in self.guesses:
            self.program.guesses |= {*numbers.values()}
        if node in self.after_atomics:
            self.program.after_atomics |= {*numbers.values()}
        return str(*numbers.values()) if len(numbers) == 1 else self.constant(numbers)

    def load(self, node, array, index) -> Value:
        """Return the element at these indices."""
        number = self.site(node, array, "load")
        self.pause(node, number, array)
        code = f"load(w, {number}, {array.code}, {self.mask}, {', '.join(i.code for i in index)})"
        if array.type.dtype == bfloat16:
            code = f"from_bits({code})"
        return self.temp(code, array.type.dtype)

    @contextmanager
    def each_element(self, node, array):
        """Write a loop over the elements of an array; yield the indices of one."""
        index, mask = self.name("i"), self.name("m")
        self.flush_flops()
        with (
            self.block(f"for {index}, {mask} in elements(w, {node.lineno}, {array.code}, {self.mask}):"),
            self.with_mask(mask),
        ):
            yield [Value(f"{index}[{axis}]", types.int64) for axis in range(array.type.ndim)]

    def refuse_whole_array(self, node, array, what):
        """Refuse a whole array where one number is needed; `node` is the expression that gave it."""
        if isinstance(node, ast.Subscript) and self.open_subscripts(node)[1]:
            self.element(node)  # which says how many indices are missing
        name = self.written(node)
        self.fail(node, f"{what}, and `{name}` is a whole array; pick an element, `{example_element(name, array)}`")

    def check_writable(self, node, array):
        for alternative in array.type.each:
            if alternative.space == "constant":
                self.fail(
                    node,
                    f"`{alternative.name}` is in constant memory, which a kernel cannot change; pass it as an argument",
                )
            if alternative.name in self.program.captured:
                self.fail(
                    node,
                    f"`{alternative.name}` is a device array of the module; pass it as an argument to write into it",
                )

    def store(self, node, array, index, value, value_node):
        """Write to an element; `value_node` is the expression of the value."""
        if isinstance(value.type, Array):
            self.refuse_whole_array(value_node, value.type, "an array element holds one number")
        if isinstance(value.type, Record):
            name, fields = self.written(value_node), value.type.items[0].dtype.fields
            self.fail(
                node, f"`{name}` is a record, and {array.type.name} holds numbers; pick `{name}.{next(iter(fields))}`"
            )
        if not isinstance(value.type, types.Type) or value.type is types.none:
            self.fail(node, f"an array element holds one number, and the right-hand side is {describe(value.type)}")
        self.check_writable(node, array)
        number = self.site(node, array, "store")
        code = self.stored_code(node, value, array.type.dtype)
        self.pause(node, number, array)
        self.emit(f"store(w, {number}, {array.code}, {self.mask}, {code}, {', '.join(i.code for i in index)})")

    def of_Subscript(self, node):
        if isinstance(node.value, (ast.Name, ast.Attribute, ast.Call)):
            path = self.dotted(node.value)
            if path in CALLS or path in FUNCTIONS:
                self.fail(node, f"`{self.written(node.value)}` is a function: use parentheses, not brackets")
            if path in ("cuda.threadIdx", "cuda.blockIdx", "cuda.blockDim", "cuda.gridDim"):
                self.fail(node, f"write `{self.written(node.value)}.x`, `.y` or `.z` instead of an index")
        if is_field(node):
            return self.of_field(node, self.expression(node.value))
        value, levels = self.open_subscripts(node)
        return self.selected_part(node, *self.indexed(value, levels)) if levels else value

    def of_field(self, node, base) -> Value:
        """Translate `base.field` or `base["field"]`."""
        array, index = self.field_element(node, base)
        return self.selected_part(node, array, self.written(node), index)

    def selected_part(self, node, array, name, index) -> Value:
        """Return what the indices select: an element, a record, or a part of the array."""
        if len(index) > array.type.ndim:
            self.check_rank(node, array, name, len(index))
        if len(index) < array.type.ndim or any(isinstance(i, tuple) for i in index):
            return self.view(array, index)
        if isinstance(array.type.dtype, types.Record):
            return self.record(array, index)
        return self.load(node, array, index)

    def view(self, array, index) -> Value:
        """Return a part of an array: a slice, a row, or an array with a leading axis taken."""
        parts = [
            f"Slice({', '.join(p.code if p else 'None' for p in i)})" if isinstance(i, tuple) else i.code for i in index
        ]
        rank = array.type.ndim - sum(isinstance(i, Value) for i in index)
        kind = replace(array.type, ndim=rank, others=tuple(replace(o, ndim=rank) for o in array.type.others))
        return self.temp(f"view({array.code}, {', '.join(parts)})" if parts else array.code, kind)


def is_field(node) -> bool:
    """Return whether the expression names a field of a record: `record.field`, `record["field"]`."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    return isinstance(node, ast.Attribute)


def parts_of(node) -> list:
    """Return the indices of a subscript, one per axis."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def _is_index_tuple(kind) -> bool:
    """Return whether it is the type of a variable that holds the indices of several axes."""
    return isinstance(kind, Tuple) and not isinstance(kind, Maybe)


def _is_ellipsis(node) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
