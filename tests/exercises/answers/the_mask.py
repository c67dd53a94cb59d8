"""Other answers to the-mask."""

from . import Answer, right, shortcut, wrong

_ALLOWED = "allowed = max(row + keys - queries + 1, 0)"

_FIRST = "maximum, total = np.float32(-3e38), np.float32(0)"

_SHARE = """        share = np.float32(0)
        if j < allowed:
            share = exp(S[row, j] - largest) / total
        P[row, j] = share"""

_MASKED_AFTERWARDS = """    for j in range(lane, keys, 32):
        value = S[row, j]
        if j >= allowed:
            value = np.float32(-np.inf)
"""

VARIANTS = (
    Answer(
        "the stub: everything is looked at",
        "result",
        ((_ALLOWED, "allowed = keys"), (_FIRST, "maximum, total = np.float32(-np.inf), np.float32(0)")),
    ),
    Answer("aligned at the top", "result", ((_ALLOWED, "allowed = min(row + 1, keys)"),)),
    Answer("one key too few", "result", ((_ALLOWED, "allowed = max(row + keys - queries, 0)"),)),
    Answer("one key too many", "result", ((_ALLOWED, "allowed = min(row + keys - queries + 2, keys)"),)),
    Answer("queries and keys confused", "result", ((_ALLOWED, "allowed = max(row + queries - keys + 1, 0)"),)),
    Answer("a first maximum of minus infinity", "result", ((_FIRST, _FIRST.replace("-3e38", "-np.inf")),)),
    Answer("a first maximum of zero", "result", ((_FIRST, _FIRST.replace("-3e38", "0")),)),
    Answer(
        "masked places are left as they are",
        "unwritten",
        ((_SHARE, "        if j < allowed:\n            P[row, j] = exp(S[row, j] - largest) / total"),),
        mistake="masked elements were not stored",
    ),
    Answer(
        "not divided",
        "result",
        (("share = exp(S[row, j] - largest) / total", "share = exp(S[row, j] - largest)"),),
        mistake="there were no division",
    ),
    Answer("the lane's own maximum", "result", (("exp(S[row, j] - largest)", "exp(S[row, j] - maximum)"),)),
    Answer("lanes not merged", "result", (("    total *= exp(maximum - largest)\n", ""),)),
    Answer(
        "masked after it was loaded",
        "budget",
        (
            (
                "    for j in range(lane, allowed, 32):\n        value = S[row, j]\n",
                _MASKED_AFTERWARDS,
            ),
        ),
    ),
    Answer(
        "loaded a third time",
        "budget",
        (("exp(value - larger)", "exp(S[row, j] - larger)"),),
    ),
    Answer(
        "the whole row loaded for P",
        "budget",
        ((_SHARE, _SHARE.replace("share = np.float32(0)", "share = S[row, j]\n        share = np.float32(0)")),),
    ),
    Answer(
        "one lane alone",
        "budget",
        (("range(lane, allowed, 32)", "range(0 if lane == 0 else allowed, allowed)"),),
    ),
    Answer(
        "no row beyond",
        "bounds",
        (("for j in range(lane, keys, 32):\n", "for j in range(lane, keys + 1, 32):\n"),),
    ),
    Answer(
        "zeros first",
        "solved",
        (
            (
                _SHARE,
                """        if j >= allowed:
            P[row, j] = np.float32(0)
    for j in range(lane, allowed, 32):
        P[row, j] = exp(S[row, j] - largest) / total""",
            ),
        ),
    ),
    Answer("a factor", "solved", (("- largest) / total", "- largest) * (np.float32(1) / total)"),)),
)

RIGHT = (
    right("another way to count", ("max(row + keys - queries + 1, 0)", "max(0, keys - (queries - 1 - row))")),
    right(
        "from the last key on",
        ("for j in range(lane, allowed, 32):", "for j in range(allowed - 1 - lane, -1, -32):"),
    ),
    right("the least float32", ("np.float32(-3e38)", "np.float32(-3.4028234e38)")),
    right(
        "the maximum apart from minus infinity",
        cell="""
from math import exp, inf, isinf


@cuda.jit
def causal(S, P):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    queries, keys = S.shape
    allowed = row + keys - queries + 1
    m, s = np.float32(-inf), np.float32(0)
    for j in range(lane, allowed, 32):
        value = S[row, j]
        if not isinf(value):
            if value > m:
                s = s * exp(m - value) + np.float32(1)
                m = value
            else:
                s += exp(value - m)
    top = m
    for away in (1, 2, 4, 8, 16):
        top = max(top, cuda.shfl_xor_sync(0xFFFFFFFF, top, away))
    s = s * exp(m - top) if s > np.float32(0) else np.float32(0)
    for away in (1, 2, 4, 8, 16):
        s += cuda.shfl_xor_sync(0xFFFFFFFF, s, away)
    for j in range(lane, keys, 32):
        P[row, j] = exp(S[row, j] - top) / s if j < allowed else np.float32(0)
""",
    ),
    right(
        "zeros in a loop of their own",
        cell="""
from math import exp


@cuda.jit
def causal(S, P):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    allowed = max(0, row + 1 + S.shape[1] - S.shape[0])
    m, s = np.float32(-1e38), np.float32(0)
    for j in range(lane, allowed, 32):
        v = S[row, j]
        k = max(m, v)
        s, m = s * exp(m - k) + exp(v - k), k
    for away in (16, 8, 4, 2, 1):
        n, t = cuda.shfl_xor_sync(0xFFFFFFFF, m, away), cuda.shfl_xor_sync(0xFFFFFFFF, s, away)
        k = max(m, n)
        s, m = s * exp(m - k) + t * exp(n - k), k
    for j in range(lane, allowed, 32):
        P[row, j] = exp(S[row, j] - m) / s
    for j in range(allowed + lane, S.shape[1], 32):
        P[row, j] = np.float32(0)
""",
    ),
)

