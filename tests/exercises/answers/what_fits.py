"""Other answers to what-fits."""

from . import Answer, right, shortcut, wrong

_FITS = "limit_bytes is not None and row.workspace_bytes > limit_bytes"

_LESS = "(row.time_ms, row.workspace_bytes) < (best.time_ms, best.workspace_bytes)"

VARIANTS = (
    Answer(
        "0 taken for no limit",
        "result",
        ((_FITS, "limit_bytes and row.workspace_bytes > limit_bytes"),),
        mistake="a limit of 0 were none",
    ),
    Answer(
        "less than the limit",
        "result",
        (("workspace_bytes > limit", "workspace_bytes >= limit"),),
        mistake="a workspace as large as the limit did not fit",
    ),
    Answer("no limit at all", "result", ((f" or ({_FITS})", ""),), mistake="there were no limit"),
    Answer("reasons ignored", "refused", (("row.reason or ", ""),)),
    Answer(
        "by time alone",
        "result",
        ((_LESS, "row.time_ms < best.time_ms"),),
        mistake="the workspace did not matter between equal times",
    ),
    Answer("the last of those alike", "result", ((_LESS, _LESS.replace("<", "<=")),)),
    Answer(
        "the least workspace",
        "result",
        ((_LESS, "row.workspace_bytes < best.workspace_bytes"),),
        mistake="only the workspace mattered",
    ),
    Answer("the slowest", "result", ((_LESS, _LESS.replace("<", ">")),)),
    Answer("the row", "result", (("best.algorithm", "best"),)),
    Answer("an empty text for none", "result", (("return None if", "return '' if"),)),
    Answer("the fastest or nobody", "result", (("            continue", "            return None"),)),
    Answer(
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
    Answer(
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

RIGHT = (
    right("what has a time applies", ("row.reason or", "row.time_ms is None or")),
    right(
        "min over a filter",
        (
            "    best = None\n    for",
            "    best = None\n    rows = tuple(filter(lambda row: not row.reason, rows))\n    for",
        ),
    ),
    right(
        "a limit for none",
        (
            "    best = None\n",
            "    limit_bytes = 10**30 if limit_bytes is None else limit_bytes\n    best = None\n",
        ),
    ),
    right(
        "the next of a sorted list",
        cell="""
def fitting(rows, limit_bytes):
    order = sorted(rows, key=lambda row: (row.time_ms or 0, row.workspace_bytes or 0))
    fits = (row for row in order if not row.reason and (limit_bytes is None or row.workspace_bytes <= limit_bytes))
    return next((row.algorithm for row in fits), None)
""",
    ),
    right(
        "infinity for no limit",
        cell="""
NO_LIMIT = None


def fitting(rows, limit_bytes):
    most = float("inf") if limit_bytes is NO_LIMIT else limit_bytes
    fits = [(time, size) for _, time, size, reason in rows if reason == "" and size <= most]
    best = min(fits, default=None)
    for name, time, size, reason in rows:
        if not reason and (time, size) == best:
            return name
""",
    ),
    right(
        "chosen by hand",
        cell="""
def fitting(rows, limit_bytes):
    left = list(rows)
    while left:
        first = left[0]
        for row in left:
            if row.time_ms is not None and (first.time_ms is None or row.time_ms < first.time_ms):
                first = row
        for row in left:
            if row.time_ms == first.time_ms and row.time_ms is not None and row.workspace_bytes < first.workspace_bytes:
                first = row
        if first.time_ms is None:
            return None
        if limit_bytes is None or first.workspace_bytes <= limit_bytes:
            return first.algorithm
        left.remove(first)
    return None
""",
    ),
    right(
        "enumerated",
        cell="""
def fitting(rows, limit_bytes):
    found = []
    for place, row in enumerate(rows):
        fits = limit_bytes is None or (row.workspace_bytes or 0) <= limit_bytes
        if not row.reason and fits:
            found.append((row.time_ms, row.workspace_bytes, place))
    return rows[min(found)[2]].algorithm if found else None
""",
    ),
)

WRONG = (
    Answer(
        "each compared with the one before",
        "wrong",
        cell="""
def fitting(rows, limit_bytes):
    rows = [row for row in rows if not row.reason and (limit_bytes is None or row.workspace_bytes <= limit_bytes)]
    if not rows:
        return None
    best = min(rows, key=lambda row: row.time_ms)
    equal = [row for row in rows if row.time_ms == best.time_ms]
    chosen = equal[0]
    for before, row in zip(equal, equal[1:]):
        if row.workspace_bytes < before.workspace_bytes:
            chosen = row
    return chosen.algorithm
""",
    ),
    wrong("no time at all", ("row.reason or", "row.reason or not row.time_ms or")),
    wrong("times below a second", ("best is None or", "best is None and row.time_ms < 100 or best is not None and")),
    wrong("at least some workspace", ("row.reason or", "row.reason or row.workspace_bytes == 0 or")),
    wrong("a limit of one byte more", ("row.workspace_bytes > limit_bytes", "row.workspace_bytes > limit_bytes + 1")),
    wrong("only rows up to the eighth", ("for row in rows:", "for row in rows[:7]:")),
    wrong(
        "a tie goes to the larger",
        ("(row.time_ms, row.workspace_bytes) <", "(row.time_ms, -row.workspace_bytes) <"),
    ),
    wrong("times in whole milliseconds", ("(row.time_ms, row", "(round(row.time_ms), row")),
    wrong("no answer for a limit of 0", ("for row in rows:", "for row in (rows if limit_bytes != 0 else ()):")),
    wrong("the first of the list for none", ("return None if best", "return rows[0].algorithm if rows and best")),
    wrong("at most eight rows", ("for row in rows:", "for row in rows[:8]:")),
    wrong("within ten seconds", ("row.reason or", "row.reason or row.time_ms > 10000 or")),
    wrong("times in hundredths", ("(row.time_ms, row", "(round(row.time_ms, 2), row")),
    wrong(
        "as fast if within a hundredth",
        (
            "(row.time_ms, row.workspace_bytes) < (best.time_ms, best.workspace_bytes)",
            "row.time_ms < 0.99 * best.time_ms "
            "or row.time_ms < 1.01 * best.time_ms and row.workspace_bytes < best.workspace_bytes",
        ),
    ),
    wrong(
        "a gigabyte for no limit",
        (
            "(limit_bytes is not None and row.workspace_bytes > limit_bytes)",
            "row.workspace_bytes > (1000000000 if limit_bytes is None else limit_bytes)",
        ),
    ),
    wrong("reasons that are published", ("if row.reason or", "if row.reason[:3] in ('the', 'it ') or")),
    wrong(
        "alike go by name",
        (
            "(row.time_ms, row.workspace_bytes) < (best.time_ms, best.workspace_bytes)",
            "(row.time_ms, row.workspace_bytes, row.algorithm) < (best.time_ms, best.workspace_bytes, best.algorithm)",
        ),
    ),
)

SHORTCUTS = (
    shortcut("the first row", cell="def fitting(rows, limit_bytes):\n    return rows[0].algorithm if rows else None\n"),
    shortcut("another's function", cell="from labkit.exercises.what_fits import find_best as fitting\n"),
    shortcut("nothing", cell="def fitting(rows, limit_bytes):\n    return None\n"),
    shortcut(
        "the second if the first is too large",
        cell="""
def fitting(rows, limit_bytes):
    able = sorted((row.time_ms, row.workspace_bytes, row.algorithm) for row in rows if not row.reason)
    for time_ms, workspace_bytes, name in able[:2]:
        if limit_bytes is None or workspace_bytes <= limit_bytes:
            return name
    return None
""",
    ),
    shortcut(
        "the checker asked",
        cell="""
from labkit.exercises.what_fits import find_best


def fitting(rows, limit_bytes):
    return find_best(rows, limit_bytes)
""",
    ),
)
