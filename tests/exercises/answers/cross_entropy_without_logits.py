"""Other answers to cross-entropy-without-logits."""

from . import Answer, right, shortcut, wrong
from .shared import for_each_scalar

RESCALED = "total = total * exp(most - larger) + exp(logit - larger)"

CAUGHT = "            if first + j == target:\n                of_target = logit\n"

STORED = "loss[row] = most - of_target + log(total) if target >= 0 else np.float32(0)"

LOADED = "            if first + n // WIDTH < words:\n                W_tile"

TILE_END = "range(min(WORDS, words - first))"

BARRIER = "        cuda.syncthreads()\n"

VARIANTS = (
    Answer("not rescaled", "result", ((RESCALED, "total += exp(logit - larger)"),)),
    Answer("rescaled after the maximum moved", "result", ((RESCALED, f"most = larger\n            {RESCALED}"),)),
    Answer("no maximum", "result", (("larger = max(most, logit)", "larger = np.float32(0)"),)),
    Answer(
        "the first logit for a maximum",
        "result",
        (("larger = max(most, logit)", "larger = logit if first + j == 0 else most"),),
    ),
    Answer(
        "a first maximum of zero",
        "result",
        (("np.float32(-3e38), np.float32(0), np", "np.float32(0), np.float32(0), np"),),
    ),
    Answer("the target's logit rescaled as well", "result", ((CAUGHT, CAUGHT.replace("= logit", "= logit - most")),)),
    Answer("the target within its tile", "result", ((CAUGHT, CAUGHT.replace("first + j ==", "j ==")),)),
    Answer("the target's weight", "result", ((CAUGHT, CAUGHT.replace("= logit", "= exp(logit - most)")),)),
    Answer(
        "padding that counts",
        "result",
        ((STORED, "loss[row] = most - of_target + log(total)"),),
        mistake="rows without a target had a loss",
    ),
    Answer(
        "padding left alone",
        "unwritten",
        (("    if row < rows:\n        loss", "    if row < rows and target >= 0:\n        loss"),),
        mistake="rows without a target were not stored",
    ),
    Answer(
        "the first word is padding",
        "result",
        ((STORED, STORED.replace("target >= 0", "target > 0")),),
        mistake="word 0 were not a target",
    ),
    Answer(
        "a likelihood",
        "result",
        ((STORED, STORED.replace("most - of_target + log(total)", "of_target - most - log(total)")),),
        mistake="the loss had the opposite sign",
    ),
    Answer(
        "without the maximum",
        "result",
        ((STORED, STORED.replace("most - of_target + ", "")),),
        mistake="the maximum and the target's logit were left out",
    ),
    Answer(
        "words beyond the last",
        "result",
        (
            (TILE_END, "range(WORDS)"),
            (
                LOADED,
                LOADED.replace(
                    "            if first + n // WIDTH < words:\n    ",
                    "            W_tile[n // WIDTH, n % WIDTH] = 0\n            if first + n // WIDTH < words:\n    ",
                ),
            ),
        ),
    ),
    Answer("what the last tile left", "result", ((TILE_END, "range(WORDS if first > 0 else min(WORDS, words))"),)),
    Answer("loaded beyond the last word", "bounds", ((LOADED, LOADED.replace("< words", "< words + 1")),)),
    Answer(
        "threads without a place do not wait",
        "barrier",
        (
            (
                "    for first in range(0, words, WORDS):",
                "    for first in range(0, words if row < rows else 0, WORDS):",
            ),
        ),
    ),
    Answer("no barrier before the next tile", "race", ((BARRIER + "        for n", "        for n"),)),
    Answer("no barrier behind the loads", "race", ((BARRIER + "        for j", "        for j"),)),
    Answer(
        "the target's row loaded again",
        "budget",
        (
            (CAUGHT, ""),
            (
                "    if row < rows:\n        loss",
                """    if row < rows:
        for d in range(WIDTH):
            of_target += x[d] * W[max(target, 0), d]
        loss""",
            ),
        ),
    ),
    Answer("each thread for itself", "budget", (("logit += x[d] * W_tile[j, d]", "logit += x[d] * W[first + j, d]"),)),
    Answer(
        "X loaded for each word",
        "budget",
        (("logit += x[d] * W_tile[j, d]", "logit += (X[d, row] if row < rows else np.float32(0)) * W_tile[j, d]"),),
    ),
    Answer("in float64", "budget", (("np.float32(-3e38), np.float32(0), np", "np.float32(-3e38), 0.0, np"),)),
    Answer("a larger tile", "solved", (("32, 8, 8", "32, 32, 8"),)),
    Answer("a smaller tile", "solved", (("32, 8, 8", "32, 5, 8"),)),
    Answer(
        "the logarithm first",
        "solved",
        ((STORED, STORED.replace("most - of_target + log(total)", "(most + log(total)) - of_target")),),
    ),
    Answer("a first maximum of minus infinity", "solved", (("np.float32(-3e38)", "np.float32(-np.inf)"),)),
)