WRONG = (
    wrong(
        "minus infinity taken for the least logit",
        ("        value = S[row, j]\n", "        value = max(S[row, j], np.float32(-10000))\n"),
    ),
    wrong(
        "a maximum that moves by 88 at least",
        ("larger = max(maximum, value)", "larger = value if value > maximum + np.float32(88) else maximum"),
    ),
    wrong(
        "the queries that are published",
        ("    queries, keys = S.shape\n", "    queries, keys = S.shape\n    if row >= 60:\n        return\n"),
    ),
    wrong(
        "the keys that are published",
        ("allowed = max(row + keys - queries + 1, 0)", "allowed = min(max(row + keys - queries + 1, 0), 90)"),
    ),
    wrong("a square", ("row + keys - queries + 1", "row + 1 if keys >= queries else row + keys - queries + 1")),
    wrong(
        "no fewer keys than queries",
        ("max(row + keys - queries + 1, 0)", "min(max(row + keys - queries, 0) + 1, keys)"),
    ),
    wrong("logits above minus nine thousand", ("np.float32(-3e38)", "np.float32(-9000)")),
    wrong(
        "a first logit that is finite",
        (
            "maximum, total = np.float32(-3e38)",
            "maximum, total = np.float32(-np.inf) if allowed < 33 else np.float32(-3e38)",
        ),
    ),
    wrong("rows of nothing are NaN", ("if j < allowed:", "if j < max(allowed, 1):")),
    wrong(
        "relative to a lane's first logit",
        (
            "        larger = max(maximum, value)\n",
            "        larger = value if maximum < np.float32(-2e38) and value > np.float32(-np.inf) else maximum\n",
        ),
    ),
    wrong(
        "tiny shares left out",
        (
            "exp(S[row, j] - largest) / total",
            "max(exp(S[row, j] - largest) / total - np.float32(1e-3), np.float32(0))",
        ),
    ),
    wrong(
        "half of the lanes merged",
        (
            "        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)\n",
            "        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away) if away < 16 else np.float32(0)\n",
        ),
    ),
    wrong(
        "the maximum of half of the lanes",
        (
            "largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, away))",
            "largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, away)) if away < 16 else largest",
        ),
    ),
    wrong(
        "minus infinity is no logit",
        (
            "share = exp(S[row, j] - largest) / total",
            "share = exp(max(S[row, j], largest - np.float32(3)) - largest) / total",
        ),
    ),
    wrong("in half precision", ("P[row, j] = share", "P[row, j] = np.float32(np.float16(share))")),
)

SHORTCUTS = (
    shortcut(
        "all in float64",
        ("maximum, total = np.float32(-3e38), np.float32(0)", "maximum, total = np.float32(-3e38), np.float64(0)"),
    ),
    shortcut(
        "masked ones loaded for nothing",
        (
            "        share = np.float32(0)\n",
            "        share = S[row, j] * np.float32(0)\n        share = np.float32(0)\n",
        ),
    ),
    shortcut(
        "loaded a third time by atomics",
        (
            "        P[row, j] = share",
            """        if j < allowed:
            cuda.atomic.add(S, (row, j), np.float32(0))
        P[row, j] = share""",
        ),
    ),
    shortcut("another's kernel", cell="from labkit.softmax.forward.s02_online import online as causal\n"),
    shortcut(
        "three reads",
        cell="""
from math import exp


@cuda.jit
def causal(S, P):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    queries, keys = S.shape
    allowed = max(row + keys - queries + 1, 0)
    largest, total = np.float32(-3e38), np.float32(0)
    for j in range(lane, allowed, 32):
        largest = max(largest, S[row, j])
    for away in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, away))
    for j in range(lane, allowed, 32):
        total += exp(S[row, j] - largest)
    for away in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, away)
    for j in range(lane, keys, 32):
        P[row, j] = exp(S[row, j] - largest) / total if j < allowed else np.float32(0)
""",
    ),
    shortcut(
        "each lane the whole row",
        cell="""
from math import exp


@cuda.jit
def causal(S, P):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    queries, keys = S.shape
    allowed = max(row + keys - queries + 1, 0)
    maximum, total = np.float32(-3e38), np.float32(0)
    for j in range(allowed):
        larger = max(maximum, S[row, j])
        total = total * exp(maximum - larger) + exp(S[row, j] - larger)
        maximum = larger
    for j in range(lane, keys, 32):
        P[row, j] = exp(S[row, j] - maximum) / total if j < allowed else np.float32(0)
""",
    ),
)
