"""Values and masks of all lanes of a warp set.

A value is a NumPy scalar (the same in every lane) or an array with an element per lane; its dtype is the type that
numba infers. A mask is `None` (every lane), `False` (no lane) or a boolean array.
"""

from functools import cache

import numpy as np

from labkit.simulator.functions.rounding import cast_to_integer

# --- masks -------------------------------------------------------------------------------------


def split(mask, test):
    """Return the lanes of `mask` where `test` holds, and the others."""
    if not isinstance(test, np.ndarray):
        return (mask, False) if test else (False, mask)
    if mask is None:
        yes, no = test, ~test
    else:
        yes, no = mask & test, mask & ~test
    if not yes.any():
        return False, mask
    if not no.any():
        return mask, False
    return yes, no


def intersect(mask, test):
    """Return the lanes of `mask` where `test` holds."""
    return split(mask, test)[0]


def union(first, second):
    """Return the lanes of either mask."""
    if first is False:
        return second
    if second is False:
        return first
    if first is None or second is None:
        return None
    return first | second


def minus(mask, removed):
    """Return the lanes of `mask` that are not in `removed`."""
    if removed is False or mask is False:
        return mask
    if removed is None:
        return False
    rest = ~removed if mask is None else mask & ~removed
    return rest if rest.any() else False


def select(mask, new, old):
    """Return `new` in the lanes of `mask`, `old` in the others."""
    if mask is None:
        return new
    if mask is False:
        return old
    if old is None:
        return new
    if new.dtype is not old.dtype and _loses_digits(new.dtype, old.dtype):
        new, old = _tag(new), _tag(old)
    return np.where(mask, new, old)


# A variable that holds a 64-bit integer in some lanes, and a float or an integer of the other sign in the rest, as bits
# and an index into `_WIDE`. No NumPy type has the digits of both.
_WIDE = tuple(np.dtype(kind) for kind in (np.int64, np.uint64, np.float64))
_MIXED = np.dtype([("bits", np.int64), ("kind", np.int8)])


@cache
def _loses_digits(first, second) -> bool:
    if _MIXED in (first, second):
        return True
    wide = any(dtype.kind in "iu" and dtype.itemsize == 8 for dtype in (first, second))
    return wide and np.result_type(first, second).kind == "f"


def _tag(value):
    if value.dtype == _MIXED:
        return value
    wide = _WIDE[0] if value.dtype.kind in "bi" else _WIDE[1] if value.dtype.kind == "u" else _WIDE[2]
    result = np.empty(np.shape(value), _MIXED)
    result["bits"] = np.asarray(value.astype(wide)).view(np.int64)
    result["kind"] = _WIDE.index(wide)
    return result


def _untag(value, dtype):
    parts = [cast(value["bits"].view(wide), dtype) for wide in _WIDE]
    return np.select([value["kind"] == k for k in range(len(_WIDE))], parts)


def choose(mask, first, second, dtype):
    """Return `first` in the lanes of `mask` and `second` in the rest; either is None where no lane takes it.

    With a tuple of dtypes, tuples are chosen, part by part.
    """
    if isinstance(dtype, tuple):
        first, second = ((None,) * len(dtype) if whole is None else whole for whole in (first, second))
        return tuple(choose(mask, *parts) for parts in zip(first, second, dtype, strict=True))
    if first is None or second is None:
        return cast(second if first is None else first, dtype)
    return np.where(mask, first, second).astype(dtype, copy=False)


# --- values ------------------------------------------------------------------------------------


def cast(value, dtype):
    """Convert a value as a GPU does: a float out of an integer's range gives the end of the range."""
    if value.dtype == dtype:
        return value
    if value.dtype.names:
        return _untag(value, dtype)
    if value.dtype.kind == "f" and dtype.kind in "iu":
        return cast_to_integer(value, dtype)
    return value.astype(dtype)


def apply_function(function, dtypes, *values):
    """Call a function of scalars; return its result in the dtype, or the tuple of dtypes, of its typing."""
    result = function(*values)
    if isinstance(dtypes, tuple):
        return tuple(np.asarray(r).astype(d, copy=False)[()] for r, d in zip(result, dtypes))
    return np.asarray(result).astype(dtypes, copy=False)[()]


def truth(value):
    return value if value.dtype == np.bool_ else value != 0


def logical_not(value):
    return ~truth(value)


def trip_counts(low, high, step):
    """Return the length of `range(low, high, step)` in each lane."""
    up = np.where(high > low, (high - low - 1) // step + 1, 0)  # differences that are no more than 0 may wrap
    down = np.where(low > high, (low - high - 1) // -step + 1, 0)
    return np.int64(np.where(step > 0, up, np.where(step < 0, down, 0)))


def lane_range(mask, low, high, step, w=None, line=0):
    """Yield (value, lanes) per iteration: the loop variable, and the lanes that make it (None: all of them).

    With a set of warps and the line of a loop that nothing leaves, too many iterations are told before the first one.
    """
    if not any(isinstance(bound, np.ndarray) for bound in (low, high, step)):
        kind = low.dtype.type
        if w:
            w.foresee(line, max(0, -((int(low) - int(high)) // int(step))))
        for value in range(int(low), int(high), int(step)):
            yield kind(value), None
        return
    trips = trip_counts(low, high, step)
    counted = trips if mask is None else np.where(mask, trips, 0)
    most = int(counted.max(initial=0))
    if w:
        w.foresee(line, most)
    for trip in range(most):
        yield low + step * low.dtype.type(trip), counted > trip


def minimum(a, b):
    """Return Python's `min(a, b)`: the first unless the second is less."""
    return np.where(b < a, b, a) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else min(a, b)


def maximum(a, b):
    """Return Python's `max(a, b)`: the first unless the second is greater."""
    return np.where(b > a, b, a) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) else max(a, b)
