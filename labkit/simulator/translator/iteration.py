"""Iterables of a `for` loop: `range`, an array, a tuple, and `enumerate` and `zip` of these."""

import ast
from collections.abc import Callable
from dataclasses import dataclass

from labkit.simulator import numba_types
from labkit.simulator.seam import types
from labkit.simulator.translator.float64 import in_whole_numbers
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import MISSING, Array, Range, Tuple, Value, common_type, describe
from labkit.trace import Finding


@dataclass(frozen=True)
class Iteration:
    """A loop's iterations: the code of the first number, the end and the step, and the value for a number."""

    kind: types.Type
    low: str
    high: str
    step: str
    value: Callable[[Value], Value]


class Iterations(Variables):
    """Resolves the iterable of a loop."""

    def iteration(self, node) -> Iteration:
        """Return the iterations of a `for` loop over an expression."""
        function = self.dotted(node.func) if isinstance(node, ast.Call) else None
        if function in ("range", "enumerate", "zip"):
            if node.keywords:
                self.fail(node, f"give the arguments of `{function}` by position, without names")
            return getattr(self, function)(node)
        if isinstance(node, ast.Attribute) and node.attr == "flat":
            return self.flat(node)
        iterable = self.expression(node)
        if isinstance(iterable.type, Range):
            return Iteration(
                iterable.type.items[0], *(f"{iterable.code}[{i}]" for i in range(3)), lambda number: number
            )
        if isinstance(iterable.type, Array):
            return self.iterate_up_to(f"{iterable.code}.shape_values[0]", lambda n: self.entry(node, iterable, n))
        if isinstance(iterable.type, Tuple):
            if not iterable.type.items:
                self.fail(
                    node, f"`{self.written(node)}` is empty, and numba needs something to loop over; leave it out"
                )
            kind = common_type(iterable.type.items)
            if kind is None:
                self.fail(node, f"`{self.written(node)}` holds values of several types, and a loop needs one type")
            return self.iterate_up_to(
                f"np.int64({len(iterable.type.items)})", lambda n: Value(f"{iterable.code}[{n.code}]", kind)
            )
        self.fail(
            node,
            f"`{self.written(node)}` is {describe(iterable.type)}; a `for` loop in a kernel runs over `range(...)`, an "
            "array or a tuple",
        )

    def flat(self, node) -> Iteration:
        """Return an iteration over all elements of an array, in C order."""
        array = self.expression(node.value)
        if not isinstance(array.type, Array):
            self.fail(node, f"`{self.written(node.value)}` is {describe(array.type)}, not an array, and has no `flat`")

        def element(number):
            return self.load(node, array, [Value(f"*unravel({array.code}, {number.code})", types.int64)])

        return self.iterate_up_to(f"{array.code}.size_value", element)

    def iterate_up_to(self, length, value) -> Iteration:
        """Return an iteration over 0, 1, ... up to `length`."""
        return Iteration(types.int64, "np.int64(0)", length, "np.int64(1)", value)

    def entry(self, node, array, number) -> Value:
        """Return the next element of an array, or its next row."""
        if array.type.ndim == 1:
            return self.load(node, array, [number])
        return self.view(array, [number])

    def range(self, node) -> Iteration:
        if not 1 <= len(node.args) <= 3:
            self.fail(node, "`range` takes one to three numbers")
        bounds = [self.scalar(a, "a bound of `range`") for a in node.args]
        for bound, argument in zip(bounds, node.args):
            if isinstance(bound.type, types.Float):
                self.advise_integer_bound(argument)
        resolved = numba_types.resolve(range, tuple(b.type for b in bounds))
        if resolved is None:
            self.fail(node, f"`range` takes whole numbers, not {' and '.join(describe(b.type) for b in bounds)}")
        kind = resolved[0].dtype
        if len(bounds) == 3 and bounds[2].static == 0:
            self.fail(node, "`range` with a step of 0 never ends; use another step")
        codes = [self.converted(b, kind) for b in bounds]
        zero, one = self.constant(numba_types.as_type(0, kind)), self.constant(numba_types.as_type(1, kind))
        low, high, step = {1: [zero, *codes, one], 2: [*codes, one], 3: codes}[len(codes)]
        if len(bounds) == 3 and bounds[2].static is MISSING:
            self.emit(f"w.check_step({self.mask}, {step}, {node.lineno})")
        return Iteration(kind, low, high, step, lambda number: number)

    def advise_integer_bound(self, node):
        """Advise against a float as a bound of `range`."""
        cure = "use `//` instead of `/`, or `int(...)`."
        if node in self.integer_quotients:
            cure = f"write `{self.written(in_whole_numbers(node))}`."
        message = (
            f"Line {node.lineno}: `{self.written(node)}` is a float, and numba cuts it to a whole number for `range`, "
            f"where Python raises a TypeError; {cure}"
        )
        finding = Finding("float-range", "advice", message, node.lineno, node.col_offset, remedy=cure)
        self.program.advice.setdefault((node.lineno, "float-range"), finding)

    def range_value(self, node) -> Value:
        """Return a `range(n)` that is kept in a name, or whose length is taken."""
        iteration = self.range(node)
        return self.temp(f"({iteration.low}, {iteration.high}, {iteration.step})", Range((iteration.kind,) * 3))

    def enumerate(self, node) -> Iteration:
        if len(node.args) not in (1, 2):
            self.fail(node, "`enumerate` takes what to count, and the first number if that is not 0")
        inner = self.iteration(node.args[0])
        first = self.index(node.args[1]).code if len(node.args) == 2 else "np.int64(0)"
        trips = self.temp(f"trip_counts({inner.low}, {inner.high}, {inner.step})", types.int64)

        def pair(number):
            value = inner.value(self.loop_number(inner, number))
            return Value(f"({number.code} + {first}, {value.code})", Tuple((types.int64, value.type)))

        return self.iterate_up_to(trips.code, pair)

    def zip(self, node) -> Iteration:
        if not node.args:
            self.fail(node, "`zip` takes one or more arrays")
        parts = [self.iteration(a) for a in node.args]
        counts = [f"trip_counts({p.low}, {p.high}, {p.step})" for p in parts]
        trips = counts[0]
        for count in counts[1:]:
            trips = f"np.minimum({trips}, {count})"

        def values(number):
            items = [part.value(self.loop_number(part, number)) for part in parts]
            return Value(f"({', '.join(i.code for i in items)},)", Tuple(tuple(i.type for i in items)))

        return self.iterate_up_to(self.temp(trips, types.int64).code, values)

    def loop_number(self, part, number) -> Value:
        """Return the loop number of the `number`-th iteration of `part`."""
        return Value(f"({part.low} + {part.step} * cast({number.code}, {self.dtype(part.kind)}))", part.kind)
