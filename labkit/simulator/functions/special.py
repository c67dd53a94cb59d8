"""Special functions of float64 that NumPy lacks: error functions, gamma, Bessel functions.

They work lane by lane. Formulas are those of Abramowitz and Stegun, "Handbook of Mathematical Functions", by equation
number.
"""

import math
from decimal import Decimal, localcontext
from statistics import NormalDist

import numpy as np

from labkit.simulator.errors import LaunchError
from labkit.simulator.functions.rounding import two_product


def lanewise(function, arguments=1):
    """Return a function of Python numbers for arrays; NaN where it is not defined, infinity where it overflows."""

    def guarded(*values):
        try:
            return function(*values)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    vectorised = np.frompyfunc(guarded, arguments, 1)
    return lambda *values: np.asarray(vectorised(*(v.tolist() for v in values))).astype(np.float64)[()]


# --- error functions and the normal distribution ---

_SLOPE = 2 / math.sqrt(math.pi)
_ROOT_HALF = math.sqrt(0.5)
_ROOT_HALF_REST = -4.833646656726457e-17  # sqrt(1/2) - _ROOT_HALF


def _erfcx(x):
    """Compute exp(x^2) erfc(x)."""
    if math.isnan(x):
        return x
    if x < -26.7:
        return math.inf
    if x < 25:
        square, rest = two_product(x, x)
        return math.exp(square) * (1 + rest) * math.erfc(x)
    # 7.1.23: the asymptotic series, whose terms fall fast from here on
    term = total = 1.0
    for n in range(1, 8):
        term *= -(2 * n - 1) / (2 * x) / x
        total += term
    return total / (x * math.sqrt(math.pi))


def _erfinv(y):
    if not abs(y) < 1:
        return y if math.isnan(y) else math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    if abs(y) > 0.5:
        return math.copysign(_erfcinv(1 - abs(y)), y)
    x = y / _SLOPE
    for _ in range(6):  # Newton's method
        x -= (math.erf(x) - y) / (_SLOPE * math.exp(-x * x))
    return x


def _erfcinv(y):
    if y in (0, 2):
        return math.inf if y == 0 else -math.inf
    if not 0 < y < 2:
        return math.nan
    if 0.5 < y < 1.5:
        return _erfinv(1 - y)
    if y > 1:
        return -_erfcinv(2 - y)
    x = -NormalDist().inv_cdf(y / 2) * _ROOT_HALF
    for _ in range(2):  # Newton's method
        x += (math.erfc(x) / y - 1) * y / (_SLOPE * math.exp(-x * x)) if x < 26 else 0
    return x


def _normcdf(x):
    if math.isinf(x) or math.isnan(x) or abs(x) > 50:
        return math.erfc(-x) / 2
    scaled, rest = two_product(-x, _ROOT_HALF)
    rest -= x * _ROOT_HALF_REST
    return (math.erfc(scaled) - _SLOPE * math.exp(-scaled * scaled) * rest) / 2


erf = lanewise(math.erf)
erfc = lanewise(math.erfc)
erfcx = lanewise(_erfcx)
erfinv = lanewise(_erfinv)
erfcinv = lanewise(_erfcinv)
normcdf = lanewise(_normcdf)
normcdfinv = lanewise(lambda p: -math.sqrt(2) * _erfcinv(2 * p))


# --- gamma ---


_HALF_LOG_TWO_PI = Decimal("0.91893853320467274178032973640561763986139747363778341")
_STIRLING_FROM = 25
_STIRLING = [
    Decimal(numerator) / denominator
    for numerator, denominator in (
        (1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156), (-3617, 122400)
    )
]  # fmt: skip


def _lgamma(x):
    """Compute ln |gamma(x)|; Python's own loses digits near its zeros, such as 1 and 2."""
    if x <= 0 and x == math.floor(x):
        return math.inf
    if not -_STIRLING_FROM < x < _STIRLING_FROM:
        return math.lgamma(x)
    if x in (1, 2):
        return 0.0
    with localcontext(prec=40):  # 6.1.15 leads to a larger argument, and there 6.1.41 holds
        product, above = Decimal(1), Decimal(x)
        while above < _STIRLING_FROM:
            product *= above
            above += 1
        series = sum(term / above ** (2 * n + 1) for n, term in enumerate(_STIRLING))
        return float((above - Decimal("0.5")) * above.ln() - above + _HALF_LOG_TWO_PI + series - abs(product).ln())


gamma = lanewise(lambda x: math.copysign(math.inf, x) if x == 0 else math.gamma(x))
lgamma = lanewise(_lgamma)