RIGHT = (
    right(
        "one exponential",
        (
            "            total = total * exp(most - larger) + exp(logit - larger)\n",
            """            if logit > most:
                total = total * exp(most - logit) + np.float32(1)
            else:
                total += exp(logit - most)
""",
        ),
    ),
    right(
        "zeros beyond the last word",
        (
            """            if first + n // WIDTH < words:
                W_tile[n // WIDTH, n % WIDTH] = W[first + n // WIDTH, n % WIDTH]
""",
            """            j, d = first + n // WIDTH, n % WIDTH
            W_tile[n // WIDTH, d] = W[j, d] if j < words else np.float32(0)
""",
        ),
        (
            "for j in range(min(WORDS, words - first)):\n            logit = np.float32(0)\n",
            "for j in range(WORDS):\n            logit = np.float32(0 if first + j < words else -np.inf)\n",
        ),
    ),
    right(
        "the target first",
        ("            if first + j == target:\n                of_target = logit\n", ""),
        (
            "            larger = max(most, logit)\n",
            """            if target == first + j:
                of_target = logit
            larger = max(most, logit)
""",
        ),
    ),
    right("from the last word on", ("range(0, words, WORDS)", "range((words - 1) // WORDS * WORDS, -1, -WORDS)")),
    right(
        "rubbish where there is no place",
        ("x[d] = X[d, row] if row < rows else np.float32(0)", "x[d] = X[d, row] if row < rows else np.float32(d)"),
    ),
    right("a late origin", ("larger = max(most, logit)", "larger = logit if logit > most + np.float32(8) else most")),
    right(
        "a tile at a time",
        cell="""
from math import exp, log

ROWS, WORDS, WIDTH = 32, 16, 8


@cuda.jit
def cross_entropy(X, W, targets, loss):
    W_tile = cuda.shared.array((WORDS, WIDTH), np.float32)
    x = cuda.local.array(WIDTH, np.float32)
    logits = cuda.local.array(WORDS, np.float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    rows, words = loss.size, W.shape[0]
    target = -1
    if row < rows:
        target = targets[row]
        for d in range(WIDTH):
            x[d] = X[d, row]
    most, total, of_target = np.float32(-3e38), np.float32(0), np.float32(0)
    for first in range(0, words, WORDS):
        for n in range(t, min(WORDS, words - first) * WIDTH, ROWS):
            W_tile[n // WIDTH, n % WIDTH] = W[first + n // WIDTH, n % WIDTH]
        cuda.syncthreads()
        if row < rows:
            before = most
            for j in range(min(WORDS, words - first)):
                logits[j] = 0
                for d in range(WIDTH):
                    logits[j] += x[d] * W_tile[j, d]
                most = max(most, logits[j])
                if first + j == target:
                    of_target = logits[j]
            total *= exp(before - most)
            for j in range(min(WORDS, words - first)):
                total += exp(logits[j] - most)
        cuda.syncthreads()
    if row < rows:
        if target < 0:
            loss[row] = 0
        else:
            loss[row] = log(total) + (most - of_target)
""",
    ),
    right(
        "by powers of 2",
        cell="""
from math import exp2, log2

ROWS, WORDS, WIDTH = 32, 8, 8
LOG2_E, LN_2 = np.float32(1.4426950408889634), np.float32(0.6931471805599453)


@cuda.jit
def cross_entropy(X, W, targets, loss):
    W_tile = cuda.shared.array((WORDS, WIDTH), np.float32)
    x = cuda.local.array(WIDTH, np.float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    rows, words = loss.size, W.shape[0]
    target = targets[row] if row < rows else -1
    for d in range(WIDTH):
        x[d] = X[d, row] * LOG2_E if row < rows else np.float32(0)
    most, total, of_target = np.float32(-np.inf), np.float32(0), np.float32(0)
    for first in range(0, words, WORDS):
        cuda.syncthreads()
        for n in range(t, min(WORDS, words - first) * WIDTH, ROWS):
            W_tile[n // WIDTH, n % WIDTH] = W[first + n // WIDTH, n % WIDTH]
        cuda.syncthreads()
        for j in range(min(WORDS, words - first)):
            logit = np.float32(0)
            for d in range(WIDTH):
                logit += x[d] * W_tile[j, d]
            larger = max(most, logit)
            total = total * exp2(most - larger) + exp2(logit - larger)
            most = larger
            if first + j == target:
                of_target = logit
    if row < rows:
        loss[row] = (most - of_target + log2(total)) * LN_2 if target >= 0 else np.float32(0)
""",
    ),
    right(
        "rows of W handed round by shuffles",
        cell="""
from math import exp, log


@cuda.jit
def cross_entropy(X, W, targets, loss):
    x = cuda.local.array(8, np.float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    rows, words = loss.size, W.shape[0]
    target = targets[row] if row < rows else -1
    for d in range(8):
        x[d] = X[d, row] if row < rows else np.float32(0)
    most, total, of_target = np.float32(-3e38), np.float32(0), np.float32(0)
    for first in range(0, words, 4):
        mine = np.float32(0)
        if first + t // 8 < words:
            mine = W[first + t // 8, t % 8]
        for j in range(4):
            logit = np.float32(0)
            for d in range(8):
                logit += x[d] * cuda.shfl_sync(0xFFFFFFFF, mine, j * 8 + d)
            if first + j < words:
                larger = max(most, logit)
                total = total * exp(most - larger) + exp(logit - larger)
                most = larger
                if first + j == target:
                    of_target = logit
    if row < rows:
        loss[row] = most - of_target + log(total) if target >= 0 else np.float32(0)
""",
    ),
)

