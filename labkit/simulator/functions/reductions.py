"""NumPy's functions of a whole array, as numba compiles them into a kernel: each thread reads all elements.

They are written in the kernel language, and translated with the kernel that calls them. `zero` is 0 in the type of the
result. Those that begin with `nan` ignore NaN.
"""

import math

from labkit.simulator.seam import literal_unroll, njit


@njit
def sum_of(a, zero):
    for x in a.flat:
        zero += x
    return zero


@njit
def product_of(a, zero):
    result = zero + 1
    for x in a.flat:
        result *= x
    return result


@njit
def mean(a, zero):
    return sum_of(a, zero) / a.size


@njit
def variance(a, zero):
    average = mean(a, zero)
    for x in a.flat:
        zero += (x - average) * (x - average)
    return zero / a.size


@njit
def standard_deviation(a, zero):
    return math.sqrt(variance(a, zero))


@njit
def minimum(a, zero):
    result = zero
    for n, x in enumerate(a.flat):
        if n == 0 or x < result or x != x:
            result = x
        if result != result:
            return result
    return result


@njit
def maximum(a, zero):
    result = zero
    for n, x in enumerate(a.flat):
        if n == 0 or x > result or x != x:
            result = x
        if result != result:
            return result
    return result


@njit
def nan_minimum(a, zero):
    result = zero
    for n, x in enumerate(a.flat):
        if n == 0 or result != result or x < result:
            result = x
    return result


@njit
def nan_maximum(a, zero):
    result = zero
    for n, x in enumerate(a.flat):
        if n == 0 or result != result or x > result:
            result = x
    return result


@njit
def nan_sum(a, zero):
    for x in a.flat:
        if x == x:
            zero += x
    return zero


@njit
def nan_product(a, zero):
    result = zero + 1
    for x in a.flat:
        if x == x:
            result *= x
    return result


@njit
def nan_mean(a, zero):
    count = 0
    for x in a.flat:
        if x == x:
            zero += x
            count += 1
    return zero / count


@njit
def all_true(a, zero):
    for x in a.flat:  # noqa: SIM110 - a kernel has no generators
        if not x:
            return False
    return True


@njit
def any_true(a, zero):
    for x in a.flat:  # noqa: SIM110
        if x:
            return True
    return False


@njit
def count(a, zero):
    found = 0
    for x in a.flat:
        if x:
            found += 1
    return found


# Python's own functions of a tuple, an array or a range, as numba writes them.


@njit
def least(values, zero):
    if len(values) == 0:
        raise StopIteration
    for n, x in enumerate(values):
        if n == 0 or x < zero:
            zero = x
    return zero


@njit
def greatest(values, zero):
    if len(values) == 0:
        raise StopIteration
    for n, x in enumerate(values):
        if n == 0 or x > zero:
            zero = x
    return zero


@njit
def total(values, start):
    for x in values:
        start = start + x
    return start


@njit
def total_of_mixed(values, start):
    for x in literal_unroll(values):
        start = start + x
    return start


REDUCTIONS = {
    "np.sum": sum_of,
    "np.prod": product_of,
    "np.mean": mean,
    "np.var": variance,
    "np.std": standard_deviation,
    "np.min": minimum,
    "np.max": maximum,
    "np.nanmin": nan_minimum,
    "np.nanmax": nan_maximum,
    "np.nansum": nan_sum,
    "np.nanprod": nan_product,
    "np.nanmean": nan_mean,
    "np.all": all_true,
    "np.any": any_true,
    "np.count_nonzero": count,
}
