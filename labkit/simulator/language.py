"""The kernel language: the names that resolve, their types, and their code on lanes.

Nothing else resolves, so a kernel's source is data: no attribute of a Python object is ever reached.
"""

import ast
import math

import numpy

from labkit.simulator import numba_types
from labkit.simulator.functions import bits, builtin, complexes, half, libdevice, mathematics, ufuncs
from labkit.simulator.functions.refused import ABSENT, REFUSED
from labkit.simulator.seam import types

# Modules that a kernel may name, and their names in the kernel language.
MODULES = {
    "labkit.cuda": "cuda",
    "labkit.ptx": "ptx",
    "numba.cuda": "cuda",
    "numba.cuda.bf16": "cuda.bf16",
    "numba.cuda._internal.cuda_bf16": "cuda.bf16",
    "numba.cuda.fp16": "cuda.fp16",
    "numba.cuda._internal.cuda_fp16": "cuda.fp16",
    "numba.cuda.libdevice": "cuda.libdevice",
    "cmath": "cmath",
    "math": "math",
    "operator": "operator",
    "_operator": "operator",
    "numpy": "np",
    "numba": "numba",
    "numba.types": "numba",
    "numba.misc.special": "numba",
    "numba.cuda.misc.special": "numba",
    "numba.core.types": "numba",
    "numba.cuda.types": "numba",
    "numba.cuda.stubs": "cuda",
    "numba.cuda.intrinsics": "cuda",
}

# Modules of functions that are written in the kernel language themselves.
SUBMODULES = {"cuda.random": "labkit.simulator.random"}

SCALARS = {
    name: numba_types.type_named(name)
    for name in """int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 complex64
    complex128 intp uintp""".split()
}
SCALARS["bool_"] = SCALARS["boolean"] = types.boolean

FUNCTIONS = {
    **mathematics.FUNCTIONS,
    **complexes.FUNCTIONS,
    **builtin.FUNCTIONS,
    **bits.FUNCTIONS,
    **libdevice.FUNCTIONS,
    **half.FUNCTIONS,
    **ufuncs.FUNCTIONS,
}

CASTS = {f"{module}.{name}": kind for module in ("np", "numba", "cuda.types") for name, kind in SCALARS.items()}
CASTS |= {
    f"cuda.{name}": kind
    for name in types.__all__
    if isinstance(kind := getattr(types, name), types.Number | types.Boolean)
}
CASTS |= {
    "bool": types.boolean,
    "cuda.bf16.bfloat16": numba_types.bfloat16,
    "numba.__nv_bfloat16": numba_types.bfloat16,
}

BUILTINS = set(
    "range enumerate zip tuple len print min max sum abs round pow float int bool complex divmod isinstance".split()
)

# Vector types, by numba's names and by CUDA's: the type of an element, and how many.
_CUDA_NAMES = {
    "int8": "char", "int16": "short", "int32": "int", "int64": "long longlong", "float32": "float",
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong ulonglong", "float64": "double",
}  # fmt: skip
VECTORS = {
    f"cuda.{name}": (SCALARS[kind], length)
    for kind, aliases in _CUDA_NAMES.items()
    for length in (1, 2, 3, 4)
    for name in (f"{kind}x{length}", *(f"{alias}{length}" for alias in aliases.split()))
}

# Values of `cuda`: the type, and the code that reads them from the warp set `w`.
POSITIONS = {
    f"cuda.{name}.{axis}": (types.int32, f"w.{name}[{i}]")
    for name in ("threadIdx", "blockIdx", "blockDim", "gridDim")
    for i, axis in enumerate("xyz")
}
POSITIONS["cuda.laneid"] = (types.int32, "w.lane")
POSITIONS["cuda.warpsize"] = (types.int32, "np.int32(32)")

CONSTANTS = {
    f"{module}.{name}": getattr(math, name)
    for module, names in {"math": "pi e inf nan tau", "cmath": "pi e tau", "np": "pi e inf nan"}.items()
    for name in names.split()
}

# Operators as written.
SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Invert: "~", ast.UAdd: "+", ast.USub: "-", ast.Not: "not", ast.And: "and", ast.Or: "or", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not",
    ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip

