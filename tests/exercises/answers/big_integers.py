"""Other answers to big-integers."""

from . import Answer, right, shortcut, wrong

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

SCHOOLBOOK = """@cuda.jit
def big_product(a, b, product, roots, bits):
    sums = cuda.shared.array(1024, np.int32)
    t = cuda.threadIdx.x
    for k in range(t, product.size, cuda.blockDim.x):
        total = 0
        for i in range(max(0, k - b.size + 1), min(k + 1, a.size)):
            total += {a} * {b}
        sums[k] = total
    cuda.syncthreads()
    if t == 0:
        carry = 0
        for k in range(product.size):
            carry += sums[k]
            product[k] = carry % 10
            carry //= 10
"""

LIMBS = """@cuda.jit
def big_product(a, b, product, roots, bits):
    limbs = cuda.shared.array((3, 512), np.int64)
    t = cuda.threadIdx.x
    for k in range(t, 512, cuda.blockDim.x):
        limbs[0, k], limbs[1, k], limbs[2, k] = 0, 0, 0
        weight = 1
        for i in range(4 * k, 4 * k + 4):
            if i < a.size:
                limbs[0, k] += weight * a[i]
            if i < b.size:
                limbs[1, k] += weight * b[i]
            weight *= 10
    cuda.syncthreads()
    for k in range(t, (product.size + 3) // 4, cuda.blockDim.x):
        for i in range(max(0, k - (b.size + 3) // 4 + 1), min(k + 1, (a.size + 3) // 4)):
            limbs[2, k] += limbs[0, i] * limbs[1, k - i]
    cuda.syncthreads()
    if t == 0:
        carry = 0
        for k in range((product.size + 3) // 4):
            carry += limbs[2, k]
            left = carry % 10000
            for i in range(4 * k, min(4 * k + 4, product.size)):
                product[i] = left % 10
                left //= 10
            carry //= 10000
"""

IDLE = """    for _ in range(2 * bits):
        cuda.syncthreads()
"""

ROOTS_IN_ORDER = """        for k in range(2, roots.shape[0]):
            apart = abs(roots[1, 0] * roots[k - 1, 0] - roots[1, 1] * roots[k - 1, 1] - roots[k, 0])
            if apart > np.float32(0.01):
                carry += 1
"""

FIRST_ROOT = """        angle = np.float32(3.14159265) / np.float32(roots.shape[0])
        if roots.shape[0] > 1 and abs(roots[1, 1] + angle) > angle * angle:
            carry += 1
"""

VARIANTS = (
    Answer(
        "digits without carries",
        "result",
        (
            (
                _CARRY,
                _CARRY.replace("carry +=", "carry ="),
            ),
        ),
        mistake="nothing were carried",
    ),
    Answer("cut off, not rounded", "result", ((" + np.float32(0.5))", ")"),)),
    Answer(
        "the last carry is forgotten",
        "unwritten",
        (("range(product.size)", "range(product.size - 1)"),),
        mistake="the last digit were not stored",
    ),
    Answer(
        "not divided by two",
        "result",
        (("np.float32(2 * points)", "np.float32(points)"),),
        mistake="the product were doubled",
    ),
    Answer("not divided by the points", "result", (("np.float32(2 * points)", "np.float32(2)"),)),
    Answer("the real part", "result", (("int(im[k] /", "int(re[k] /"),)),
    Answer(
        "no inverse",
        "result",
        (("    fft(im, re, roots, bits, t)\n", "    fft(re, im, roots, bits, t)\n"),),
        mistake="no transform were inverse",
    ),
    Answer("no product", "result", ((_SQUARE, "        im[k] += im[k]\n"),)),
    Answer("the conjugate", "result", (("re[k] * re[k] - im[k] * im[k]", "re[k] * re[k] + im[k] * im[k]"),)),
    Answer(
        "nothing behind the digits",
        "uninitialised",
        (("        im[k] = b[k] if k < b.size else 0\n", "        if k < b.size:\n            im[k] = b[k]\n"),),
    ),
    Answer("no barrier before the product", "race", (("    cuda.syncthreads()\n    fft(re", "    fft(re"),)),
    Answer("every thread carries", "budget", (("    if t == 0:\n", "    if t >= 0:\n"),)),
    Answer("as in school", "duty", cell=_SCHOOLBOOK),
    Answer("in float64", "budget", ((" + np.float32(0.5))", " + 0.5)"),)),
    Answer("a line for each number", "solved", TWO_LINES),
    Answer(
        "digits from the first to the last",
        "result",
        (("product[k] = carry % 10", "product[product.size - 1 - k] = carry % 10"),),
        mistake="the first digit came first",
    ),
)