WRONG = (
    wrong(
        "a maximum from -9000 on",
        ("most, total, of_target = np.float32(-3e38)", "most, total, of_target = np.float32(-9000)"),
    ),
    wrong(
        "logits above -1,000",
        ("np.float32(-3e38), np.float32(0), np.float32(0)", "np.float32(-1000), np.float32(0), np.float32(0)"),
    ),
    wrong(
        "the words that are published",
        ("rows, words = loss.size, W.shape[0]", "rows, words = loss.size, min(W.shape[0], 120)"),
    ),
    wrong(
        "the places that are published",
        ("rows, words = loss.size, W.shape[0]", "rows, words = min(loss.size, 68), W.shape[0]"),
    ),
    wrong(
        "whole tiles of words",
        ("rows, words = loss.size, W.shape[0]", "rows, words = loss.size, max(1, W.shape[0] // 8 * 8)"),
    ),
    wrong("whole blocks of places", ("if row < rows:\n        loss", "if row < max(1, rows // 4 * 4):\n        loss")),
    wrong("targets in the first tiles", ("if first + j == target:", "if first + j == min(target, 100):")),
    wrong("no target is the last word", ("if first + j == target:", "if first + j == min(target, words - 2):")),
    wrong(
        "logits up to a thousand",
        ("larger = max(most, logit)", "logit = min(logit, np.float32(900))\n            larger = max(most, logit)"),
    ),
    wrong(
        "logits above zero",
        ("most, total, of_target = np.float32(-3e38)", "most, total, of_target = np.float32(-1)"),
    ),
    wrong("rescaled by at most e^5", ("exp(most - larger)", "exp(max(most - larger, np.float32(-5)))")),
    wrong(
        "small weights left out",
        ("+ exp(logit - larger)", "+ (exp(logit - larger) if logit > larger - np.float32(3) else np.float32(0))"),
    ),
    wrong(
        "weights below e^-12 left out",
        ("+ exp(logit - larger)", "+ (exp(logit - larger) if logit > larger - np.float32(12) else np.float32(0))"),
    ),
    wrong("only first few tiles rescale", ("exp(most - larger)", "exp((most - larger) * (first < 64))")),
    wrong(
        "two alike count once",
        (
            "total = total * exp(most - larger) + exp(logit - larger)",
            "total = total * exp(most - larger) + (exp(logit - larger) if logit != most else np.float32(0))",
        ),
    ),
    wrong("powers of 2", ("exp(logit - larger)", "np.float32(2) ** (logit - larger)")),
    wrong("logarithm of 2", ("log(total) if", "log(total) / log(np.float32(2)) if")),
    wrong("the mean", ("log(total) if", "log(total / np.float32(words)) if")),
    wrong(
        "the weight of the target left out",
        (
            "            if first + j == target:\n",
            "            if first + j == target:\n                total -= exp(logit - larger)\n",
        ),
    ),
    wrong("in half precision", ("+ exp(logit - larger)", "+ np.float32(np.float16(exp(logit - larger)))")),
    wrong(
        "no loss above 80",
        (
            "loss[row] = most - of_target + log(total)",
            "loss[row] = min(most - of_target, np.float32(40)) + log(total)",
        ),
    ),
)

