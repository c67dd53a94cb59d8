"""The kernel language: which names resolve, what type they have, and what stands for them on lanes.

Nothing else resolves, so a kernel's source is data: no attribute of a Python object is ever reached.
"""

import math
import operator
from dataclasses import dataclass

import numpy as np
from numba import types

from labkit.simulator.lanes import maximum, minimum

MODULES = {
    "labkit.cuda": "cuda",
    "numba.cuda": "cuda",
    "math": "math",
    "numpy": "np",
    "numba": "numba",
    "numba.types": "numba",
    "numba.core.types": "numba",
    "numba.cuda.types": "numba",
}

SCALARS = {
    name: getattr(types, name)
    for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 intp uintp".split()
}
SCALARS["bool_"] = SCALARS["boolean"] = types.boolean


@dataclass(frozen=True)
class Function:
    """A function of scalars: `typed_as` is what numba types the call as, `run` what lanes do."""

    name: str
    typed_as: object
    run: object


def _erf(x):
    return np.frompyfunc(math.erf, 1, 1)(x).astype(x.dtype)


def _floor_to_int(function):
    return lambda x: function(x).astype(np.int64)


_MATH = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "fabs": np.abs,
    "fmod": np.fmod,
    "pow": np.power,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "copysign": np.copysign,
    "floor": _floor_to_int(np.floor),
    "ceil": _floor_to_int(np.ceil),
    "trunc": _floor_to_int(np.trunc),
    "erf": _erf,
}
FUNCTIONS = {f"math.{name}": Function(name, getattr(math, name), run) for name, run in _MATH.items()}
FUNCTIONS |= {
    f"np.{name}": Function(name, getattr(np, name), getattr(np, name))
    for name in "sqrt exp log log2 log10 sin cos tan sinh cosh tanh abs floor ceil isnan isinf minimum maximum".split()
}
FUNCTIONS |= {
    "min": Function("min", min, minimum),
    "max": Function("max", max, maximum),
    "abs": Function("abs", abs, np.abs),
    "round": Function("round", round, lambda x: np.rint(x).astype(np.int64)),
    "pow": Function("pow", operator.pow, np.power),
}

CASTS = {f"{module}.{name}": kind for module in ("np", "numba") for name, kind in SCALARS.items()}
CASTS |= {"float": types.float64, "int": types.int64, "bool": types.boolean}

BUILTINS = {"range", "len", "print", "min", "max", "abs", "round", "pow", "float", "int", "bool"}

# cuda.* values: type and the code that reads them from the warp set `w`.
POSITIONS = {
    f"cuda.{name}.{axis}": (types.int32, f"w.{name}[{i}]")
    for name in ("threadIdx", "blockIdx", "blockDim", "gridDim")
    for i, axis in enumerate("xyz")
}
POSITIONS["cuda.laneid"] = (types.int32, "w.laneid()")
POSITIONS["cuda.warpsize"] = (types.int32, "np.int32(32)")

CONSTANTS = {
    "math.pi": math.pi,
    "math.e": math.e,
    "math.inf": math.inf,
    "math.nan": math.nan,
    "np.pi": math.pi,
    "np.e": math.e,
    "np.inf": math.inf,
    "np.nan": math.nan,
}

ATOMICS = {"add", "sub", "max", "min", "exch", "cas", "and_", "or_", "xor"}
NO_EFFECT = {"cuda.threadfence", "cuda.threadfence_block", "cuda.threadfence_system", "cuda.nanosleep"}
CALLS = {
    "cuda.grid",
    "cuda.gridsize",
    "cuda.syncthreads",
    "cuda.syncwarp",
    "cuda.shared.array",
    "cuda.local.array",
    *(f"cuda.atomic.{name}" for name in ATOMICS),
    *NO_EFFECT,
}
KNOWN = {*FUNCTIONS, *CASTS, *POSITIONS, *CONSTANTS, *CALLS}
PREFIXES = {name.rsplit(".", depth)[0] for name in KNOWN for depth in (1, 2) if name.count(".") >= depth}


def nearest(name: str) -> str:
    """The known name most like `name`, as ` (did you mean ...?)`, or nothing."""
    import difflib

    found = difflib.get_close_matches(name, KNOWN, n=1, cutoff=0.75)
    return f" (did you mean `{found[0]}`?)" if found else ""