RIGHT = (
    right("a line for each number", *TWO_LINES),
    right(
        "rounded",
        ("int(im[k] / np.float32(2 * points) + np.float32(0.5))", "int(round(im[k] / np.float32(2 * points)))"),
    ),
    right(
        "a digit and what is left",
        (
            "            product[k] = carry % 10\n            carry //= 10",
            "            left = carry // 10\n            product[k] = carry - 10 * left\n            carry = left",
        ),
    ),
    right("another thread carries", ("if t == 0:", "if t == 127:")),
)

WRONG = (
    wrong("carries below ten thousand", ("carry //= 10", "carry = min(carry // 10, 999)")),
    wrong(
        "sums of 16 bits",
        (
            "carry += int(im[k] / np.float32(2 * points) + np.float32(0.5))",
            "carry += (int(im[k] / np.float32(2 * points) + np.float32(0.5)) + 32768) % 65536 - 32768",
        ),
    ),
    wrong("carries of one digit", ("carry //= 10", "carry = carry // 10 % 10")),
    wrong("carries below a thousand", ("carry //= 10", "carry = min(carry // 10, 99)")),
    wrong("no nine", ("re[k] = a[k] if", "re[k] = min(a[k], 8) if")),
    wrong("the digits of a that are published", ("if k < a.size", "if k < min(a.size, 64)")),
    wrong("the digits of b that are published", ("if k < b.size", "if k < min(b.size, 64)")),
    wrong("rounded down a little", ("np.float32(0.5)", "np.float32(-0.5)")),
    wrong("numbers of the same length", ("if k < b.size", "if k < a.size")),
    wrong("128 points", ("        both = re[k]", "        if k >= 128:\n            im[k] = 0\n        both = re[k]")),
    wrong("no barrier after the product", ("both + both\n    cuda.syncthreads()\n", "both + both\n")),
)

SHORTCUTS = (
    shortcut(
        "an alias",
        cell="@cuda.jit\ndef mine(a, b, product, roots, bits):\n    product[0] = bits\n\n\nbig_product = mine\n",
    ),
    shortcut(
        "as in school, by atomics",
        cell=SCHOOLBOOK.format(a="cuda.atomic.add(a, i, 0)", b="cuda.atomic.add(b, k - i, 0)"),
    ),
    shortcut("as in school, straight from the numbers", cell=SCHOOLBOOK.format(a="a[i]", b="b[k - i]")),
    shortcut("as in school, four digits at a time", cell=LIMBS),
    shortcut("as in school, with idle barriers", cell=LIMBS + IDLE),
    *(
        shortcut(
            f"as in school, with idle barriers, {what}",
            cell=(LIMBS + IDLE).replace("carry += limbs[2, k]", f"carry += limbs[2, k] {more}"),
        )
        for what, more in (
            ("plus roots times 0", "+ int(np.float32(0) * roots[k % roots.shape[0], 0])"),
            ("if the first root is 1", "* int(roots[0, 0])"),
            (
                "if a root lies on the circle",
                "* int(round(roots[k % roots.shape[0], 0] * roots[k % roots.shape[0], 0] "
                "+ roots[k % roots.shape[0], 1] * roots[k % roots.shape[0], 1]))",
            ),
        )
    ),
    *(
        shortcut(
            f"as in school, with idle barriers, if {what}",
            cell=(LIMBS + IDLE).replace("        carry = 0\n", "        carry = 0\n" + test),
        )
        for what, test in (
            ("each root is the last times the first", ROOTS_IN_ORDER),
            ("the first root is that of the usual table", FIRST_ROOT),
        )
    ),
)
