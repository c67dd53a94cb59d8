"""Values and masks of all lanes of a warp set, and numba's typing rules.

A value is a NumPy scalar (the same in every lane) or an array with an element a lane; its dtype is the
type numba infers. A mask is `None` (every lane), `False` (no lane) or a boolean array.
"""

import operator
from functools import cache, lru_cache

import numpy as np
from numba import types
from numba.core import errors as numba_errors
from numba.core.registry import cpu_target
from numba.np import numpy_support

from labkit.trace import WARP_LANES

# Columns of `WarpSet.warps`, a row a warp: its lanes, its block (linear), its first thread, its block's
# place in the chunk, and the SM it runs on.
START, STOP, BLOCK, THREAD, SLOT, SM = range(6)


# --- types -------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _typing_context():
    context = cpu_target.typing_context
    context.refresh()
    return context


@cache
def resolve(function, argument_types):
    """(result type, argument types after conversion) of a call by numba's rules, or None if it has none."""
    try:
        signature = _typing_context().resolve_function_type(function, argument_types, {})
    except numba_errors.NumbaError:
        return None
    if signature is None:
        return None
    return types.unliteral(signature.return_type), tuple(types.unliteral(a) for a in signature.args)


@cache
def unify(*scalar_types):
    """The type that a variable gets which is assigned values of these types, or None."""
    return _typing_context().unify_types(*scalar_types)


@cache
def dtype_of(scalar_type) -> np.dtype:
    """NumPy's dtype for a scalar numba type."""
    return numpy_support.as_dtype(scalar_type)


@cache
def type_of(dtype: np.dtype):
    """numba's type for a NumPy dtype; raises NumbaNotImplementedError for those it has none for."""
    return numpy_support.from_dtype(dtype)


# --- masks -------------------------------------------------------------------------------------


def split(mask, test):
    """The lanes of `mask` where `test` holds, and the others."""
    if not isinstance(test, np.ndarray):
        return (mask, False) if test else (False, mask)
    if mask is None:
        taken, rest = test, ~test
    else:
        taken, rest = mask & test, mask & ~test
    if not taken.any():
        return False, mask
    if not rest.any():
        return mask, False
    return taken, rest


def both(mask, test):
    """The lanes of `mask` where `test` holds."""
    return split(mask, test)[0]


def union(first, second):
    """The lanes of either mask."""
    if first is False:
        return second
    if second is False:
        return first
    if first is None or second is None:
        return None
    return first | second


def minus(mask, removed):
    """The lanes of `mask` that are not in `removed`."""
    if removed is False or mask is False:
        return mask
    if removed is None:
        return False
    rest = ~removed if mask is None else mask & ~removed
    return rest if rest.any() else False


def select(mask, new, old):
    """`new` in the lanes of `mask`, `old` in the others."""
    if mask is None:
        return new
    if mask is False:
        return old
    if old is None:
        return new
    if isinstance(new, tuple):
        return tuple(select(mask, n, o) for n, o in zip(new, old))
    if not isinstance(new, (np.generic, np.ndarray)):
        return new  # an array of the kernel: the same object in every lane
    return np.where(mask, new, old)


def choose(mask, first, second, dtype):
    """`first` in the lanes of `mask` and `second` in the rest; either is None where no lane takes it."""
    if first is None or second is None:
        return cast(second if first is None else first, dtype)
    return np.where(mask, first, second).astype(dtype, copy=False)


# --- values ------------------------------------------------------------------------------------


def cast(value, dtype):
    """The value converted as C does; a float outside an integer's range is undefined on a GPU too."""
    if value.dtype == dtype:
        return value
    return value.astype(dtype)


def truth(value):
    return value if value.dtype == np.bool_ else value != 0


def logical_not(value):
    return ~truth(value)