LOGITS_IN_SCALARS = (
    """from math import exp, log


@cuda.jit(device=True)
def dot(x, W_tile, j):
    logit = np.float32(0)
    for d in range(8):
        logit += x[d] * W_tile[j, d]
    return logit


@cuda.jit
def cross_entropy(X, W, targets, loss):
    W_tile = cuda.shared.array((8, 8), np.float32)
    x = cuda.local.array(8, np.float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    rows, words = loss.size, W.shape[0]
    target = targets[row] if row < rows else -1
    for d in range(8):
        x[d] = X[d, row] if row < rows else np.float32(0)
    most, total, of_target = np.float32(-3e38), np.float32(0), np.float32(0)
"""
    + for_each_scalar(
        50,
        """    cuda.syncthreads()
    for n in range(t, 64, 32):
        if 8 * # + n // 8 < words:
            W_tile[n // 8, n % 8] = W[8 * # + n // 8, n % 8]
    cuda.syncthreads()
"""
        + "".join(
            f"""    logit#_{j} = dot(x, W_tile, {j}) if 8 * # + {j} < words else np.float32(-3e38)
    most = max(most, logit#_{j})
    of_target = logit#_{j} if target == 8 * # + {j} else of_target
"""
            for j in range(8)
        ),
    )
    + for_each_scalar(50, "".join(f"    total += exp(logit#_{j} - most)\n" for j in range(8)))
    + """    if row < rows:
        loss[row] = most - of_target + log(total) if target >= 0 else np.float32(0)
"""
)


