"""Other answers to exercise 11.3."""

from . import Variant

_FITS = "limit_bytes is not None and row.workspace_bytes > limit_bytes"
_LESS = "(row.time_ms, row.workspace_bytes) < (best.time_ms, best.workspace_bytes)"

VARIANTS = (
    Variant("0 taken for no limit", "result", ((_FITS, "limit_bytes and row.workspace_bytes > limit_bytes"),)),
    Variant("less than the limit", "result", (("workspace_bytes > limit", "workspace_bytes >= limit"),)),
    Variant("no limit at all", "result", ((f" or ({_FITS})", ""),)),
    Variant("reasons ignored", "refused", (("row.reason or ", ""),)),
    Variant("by time alone", "result", ((_LESS, "row.time_ms < best.time_ms"),)),
    Variant("the last of those alike", "result", ((_LESS, _LESS.replace("<", "<=")),)),
    Variant("the least workspace", "result", ((_LESS, "row.workspace_bytes < best.workspace_bytes"),)),
    Variant("the slowest", "result", ((_LESS, _LESS.replace("<", ">")),)),
    Variant("the row", "result", (("best.algorithm", "best"),)),
    Variant("an empty text for none", "result", (("return None if", "return '' if"),)),
    Variant("the fastest or nobody", "result", (("            continue", "            return None"),)),
    Variant(
        "the fastest, if it fits",
        "result",
        cell="""
def fitting(rows, limit_bytes):
    able = [row for row in rows if not row.reason]
    best = min(able, key=lambda row: (row.time_ms, row.workspace_bytes)) if able else None
    if best is None or (limit_bytes is not None and best.workspace_bytes > limit_bytes):
        return None
    return best.algorithm
""",
    ),
    Variant(
        "sorted",
        "solved",
        cell="""
def fitting(rows, limit_bytes):
    fits = [row for row in rows if not row.reason and (limit_bytes is None or row.workspace_bytes <= limit_bytes)]
    fits.sort(key=lambda row: (row.time_ms, row.workspace_bytes))
    return fits[0].algorithm if fits else None
""",
    ),
)
