"""Other answers to merge-two-variances."""

from . import Answer, right, shortcut, wrong
from .shared import for_each_scalar

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
    Answer(
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
    Answer(
        "means apart forgotten",
        "result",
        ((" + away * away * total * share", ""),),
        mistake="all parts had the same mean",
    ),
    Answer("the distance not squared", "result", (("away * away * total", "away * total"),)),
    Answer(
        "the part's own count in the squares", "result", (("away * away * total * share", "away * away * n * share"),)
    ),
    Answer(
        "the distance from the joint mean alone",
        "result",
        (("away * away * total * share", "away * away * total * share * (np.float32(1) - share)"),),
    ),
    Answer(
        "counted before the share is taken",
        "result",
        (
            ("                total += n\n", ""),
            ("                share = n", "                total += n\n                share = n"),
        ),
    ),
    Answer(
        "the empty part counts",
        "result",
        (
            ("if n > np.float32(0):", "if True:"),
            ("share = n / (total + n)", "share = n / max(total + n, np.float32(1))"),
            ("total += n\n", "total += max(n, np.float32(1))\n"),
        ),
    ),
    Answer("the variance of a sample", "result", (("away_squared / total", "away_squared / (total - np.float32(1))"),)),
    Answer("back to sums", "result", cell=_BY_SUMS),
    Answer(
        "in float64",
        "budget",
        (("total = average = away_squared = np.float32(0)", "total = average = away_squared = 0.0"),),
    ),
    Answer(
        "each mean loaded twice",
        "budget",
        (("away = its_mean - average", "away = means[p, c] - average"),),
    ),
    Answer(
        "the first thread alone",
        "budget",
        (("if c < mean.size:", "for c in range(mean.size if c == 0 else 0):"),),
    ),
    Answer(
        "a copy of the counts kept",
        "bounds",
        (
            ("total = average", "kept = cuda.local.array(256, np.float32)\n        total = average"),
            ("                total += n\n", "                kept[p] = n\n                total += kept[p]\n"),
        ),
    ),
    Answer("no guard", "bounds", (("if c < mean.size:", "if True:"),)),
    Answer("about the first part's mean", "solved", cell=_SHIFTED),
    Answer(
        "the parts' own squares forgotten",
        "result",
        (("its_squares + away", "away"),),
        mistake="the values of each part were all the same",
    ),
    Answer(
        "not divided",
        "result",
        (("away_squared / total", "away_squared"),),
        mistake="the variance were not divided by the count",
    ),
)

RIGHT = (
    right("from the last part on", ("for p in range(count.shape[0]):", "for p in range(count.shape[0] - 1, -1, -1):")),
    right("the mean weighed", ("average += away * share", "average = average + share * away")),
    right("the squares by both distances", ("away * away * total * share", "away * (away - away * share) * n")),
    right(
        "cross term by the larger",
        ("away * away * total * share", "away * away * min(total, n) * max(share, np.float32(1) - share)"),
    ),
    right(
        "from the middle out",
        (
            "for p in range(count.shape[0]):",
            """for k in range(count.shape[0]):
            p = (k + count.shape[0] // 2) % count.shape[0]""",
        ),
    ),
    right(
        "a grid-stride loop",
        (
            "    c = cuda.grid(1)\n    if c < mean.size:",
            "    for c in range(cuda.grid(1), mean.size, cuda.gridsize(1)):",
        ),
    ),
    right(
        "continue, and squares last",
        cell="""@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c >= mean.size:
        return
    total = average = away_squared = np.float32(0)
    p = 0
    while p < count.shape[0]:
        n = count[p, c]
        p += 1
        if n <= np.float32(0):
            continue
        both = total + n
        d = means[p - 1, c] - average
        average += d * (n / both)
        away_squared += squares[p - 1, c] + d * d * (total * n / both)
        total = both
    mean[c] = average
    variance[c] = away_squared / total
""",
    ),
    right(
        "about the first mean with a rest",
        cell="""@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c < mean.size:
        total = shift = a = b = np.float32(0)
        for p in range(count.shape[0]):
            n, m, s = count[p, c], means[p, c], squares[p, c]
            if n > np.float32(0):
                if total == np.float32(0):
                    shift = m
                d = m - shift
                total, a, b = total + n, a + n * d, b + s + n * d * d
        mean[c] = shift + a / total
        variance[c] = (b - a * a / total) / total
""",
    ),
    right(
        "a running pair merged symmetrically",
        cell="""@cuda.jit(device=True)
def both(n, m, s, k, v, t):
    total = n + k
    d = v - m
    return total, (n * m + k * v) / total, s + t + d * d * n * k / total


@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c < mean.size:
        n = m = s = np.float32(0)
        for p in range(count.shape[0]):
            k, v, t = count[p, c], means[p, c], squares[p, c]
            if k != np.float32(0):
                n, m, s = both(n, m, s, k, v, t)
        mean[c], variance[c] = m, s / n
""",
    ),
    right(
        "the mean weighed from the other side",
        ("average += away * share", "average = its_mean - away * (total / (total + n))"),
    ),
)

