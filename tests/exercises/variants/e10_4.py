"""Other answers to exercise 10.4."""

from . import Variant

_SQUARE = """        both = re[k] * im[k]
        re[k], im[k] = re[k] * re[k] - im[k] * im[k], both + both
"""
_CARRY = """            carry += int(im[k] / np.float32(2 * points) + np.float32(0.5))
            product[k] = carry % 10
            carry //= 10"""
_LOADS = """        re[k] = a[k] if k < a.size else 0
        im[k] = b[k] if k < b.size else 0
"""
TWO_LINES = (
    (
        "    re, im = cuda.shared.array(MOST, np.float32), cuda.shared.array(MOST, np.float32)\n",
        "    re, im = cuda.shared.array(MOST, np.float32), cuda.shared.array(MOST, np.float32)\n"
        "    other_re, other_im = cuda.shared.array(MOST, np.float32), cuda.shared.array(MOST, np.float32)\n",
    ),
    (
        _LOADS,
        "        re[k], other_re[k] = a[k] if k < a.size else 0, b[k] if k < b.size else 0\n"
        "        im[k], other_im[k] = 0, 0\n",
    ),
    (
        "    fft(re, im, roots, bits, t)\n",
        "    fft(re, im, roots, bits, t)\n    fft(other_re, other_im, roots, bits, t)\n",
    ),
    (
        _SQUARE,
        "        x_re, x_im, y_re, y_im = re[k], im[k], other_re[k], other_im[k]\n"
        "        re[k], im[k] = x_re * y_re - x_im * y_im, x_re * y_im + x_im * y_re\n",
    ),
    ("im[k] / np.float32(2 * points)", "re[k] / np.float32(points)"),
)

_SCHOOLBOOK = """
@cuda.jit
def big_product(a, b, product, roots, bits):
    digits = cuda.shared.array(2048, np.int32)
    sums = cuda.shared.array(1024, np.int32)
    t = cuda.threadIdx.x
    for k in range(t, a.size, cuda.blockDim.x):
        digits[k] = a[k]
    for k in range(t, b.size, cuda.blockDim.x):
        digits[1024 + k] = b[k]
    cuda.syncthreads()
    for k in range(t, product.size, cuda.blockDim.x):
        total = 0
        for i in range(max(0, k - b.size + 1), min(k + 1, a.size)):
            total += digits[i] * digits[1024 + k - i]
        sums[k] = total
    cuda.syncthreads()
    if t == 0:
        carry = 0
        for k in range(product.size):
            carry += sums[k]
            product[k] = carry % 10
            carry //= 10
"""

VARIANTS = (
    Variant(
        "digits without carries",
        "result",
        (
            (
                _CARRY,
                _CARRY.replace("carry +=", "carry ="),
            ),
        ),
    ),
    Variant("cut off, not rounded", "result", ((" + np.float32(0.5))", ")"),)),
    Variant("the last carry is forgotten", "unwritten", (("range(product.size)", "range(product.size - 1)"),)),
    Variant("not divided by two", "result", (("np.float32(2 * points)", "np.float32(points)"),)),
    Variant("the real part", "result", (("int(im[k] /", "int(re[k] /"),)),
    Variant("no inverse", "result", (("    fft(im, re, roots, bits, t)\n", "    fft(re, im, roots, bits, t)\n"),)),
    Variant("no product", "result", ((_SQUARE, "        im[k] += im[k]\n"),)),
    Variant("the conjugate", "result", (("re[k] * re[k] - im[k] * im[k]", "re[k] * re[k] + im[k] * im[k]"),)),
    Variant(
        "nothing behind the digits",
        "uninitialised",
        (("        im[k] = b[k] if k < b.size else 0\n", "        if k < b.size:\n            im[k] = b[k]\n"),),
    ),
    Variant("no barrier before the product", "race", (("    cuda.syncthreads()\n    fft(re", "    fft(re"),)),
    Variant("every thread carries", "budget", (("    if t == 0:\n", "    if t >= 0:\n"),)),
    Variant("as in school", "duty", cell=_SCHOOLBOOK),
    Variant("in float64", "budget", ((" + np.float32(0.5))", " + 0.5)"),)),
    Variant("a line for each number", "solved", TWO_LINES),
)
