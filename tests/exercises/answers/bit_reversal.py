"""Other answers to bit-reversal."""

from . import Answer, right, shortcut, wrong

_REVERSED = """        place, rest = 0, n
        for _ in range(digits):
            place, rest = 4 * place + rest % 4, rest // 4
"""

_BITS = "        place = cuda.brev(np.uint32(n)) >> np.uint32(32 - 2 * digits)\n"

_SWAPPED_BITS = """        bits = cuda.brev(np.uint32(n)) >> np.uint32(32 - 2 * digits)
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

DEFINITION = """MOST = 1024


@cuda.jit
def transform_lines(x, roots, spectra, digits):
    re, im = cuda.shared.array(MOST, np.float32), cuda.shared.array(MOST, np.float32)
    line, t, points = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    for k in range(t, points, cuda.blockDim.x):
        re[k], im[k] = x[line, k, 0], x[line, k, 1]
    cuda.syncthreads()
    for k in range(t, points, cuda.blockDim.x):
        total_re, total_im = np.float32(0), np.float32(0)
        root_re, root_im = np.float32(1), np.float32(0)
        step_re, step_im = roots[k, 0], roots[k, 1]
        for n in range(points):
            a, b = {re}, {im}
            total_re += a * root_re - b * root_im
            total_im += a * root_im + b * root_re
            root_re, root_im = root_re * step_re - root_im * step_im, root_re * step_im + root_im * step_re
        spectra[line, k, 0], spectra[line, k, 1] = total_re, total_im
"""

VARIANTS = (
    Answer(
        "the order in which they came",
        "result",
        ((_REVERSED, "        place = n\n"),),
        mistake="the points stayed in the order in which they came",
    ),
    Answer("all bits reversed", "result", ((_REVERSED, _BITS),), mistake="bits were reversed, not digits of base 4"),
    Answer("two digits, however many there are", "race", (("in range(digits)", "in range(2)"),)),
    Answer("a digit too few", "race", (("in range(digits)", "in range(digits - 1)"),)),
    Answer(
        "backwards", "result", ((_REVERSED, "        place = points - 1 - n\n"),), mistake="the last point came first"
    ),
    Answer(
        "quarters for remainders, once",
        "result",
        ((_REVERSED, "        place = n % 4 * points // 4 + n // 4\n"),),
        mistake="only the last digit of each place were moved",
    ),
    Answer("digits of base 2", "race", (("4 * place + rest % 4, rest // 4", "4 * place + rest % 2, rest // 2"),)),
    Answer(
        "no barrier after the loads",
        "race",
        (("x[line, n, 1]\n    cuda.syncthreads()\n", "x[line, n, 1]\n"),),
    ),
    Answer("by definition", "budget", cell=_BY_DEFINITION),
    Answer("a root in float64", "budget", (("odd_re + off_im, odd_im", "odd_re + 1.0 * off_im, odd_im"),)),
    Answer("bits reversed, then swapped in pairs", "solved", ((_REVERSED, _SWAPPED_BITS),)),
    Answer("split by frequency, reversed at the end", "solved", cell=BY_FREQUENCY),
)

RIGHT = (
    right("split by frequency, reversed at the end", cell=BY_FREQUENCY),
    right(
        "two bits at a time swapped",
        (
            "        place, rest = 0, n\n        for _ in range(digits):\n"
            "            place, rest = 4 * place + rest % 4, rest // 4\n",
            "        bits = np.uint32(cuda.brev(np.uint32(n)) >> np.uint32(32 - 2 * digits))\n"
            "        place = (bits & 0x55555555) << 1 | bits >> 1 & 0x55555555\n",
        ),
    ),
    right(
        "bits of a digit by shifts",
        ("place, rest = 4 * place + rest % 4, rest // 4", "place, rest = place << 2 | rest & 3, rest >> 2"),
    ),
    right(
        "from the first digit on",
        (
            "        place, rest = 0, n\n        for _ in range(digits):\n"
            "            place, rest = 4 * place + rest % 4, rest // 4\n",
            "        place, weight, rest = 0, points // 4, n\n        while weight > 0:\n"
            "            place += rest % 4 * weight\n            rest //= 4\n            weight //= 4\n",
        ),
    ),
    right(
        "each place asks which point it takes",
        (
            "re[place], im[place] = x[line, n, 0], x[line, n, 1]",
            "re[n], im[n] = x[line, place, 0], x[line, place, 1]",
        ),
    ),
)

WRONG = (
    wrong("the digits that are published", ("in range(digits)", "in range(min(digits, 4))")),
    wrong("an even number of digits", ("in range(digits)", "in range((digits + 1) // 2 * 2)")),
    wrong("imaginary parts in their order", ("re[place], im[place] =", "re[place], im[n] =")),
    wrong("the points that are published", ("while quarter < points:", "while quarter < min(points, 256):")),
    wrong("three lines", ("x[line, n, 0], x[line, n, 1]", "x[min(line, 2), n, 0], x[min(line, 2), n, 1]")),
    wrong("a barrier of each warp", ("x[line, n, 1]\n    cuda.syncthreads()", "x[line, n, 1]\n    cuda.syncwarp()")),
    wrong(
        "the first and the last digit swapped",
        (
            "        place, rest = 0, n\n        for _ in range(digits):\n"
            "            place, rest = 4 * place + rest % 4, rest // 4\n",
            "        place = n - n % 4 + n * 4 // points\n        place += (n % 4 - n * 4 // points) * points // 4\n",
        ),
    ),
)

SHORTCUTS = (
    shortcut("another's kernel", cell="from labkit.conv.fft.s01_whole import inverse as transform_lines\n"),
    shortcut("by definition, straight from x", cell=DEFINITION.format(re="x[line, n, 0]", im="x[line, n, 1]")),
    shortcut(
        "by definition, by atomics",
        cell=DEFINITION.format(re="cuda.atomic.add(re, n, np.float32(0))", im="cuda.atomic.add(im, n, np.float32(0))"),
    ),
    shortcut("by definition, from shared memory", cell=DEFINITION.format(re="re[n]", im="im[n]")),
    shortcut(
        "one thread per line",
        cell="""MOST = 1024