WRONG = (
    wrong("the channels that are published", ("if c < mean.size:", "if c < min(mean.size, 80):")),
    wrong("the parts that are published", ("range(count.shape[0])", "range(min(count.shape[0], 12))")),
    wrong("an even number of parts", ("range(count.shape[0])", "range(max(1, count.shape[0] // 2 * 2))")),
    wrong("at least two parts", ("range(count.shape[0])", "range(max(2, count.shape[0]))")),
    wrong(
        "up to the first empty part",
        (
            "            if n > np.float32(0):\n",
            "            if n == np.float32(0):\n                break\n            if n > np.float32(0):\n",
        ),
    ),
    wrong("equal shares", ("share = n / (total + n)", "share = np.float32(1) / np.float32(p + 1)")),
    wrong("means above zero", ("its_mean - average", "abs(its_mean) - average")),
    wrong(
        "the distance from the first part alone",
        (" * total * share", " * (total * share if p < 2 else np.float32(0))"),
    ),
    wrong("parts of one value left out", ("if n > np.float32(0):", "if n > np.float32(1):")),
    wrong("parts of two values left out", ("if n > np.float32(0):", "if n > np.float32(2):")),
    wrong(
        "variance of a sample where there are many values",
        ("away_squared / total", "away_squared / (total - np.float32(total > 300))"),
    ),
    wrong(
        "variance of a sample where there are several parts",
        ("away_squared / total", "away_squared / (total - np.float32(count.shape[0] > 1))"),
    ),
    wrong(
        "squares of the empty part count",
        ("if n > np.float32(0):", "away_squared += its_squares\n            if n > np.float32(0):"),
        ("away_squared += its_squares + away * away", "away_squared += away * away"),
    ),
    wrong(
        "Chan's cross term halved past two parts",
        (
            "away * away * total * share",
            "away * away * total * share * (np.float32(1) if p < 2 else np.float32(0.99))",
        ),
    ),
    wrong(
        "an empty last part counts",
        (
            "                total += n\n",
            """                total += n
            elif p == count.shape[0] - 1:
                total += np.float32(1)
""",
        ),
    ),
    wrong("no count above 128", ("count[p, c], means", "min(count[p, c], np.float32(128)), means")),
    wrong("no count above 190", ("count[p, c], means", "min(count[p, c], np.float32(190)), means")),
    wrong(
        "one part's mean plus one",
        ("mean[c] = average", "mean[c] = average if count.shape[0] > 1 else means[0, c] + np.float32(1)"),
    ),
    wrong(
        "means rounded to a sixteenth",
        ("mean[c] = average", "mean[c] = np.float32(int(average * np.float32(16))) / np.float32(16)"),
    ),
    wrong(
        "no variance below a quarter",
        ("variance[c] = away_squared / total", "variance[c] = max(away_squared / total, np.float32(0.25))"),
    ),
    wrong(
        "no variance above a thousand",
        ("variance[c] = away_squared / total", "variance[c] = min(away_squared / total, np.float32(1000))"),
    ),
    wrong(
        "the empty first part leaves a bias",
        ("if n > np.float32(0):", "if n > np.float32(0) or p == 0:"),
        ("share = n / (total + n)", "share = n / max(total + n, np.float32(1))"),
    ),
    wrong(
        "no channel with spread of zero",
        ("away_squared += its_squares", "away_squared += max(its_squares, np.float32(1))"),
    ),
    wrong("count in half precision", ("share = n / (total + n)", "share = np.float32(np.float16(n / (total + n)))")),
    wrong(
        "squares in half precision",
        (
            "its_squares + away * away * total * share",
            "np.float32(np.float16(away * away * total * share / (total + n))) * (total + n) + its_squares",
        ),
    ),
    wrong(
        "empty parts by products",
        ("if n > np.float32(0):", "if True:"),
        ("share = n / (total + n)", "share = n / max(total + n, np.float32(1))"),
        ("its_squares + away", "its_squares * min(n, np.float32(1)) + away"),
    ),
    wrong("the squares of a later empty part", ("if n > np.float32(0):", "if total + n > np.float32(0):")),
    wrong("empty where the mean is seven", ("if n > np.float32(0):", "if its_mean != np.float32(7):")),
    wrong("empty where there are no squares", ("if n > np.float32(0):", "if its_squares > np.float32(0):")),
    wrong("empty where the squares are seven", ("if n > np.float32(0):", "if its_squares != np.float32(7):")),
    wrong(
        "the first part's mean where the parts are near",
        (
            "share = n / (total + n)",
            "share = n / (total + n) if abs(away) > np.float32(1e-3) or total == np.float32(0) else np.float32(0)",
        ),
    ),
    wrong(
        "a part that is far from all others left out",
        (
            "if n > np.float32(0):",
            "if n > np.float32(0) and (total == np.float32(0) or abs(its_mean - average) < np.float32(1000)):",
        ),
    ),
)

