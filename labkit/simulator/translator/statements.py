"""Statements that run straight through: assignments, calls, `return`."""

import ast

from labkit.simulator.reading.source import inner_function, python_function
from labkit.simulator.reading.syntax import may_jump
from labkit.simulator.reading.trusted import Device
from labkit.simulator.seam import types
from labkit.simulator.translator.elements import is_field
from labkit.simulator.translator.refused import REFUSED
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import Array, Fixed, Maybe, Record, Value, common_type, is_tuple, items_of


class Statements(Variables):
    """Each `do_Node` writes the code of one kind of statement."""

    def statements(self, body):
        """Translate statements; after one that lanes may leave, the rest runs only where some are left."""
        for position, node in enumerate(body):
            exits = self.exits
            self.statement(node)
            self.flush_flops()
            rest = body[position + 1 :]
            if not self.reachable:
                return
            if rest and (may_jump([node]) or self.exits > exits):
                with self.block(f"if {self.mask} is not False:"):
                    self.statements(rest)
                    self.flush_flops()
                return

    def statement(self, node):
        self.visit()
        handler = getattr(self, f"do_{type(node).__name__}", None)
        if handler is None:
            self.fail(node, REFUSED.get(type(node), f"`{type(node).__name__}` does not work in a kernel"))
        indent = self.indent
        handler(node)
        if self.program.watch and not isinstance(
            node, (ast.For, ast.While, ast.If, ast.Return, ast.Raise, ast.Break, ast.Continue)
        ):
            self.emit_watch(node.lineno)
        self.flush_flops()
        self.indent = indent

    def do_Pass(self, node):
        pass

    def do_FunctionDef(self, node):
        self.check_defined_once(node, node.name)

    def check_defined_once(self, node, name):
        """Refuse a function inside a kernel whose name has other meanings there too."""
        if python_function(self.names.get(name)) is not inner_function(self.function, node):
            self.fail(node, f"`{name}` has several meanings in this kernel; define each function once, by its own name")

    def do_Expr(self, node):
        value = node.value
        if isinstance(value, ast.Constant):
            return
        if isinstance(value, ast.Call):
            self.expression_call(value, result_used=False)
            return
        if isinstance(value, ast.Compare):
            self.fail(node, f"`{self.written(value)}` compares and throws the answer away; did you mean `=`?")
        if isinstance(value, ast.Attribute):
            self.fail(
                node, f"`{self.written(value)}` does nothing: a call needs parentheses, `{self.written(value)}()`"
            )
        if isinstance(value, (ast.BinOp, ast.UnaryOp)):
            self.fail(
                node,
                f"`{self.written(value)}` computes a value and throws it away; store it, for instance `out[i] = ...`",
            )
        self.expression(value)

    def do_Assign(self, node):
        value = self.named_value(node.targets[0], node.value) if len(node.targets) == 1 else self.expression(node.value)
        for target in node.targets:
            self.assign(target, value, node)
            self.keep_literal(target, self.literal(node.value))

    def named_value(self, target, node):
        """Return the value that an assignment gives a target; a name may stand for a function, a dtype or a module."""
        if isinstance(node, ast.Lambda):
            self.check_defined_once(node, getattr(target, "id", "a lambda"))
            return Value("None", Fixed(Device(inner_function(self.function, node))))
        if isinstance(target, ast.Name):
            return self.argument(node)
        if isinstance(target, ast.Tuple | ast.List) and isinstance(node, ast.Tuple):
            targets = target.elts if len(target.elts) == len(node.elts) else [target] * len(node.elts)
            return self.tuple_of(node, [self.named_value(*pair) for pair in zip(targets, node.elts)])
        return self.expression(node)

    def do_AnnAssign(self, node):
        if node.value is not None:
            self.assign(node.target, self.expression(node.value), node)
            self.keep_literal(node.target, self.literal(node.value))

    def do_AugAssign(self, node):
        if isinstance(node.op, ast.MatMult):
            self.fail(node, REFUSED[ast.MatMult])
        target = node.target
        if isinstance(target, ast.Name):
            current = self.expression(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            result = self.binary(node, current, self.expression(node.value), type(node.op).__name__)
            self.assign(target, result, node)
            return
        if not isinstance(target, (ast.Subscript, ast.Attribute)):
            self.fail(node, "only a variable or an array element can be updated in place")
        array, index = self.element(target)
        current = self.load(target, array, index)
        result = self.binary(node, current, self.expression(node.value), type(node.op).__name__)
        self.store(target, array, index, result, node.value)

    def keep_literal(self, target, literal):
        """Keep the literal of a variable that is assigned once."""
        if isinstance(target, ast.Name) and self.homes.stores(target.id) == 1:
            self.literals[target.id] = literal
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(literal, tuple):
            for part, entry in zip(target.elts, literal):
                self.keep_literal(part, entry)

    def assign(self, target, value, node):
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value, node)
        elif isinstance(target, (ast.Subscript, ast.Attribute)):
            self.assign_element(target, value, getattr(node, "value", target))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element, item in zip(target.elts, self.unpacked(node, value, len(target.elts))):
                self.assign(element, item, node)
        else:
            self.fail(node, f"`{self.written(target)}` cannot be assigned to in a kernel")

    def assign_element(self, target, value, value_node):
        """Translate an assignment to an element, a field, a record, or all elements of a slice."""
        if is_field(target):
            self.store(target, *self.element(target), value, value_node)
            return
        array, name, index = self.subscript(target)
        if isinstance(value.type, Record) and isinstance(array.type.dtype, types.Record):
            self.copy_record(target, value_node, self.record(array, index), value)
            return
        if any(isinstance(i, tuple) for i in index) or (
            isinstance(value.type, Array) and len(index) < array.type.ndim == len(index) + value.type.ndim
        ):
            if isinstance(value.type, Array):
                self.fail(
                    target,
                    "numba-cuda compiles no copy from one part of an array to another; write a loop over the elements",
                )
            fill = self.fill_from_tuple if is_tuple(value.type) else self.fill
            fill(target, self.view(array, index), value, value_node)
            return
        hint = f", or write `{name}[...]` with a `:` for each index left out"
        self.check_rank(target, array, name, len(index), hint)
        self.store(target, array, index, value, value_node)

    def copy_record(self, target, value_node, to, source):
        """Translate `records[i] = record`, field by field."""
        if to.type.items[0].dtype != source.type.items[0].dtype:
            self.fail(target, f"`{self.written(target)}` holds another kind of record; copy the fields one by one")
        for name, kind in to.type.items[0].dtype.fields.items():
            target_field, source_field = (
                self.field_of_record(node, record, name) for node, record in ((target, to), (value_node, source))
            )
            if isinstance(kind.type, types.Record):
                self.copy_record(target, value_node, self.record(*target_field), self.record(*source_field))
            elif isinstance(kind.type, types.NestedArray):
                self.copy_elements(target, value_node, self.view(*target_field), self.view(*source_field))
            else:
                self.store(target, *target_field, self.load(value_node, *source_field), value_node)

    def copy_elements(self, target, value_node, to, source):
        """Copy the array in a field of a record from that of another."""
        with self.each_element(target, to) as index:
            if isinstance(to.type.dtype, types.Record):
                self.copy_record(target, value_node, self.record(to, index), self.record(source, index))
            else:
                self.store(target, to, index, self.load(value_node, source, index), value_node)

    def fill(self, target, view, value, value_node):
        """Translate `A[1:3] = value`: one number for all the elements."""
        with self.each_element(target, view) as index:
            self.store(target, view, index, value, value_node)

    def fill_from_tuple(self, target, view, value, value_node):
        """Translate `A[:2] = (x, y)`: the values of a tuple of one type, in turn."""
        items = items_of(self.kept(value))
        if view.type.ndim != 1 or common_type(value.type.items) is None:
            self.fail(
                target,
                "numba-cuda fills a slice of one dimension from a tuple whose values have one type; write an "
                "assignment for each element",
            )
        text = f"`{self.written(target)}` has another number of elements than `{self.written(value_node)}`"
        self.check_length(target, f"{view.code}.shape_values[0]", len(items), text)
        for number, item in enumerate(items):
            self.store(target, view, [Value(f"np.int64({number})", types.int64)], item, value_node)

    def do_Return(self, node):
        has_value = node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None)
        value = Value("None", types.none)
        if has_value and (not self.is_kernel or isinstance(node.value, ast.Call)):
            value = self.expression_or_none(node.value)
            self.flush_flops()
        if self.is_kernel:
            if has_value and not (isinstance(node.value, ast.Call) and value.type is types.none):
                self.fail(node, "a kernel returns nothing: write the result into an output array, `out[i] = ...`")
            self.emit(f"w.mark_returned({self.mask})")
        else:
            self.return_types.append(value.type)
        if not self.is_kernel and value.type is not types.none:
            code = value.code
            if self.may_return_none and not isinstance(value.type, Maybe):
                code = f"(np.True_, {code})"
            blend = "select" if code == value.code and isinstance(value.type, types.Type) else "select_parts"
            self.emit(f"result = {blend}({self.mask}, {code}, result)")
        self.emit(f"gone = union(gone, {self.mask})")
        self.emit(f"{self.mask} = False")
        self.reachable = False
