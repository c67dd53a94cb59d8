"""One chart with one message from recorded measurements: steps compared with their baselines."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from textwrap import wrap

from labkit import results
from labkit.formats import FORMATS
from labkit.machine.gpus import GPU_BY_DRIVER_NAME, GPUS
from labkit.results import Results
from labkit.results.computed import add_computed
from labkit.table import short_number
from labkit.views import chart, records_figure
from labkit.views.base import COLOURS, View, strip_marks, table
from labkit.views.records_figure import STEP_STYLES, Peak, Series
from labkit.views.wording import join

UNITS = {
    "tflops": " TFLOP/s", "gflops": " GFLOP/s", "gb_s": " GB/s", "time_ms": " ms", "time_ns": " ns", "host_us": " µs",
    "ratio": "x",
}  # fmt: skip
RATES = {"tflops", "gflops", "gb_s", "ratio"}  # where more is better
TIMES = {"time_ms", "time_ns", "host_us", "first_ms"}  # where less is better
CUDA_CPP = "CUDA C++"  # a baseline that was measured for each step: the same kernel in another language
RESULT_FIELDS = {"registers", "workspace_bytes", "flops", "min_bytes"}  # whole numbers that are no settings
# The field of a header with the version of a baseline; of others it is torch's.
PACKAGES = {"NumPy": "numpy", CUDA_CPP: "nvidia-cuda-nvrtc", "copy": "labkit", "cuMemcpy": "driver"}
BEYOND_PEAK = "counted by the definition, not carried out"
MOST_BARS, MOST_NAMED = 48, 3
MOST_SPREAD = 1.2  # between measurements of one baseline
LETTERS_OF_STILL = 115  # of a line above the picture that stands still


def records(
    record: str | Results,
    title: str,
    *,
    x: str = "problem",
    y: str = "tflops",
    series: Sequence[str | float] | Mapping[str, str] | Mapping[float, str] | None = None,
    baseline: str | None = None,
    where: Mapping[str, object] | None = None,
    peak: bool | Mapping[str, float] = False,
    series_by: str = "step",
    limits: Mapping[str, float] | Mapping[float, float] | None = None,
    about: object = None,
) -> View:
    """Draw a recorded figure: lines over a size, or bars for each problem.

    Where a step was not measured, its bar or dot is missing and the caption says so. A step or baseline whose rows
    lack the field `x` does not depend on it: a line without dots.

    Parameters
    ----------
    record
        Name of a record, which `results.load` finds, or the record.
    title
        The message, in a sentence.
    x
        Field to draw over: lines where it is a number that varies ("queries"), else a group of bars for each value.
    y
        Field to draw: "tflops", "gb_s", "time_ms", "error", or "ratio" for the speed relative to `baseline`.
    series
        Steps and baselines in order, or a mapping from them to the names that are shown; all if left out. Values of
        `series_by` where that is another field.
    baseline
        The one that the sentence compares with, and to which "ratio" is relative. It may be left out where only one
        baseline is drawn.
    where
        Values that rows must have, as for `Results.select`: `{"dtype": "bfloat16", "causal": False}`. For the field
        `x`, a list gives the order and a mapping the names that are shown.
    peak
        Draw the GPU's published peak: arithmetic for "tflops", DRAM bandwidth for "gb_s". A mapping has the name and
        value of another limit: `{"PCI Express 5.0": 63}`.
    series_by
        Field whose values are the series, such as "dtype" where one kernel was measured in several formats. Numbers
        come in rising order. Rows without the field are left out.
    limits
        Computed limits of `y`, such as those of `time_bound`, by step: a line at its bar.
    about
        The value of `x` that the sentence under the title is about: the last one if left out.

    Raises
    ------
    KeyError
        The record has no such step, baseline or field.
    ValueError
        No row is left, or rows of one step and one `x` differ in a field that `where` leaves open, or a baseline's
        values differ by more than a fifth.
    """
    loaded = results.as_results(record)
    where = dict(where or {})
    limit_of: Mapping = limits or {}
    rows = loaded.select(**where)
    if not rows:
        raise ValueError(f"The record {loaded.operation} has no row with {where}: choose other values.")
    _check_fields(loaded, x, y, series_by)
    if series_by != "step":
        rows = [row for row in rows if row.get(series_by) is not None]
    kernels = dict.fromkeys(row["step"] for row in rows)
    rows = [{**row, "step": _series_name(row[series_by])} for row in rows]
    labels = _names(rows, series, baseline, series_by)
    rows = _beside_drawn_steps(rows, labels)
    if y == "ratio" and baseline is None:
        baseline = _only_baseline(rows, labels)
    x_values = _places(rows, x, where.get(x))
    all_series = [_series(rows, name, label, x, y, x_values, baseline) for name, label in labels.items()]
    all_series = [one for one in all_series if one.values or series is not None]
    if absent := [one.label for one in all_series if not one.values]:
        raise KeyError(f"{loaded.operation} has no {y} of {join(absent)} with {where}: leave it out of series.")
    shown_series = [one for one in all_series if (y, one.name) != ("ratio", baseline)]  # which is a line at 1
    x_values = [place for place in x_values if any(place in one.values for one in shown_series)]
    if not x_values:
        raise ValueError(f"The record {loaded.operation} has no {y} over {x} with {where}: choose other values.")
    x_names = [_place_name(place, where.get(x)) for place in x_values]
    _check_count(shown_series, x_values)
    caption = caption_text(loaded, rows, all_series, x_values, x_names)
    if series_by != "step":
        caption = f"{join(list(kernels))} on {caption}"
    label = "" if baseline is None else labels.get(baseline, "")
    picture = records_figure.RecordsChart(
        series=shown_series,
        places=x_values,
        names=x_names,
        x=results.heading(x),
        y=f"speed, relative to {label}" if y == "ratio" else results.heading(y),
        peak=_peak(peak, loaded, rows, y) if peak else Peak(1, label) if y == "ratio" else None,
        is_line=_is_over_numbers(x_values),
        limits=limit_of,
    )
    if limits and picture.is_line:
        raise ValueError("limits are drawn on bars, and this chart has lines: choose one size in where.")

    def draw_still(figure, data, step):
        chart.draw(figure, "wide", picture, picture.heights)
        text = "\n".join([strip_marks(title), *wrap(caption, LETTERS_OF_STILL)])
        figure.suptitle(text, fontsize=9, x=0.02, ha="left", color=COLOURS["fg"])

    if about is not None and about not in x_values:
        raise ValueError(f"The sentence cannot be about {x} {about}: choose from {', '.join(map(str, x_values))}.")
    place = x_values[-1] if about is None else about
    name = x_names[x_values.index(place)]
    unit = f", relative to {label}" if y == "ratio" else UNITS.get(y, "")
    data = {
        "say": _sentence(shown_series, place, _at(x, place, name), y, baseline, label),
        "charts": chart.svgs(picture, picture.heights),
        "legend": [
            *(records_figure.legend(shown_series, picture.is_line, limits) if series_by == "step" else ()),
            *picture.hatched,
        ],
        "caption": caption,
        "table": table(
            [results.heading(x), *(f"{one.label}{unit}" for one in shown_series)],
            [
                *(
                    [name, *(_text(one.values.get(place)) for one in shown_series)]
                    for place, name in zip(x_values, x_names)
                ),
                *([["computed limit", *(_text(limit_of.get(one.name)) for one in shown_series)]] if limits else ()),
            ],
        ),
    }
    return View("chart", title, data, draw_still)


# --- what is drawn ---------------------------------------------------------------------------------


def _check_fields(found, *fields):
    known = dict.fromkeys(name for row in found.rows for name in row)
    for name in ("step", *fields):
        if name not in known:
            raise KeyError(f"{found.operation} has no field {name!r}: choose from {', '.join(known)}")


def _series_name(value) -> str | float:
    """Return what a value of the field `series_by` is found by: a number stays one."""
    return value if _is_number(value) else str(value)


def _names(rows, series, baseline, series_by) -> dict[str | float, str]:
    """Return the steps and baselines to draw, and their names in the chart."""
    steps = dict.fromkeys(row["step"] for row in rows)
    if all(map(_is_number, steps)):
        steps = dict.fromkeys(sorted(steps))
    baselines = dict.fromkeys(row["baseline"] for row in rows if "baseline" in row)
    if series is None:
        series = [name for name in (*steps, *baselines) if name != CUDA_CPP]
    if isinstance(series, Mapping):
        named = dict(series)
    else:
        named = {name: _at(series_by, name, _place_name(name, None)).removeprefix("a ") for name in series}
    if baseline is not None:
        named.setdefault(baseline, baseline)
    if unknown := [name for name in named if name not in steps and name not in baselines]:
        raise KeyError(f"no row is of {unknown[0]!r}: choose from {', '.join(map(str, (*steps, *baselines)))}")
    return named


def _beside_drawn_steps(rows, named) -> list[dict]:
    """Leave out rows of steps that are not drawn, which may compute another thing than those: a gradient, say.

    A baseline that was only measured beside such steps keeps its rows.
    """
    drawn = [row for row in rows if row["step"] in named]
    has_row = {row.get("baseline") for row in drawn}
    return [row for row in rows if row["step"] in named or row.get("baseline") not in has_row]


def _only_baseline(rows, named) -> str:
    baselines = [name for name in named if any(row.get("baseline") == name for row in rows)]
    if len(baselines) != 1:
        raise ValueError(f"A ratio is to one baseline: choose one of {join(baselines) or 'none'} as baseline.")
    return baselines[0]


def _places(rows, x, wanted) -> list:
    """Return values of `x`: numbers in rising order, others in the order of `wanted` or of the record."""
    found = dict.fromkeys(row[x] for row in rows if row.get(x) is not None)
    if all(map(_is_number, found)):
        return sorted(found)
    is_choice = isinstance(wanted, Iterable) and not isinstance(wanted, str)
    return [place for place in wanted if place in found] if is_choice else list(found)


def _series(rows, name, label, x, y, places, baseline) -> Series:
    is_step = any(row["step"] == name for row in rows)
    if y != "ratio":
        return Series(name, label, _values(rows, name, is_step, x, y, places), is_step)
    if name == baseline:
        return Series(name, label, dict.fromkeys(places, 1.0), False)
    if is_step:  # which may have a baseline of its own, so that rows count and not the places alone
        with_baseline = [row for row in rows if row.get("baseline") == baseline]
        return Series(name, label, _values(with_baseline, name, True, x, y, places), True)
    times, baseline_times = (_values(rows, each, False, x, "time_ms", places) for each in (name, baseline))
    ratios = {place: baseline_times[place] / time_ms for place, time_ms in times.items() if place in baseline_times}
    return Series(name, label, ratios, False)


def _values(rows, name, is_step, x, y, places) -> dict:
    """Return the value of a step or baseline at each place that has one."""
    values = {}
    rows = [row for row in rows if row.get("step" if is_step else "baseline") == name]
    depends_on_x = any(row.get(x) is not None for row in rows)
    for place in places:
        matching = [row for row in rows if row.get(x) == place or not depends_on_x]
        measured = [row if is_step else _of_baseline(row) for row in matching]
        found = {row[y] for row in measured if row.get(y) is not None}
        if len(found) > 1:
            check_one_value(matching, name, x, place, is_step)
            if y != "error" and max(found) > MOST_SPREAD * min(found):
                low, high = short_number(min(found)), short_number(max(found))
                problem = f"{name} has several values of {y} with {x} {place}, {low} to {high}"
                raise ValueError(f"{problem}: choose steps that compute the same with series or where.")
        if found:
            values[place] = median(found)  # of a baseline that was measured beside several ladders
    return values


def _of_baseline(row) -> dict:
    """Return a row's figures of its baseline, under the names that a step's figures have."""
    same_problem = {name: row[name] for name in ("flops", "min_bytes") if name in row}
    own = {name.removeprefix("baseline_"): value for name, value in row.items() if name.startswith("baseline_")}
    return add_computed(same_problem | own)


def check_one_value(rows, name, x, place, is_step):
    """Refuse rows that are several measurements of one step at one place."""
    settings = {key for row in rows for key, value in row.items() if _is_setting(key, value)} - {x}
    is_shared = name != CUDA_CPP and len({(row.get("flops"), row.get("min_bytes")) for row in rows}) == 1
    if not is_step and is_shared:  # steps that do the same have the same baseline
        settings -= {"step"}
    if differing := sorted(key for key in settings if len({str(row.get(key)) for row in rows}) > 1):
        raise ValueError(
            f"Several rows are of {name} with {x} {place}, and they differ in {join(differing)}: choose one in where."
        )


def _is_setting(key, value) -> bool:
    """Say if a field describes the measured problem, not the result."""
    return not isinstance(value, float) and not key.startswith("baseline") and key not in RESULT_FIELDS


def _check_count(drawn, places):
    """Refuse more bars or lines than can be distinguished."""
    count, limit, what = len(drawn) * len(places), MOST_BARS, "bars"
    if _is_over_numbers(places):
        steps = sum(one.is_step for one in drawn)
        count, limit, what = max(steps, len(drawn) - steps), len(STEP_STYLES), "lines of one kind"
    if count > limit:
        raise ValueError(f"The chart would have {count} {what}, more than {limit}: choose fewer with series or where.")


def _is_over_numbers(places) -> bool:
    """Say if a chart has lines, which need several numbers on the x axis."""
    return len(places) > 1 and all(map(_is_number, places))


def _is_number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _peak(peak, found, rows, y) -> Peak:
    """Return the limit that was given by name, else the published peak."""
    if not isinstance(peak, Mapping):
        return published_peak(found, rows, y)
    ((name, value),) = peak.items()
    return Peak(value, f"{_text(value)}{UNITS.get(y, '')}: {name}")


def published_peak(found, rows, y) -> Peak:
    """Return the published peak of the recorded GPU."""
    name = found.gpu or ""
    gpu = GPUS.get(GPU_BY_DRIVER_NAME.get(name, name))
    if gpu is None:
        raise ValueError(f"No peak of {found.gpu} is known: leave peak out.")
    if y == "gb_s":
        return Peak(gpu.dram_gb_s, f"{gpu.dram_gb_s:,.0f} GB/s: DRAM at its peak")
    formats = {row["dtype"] for row in rows}
    if y != "tflops" or len(formats) != 1:
        raise ValueError(f"A peak is drawn for tflops of one format, or gb_s, not for {y} of {join(sorted(formats))}.")
    arithmetic = FORMATS[formats.pop()].arithmetic
    assert arithmetic is not None  # what is recorded was computed in it
    tflops = gpu.peak_tflops[arithmetic]
    return Peak(tflops, f"{_text(tflops)} TFLOP/s: {arithmetic} at its peak", beyond=BEYOND_PEAK)


# --- in words --------------------------------------------------------------------------------------


def _place_name(place, labels) -> str:
    if isinstance(labels, Mapping):
        return labels[place]
    return f"{place:,}" if _is_number(place) else str(place)


def _at(x, place, name) -> str:
    """Name a place in a sentence: `2,048 queries`, `M = 4,096`, or the problem."""
    if not _is_number(place) or name != f"{place:,}":  # a name that was given has its unit
        return name
    noun, _, unit = results.heading(x).partition(", ")
    if unit:
        return f"a {noun} of {name} {unit}"
    return f"{name} {noun}" if x.endswith("s") else f"{x} = {name}"


def _sentence(drawn, place, at, y, baseline, label) -> str:
    """Compare the best step at the last place with the baseline."""
    with_value = [one for one in drawn if place in one.values]
    steps = [one for one in with_value if one.is_step] or with_value
    low, high = (choose(steps, key=lambda one: one.values[place]) for choose in (min, max))
    if y not in RATES | TIMES:
        if len(steps) == 1:
            low, high = (choose(with_value, key=lambda one: one.values[place]) for choose in (min, max))
        ends = f"from **{_figure(low.values[place], y)}** (`{low.label}`) to **{_figure(high.values[place], y)}**"
        return f"At {at}, {results.heading(y)} goes {ends} (`{high.label}`)."
    best = high if y in RATES else low
    verb = "takes" if y in TIMES else "reaches"
    text = f"At {at}, `{best.label}` {verb} **{_figure(best.values[place], y)}**"
    if y == "ratio":
        return f"{text} the speed of {label}."
    others = [one for one in with_value if not one.is_step and baseline in (None, one.name)]
    if not others or not best.is_step or not best.values[place]:
        return f"{text}."
    other = (max if y in RATES else min)(others, key=lambda one: one.values[place])
    ours, theirs = best.values[place], other.values[place]
    ratio = f"{ours / theirs if y in RATES else theirs / ours:.2g}"
    return f"{text}, {'' if ratio == '1' else f'{ratio}x '}the speed of {other.label}."


def caption_text(found, rows, drawn, places, names) -> str:
    """Return device, format, baselines with versions, date, and missing measurements, as a sentence."""
    formats = dict.fromkeys(row["dtype"] for row in rows if "dtype" in row)
    parts = [f"{found.gpu}, {', '.join(formats)}" if formats else found.gpu]
    baselines = [one.label for one in drawn if not one.is_step]
    packages = dict.fromkeys(PACKAGES.get(one.name, "torch") for one in drawn if not one.is_step)
    versions = [f"{name} {found.header[name]}" for name in packages if name in found.header]
    if baselines:
        known = f" ({', '.join(versions)})" if versions else ""
        parts.append(f"baseline{'s' * (len(baselines) > 1)}: {', '.join(baselines)}{known}")
    if "date" in found.header:
        parts.append(f"measured on {found.header['date']}")
    text = f"{'; '.join(parts)}."
    if found.missing_gpu:
        text += f" This machine's {found.missing_gpu} has no record of {found.operation}."
    empty = [f"{one.label} at {name}" for one in drawn for place, name in zip(places, names) if place not in one.values]
    if empty and 2 * len(empty) < len(drawn) * len(places):  # else the series have sizes of their own
        more = f" and {len(empty) - MOST_NAMED} more" if len(empty) > MOST_NAMED else ""
        text += f" Not measured: {', '.join(empty[:MOST_NAMED])}{more}."
    return text


def _figure(value, y) -> str:
    return f"{_text(value)}{UNITS.get(y, '')}"


def _text(value) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else short_number(value)
