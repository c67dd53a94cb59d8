"""Other answers to exercise 10.1."""

from . import Variant

_REVERSED = """        place, rest = 0, k
        for _ in range(digits):
            place, rest = 4 * place + rest % 4, rest // 4
"""
_BITS = "        place = cuda.brev(np.uint32(k)) >> np.uint32(32 - 2 * digits)\n"
_SWAPPED_BITS = """        bits = cuda.brev(np.uint32(k)) >> np.uint32(32 - 2 * digits)
        place = (bits & np.uint32(0x55555555)) << np.uint32(1) | (bits >> np.uint32(1)) & np.uint32(0x55555555)
"""

_BY_DEFINITION = """
MOST = 1024


@cuda.jit
def transform_lines(x, roots, spectra, digits):
    re, im = cuda.shared.array(MOST, np.float32), cuda.shared.array(MOST, np.float32)
    line, t, points = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    for k in range(t, points, cuda.blockDim.x):
        re[k], im[k] = x[line, k, 0], x[line, k, 1]
    cuda.syncthreads()
    for k in range(t, points, cuda.blockDim.x):
        total_re, total_im = np.float32(0), np.float32(0)
        for n in range(points):
            root = n * k % points
            total_re += re[n] * roots[root, 0] - im[n] * roots[root, 1]
            total_im += re[n] * roots[root, 1] + im[n] * roots[root, 0]
        spectra[line, k, 0], spectra[line, k, 1] = total_re, total_im
"""

BY_FREQUENCY = """
MOST = 1024


@cuda.jit(device=True)
def turned(re, im, root_re, root_im):
    return re * root_re - im * root_im, re * root_im + im * root_re


@cuda.jit
def transform_lines(x, roots, spectra, digits):
    re, im = cuda.shared.array(MOST, np.float32), cuda.shared.array(MOST, np.float32)
    line, t, points = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    for k in range(t, points, cuda.blockDim.x):
        re[k], im[k] = x[line, k, 0], x[line, k, 1]
    cuda.syncthreads()
    quarter = points // 4
    while quarter > 0:
        for n in range(t, points // 4, cuda.blockDim.x):
            a = n // quarter * 4 * quarter + n % quarter
            root = n % quarter * (points // (4 * quarter))
            b, c, d = a + quarter, a + 2 * quarter, a + 3 * quarter
            even_re, even_im, odd_re, odd_im = re[a] + re[c], im[a] + im[c], re[a] - re[c], im[a] - im[c]
            sum_re, sum_im, off_re, off_im = re[b] + re[d], im[b] + im[d], re[b] - re[d], im[b] - im[d]
            re[a], im[a] = even_re + sum_re, even_im + sum_im
            re[b], im[b] = turned(odd_re + off_im, odd_im - off_re, roots[root, 0], roots[root, 1])
            re[c], im[c] = turned(even_re - sum_re, even_im - sum_im, roots[2 * root, 0], roots[2 * root, 1])
            re[d], im[d] = turned(odd_re - off_im, odd_im + off_re, roots[3 * root, 0], roots[3 * root, 1])
        cuda.syncthreads()
        quarter //= 4
    for k in range(t, points, cuda.blockDim.x):
        place, rest = 0, k
        for _ in range(digits):
            place, rest = 4 * place + rest % 4, rest // 4
        spectra[line, place, 0], spectra[line, place, 1] = re[k], im[k]
"""

VARIANTS = (
    Variant("the order in which they came", "result", ((_REVERSED, "        place = k\n"),)),
    Variant("all bits reversed", "result", ((_REVERSED, _BITS),)),
    Variant("two digits, however many there are", "race", (("in range(digits)", "in range(2)"),)),
    Variant("a digit too few", "race", (("in range(digits)", "in range(digits - 1)"),)),
    Variant("backwards", "result", ((_REVERSED, "        place = points - 1 - k\n"),)),
    Variant(
        "quarters for remainders, once", "result", ((_REVERSED, "        place = k % 4 * points // 4 + k // 4\n"),)
    ),
    Variant("digits of base 2", "race", (("4 * place + rest % 4, rest // 4", "4 * place + rest % 2, rest // 2"),)),
    Variant(
        "no barrier after the loads",
        "race",
        (("x[line, k, 1]\n    cuda.syncthreads()\n", "x[line, k, 1]\n"),),
    ),
    Variant("by definition", "budget", cell=_BY_DEFINITION),
    Variant("a root in float64", "budget", (("odd_re + off_im, odd_im", "odd_re + 1.0 * off_im, odd_im"),)),
    Variant("bits reversed, then swapped in pairs", "solved", ((_REVERSED, _SWAPPED_BITS),)),
    Variant("split by frequency, reversed at the end", "solved", cell=BY_FREQUENCY),
)
