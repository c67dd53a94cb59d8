"""Functions for which numba-cuda has no code, and their replacement in a kernel, in code or words."""

_MATH = {
    f"np.{name}": f"math.{name}(x)" for name in "ceil exp exp2 expm1 fabs floor isfinite isinf log1p sqrt trunc".split()
}
_MATH |= {f"np.{name}": f"math.{name}(x, y)" for name in "copysign fmod ldexp nextafter".split()}

_GCD = "a loop of `x, y = y, x % y`"
_LCM = f"`x * y // gcd`, with gcd from {_GCD}"

REFUSED = {
    **_MATH,
    "np.abs": "abs(x)",
    "np.absolute": "abs(x)",
    "np.add": "x + y",
    "np.cbrt": "cuda.cbrt(x)",
    "np.divmod": "divmod(x, y)",
    "np.float_power": "x ** y",
    "np.floor_divide": "x // y",
    "np.gcd": _GCD,
    "np.isnat": "`x == missing` with integers, for a kernel knows no dates",
    "np.lcm": _LCM,
    "np.logaddexp": "math.log(math.exp(x) + math.exp(y))",
    "np.logaddexp2": "math.log2(math.exp2(x) + math.exp2(y))",
    "np.mod": "x % y",
    "np.multiply": "x * y",
    "np.negative": "-x",
    "np.positive": "+x",
    "np.pow": "x ** y",
    "np.power": "x ** y",
    "np.reciprocal": "1 / x",
    "np.remainder": "x % y",
    "np.rint": "`cuda.libdevice.rint(x)`, or `rintf` for float32",
    "np.sign": "(x > 0) - (x < 0)",
    "np.signbit": "x < 0",
    "np.spacing": "math.nextafter(x, math.inf) - x",
    "np.square": "x * x",
    "np.subtract": "x - y",
    "cmath.acosh": "cmath.log(z + cmath.sqrt(z + 1) * cmath.sqrt(z - 1))",
    "cmath.cosh": "(cmath.exp(z) + cmath.exp(-z)) / 2",
    "cmath.log10": "cmath.log(z) / math.log(10.0)",
    "cmath.phase": "math.atan2(z.imag, z.real)",
    "cmath.polar": "`abs(z)` and `math.atan2(z.imag, z.real)`",
    "cmath.rect": "complex(r * math.cos(phi), r * math.sin(phi))",
    "cmath.sinh": "(cmath.exp(z) - cmath.exp(-z)) / 2",
    "cmath.tanh": "-1j * cmath.tan(1j * z)",
    "cuda.fp16.__half": "np.float16(x)",
    "cuda.fp16.atomicAdd": "`cuda.atomic.add` on a float32 array",
}

# Of Python's `math`, and of CUDA C++, which numba-cuda does not list.
ABSENT = {
    "math.cbrt": "cuda.cbrt(x)",
    "math.comb": "a loop of `ways = ways * (n - j) // (j + 1)`",
    "math.dist": "`math.hypot` of the differences",
    "math.factorial": "math.gamma(n + 1)",
    "math.fsum": "a loop of `total += x[k]`",
    "math.gcd": _GCD,
    "math.isclose": "abs(x - y) <= 1e-9 * max(abs(x), abs(y))",
    "math.isqrt": "int(math.sqrt(x))",
    "math.lcm": _LCM,
    "math.perm": "a loop of `ways *= n - j`",
    "math.prod": "a loop of `total *= x[k]`",
    "math.ulp": "math.nextafter(x, math.inf) - x",
    "cuda.rsqrt": "`1 / math.sqrt(x)`, or `cuda.libdevice.rsqrtf(x)` for float32",
}
