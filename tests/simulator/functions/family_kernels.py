"""Kernels that call every function of a family, on numbers of the types that it takes."""

import cmath

import numpy as np
from cells import kernel_in

from labkit.simulator import numba_types
from labkit.simulator.functions import bits, builtin, complexes, half, libdevice, mathematics, ufuncs
from labkit.simulator.lanes import apply_function
from labkit.simulator.numba_types import bfloat16, types

FAMILIES = {f.__name__.rsplit(".", 1)[1]: f for f in (bits, builtin, complexes, half, libdevice, mathematics, ufuncs)}
TRIED = [numba_types.type_named(n) for n in "float64 float32 int32 boolean uint32 complex64 float16".split()]


def signature(function):
    """Types that the function takes, what it gives for them, and what the arguments become."""
    given = [case.args for case in function.cases] or [(t,) * n for n in (1, 2, 3) for t in TRIED]
    kinds = next(k for k in given if function.resolve(k))
    result, converted = function.resolve(kinds)
    return kinds, list(result.types) if isinstance(result, types.BaseTuple) else [result], converted


def kernel_of(functions, uniform=False):
    """A kernel that calls each function once.

    Returns the kernel, its inputs as (type, place among the arguments), and a (function, which of its results,
    type) for each row of its last argument. With `uniform` the inputs are numbers, else an element a thread.
    """
    inputs = sorted({(k, p) for f in functions for p, k in enumerate(signature(f)[0])}, key=str)
    names = {key: f"{key[0].name}_{key[1]}" for key in inputs}
    lines, rows = ["i = cuda.grid(1)"], []
    for (kind, _), name in names.items():
        given = f"x_{name}" if uniform else f"x_{name}[i]"
        lines.append(f"{name} = cuda.bf16.bfloat16({given})" if kind == bfloat16 else f"{name} = {given}")
    for function in functions:
        kinds, parts, _ = signature(function)
        call = f"{function.name}({', '.join(names[kind, place] for place, kind in enumerate(kinds))})"
        lines.append(f"{', '.join(f'r{i}' for i in range(len(parts)))} = {call}")
        for i, part in enumerate(parts):
            number = f"r{i}" if isinstance(part, types.Complex) else f"float64(r{i})"
            lines.append(f"out[{len(rows)}, i] = {number}")
            rows.append((function, i, part))
    arguments = "".join(f"x_{name}, " for name in names.values())
    body = "\n    ".join(lines)
    return kernel_in(f"@cuda.jit\ndef kernel({arguments}out):\n    {body}", cmath=cmath), inputs, rows


def expected_of(function, given):
    """Return the table's results of a function for these arguments, an array per result."""
    _, parts, converted = signature(function)
    values = [v.astype(numba_types.dtype_of(kind)) for v, kind in zip(given, converted)]
    with np.errstate(all="ignore"):
        dtypes = tuple(numba_types.dtype_of(part) for part in parts)
        return (
            apply_function(function.run, dtypes, *values)
            if len(parts) > 1
            else (apply_function(function.run, dtypes[0], *values),)
        )
