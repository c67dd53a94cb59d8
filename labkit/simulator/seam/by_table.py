"""numba's rules and its decorators without numba: see `Rules`, of which this module is one.

`rules.json` holds what numba answers; `tests/simulator/numba_rules.py` writes it. The types of a signature stand there
as letters, the operands first: "qff" is float32(int64, float32).
"""

import json
import threading
from functools import cache, wraps
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType, SimpleNamespace

import numpy as np

from labkit.simulator.seam.plain_types import SCALARS, Signature, bfloat16, types

__all__ = [
    "NumbaError",
    "as_dtype",
    "bfloat16",
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

RANGES = types.int32, types.int64, types.uint64  # the types that `range` counts in


class NumbaError(Exception):
    """A type that numba does not have."""


# --- types ---


@cache
def _tables() -> dict:
    return json.loads(Path(__file__).with_name("rules.json").read_text(encoding="utf-8"))


vars(types).update({name: SCALARS[kind] for name, kind in _tables()["names"].items()})


@cache
def _letters() -> dict:
    """Return the letter of each scalar type."""
    return {SCALARS.get(name, bfloat16): letter for letter, name in _tables()["letters"].items()}


@cache
def _functions() -> dict:
    """Return the tables of each function, by its number of operands."""
    found: dict = {}
    for table in _tables()["functions"]:
        for name in table["names"]:
            found.setdefault(resolve_name(name), {})[table["operands"]] = table["rows"]
    return found


def resolve(function, argument_types):
    letters = [_letters().get(kind) for kind in argument_types]
    if None in letters:
        return None
    if function is range:
        found = resolve_overload([signature(k, *(k,) * len(letters)) for k in RANGES], argument_types)
        return found and (SimpleNamespace(dtype=found[0]), found[1])
    rows = _functions().get(function, {}).get(len(letters))
    if not rows:
        return None
    row, column = letters if len(letters) == 2 else ("", *letters)
    kinds = [_kind(letter) for letter in rows[row].split()[list(_tables()["letters"]).index(column)] if letter != "-"]
    arguments, results = tuple(kinds[: len(letters)]), kinds[len(letters) :]
    if not results:
        return None
    return (results[0] if len(results) == 1 else types.Tuple(results)), arguments


def _kind(letter):
    return SCALARS.get(_tables()["letters"][letter], bfloat16)


def resolve_overload(cases, argument_types):
    """Return the first of the signatures whose operands need the fewest conversions, the worst kinds counting first."""
    rated = [(_rating(argument_types, case.args), case) for case in cases if len(case.args) == len(argument_types)]
    rated = [(rating, case) for rating, case in rated if rating is not None]
    if not rated:
        return None
    best = min(rated, key=lambda pair: pair[0])[1]
    return best.return_type, best.args


def _rating(given, wanted):
    """Return the number of unsafe conversions, safe ones, and promotions; None where there is no conversion."""
    conversions = [_converted(*pair) for pair in zip(given, wanted)]
    return None if "-" in conversions else tuple(conversions.count(kind) for kind in "usp")


def _converted(given, wanted):
    letters = _letters()
    if given not in letters or wanted not in letters:
        return "-"
    return _tables()["conversions"][letters[given]][list(_tables()["letters"]).index(letters[wanted])]


def unify(*scalar_types):
    first, *others = sorted(scalar_types, key=lambda kind: getattr(kind, "bitwidth", 0))
    for other in others:
        first = _unified(first, other)
        if first is None:
            return None
    return first


def _unified(first, second):
    letters = _letters()
    if first == second or first not in letters or second not in letters:
        return first if first == second else None
    letter = _tables()["unified"][letters[first]][list(_tables()["letters"]).index(letters[second])]
    return None if letter == "-" else _kind(letter)


def as_dtype(scalar_type):
    if isinstance(scalar_type, types.Record):
        return scalar_type.dtype
    if scalar_type not in SCALARS.values():
        raise NumbaError(f"{scalar_type} has no dtype")
    return np.dtype(scalar_type.name)


def from_dtype(dtype):
    if dtype.names:
        fields = {name: _field(*dtype.fields[name][:2]) for name in dtype.names}
        return types.Record(dtype, fields)
    if dtype.name not in SCALARS or not dtype.isnative:
        raise NumbaError(f"{dtype} is not a type of a kernel")
    return SCALARS[dtype.name]


def _field(dtype, offset):
    inner, shape = dtype.subdtype or (dtype, ())
    kind = from_dtype(inner)
    return SimpleNamespace(type=types.NestedArray(kind, shape) if shape else kind, offset=offset)


def signature(return_type, *args):
    return Signature(return_type, args)


def parse_signature(declared):
    if isinstance(declared, str):
        declared = eval(declared, {"__builtins__": {}}, vars(types))
    if isinstance(declared, Signature):
        return declared.args
    if isinstance(declared, types.Type):
        return (declared,)
    return tuple(declared)


# --- the compiler ---


def njit(function=None, **options):
    """Return the function, which Python runs, with `py_func` as numba's have it."""
    if function is None:
        return njit
    function.py_func = function
    return function


inner_njit = njit


def overload(function):
    """Leave out what only the compiler asks for."""
    return lambda implementation: implementation


def literal_unroll(values):
    return values


class _Lock:
    """A lock that also decorates functions, as numba's does."""

    def __init__(self):
        self._lock = threading.RLock()

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *raised):
        self._lock.release()

    def __call__(self, function):
        @wraps(function)
        def locked(*arguments, **options):
            with self:
                return function(*arguments, **options)

        return locked


global_compiler_lock = _Lock()


class event:
    """The events of a compiler, which never come."""

    Listener = object

    @staticmethod
    def register(kind, listener):
        """Take a listener."""

    unregister = register


def typeof(value):
    """Return the type of a value; none has one here."""
    raise NumbaError(f"without numba, {type(value).__name__} has no type")


# What a program gets that imports numba, under `labkit run`: `stand_in` adds `cuda`.
package = ModuleType("numba")
vars(package).update(
    __path__=[],
    **{name: kind for name, kind in vars(types).items() if isinstance(kind, types.Type)},
    types=types,
    jit=njit,
    njit=njit,
    prange=range,
    literal_unroll=literal_unroll,
)
