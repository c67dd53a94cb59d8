"""Other answers to exercise 12.1."""

from . import Variant

_LOOP = """            n, its_mean, its_squares = count[p, c], means[p, c], squares[p, c]
            if n > np.float32(0):
                away = its_mean - average
                share = n / (total + n)
                average += away * share
                away_squared += its_squares + away * away * total * share
                total += n
"""
_BY_SUMS = """
@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c < mean.size:
        total = values = of_squares = np.float32(0)
        for p in range(count.shape[0]):
            n, m, s = count[p, c], means[p, c], squares[p, c]
            if n > np.float32(0):
                total += n
                values += n * m
                of_squares += s + n * m * m
        mean[c] = values / total
        variance[c] = of_squares / total - mean[c] * mean[c]
"""
_SHIFTED = """
@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c >= mean.size:
        return
    first = total = away = of_squares = np.float32(0)
    for p in range(count.shape[0]):
        n, m, s = count[p, c], means[p, c], squares[p, c]
        if n > np.float32(0):
            if total == np.float32(0):
                first = m
            total += n
            away += n * (m - first)
            of_squares += s + n * (m - first) * (m - first)
    away /= total
    mean[c] = first + away
    variance[c] = of_squares / total - away * away
"""

VARIANTS = (
    Variant(
        "the stub: all parts alike",
        "result",
        (
            (
                _LOOP,
                """            total += count[p, c]
            average += means[p, c] / np.float32(count.shape[0])
            away_squared += squares[p, c]
""",
            ),
        ),
    ),
    Variant("means apart forgotten", "result", ((" + away * away * total * share", ""),)),
    Variant("the distance not squared", "result", (("away * away * total", "away * total"),)),
    Variant(
        "the part's own count in the squares", "result", (("away * away * total * share", "away * away * n * share"),)
    ),
    Variant(
        "the distance from the joint mean alone",
        "result",
        (("away * away * total * share", "away * away * total * share * (np.float32(1) - share)"),),
    ),
    Variant(
        "counted before the share is taken",
        "result",
        (
            ("                total += n\n", ""),
            ("                share = n", "                total += n\n                share = n"),
        ),
    ),
    Variant(
        "the empty part counts",
        "result",
        (
            ("if n > np.float32(0):", "if True:"),
            ("share = n / (total + n)", "share = n / max(total + n, np.float32(1))"),
            ("total += n\n", "total += max(n, np.float32(1))\n"),
        ),
    ),
    Variant(
        "the variance of a sample", "result", (("away_squared / total", "away_squared / (total - np.float32(1))"),)
    ),
    Variant("back to sums", "result", cell=_BY_SUMS),
    Variant(
        "in float64",
        "budget",
        (("total = average = away_squared = np.float32(0)", "total = average = away_squared = 0.0"),),
    ),
    Variant(
        "each mean loaded twice",
        "budget",
        (("away = its_mean - average", "away = means[p, c] - average"),),
    ),
    Variant(
        "the first thread alone",
        "budget",
        (("if c < mean.size:", "for c in range(mean.size if c == 0 else 0):"),),
    ),
    Variant(
        "a copy of the counts kept",
        "budget",
        (
            ("total = average", "kept = cuda.local.array(256, np.float32)\n        total = average"),
            ("                total += n\n", "                kept[p] = n\n                total += kept[p]\n"),
        ),
    ),
    Variant("no guard", "bounds", (("if c < mean.size:", "if True:"),)),
    Variant("about the first part's mean", "solved", cell=_SHIFTED),
)
