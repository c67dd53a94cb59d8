"""Other answers to exercise 15.3."""

from . import Variant

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
    Variant(
        "the stub: everything is looked at",
        "result",
        ((_ALLOWED, "allowed = keys"), (_FIRST, "maximum, total = np.float32(-np.inf), np.float32(0)")),
    ),
    Variant("aligned at the top", "result", ((_ALLOWED, "allowed = min(row + 1, keys)"),)),
    Variant("one key too few", "result", ((_ALLOWED, "allowed = max(row + keys - queries, 0)"),)),
    Variant("one key too many", "result", ((_ALLOWED, "allowed = min(row + keys - queries + 2, keys)"),)),
    Variant("queries and keys confused", "result", ((_ALLOWED, "allowed = max(row + queries - keys + 1, 0)"),)),
    Variant("a first maximum of minus infinity", "result", ((_FIRST, _FIRST.replace("-3e38", "-np.inf")),)),
    Variant("a first maximum of zero", "result", ((_FIRST, _FIRST.replace("-3e38", "0")),)),
    Variant(
        "masked places are left as they are",
        "unwritten",
        ((_SHARE, "        if j < allowed:\n            P[row, j] = exp(S[row, j] - largest) / total"),),
    ),
    Variant(
        "not divided", "result", (("share = exp(S[row, j] - largest) / total", "share = exp(S[row, j] - largest)"),)
    ),
    Variant("the lane's own maximum", "result", (("exp(S[row, j] - largest)", "exp(S[row, j] - maximum)"),)),
    Variant("lanes not merged", "result", (("    total *= exp(maximum - largest)\n", ""),)),
    Variant(
        "masked after it was loaded",
        "budget",
        (
            (
                "    for j in range(lane, allowed, 32):\n        value = S[row, j]\n",
                _MASKED_AFTERWARDS,
            ),
        ),
    ),
    Variant(
        "loaded a third time",
        "budget",
        (("exp(value - larger)", "exp(S[row, j] - larger)"),),
    ),
    Variant(
        "the whole row loaded for P",
        "budget",
        ((_SHARE, _SHARE.replace("share = np.float32(0)", "share = S[row, j]\n        share = np.float32(0)")),),
    ),
    Variant(
        "one lane alone",
        "budget",
        (("range(lane, allowed, 32)", "range(0 if lane == 0 else allowed, allowed)"),),
    ),
    Variant(
        "no row beyond",
        "bounds",
        (("for j in range(lane, keys, 32):\n", "for j in range(lane, keys + 1, 32):\n"),),
    ),
    Variant(
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
    Variant("a factor", "solved", (("- largest) / total", "- largest) * (np.float32(1) / total)"),)),
)
