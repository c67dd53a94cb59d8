"""numba as the simulator needs it: see `Rules`, of which this module is one."""

import gc
from functools import lru_cache, partial

import numba as package
from numba import literal_unroll, typeof, types
from numba.core import event, sigutils
from numba.core.caching import _CacheLocator
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target
from numba.core.typeconv import Conversion
from numba.core.typing import signature
from numba.extending import overload
from numba.np.numpy_support import as_dtype, from_dtype

__all__ = [
    "NumbaError",
    "as_dtype",
    "bfloat16",
    "cache_subfolder",
    "event",
    "from_dtype",
    "global_compiler_lock",
    "inner_njit",
    "literal_unroll",
    "njit",
    "overload",
    "package",
    "parse_signature",
    "resolve",
    "resolve_overload",
    "signature",
    "typeof",
    "types",
    "unify",
]

# Functions that compiled ones alone call have no entry for Python: a fifth less to compile at the first launch.
njit = partial(package.njit, no_cfunc_wrapper=True)
inner_njit = partial(njit, cache=True, no_cpython_wrapper=True)


def cache_subfolder(source_file: str) -> str:
    """Return the folder inside NUMBA_CACHE_DIR where numba keeps the compiled functions of a file."""
    return _CacheLocator.get_suitable_cache_subpath(source_file)


class _WithoutCollection(event.Listener):
    """Switches Python's search for cycles off while numba compiles: a tenth of the time at the first launch."""

    def __init__(self):
        self._was_on: list[bool] = []  # a compilation may begin within another

    def on_start(self, event):
        self._was_on.append(gc.isenabled())
        gc.disable()

    def on_end(self, event):
        if self._was_on and self._was_on.pop():
            gc.enable()


event.register("numba:compile", _WithoutCollection())

# Errors of numba where it has no type for a call; a wrong number of arguments raises a plain error.
UNTYPED = (NumbaError, NotImplementedError, TypeError, ValueError)


class Bfloat16(types.Number):
    """numba-cuda's bfloat16: it widens to float32 and float64 implicitly, and narrows only explicitly.

    Lanes hold its values as float32; arrays hold its 16 bits.
    """

    bitwidth = 16

    def __init__(self):
        super().__init__(name="bfloat16")

    def can_convert_to(self, context, other):
        if isinstance(other, types.Float) and other.bitwidth >= 32:
            return Conversion.safe
        return Conversion.unsafe if isinstance(other, types.Float | types.Integer) else None

    def can_convert_from(self, context, other):
        if isinstance(other, types.Integer) and other.bitwidth == 8:
            return Conversion.safe
        return Conversion.unsafe if isinstance(other, types.Float | types.Integer) else None

    def unify(self, context, other):
        return None


bfloat16 = Bfloat16()


@lru_cache(maxsize=1)
def typing_context():
    """Return the context that numba's compiler types calls with; hold numba's lock, since compilers change it."""
    context = cpu_target.typing_context
    context.refresh()
    return context


@global_compiler_lock
def resolve(function, argument_types):
    try:
        return _without_literals(typing_context().resolve_function_type(function, argument_types, {}))
    except UNTYPED:
        return None


@global_compiler_lock
def resolve_overload(cases, argument_types):
    try:
        return _without_literals(typing_context().resolve_overload(None, cases, argument_types, {}))
    except UNTYPED:
        return None


@global_compiler_lock
def unify(*scalar_types):
    return typing_context().unify_types(*scalar_types)


def parse_signature(declared):
    return sigutils.normalize_signature(declared)[0]


def _without_literals(found):
    """Return the types of a signature, with int64 for the type of the number 2."""
    return None if found is None else (types.unliteral(found.return_type), tuple(map(types.unliteral, found.args)))
