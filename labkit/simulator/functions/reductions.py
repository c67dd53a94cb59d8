"""NumPy's functions of a whole array, as numba compiles them into a kernel: each thread reads all elements.

They are written in the kernel language, and translated with the kernel that calls them. `zero` is 0 in the type of the
result.
"""

import math

from numba import njit


@njit
def total(a, zero):
    for x in a.flat:
        zero += x
    return zero


@njit
def product(a, zero):
    result = zero + 1
    for x in a.flat:
        result *= x
    return result


@njit
def mean(a, zero):
    return total(a, zero) / a.size


@njit
def variance(a, zero):
    middle = mean(a, zero)
    for x in a.flat:
        zero += (x - middle) * (x - middle)
    return zero / a.size


@njit
def deviation(a, zero):
    return math.sqrt(variance(a, zero))


@njit
def least(a, zero):
    result = zero
    for n, x in enumerate(a.flat):
        if n == 0 or x < result or x != x:
            result = x
        if result != result:
            return result
    return result


@njit
def greatest(a, zero):
    result = zero
    for n, x in enumerate(a.flat):
        if n == 0 or x > result or x != x:
            result = x
        if result != result:
            return result
    return result


@njit
def least_number(a, zero):
    result = zero
    for n, x in enumerate(a.flat):
        if n == 0 or result != result or x < result:
            result = x
    return result


@njit
def greatest_number(a, zero):
    result = zero
    for n, x in enumerate(a.flat):
        if n == 0 or result != result or x > result:
            result = x
    return result


@njit
def total_of_numbers(a, zero):
    for x in a.flat:
        if x == x:
            zero += x
    return zero


@njit
def product_of_numbers(a, zero):
    result = zero + 1
    for x in a.flat:
        if x == x:
            result *= x
    return result


@njit
def mean_of_numbers(a, zero):
    count = 0
    for x in a.flat:
        if x == x:
            zero += x
            count += 1
    return zero / count


@njit
def every(a, zero):
    for x in a.flat:  # noqa: SIM110 - a kernel has no generators
        if not x:
            return False
    return True


@njit
def some(a, zero):
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


REDUCTIONS = {
    "np.sum": total,
    "np.prod": product,
    "np.mean": mean,
    "np.var": variance,
    "np.std": deviation,
    "np.min": least,
    "np.max": greatest,
    "np.nanmin": least_number,
    "np.nanmax": greatest_number,
    "np.nansum": total_of_numbers,
    "np.nanprod": product_of_numbers,
    "np.nanmean": mean_of_numbers,
    "np.all": every,
    "np.any": some,
    "np.count_nonzero": count,
}
