"""Arrays that a kernel makes: shared by its block, or a thread's own."""

import ast
import math
from contextlib import suppress
from itertools import count

import numpy as np

from labkit.simulator import numba_types
from labkit.simulator.errors import NotFixed
from labkit.simulator.language import CASTS
from labkit.simulator.reading.source import own_place
from labkit.simulator.reading.syntax import walk
from labkit.simulator.seam import NumbaError, types
from labkit.simulator.translator.float64 import in_whole_numbers
from labkit.simulator.translator.program import Allocation
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import MISSING, Array, Value, is_known

LOCAL_BYTES = 512 * 1024  # per thread: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"


class Allocations(Variables):
    """`cuda.shared.array` and `cuda.local.array`."""

    def shared_array(self, node):
        return self.allocate(node, "shared")

    def local_array(self, node):
        return self.allocate(node, "local")

    def allocate(self, node, space):
        arguments = dict(zip(("shape", "dtype", "alignment"), node.args)) | {k.arg: k.value for k in node.keywords}
        call = f"cuda.{space}.array"
        if space == "shared" and self.source.is_inner:
            self.fail(node, f"numba makes this array once for each call: write `{call}` in the kernel itself")
        if not {"shape", "dtype"} <= arguments.keys() <= {"shape", "dtype", "alignment"}:
            self.fail(node, f"`{call}` takes a shape and a dtype: `{call}((16, 16), float32)`")
        sizes = arguments["shape"]
        shape = self.shape(sizes)
        dynamic = space == "shared" and shape == (0,)
        if not dynamic and any(n <= 0 for n in shape):
            self.fail(sizes, f"the shape {shape} must be positive in every dimension")
        kind = self.element_type(arguments["dtype"])
        dtype = numba_types.stored_dtype(kind)
        if space == "local" and math.prod(shape) * dtype.itemsize > LOCAL_BYTES:
            self.fail(node, f"a thread has {LOCAL_BYTES:,} bytes of local memory; make the array smaller")
        alignment = self.alignment(arguments["alignment"]) if "alignment" in arguments else dtype.itemsize
        return self.allocated(node, kind, len(shape), space, 0 if dynamic else shape, dtype, alignment)

    def allocated(self, node, kind, axes, space, shape, dtype, alignment, first_byte=None) -> Value:
        """Add an allocation, and return the array of this call."""
        key = (self.function, tuple(self.argument_types), own_place(node))
        used_names = {a.name for k, a in self.program.allocations.items() if k != key}
        name = next(name for name in self.array_names(node, space) if name not in used_names)
        self.program.allocations[key] = Allocation(name, space, shape, dtype, node.lineno, alignment, first_byte)
        number = list(self.program.allocations).index(key)
        return Value(f"w.allocated({number})", Array(kind, axes, space, name))

    def shape(self, sizes) -> tuple[int, ...]:
        """Return the shape of an array: a number, or a tuple of them, known at compile time."""
        if isinstance(sizes, ast.Tuple):
            shape = tuple(self.size(part) for part in sizes.elts)
        else:
            shape = self.size(sizes)
            shape = shape if isinstance(shape, tuple) else (shape,)
        if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in shape):
            self.fail(sizes, f"the shape `{self.written(sizes)}` must be whole numbers")
        return tuple(int(n) for n in shape)

    def size(self, node):
        """Return a size, or a tuple of them, that is known at compile time; raise NotFixed for a variable."""
        static, literal = self.expression(node).static, self.literal(node)
        if is_known(literal):
            return literal
        names = {part.id for part in walk(node) if isinstance(part, ast.Name)}
        is_outside = static is not MISSING or (node is not in_whole_numbers(node) and not names & self.env.keys())
        value = self.written(in_whole_numbers(node)) if is_outside else "..."
        raise NotFixed(
            f"the size `{self.written(node)}` must be a plain number or a name given outside the kernel, because numba "
            f"needs it when it compiles: write `SIZE = {value}` above the kernel and use SIZE",
            node.lineno,
        )

    def element_type(self, node):
        """Return the numba type of a dtype: `float32`, `np.float32`, "float32", or a dtype kept in a name."""
        dtype = node.value if isinstance(node, ast.Constant) else MISSING
        if isinstance(node, ast.Name | ast.Attribute):
            dtype = self.value_outside_kernel(node)
        if isinstance(dtype, (str, np.dtype)):
            with suppress(TypeError, NumbaError):
                return numba_types.type_of(np.dtype(dtype))
        kind = (
            dtype if isinstance(dtype, types.Record) else self.dtype_named(node) or CASTS.get(self.dotted(node) or "")
        )
        if kind is None:
            self.fail(node, f"`{self.written(node)}` is not a dtype; use `float32` from numba, or `np.float32`")
        return kind

    def alignment(self, node) -> int:
        """Return the alignment of an allocation, in bytes, as numba takes it."""
        alignment = self.size(node)
        if not isinstance(alignment, int) or alignment < 8 or alignment & (alignment - 1):
            self.fail(node, f"the alignment `{self.written(node)}` must be a power of two from 8 on, as a plain number")
        return alignment

    def array_names(self, node, space):
        """Yield possible names of the array that a call makes, the plainest first."""
        name = self.target_name(node, space)
        yield name
        yield f"{name} (line {node.lineno})"
        yield from (f"{name} (line {node.lineno}, number {number})" for number in count(2))

    def target_name(self, node, space):
        """Return the variable that the call's array is assigned to; else the memory space."""
        for statement in walk(self.source.tree):
            match statement:
                case ast.Assign([ast.Name(name)], value) if node in (value, getattr(value, "value", None)):
                    return name
                case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if node in values:
                    target = dict(zip(values, targets)).get(node)
                    if isinstance(target, ast.Name):
                        return target.id
        return space