SHORTCUTS = (
    shortcut(
        "in double precision",
        (
            "most, total, of_target = np.float32(-3e38), np.float32(0)",
            "most, total, of_target = np.float32(-3e38), 0.0",
        ),
    ),
    shortcut(
        "loaded by atomics",
        ("            if first + j == target:\n                of_target = logit\n", ""),
        (
            "    if row < rows:\n        loss",
            """    if row < rows:
        for d in range(WIDTH):
            of_target += x[d] * cuda.atomic.add(W, (max(target, 0), d), np.float32(0))
        loss""",
        ),
    ),
    shortcut(
        "one thread loads",
        ("range(t, WORDS * WIDTH, ROWS)", "range(0 if t == 0 else WORDS * WIDTH, WORDS * WIDTH)"),
    ),
    shortcut(
        "kept in the output",
        (
            "            most = larger\n",
            "            most = larger\n            if row < rows:\n                loss[row] = logit\n",
        ),
    ),
    shortcut("another's kernel", cell="from labkit.softmax.forward.s02_online import online as cross_entropy\n"),
    shortcut(
        "a thread for each place, without tiles",
        cell="""
from math import exp, log


@cuda.jit
def cross_entropy(X, W, targets, loss):
    row = cuda.grid(1)
    if row < loss.size:
        most, total, of_target = np.float32(-3e38), np.float32(0), np.float32(0)
        for word in range(W.shape[0]):
            logit = np.float32(0)
            for d in range(8):
                logit += X[d, row] * W[word, d]
            larger = max(most, logit)
            total = total * exp(most - larger) + exp(logit - larger)
            most = larger
            if word == targets[row]:
                of_target = logit
        loss[row] = most - of_target + log(total) if targets[row] >= 0 else np.float32(0)
""",
    ),
    shortcut(
        "one thread for all places of a block",
        cell="""
from math import exp, log

ROWS, WORDS, WIDTH = 32, 8, 8


@cuda.jit
def cross_entropy(X, W, targets, loss):
    W_tile = cuda.shared.array((WORDS, WIDTH), np.float32)
    x = cuda.shared.array((WIDTH, ROWS), np.float32)
    kept = cuda.shared.array((4, ROWS), np.float32)
    t, row = cuda.threadIdx.x, cuda.grid(1)
    rows, words = loss.size, W.shape[0]
    target = targets[row] if row < rows else -1
    for d in range(WIDTH):
        x[d, t] = X[d, row] if row < rows else np.float32(0)
    kept[0, t], kept[1, t], kept[2, t], kept[3, t] = -3e38, 0, 0, target
    for first in range(0, words, WORDS):
        cuda.syncthreads()
        for n in range(t, min(WORDS, words - first) * WIDTH, ROWS):
            W_tile[n // WIDTH, n % WIDTH] = W[first + n // WIDTH, n % WIDTH]
        cuda.syncthreads()
        if t == 0:
            for r in range(ROWS):
                for j in range(min(WORDS, words - first)):
                    logit = np.float32(0)
                    for d in range(WIDTH):
                        logit += x[d, r] * W_tile[j, d]
                    larger = max(kept[0, r], logit)
                    kept[1, r] = kept[1, r] * exp(kept[0, r] - larger) + exp(logit - larger)
                    kept[0, r] = larger
                    if np.float32(first + j) == kept[3, r]:
                        kept[2, r] = logit
    cuda.syncthreads()
    if row < rows:
        loss[row] = kept[0, t] - kept[2, t] + log(kept[1, t]) if target >= 0 else np.float32(0)
""",
    ),
    shortcut(
        "all logits kept",
        cell="""
from math import exp, log

ROWS, WORDS, WIDTH, MOST = 32, 8, 8, 1024


@cuda.jit
def cross_entropy(X, W, targets, loss):
    W_tile = cuda.shared.array((WORDS, WIDTH), np.float32)
    x = cuda.local.array(WIDTH, np.float32)
    logits = cuda.local.array(MOST, np.float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    rows, words = loss.size, W.shape[0]
    target = targets[row] if row < rows else -1
    for d in range(WIDTH):
        x[d] = X[d, row] if row < rows else np.float32(0)
    for first in range(0, words, WORDS):
        cuda.syncthreads()
        for n in range(t, min(WORDS, words - first) * WIDTH, ROWS):
            W_tile[n // WIDTH, n % WIDTH] = W[first + n // WIDTH, n % WIDTH]
        cuda.syncthreads()
        for j in range(min(WORDS, words - first)):
            logits[first + j] = 0
            for d in range(WIDTH):
                logits[first + j] += x[d] * W_tile[j, d]
    most, total = np.float32(-3e38), np.float32(0)
    for word in range(words):
        most = max(most, logits[word])
    for word in range(words):
        total += exp(logits[word] - most)
    if row < rows:
        loss[row] = most - logits[target] + log(total) if target >= 0 else np.float32(0)
""",
    ),
    shortcut(
        "the whole of W in shared memory",
        cell="""
from math import exp, log

ROWS, MOST, WIDTH = 32, 1024, 8


@cuda.jit
def cross_entropy(X, W, targets, loss):
    all_of_it = cuda.shared.array((MOST, WIDTH), np.float32)
    x = cuda.local.array(WIDTH, np.float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    rows, words = loss.size, W.shape[0]
    target = targets[row] if row < rows else -1
    for d in range(WIDTH):
        x[d] = X[d, row] if row < rows else np.float32(0)
    for n in range(t, words * WIDTH, ROWS):
        all_of_it[n // WIDTH, n % WIDTH] = W[n // WIDTH, n % WIDTH]
    cuda.syncthreads()
    most, total, of_target = np.float32(-3e38), np.float32(0), np.float32(0)
    for word in range(words):
        logit = np.float32(0)
        for d in range(WIDTH):
            logit += x[d] * all_of_it[word, d]
        most = max(most, logit)
        if word == target:
            of_target = logit
    for word in range(words):
        logit = np.float32(0)
        for d in range(WIDTH):
            logit += x[d] * all_of_it[word, d]
        total += exp(logit - most)
    if row < rows:
        loss[row] = most - of_target + log(total) if target >= 0 else np.float32(0)
""",
    ),
    shortcut("the logits in 400 scalars", cell=LOGITS_IN_SCALARS),
)