@cuda.jit
def transform_lines(x, roots, spectra, digits):
    re, im = cuda.shared.array(MOST, np.float32), cuda.shared.array(MOST, np.float32)
    line, t, points = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    for n in range(t * points, points, 1):
        place, rest = 0, n
        for _ in range(digits):
            place, rest = 4 * place + rest % 4, rest // 4
        re[place], im[place] = x[line, n, 0], x[line, n, 1]
    cuda.syncthreads()
    quarter = 1
    while quarter < points:
        for n in range(t * points, points // 4, 1):
            a = n // quarter * 4 * quarter + n % quarter
            root = n % quarter * (points // (4 * quarter))
            b, c, d = a + quarter, a + 2 * quarter, a + 3 * quarter
            b_re, b_im = turned(re[b], im[b], roots[root, 0], roots[root, 1])
            c_re, c_im = turned(re[c], im[c], roots[2 * root, 0], roots[2 * root, 1])
            d_re, d_im = turned(re[d], im[d], roots[3 * root, 0], roots[3 * root, 1])
            even_re, even_im = re[a] + c_re, im[a] + c_im
            odd_re, odd_im = re[a] - c_re, im[a] - c_im
            sum_re, sum_im = b_re + d_re, b_im + d_im
            off_re, off_im = b_re - d_re, b_im - d_im
            re[a], im[a] = even_re + sum_re, even_im + sum_im
            re[b], im[b] = odd_re + off_im, odd_im - off_re
            re[c], im[c] = even_re - sum_re, even_im - sum_im
            re[d], im[d] = odd_re - off_im, odd_im + off_re
        cuda.syncthreads()
        quarter *= 4
    for f in range(t * points, points, 1):
        spectra[line, f, 0], spectra[line, f, 1] = re[f], im[f]


@cuda.jit(device=True)
def turned(re, im, root_re, root_im):
    return re * root_re - im * root_im, re * root_im + im * root_re
""",
    ),
)