# Functions of the module `operator`: the node of the operator that each stands for.
OPERATORS = {
    "add": ast.Add, "sub": ast.Sub, "mul": ast.Mult, "truediv": ast.Div, "floordiv": ast.FloorDiv, "mod": ast.Mod,
    "pow": ast.Pow, "lshift": ast.LShift, "rshift": ast.RShift, "and_": ast.BitAnd, "or_": ast.BitOr,
    "xor": ast.BitXor, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE, "eq": ast.Eq, "ne": ast.NotEq,
    "neg": ast.USub, "pos": ast.UAdd, "invert": ast.Invert, "not_": ast.Not,
}  # fmt: skip

_UNSIGNED = (types.uint32, types.uint64)
_INTEGERS = (types.int32, types.int64, *_UNSIGNED)
_NUMBERS = (*_INTEGERS, types.float32, types.float64)

# Atomics: the arguments of each, and its dtypes (numba-cuda's cudadecl.py).
ATOMICS = {
    **{name: ("array, index, value", _NUMBERS) for name in "add sub max min nanmax nanmin".split()},
    **{name: ("array, index, value", _INTEGERS) for name in "and_ or_ xor exch".split()},
    **{name: ("array, index, value", _UNSIGNED) for name in ("inc", "dec")},
    "cas": ("array, index, old, new", _INTEGERS),
    "compare_and_swap": ("array, old, new", _INTEGERS),
}
# Atomics whose order among others of their kind changes no result; sums of floats round differently in each order.
ORDERLESS = set("max min nanmax nanmin and_ or_ xor".split())
ORDERLESS_ON_INTEGERS = {"add", "sub"}
# Calls that the simulator ignores.
NO_EFFECT = {"cuda.threadfence_block", "cuda.nanosleep"}

# Calls of `cuda`: the translator's method for each.
INTRINSICS = {
    "cuda.grid": "grid",
    "cuda.gridsize": "gridsize",
    "cuda.shared.array": "shared_array",
    "cuda.local.array": "local_array",
    "cuda.const.array_like": "constant_like",
    "cuda.syncthreads": "syncthreads",
    **{f"cuda.syncthreads_{vote}": "syncthreads_counting" for vote in ("count", "and", "or")},
    "cuda.syncwarp": "syncwarp",
    "cuda.threadfence": "threadfence",
    "cuda.threadfence_system": "threadfence",
    "cuda.cg.this_grid": "this_grid",
    "cuda.cg.this_grid().sync": "grid_sync",
    **{f"cuda.shfl{direction}_sync": "shuffle" for direction in ("", "_up", "_down", "_xor")},
    **{f"cuda.{test}_sync": "vote" for test in ("all", "any", "eq")},
    "cuda.ballot_sync": "ballot",
    "cuda.match_any_sync": "match_any",
    "cuda.match_all_sync": "match_all",
    "cuda.activemask": "activemask",
    "cuda.lanemask_lt": "lanemask_lt",
    "cuda.selp": "select_value",
    "min": "extreme",
    "max": "extreme",
    "sum": "total",
    "isinstance": "has_type",
    "np.iinfo": "type_limits",
    "np.finfo": "type_limits",
    "pow": "power",
    **{f"operator.{name}": "operator_function" for name in OPERATORS},
    **{f"cuda.ld{hint}": "hinted_load" for hint in "ca cg cs lu cv".split()},
    **{f"cuda.st{hint}": "hinted_store" for hint in "cg cs wb wt".split()},
}
CALLS = {*INTRINSICS, *(f"cuda.atomic.{name}" for name in ATOMICS), *NO_EFFECT}
KNOWN = {*FUNCTIONS, *CASTS, *VECTORS, *POSITIONS, *CONSTANTS, *CALLS}
# Modules and objects that hold known names: `cuda`, `cuda.shared`, `np`.
PREFIXES = {name.rsplit(".", depth)[0] for name in KNOWN for depth in (1, 2) if name.count(".") >= depth}

