"""The fastest algorithm within a limit of workspace."""

from typing import NamedTuple

from labkit.checking import Above, Exercise, Questions
from labkit.checking.placed_cure import PlacedCure, truth_of
from labkit.table import count_text

MB = 2**20
MOST_ROWS = 12  # of a ranking that a verdict shows


class Candidate(NamedTuple):
    """A row of a ranking: time and workspace, or the reason why it does not apply."""

    algorithm: str
    time_ms: float | None
    workspace_bytes: int | None
    reason: str = ""


DIRECT = Candidate("direct", 4.0, 0)
GEMM = Candidate("gemm", 1.5, 3 * MB)
WINOGRAD = Candidate("winograd", 0.75, 200 * MB)
FFT = Candidate("fft", 0.5, 900 * MB)
NONE = Candidate("fft", time_ms=None, workspace_bytes=None, reason="the stride is 2")
FASTER = Candidate("tensor", time_ms=None, workspace_bytes=0, reason="the arrays hold float32")
REASONS = (
    "it does not apply",
    "this step takes groups = 1, and the convolution has groups = 2",
    "a block of it takes 300000 bytes of shared memory, more than this GPU gives",
    "99 x 99 taps, and tiles have 64 x 64",
    "stride",
)
CASES = (  # a ranking, and the limit of workspace in bytes
    ((WINOGRAD, DIRECT, FFT, GEMM), None),
    ((WINOGRAD, DIRECT, FFT, GEMM), 200 * MB),
    ((WINOGRAD, DIRECT, FFT, GEMM), 200 * MB - 1),
    ((FFT, WINOGRAD, GEMM, DIRECT), 0),
    ((FFT, WINOGRAD, GEMM), 0),
    ((FFT, WINOGRAD), 100 * MB),
    ((NONE, GEMM, DIRECT), None),
    ((NONE, FASTER, DIRECT, GEMM), 0),
    ((FASTER, NONE), None),
    ((), None),
    ((), 5),
    ((GEMM, Candidate("implicit", 1.5, 2 * MB)), None),
    ((Candidate("implicit", 1.5, 2 * MB), GEMM), None),
    ((Candidate("large", 0.25, 900 * MB), GEMM, Candidate("implicit", 1.5, 0)), 4 * MB),
    ((Candidate("slow", 2000.0, 1), Candidate("slower", 3000.0, 1)), 1),
    ((Candidate("a", 1.0, 7), Candidate("b", 1.0, 7)), None),
    ((Candidate("timer too coarse", 0.0, 0), DIRECT), None),
)


def make_launch(rng, count):
    """Ask for the cases above (count 0), or for this many random ones."""
    calls = CASES if count == 0 else tuple(draw_ranking(rng) for _ in range(count))

    def find_mistake(answers):
        for (rows, limit_bytes), answer in zip(calls, answers, strict=True):
            expected = find_best(rows, limit_bytes)
            if answer != expected or type(answer) is not type(expected):
                limit = "no limit" if limit_bytes is None else f"a limit of {count_text(limit_bytes, 'byte')}"
                which = "these rows" if rows else "no rows"
                head = f"With {limit}, the answer for {which} should be {expected!r} and is {answer!r}."
                more = [f"- and {len(rows) - MOST_ROWS} more"] * (len(rows) > MOST_ROWS)
                return "\n".join((head, *map(describe, rows[:MOST_ROWS]), *more))
        return ""

    return Questions(f"{count} rankings" if count else "rankings made for it", calls, find_mistake, MISTAKES)


def describe(row):
    """Return a row as an item of a list."""
    needs = row.reason or f"{row.time_ms:g} ms, {count_text(row.workspace_bytes, 'byte')}"
    return f"- {row.algorithm}: {needs}"


def by_time(row):
    return row.time_ms, row.workspace_bytes


def find_best(rows, limit_bytes, order=by_time):
    """Return the fastest algorithm that fits; of equally fast ones that with the least workspace, then the first."""
    fits = [row for row in rows if not row.reason and (limit_bytes is None or row.workspace_bytes <= limit_bytes)]
    return min(fits, key=order).algorithm if fits else None


LIMIT_IS_NONE = PlacedCure(
    "`limit_bytes` alone counts as False where it is 0, too: compare it with None, by `is None` or `is not None`.",
    truth_of("limit_bytes"),
)
MISTAKES = (
    ("a limit of 0 were none", lambda rows, limit: find_best(rows, limit or None), LIMIT_IS_NONE),
    (
        "a workspace as large as the limit did not fit",
        lambda rows, limit: find_best(rows, None if limit is None else limit - 1),
        "Leave a row out only if it needs more than the limit: `>`, not `>=`.",
    ),
    (
        "there were no limit",
        lambda rows, limit: find_best(rows, None),
        "Leave out the rows whose `workspace_bytes` exceed `limit_bytes`, unless that is None.",
    ),
    (
        "the workspace did not matter between equal times",
        lambda rows, limit: find_best(rows, limit, lambda row: row.time_ms),
        "Compare times first and then workspaces: tuples of both do that.",
    ),
    (
        "only the workspace mattered",
        lambda rows, limit: find_best(rows, limit, lambda row: row.workspace_bytes),
        "Compare times first; the workspace decides only between equal times.",
    ),
)


def draw_ranking(rng):
    """Draw candidates with ties and near ties, and a limit that often is just what one of them needs."""
    times_ms = 10 ** rng.uniform(-3, 7, 3) * rng.choice((1, 1 + 1e-6, 1.003), (3, 3)).T
    needs = [int(need) for need in 10 ** rng.uniform(0, 12, 3) for need in (need, need + 1)] + [0, 1, MB]
    rows = []
    for number in rng.permutation(int(rng.integers(1, rng.choice((9, 9, 40))))).tolist():
        name, workspace_bytes = f"algorithm {number}", needs[rng.integers(len(needs))]
        if rng.integers(4) == 0:
            need = workspace_bytes if rng.integers(2) else None
            rows.append(Candidate(name, None, need, str(rng.choice(REASONS))))
        else:
            rows.append(Candidate(name, float(rng.choice(times_ms.ravel())), workspace_bytes))
    limit_bytes = int(rng.choice([row.workspace_bytes or 0 for row in rows])) + int(rng.integers(-1, 2))
    return tuple(rows), None if rng.integers(4) == 0 else max(0, limit_bytes)


EXERCISE = Exercise(
    title="What fits",
    task="Return the name of the fastest algorithm that can be taken within a limit of workspace, or None if there is "
    "none. If two are equally fast, take the one that needs less; if both also need the same, the first of them.",
    points=2,
    function="fitting",
    make_launch=make_launch,
    sizes=((0,),),
    random_sizes=((range(60, 100),), (range(60, 100),), (Above(150),)),
    machine="python",
)