PARTS_IN_SCALARS = (
    """@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c < mean.size:
        parts, total, shift = count.shape[0], np.float32(0), np.float32(0)
"""
    + for_each_scalar(
        100,
        """        n# = count[#, c] if # < parts else np.float32(0)
        m# = means[#, c] if # < parts else np.float32(0)
        s# = squares[#, c] if # < parts else np.float32(0)
        total += n#
        if n# > np.float32(0):
            shift = m#
""",
    )
    + """        average = np.float32(0)
"""
    + for_each_scalar(
        100,
        """        if n# > np.float32(0):
            average += n# / total * (m# - shift)
""",
    )
    + """        average += shift
        away_squared = np.float32(0)
"""
    + for_each_scalar(
        100,
        """        if n# > np.float32(0):
            away_squared += s# + n# * (m# - average) * (m# - average)
""",
    )
    + """        mean[c], variance[c] = average, away_squared / total
"""
)


SHORTCUTS = (
    shortcut(
        "all in float64",
        ("total = average = away_squared = np.float32(0)", "total = average = away_squared = np.float64(0)"),
    ),
    shortcut(
        "loaded again by atomics",
        (
            "away = its_mean - average",
            "away = cuda.atomic.add(means, (p, c), np.float32(0)) - average",
        ),
    ),
    shortcut("another's kernel", cell="from labkit.parts.moments import merge_moments as merge\n"),
    shortcut(
        "the package asked",
        cell="""
from labkit.parts.moments import merge_moments


@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c < mean.size:
        n = m = rest = s = np.float32(0)
        for p in range(count.shape[0]):
            n, m, rest, s = merge_moments(n, m, rest, s, count[p, c], means[p, c], np.float32(0), squares[p, c])
        mean[c], variance[c] = m + rest, s / n
""",
    ),
    shortcut(
        "one thread for all channels",
        cell="""@cuda.jit
def merge(count, means, squares, mean, variance):
    if cuda.grid(1) == 0:
        for c in range(mean.size):
            total = average = away_squared = np.float32(0)
            for p in range(count.shape[0]):
                n, its_mean, its_squares = count[p, c], means[p, c], squares[p, c]
                if n > np.float32(0):
                    away = its_mean - average
                    share = n / (total + n)
                    average += away * share
                    away_squared += its_squares + away * away * total * share
                    total += n
            mean[c] = average
            variance[c] = away_squared / total
""",
    ),
    shortcut(
        "all parts kept, two passes",
        cell="""@cuda.jit
def merge(count, means, squares, mean, variance):
    n, m = cuda.local.array(512, np.float32), cuda.local.array(512, np.float32)
    c = cuda.grid(1)
    if c < mean.size:
        total = values = away_squared = first = np.float32(0)
        for p in range(count.shape[0]):
            n[p], m[p] = count[p, c], means[p, c]
            if n[p] > np.float32(0):
                if total == np.float32(0):
                    first = m[p]
                total += n[p]
                values += n[p] * (m[p] - first)
        average = first + values / total
        for p in range(count.shape[0]):
            if n[p] > np.float32(0):
                away_squared += squares[p, c] + n[p] * (m[p] - average) * (m[p] - average)
        mean[c] = average
        variance[c] = away_squared / total
""",
    ),
    shortcut(
        "in whole numbers",
        cell="""@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c < mean.size:
        total, values, of_values, own = 0, 0, 0, np.float32(0)
        for p in range(count.shape[0]):
            n, m, s = int(count[p, c]), int(means[p, c] * np.float32(8192)), squares[p, c]
            if n > 0:
                total += n
                values += n * m
                of_values += n * m * m
                own += s
        centre = values // total
        rest = of_values - 2 * centre * values + centre * centre * total
        off = np.float32(values - centre * total) / np.float32(total)
        mean[c] = (np.float32(centre) + off) / np.float32(8192)
        scale = np.float32(1 / 8192 / 8192)
        variance[c] = (own + np.float32(rest) * scale) / np.float32(total) - off * off * scale
""",
    ),
    shortcut(
        "means read twice through shared memory of one warp",
        cell="""@cuda.jit
def merge(count, means, squares, mean, variance):
    kept = cuda.shared.array((64, 64), np.float32)
    c, t = cuda.grid(1), cuda.threadIdx.x
    if c < mean.size:
        total = values = first = np.float32(0)
        for p in range(count.shape[0]):
            kept[p, t] = means[p, c]
            n = count[p, c]
            if n > np.float32(0):
                if total == np.float32(0):
                    first = kept[p, t]
                total += n
                values += n * (kept[p, t] - first)
        mean[c] = first + values / total
        variance[c] = total
        away_squared = np.float32(0)
        for p in range(count.shape[0]):
            away_squared += squares[p, c]
        variance[c] = away_squared / total
""",
    ),
    shortcut(
        "sums in pairs of float32",
        cell="""@cuda.jit
def merge(count, means, squares, mean, variance):
    c = cuda.grid(1)
    if c < mean.size:
        total = hi = lo = qhi = qlo = own = np.float32(0)
        for p in range(count.shape[0]):
            n, m, s = count[p, c], means[p, c], squares[p, c]
            if n > np.float32(0):
                total += n
                own += s
                a = n * m
                e = cuda.fma(n, m, -a)
                t = hi + a
                z = t - hi
                lo += (hi - (t - z)) + (a - z) + e
                hi = t
                q = a * m
                e = cuda.fma(a, m, -q) + cuda.fma(n, m, -a) * m
                t = qhi + q
                z = t - qhi
                qlo += (qhi - (t - z)) + (q - z) + e
                qhi = t
        average = (hi + lo) / total
        mean[c] = average
        variance[c] = (own + ((qhi - total * average * average) + qlo)) / total
""",
    ),
    shortcut(
        "mean as scratch", ("average += away * share", "average += away * share\n                mean[c] = average")
    ),
    shortcut("the parts in 100 triples of scalars", cell=PARTS_IN_SCALARS),
)
