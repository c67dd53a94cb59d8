"""Bits as numbers of another type: `x.view(dtype)`, and the real and imaginary parts of complex arrays."""

from dataclasses import replace

from labkit.simulator import numba_types
from labkit.simulator.seam import types
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import Array, Value, describe


class Pieces(Variables):
    """Takes the memory of an array, or the bits of a number, as another type."""

    def view_method(self, node):
        """Translate `x.view(dtype)` of an array or a number."""
        base = self.expression(node.func.value)
        kind = self.element_type(node.args[0]) if len(node.args) == 1 else None
        if not isinstance(kind, types.Number | types.Boolean):
            self.fail(node, f"`{self.written(node.func)}` takes one dtype of numbers, such as `np.int32`")
        if isinstance(base.type, Array) and not isinstance(base.type.dtype, types.Record):
            if not base.type.ndim:
                self.fail(node, "an array without dimensions is not taken as another type; take its one number, `[()]`")
            dtype = self.constant(numba_types.stored_dtype(kind))
            array = self.of_pieces(node, base.type, kind, numba_types.stored_dtype(kind).itemsize)
            return self.temp(f"view_as(w, {self.mask}, {node.lineno}, {base.code}, {dtype})", array)
        sizes = {numba_types.stored_dtype(k).itemsize for k in (kind, base.type) if isinstance(k, types.Number)}
        if not isinstance(base.type, types.Number) or len(sizes) != 1 or numba_types.bfloat16 in (kind, base.type):
            self.fail(
                node,
                f"`{self.written(node.func.value)}` is {describe(base.type)}, and `.view` takes an array, or a number "
                "as another type of its size",
            )
        return Value(f"bits_as({base.code}, {self.dtype(kind)})", kind)

    def array_part(self, node, base) -> Value:
        """Translate `z.real` and `z.imag` of an array."""
        kind = base.type.dtype
        if not isinstance(kind, types.Complex):
            if node.attr == "imag":
                self.fail(node, f"`{self.written(node.value)}` holds no complex numbers; its `.imag` is 0")
            return base
        inner = kind.underlying_float
        size = numba_types.stored_dtype(inner).itemsize
        array = self.of_pieces(node, base.type, inner, size, size if node.attr == "imag" else 0)
        return self.temp(f"part({base.code}, {node.attr!r}, {node.lineno})", array)

    def of_pieces(self, node, array, kind, size, offset_bytes=0) -> Array:
        """Return the type of an array as elements of another type, and note that the array is taken apart."""
        if self.program.pauses:
            self.fail(node, "the orders of a kernel that reads an array as another type are not explored")
        for alternative in array.each:
            self.program.pieces.setdefault(alternative.name, set()).add(size)

        def taken(each):
            return replace(each, dtype=kind, offset_bytes=each.offset_bytes + offset_bytes, others=())

        first, *others = map(taken, array.each)
        return replace(first, others=tuple(others))
