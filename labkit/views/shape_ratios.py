"""All recorded shapes of a GEMM as dots: speed relative to a baseline, over the rows of A."""

from statistics import geometric_mean

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from labkit import results
from labkit.results import Results
from labkit.table import short_number
from labkit.views import chart
from labkit.views.base import COLOURS, View, table
from labkit.views.records import caption_text
from labkit.views.records_figure import STEP_STYLES, Series

SQUARE = "square"
SPREAD = 0.36  # of a column's dots to the left and right of its middle
HALF_MEAN = 0.42  # of the line that marks a column's mean


def shape_ratios(record: str | Results, title: str, *, step: str, baseline: str) -> View:
    """Draw the speed of each recorded shape M x N x K relative to a baseline: a column for each M, a mark for each N.

    Within a column, dots of equal N are side by side, by rising K. Squares have a mark of their own. A line in a column
    marks the geometric mean of its other shapes.

    Parameters
    ----------
    record
        Name of a record whose rows have M, N and K, or the record.
    title
        The message, in a sentence.
    step, baseline
        Whose speed, and relative to which.
    """
    loaded = results.as_results(record)
    rows = [row for row in loaded.select(step=step, baseline=baseline) if row.get("ratio") and row.get("M")]
    if not rows:
        raise ValueError(f"The record {loaded.operation} has no ratio of {step} to {baseline}: choose others.")
    kinds = list(dict.fromkeys(sorted(row["N"] for row in rows if _kind(row) != SQUARE)))
    kinds += [SQUARE] * any(_kind(row) == SQUARE for row in rows)
    if len(kinds) > len(STEP_STYLES):
        raise ValueError(f"The chart would have {len(kinds)} marks, more than {len(STEP_STYLES)}: record fewer N.")

    def draw_content(axes: Axes):
        _draw(axes, rows, kinds, baseline)

    ratios = [row["ratio"] for row in rows]
    shapes = {(row["M"], row["N"], row["K"]) for row in rows}
    close = sum(abs(ratio - 1) <= 0.05 for ratio in ratios)
    names = [f"N = {kind:,}" if kind != SQUARE else "squares" for kind in kinds]
    data = {
        "say": f"The geometric mean of {len(shapes)} shapes is **{geometric_mean(ratios):.2f}x** the speed of "
        f"{baseline}, from {min(ratios):.2f}x to {max(ratios):.2f}x; {close / len(rows):.0%} are within 5% of it.",
        "charts": chart.svgs(draw_content),
        "legend": [
            *((STEP_STYLES[n][1][0], STEP_STYLES[n][2], name) for n, name in enumerate(names)),
            ("―", "dim", "geometric mean of a column, without squares"),
            ("―", "fg", baseline),
        ],
        "caption": caption_text(loaded, rows, [Series(baseline, baseline, {}, False)], [], []),
        "table": table(
            ["M", "N", "K", f"{step}, ms", f"{baseline}, ms", f"speed, relative to {baseline}"],
            [
                [
                    *(f"{row[side]:,}" for side in "MNK"),
                    *(short_number(row[time]) for time in ("time_ms", "baseline_time_ms")),
                    f"{row['ratio']:.3f}",
                ]
                for row in rows
            ],
        ),
    }
    return View("chart", title, data, chart.still_function(draw_content))


def _kind(row) -> int | str:
    """Return what a dot's mark stands for: N, or a square."""
    return SQUARE if row["M"] == row["N"] == row["K"] else row["N"]


def _draw(axes, rows, kinds, baseline):
    columns = sorted({row["M"] for row in rows})
    depths = sorted({row["K"] for row in rows})
    axes.axhline(1, color=COLOURS["fg"], linewidth=1.8)
    for column, M in enumerate(columns):
        of_column = [row for row in rows if row["M"] == M]
        others = [row["ratio"] for row in of_column if _kind(row) != SQUARE]
        if others:
            mean = geometric_mean(others)
            axes.plot([column - HALF_MEAN, column + HALF_MEAN], [mean, mean], color=COLOURS["dim"], linewidth=2.5)
        of_column.sort(key=lambda row: (kinds.index(_kind(row)), depths.index(row["K"])))
        for place, row in enumerate(of_column):
            shift = 2 * place / (len(of_column) - 1) - 1 if len(of_column) > 1 else 0
            marker, _, colour = STEP_STYLES[kinds.index(_kind(row))]
            axes.plot(column + SPREAD * shift, row["ratio"], marker, ms=5, color=COLOURS[colour])
    is_narrow = axes.figure.get_figwidth() < 6
    axes.set_xticks(range(len(columns)), [f"{M:,}" for M in columns], rotation=45 if is_narrow else 0)
    axes.set_xlim(-0.6, len(columns) - 0.4)
    axes.grid(visible=False, axis="x")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.2f}x"))
    axes.set(xlabel="rows of A", ylabel=f"speed, relative to {baseline}")