def trip_counts(low, high, step):
    """How many values `range(low, high, step)` has, in each lane."""
    up = -((low - high) // step)
    down = -((high - low) // -step)
    return np.maximum(np.where(step > 0, up, down), 0)


def lane_range(mask, low, high, step):
    """Yields (value, lanes): the loop variable of each trip, and which lanes make it (None: all of them)."""
    if not any(isinstance(bound, np.ndarray) for bound in (low, high, step)):
        kind = low.dtype.type
        for value in range(int(low), int(high), int(step)):
            yield kind(value), None
        return
    trips = trip_counts(low, high, step)
    counted = trips if mask is None else np.where(mask, trips, 0)
    for trip in range(int(counted.max(initial=0))):
        yield low + step * low.dtype.type(trip), counted > trip


def minimum(a, b):
    """Python's `min(a, b)`: the first unless the second is less."""
    return np.where(b < a, b, a) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else min(a, b)


def maximum(a, b):
    """Python's `max(a, b)`: the first unless the second is greater."""
    return np.where(b > a, b, a) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else max(a, b)


def integer_power(base, exponent):
    """`base ** exponent` of integers; numba rounds what a negative exponent gives toward zero."""
    power = base ** np.abs(exponent)
    return np.where(exponent < 0, np.where(np.abs(power) == 1, power, 0), power).astype(power.dtype)[()]


BINARY = {
    "Add": (operator.add, "+"),
    "Sub": (operator.sub, "-"),
    "Mult": (operator.mul, "*"),
    "Div": (operator.truediv, "/"),
    "FloorDiv": (operator.floordiv, "//"),
    "Mod": (operator.mod, "%"),
    "Pow": (operator.pow, "**"),
    "LShift": (operator.lshift, "<<"),
    "RShift": (operator.rshift, ">>"),
    "BitAnd": (operator.and_, "&"),
    "BitOr": (operator.or_, "|"),
    "BitXor": (operator.xor, "^"),
}
COMPARE = {
    "Lt": (operator.lt, "<"),
    "LtE": (operator.le, "<="),
    "Gt": (operator.gt, ">"),
    "GtE": (operator.ge, ">="),
    "Eq": (operator.eq, "=="),
    "NotEq": (operator.ne, "!="),
}


# --- lanes -------------------------------------------------------------------------------------


class WarpSet:
    """The same warps of some blocks of a chunk, run in lockstep: where each lane stands in the grid."""

    def __init__(self, chunk, members):
        """`members`: (slot, warp in block) pairs, in slot order."""
        self.chunk = chunk
        self.launch = launch = chunk.launch
        threads = launch.threads
        rows = []
        start = 0
        for slot, warp in members:
            first = warp * WARP_LANES
            lanes = min(WARP_LANES, threads - first)
            block = chunk.blocks[slot]
            rows.append((start, start + lanes, block, first, slot, block % launch.gpu.sms))
            start += lanes
        self.members = members
        self.warps = np.array(rows, np.int64).reshape(-1, 6)
        self.lanes = start
        sizes = self.warps[:, STOP] - self.warps[:, START]
        within = np.arange(start) - np.repeat(self.warps[:, START], sizes)
        self.thread = np.repeat(self.warps[:, THREAD], sizes) + within
        self.slot = np.repeat(self.warps[:, SLOT], sizes)
        self.block = np.repeat(self.warps[:, BLOCK], sizes)
        self.everyone = np.ones(start, np.bool_)
        self.warp_epochs = np.zeros(len(rows), np.int64)
        self.warp_clock = np.zeros(len(rows), np.int64)
        self.exited = False
        self._instances = {}
        self._local = {}
        self.whole_blocks = len(members) == len({slot for slot, _ in members}) * launch.warps_per_block
        self.threadIdx = _coordinates(self.thread, launch.block)
        self.blockIdx = _coordinates(self.block, launch.grid)
        self.blockDim = tuple(np.int32(n) for n in launch.block)
        self.gridDim = tuple(np.int32(n) for n in launch.grid)

    def allocated(self, number):
        """The array of the kernel's `number`-th allocation: the blocks' shared one, or this set's local one."""
        shared = self.chunk.shared[number]
        if shared is not None:
            return shared
        if number not in self._local:
            self._local[number] = self.chunk.local(number, self.lanes)
        return self._local[number]

    def active(self, mask) -> np.ndarray:
        """The mask as a boolean array."""
        return self.everyone if mask is None else mask

    def count(self, mask) -> int:
        """How many lanes the mask holds."""
        return self.lanes if mask is None else int(np.count_nonzero(mask))

    def instance_base(self, array):
        """Where each lane's block keeps its copy of a shared array, in elements."""
        base = self._instances.get(array)
        if base is None:
            base = self.slot * array.elements
            self._instances[array] = base
        return base

    def leave(self, mask):
        """The lanes of `mask` returned from the kernel."""
        self.exited = union(self.exited, mask)

    def fill(self, value):
        """A value for every lane, as an array."""
        return value if isinstance(value, np.ndarray) else np.full(self.lanes, value)

    # positions, as the kernel reads them

    def grid1(self):
        """`cuda.grid(1)`: the thread's place in the whole grid, along x."""
        return self._position(0)

    def _position(self, axis):
        position = self.blockIdx[axis].astype(np.int64) * int(self.blockDim[axis])
        return position + self.threadIdx[axis]

    def grid(self, axes):
        return tuple(self._position(axis) for axis in range(axes))

    def gridsize(self, axis):
        return np.int64(self.gridDim[axis]) * np.int64(self.blockDim[axis])

    def laneid(self):
        return (self.thread % WARP_LANES).astype(np.int32)


def _coordinates(linear, shape):
    """(x, y, z) of linear indices, an axis of length 1 as a scalar."""
    x, y, _z = shape
    axes = (linear % x, linear // x % y, linear // (x * y))
    return tuple(np.int32(0) if n == 1 else axis.astype(np.int32) for n, axis in zip(shape, axes))