# --- Bessel functions ---

_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
_EULER = Decimal("0.57721566490153286060651209008240243104215933593992359880576723488486772677766467")
_SERIES_UP_TO = 25.0
_SERIES_ORDERS = 30
MAX_ORDER = 10_000


def _series(n, x):
    """Compute J_n(x) by 9.1.10, and the sum of 9.1.11 that Y_n needs, in 60 digits: the terms cancel."""
    square = -x * x / 4
    term = (x / 2) ** n / math.factorial(n)
    digamma = sum((1 / Decimal(k) for k in range(1, n + 1)), -2 * _EULER)
    j = y = Decimal(0)
    for k in range(10_000):
        j += term
        y += digamma * term
        if abs(term) < abs(j) * Decimal("1e-50") and k > x:
            break
        digamma += 1 / Decimal(k + 1) + 1 / Decimal(n + k + 1)
        term *= square / ((k + 1) * (n + k + 1))
    return j, y


def _hankel(n, x):
    """Compute J_n(x) and Y_n(x) for large x and n of 0 or 1, by 9.2.5 to 9.2.10."""
    p, q, term = 1.0, 0.0, 1.0
    for k in range(1, 40):
        step = (4 * n * n - (2 * k - 1) ** 2) / (8 * x * k)
        if abs(step) >= 1:
            break
        term *= step
        if k % 2:
            q += term * (-1) ** (k // 2)
        else:
            p += term * (-1) ** (k // 2)
    c, s = math.cos(x), math.sin(x)
    cosine, sine = ((c + s), (s - c)) if n == 0 else ((s - c), -(c + s))  # of x - n pi/2 - pi/4, times sqrt(2)
    scale = 1 / math.sqrt(math.pi * x)
    return scale * (p * cosine - q * sine), scale * (p * sine + q * cosine)


def _miller(n, x):
    """Compute J_n(x) for n > x, by the recurrence 9.1.27 downward from a high order and the sum 9.1.46."""
    if x < 1e-7:
        return math.exp(n * math.log(x / 2) - math.lgamma(n + 1)) if x else 0.0
    above, current, result, total = 0.0, 1.0, 0.0, 0.0
    for order in range(n + int(math.sqrt(200 * n)) + 20, 0, -1):
        above, current = current, 2 * order / x * current - above
        if order - 1 == n:
            result = current
        if order % 2:
            total += current if order == 1 else 2 * current
        if abs(current) > 1e200:
            above, current, result, total = (v * 1e-200 for v in (above, current, result, total))
    return result / total


def _check_order(n):
    if n > MAX_ORDER:
        raise LaunchError(f"Bessel functions of order {n} take too long here; orders up to {MAX_ORDER} work")


def _j(n, x):
    _check_order(n)
    if n < 0 or math.isnan(x):
        return math.nan
    if x < 0:
        return (-1) ** n * _j(n, -x)
    if math.isinf(x):
        return 0.0
    if n > max(x, _SERIES_ORDERS):
        return _miller(n, x)
    if x < _SERIES_UP_TO:
        with localcontext(prec=60):
            return float(_series(n, Decimal(x))[0])
    return _recurred(n, x, _hankel(0, x)[0], _hankel(1, x)[0])


def _y(n, x):
    _check_order(n)
    if n < 0 or math.isnan(x) or x < 0:
        return math.nan
    if x == 0:
        return -math.inf
    if math.isinf(x):
        return 0.0
    if x >= _SERIES_UP_TO:
        return _recurred(n, x, _hankel(0, x)[1], _hankel(1, x)[1])
    with localcontext(prec=60):
        x = Decimal(x)
        logarithm = 2 * (x / 2).ln()
        (j0, sum0), (j1, sum1) = _series(0, x), _series(1, x)
        y0 = (logarithm * j0 - sum0) / _PI
        y1 = (logarithm * j1 - sum1 - 2 / x) / _PI
        return float(_recurred(n, x, y0, y1))


def _recurred(n, x, zeroth, first):
    """Compute the function of order n from those of order 0 and 1, by 9.1.27."""
    if n == 0:
        return zeroth
    for k in range(1, n):
        zeroth, first = first, 2 * k / x * first - zeroth
    return first


jn = lanewise(_j, 2)
yn = lanewise(_y, 2)
j0 = lanewise(lambda x: _j(0, x))
j1 = lanewise(lambda x: _j(1, x))
y0 = lanewise(lambda x: _y(0, x))
y1 = lanewise(lambda x: _y(1, x))