HOST = {
    f"cuda.{name}"
    for name in """to_device device_array device_array_like pinned_array mapped_array managed_array synchronize stream
    event current_context get_current_device jit""".split()
}
IMPORTS = {
    "math": "import math",
    "operator": "import operator",
    "np": "import numpy as np",
    "numpy": "import numpy",
    "cuda": "from labkit import cuda",
    "ptx": "from labkit import ptx",
}
NAMES_OF_VARIABLES = ("e", "gamma")  # which are functions or constants of `math`, too
MAKE_ARRAYS = ("np.zeros", "np.empty", "np.ones", "np.array", "np.full", "np.arange")


def commutes(atomic: str, kind: types.Type) -> str:
    """Return the atomic's name if its order among others of that name makes no difference, else ""."""
    orderless = atomic in ORDERLESS or (atomic in ORDERLESS_ON_INTEGERS and isinstance(kind, types.Integer))
    return atomic if orderless else ""


def explain_unknown(path: str, written: str) -> str:
    """Return the message about a name of a module that is not in the kernel language."""
    replacement = REFUSED.get(path) or ABSENT.get(path)
    if replacement:
        replacement = replacement if "`" in replacement else f"`{replacement}`"
        return f"numba-cuda has no code for `{written}` in a kernel; write {replacement}"
    if path in HOST:
        return f"`{written}` belongs to the host: call it outside the kernel, before or after the launch"
    if path.startswith(MAKE_ARRAYS):
        return "a thread cannot make a NumPy array; use `cuda.local.array(length, float32)`"
    if path.startswith("np.random"):
        return "NumPy's random numbers do not exist on a GPU; make them outside and pass them in an array"
    hint = suggest_name(path)
    if path.startswith("np.") and not hint:
        return (
            f"`{written}` does not work in a kernel, where a thread handles single numbers; write a loop over `range`"
        )
    return f"`{written}` is not in the kernel language{hint}"


def suggest_import(name: str) -> str:
    """Return how to import a module or a function that is used by its bare name, as ` (write ...)`, or ""."""
    if name in IMPORTS:
        return f" (write `{IMPORTS[name]}` above the function)"
    if f"math.{name}" in KNOWN and name not in NAMES_OF_VARIABLES:
        return f" (write `from math import {name}` above the function)"
    return ""


def suggest_name(name: str) -> str:
    """Return the known name most like `name`, as ` (did you mean ...?)`, or ""."""
    found = _exact_name(name) or ("" if _is_in_module(name) else _close_name(name))
    replacement = REFUSED.get(found) or ABSENT.get(found)
    if replacement:
        replacement = replacement if "`" in replacement else f"`{replacement}`"
        return f" (did you mean `{found}`? In a kernel write {replacement})"
    return f" (did you mean `{found}`?)" if found else ""


def _exact_name(name):
    """Return a name that differs in its module, its case or what is missing at its end; "" if there is none."""
    names = {known.lower(): known for known in sorted(KNOWN | {p for p in PREFIXES if "." in p})}
    lowered = name.lower()
    last = lowered.rpartition(".")[2]
    likely = (lowered, f"cuda.{lowered}", f"math.{last}", f"cuda.{last}", f"cuda.libdevice.{last}", last)
    found = [names[full] for full in likely if full in names and names[full] != name]
    longer = sorted((known for known in KNOWN if known.startswith((f"{name}.", f"{name}_"))), key=len)
    return next(iter(found or longer), "")


def _close_name(name):
    """Return a name of nearly the same letters, of the same module if there is one; "" if there is none."""
    import difflib

    module, _, last = name.lower().rpartition(".")
    candidates = {known.lower(): known for known in sorted(KNOWN | HOST | REFUSED.keys() | ABSENT.keys())}
    of_module = {n.rpartition(".")[2]: n for n in candidates if n.rpartition(".")[0] == module}
    if close := difflib.get_close_matches(last, of_module, n=1, cutoff=0.75):
        return candidates[of_module[close[0]]]
    names = {known.lower(): known for known in sorted(KNOWN | {p for p in PREFIXES if "." in p})}
    return next((names[close] for close in difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.75)), "")


def _is_in_module(name):
    """Return whether Python's `math` or NumPy has the name, so that it is not misspelt."""
    module, _, last = name.rpartition(".")
    return hasattr({"math": math, "np": numpy}.get(module), last)
