"""The chart of recorded figures: what it draws, says, and names as its source; and what it refuses."""

import pytest
from matplotlib.figure import Figure

from labkit import results
from labkit.machine.gpus import GPUS
from labkit.results import Results
from labkit.results.computed import add_computed
from labkit.views import chart, records
from labkit.views.base import COLOURS
from labkit.views.records_figure import STEP_STYLES, Peak, RecordsChart, Series, spread_apart

HEADER = {"gpu": "NVIDIA H100 80GB HBM3", "date": "2026-11-22", "torch": "2.11.0"}
TIMES = {  # ms, by queries
    "mma": {1024: 2.0, 2048: 2.0},
    "wgmma": {1024: 0.8, 2048: 0.5},
    "flash": {1024: 1.0, 2048: 0.4},
    "copy": {1024: 0.4, 2048: 0.5},
}
STEPS, BASELINES = ("mma", "wgmma"), ("flash", "copy")


def row(kernel, queries, other, **fields):
    measured = {"time_ms": TIMES[kernel][queries], "error": 1e-3, "registers": len(kernel)}
    baseline_ms = {"baseline": other, "baseline_time_ms": TIMES[other][queries]}
    same = {"step": kernel, "problem": f"8x{queries}", "queries": queries, "dtype": "bfloat16", "causal": False}
    work = {"flops": 10**12, "min_bytes": 10**9}
    errors = {"baseline_error": 2e-3} if other == "flash" else {}
    return add_computed({**same, **work, **measured, **baseline_ms, **errors, **fields})


def record(*more, without=()):
    rows = [row(step, n, other) for step in STEPS for n in (1024, 2048) for other in BASELINES]
    kept = [one for one in rows if (one["step"], one["queries"]) not in without]
    return Results("attention", HEADER, [*kept, *more])


def shown(view):
    table = view.data["table"]
    return table["columns"], table["rows"]


def test_steps_and_baselines_are_drawn_by_the_same_measure():
    view = records(record(), "A title", x="queries")
    columns, rows = shown(view)
    assert columns == ["queries", *(f"{name} TFLOP/s" for name in (*STEPS, *BASELINES))]
    assert rows == [["1,024", "500", "1,250", "1,000", "2,500"], ["2,048", "500", "2,000", "2,500", "2,000"]]
    assert shown(records(record(), "", x="queries", y="gb_s"))[1][0] == ["1,024", "500", "1,250", "1,000", "2,500"]
    assert shown(records(record(), "", x="queries", y="time_ms"))[1][1] == ["2,048", "2", "0.5", "0.4", "0.5"]


def test_a_baseline_has_what_was_recorded_of_it_and_no_figure_of_a_step():
    assert shown(records(record(), "", y="error")) == (
        ["problem", "mma", "wgmma", "flash"],
        [["8x1024", "0.001", "0.001", "0.002"], ["8x2048", "0.001", "0.001", "0.002"]],
    )
    assert shown(records(record(), "", y="registers"))[0] == ["problem", "mma", "wgmma"]
    with pytest.raises(KeyError, match="attention has no error of copy with {}: leave it out of series"):
        records(record(), "", y="error", series=["mma", "copy"])


def test_a_ratio_is_to_the_baseline_which_is_a_line_at_1():
    view = records(record(), "", x="queries", y="ratio", baseline="copy")
    assert shown(view) == (
        ["queries", *(f"{name}, relative to copy" for name in (*STEPS, "flash"))],
        [["1,024", "0.2", "0.5", "0.4"], ["2,048", "0.25", "1", "1.25"]],
    )
    assert view.sentence == "At 2,048 queries, wgmma reaches 1x the speed of copy."
    assert "baselines: flash, copy (torch 2.11.0)" in view.data["caption"]
    assert ">copy</text>" in view.data["charts"]["wide"]
    with pytest.raises(ValueError, match="A ratio is to one baseline: choose one of flash and copy as baseline"):
        records(record(), "", y="ratio")
    assert shown(records(record(), "", y="ratio", series=["wgmma", "flash"]))[1] == [
        ["8x1024", "1.25"],
        ["8x2048", "0.8"],
    ]


def test_computed_limits_stand_at_their_bars():
    view = records(record(), "", series=["mma", "wgmma"], where={"problem": "8x1024"}, limits={"mma": 625.0})
    assert shown(view)[1][-1] == ["computed limit", "625", ""]
    assert "500, limit 625" in view.data["charts"]["wide"]
    assert view.data["legend"][-1] == ("|", "fg", "computed limit")
    with pytest.raises(ValueError, match="limits are drawn on bars, and this chart has lines"):
        records(record(), "", x="queries", limits={"mma": 625.0})


@pytest.mark.parametrize(
    ("y", "baseline", "said"),
    [
        ("tflops", "flash", "At 2,048 queries, wgmma reaches 2,000 TFLOP/s, 0.8x the speed of flash."),
        ("time_ms", "flash", "At 2,048 queries, wgmma takes 0.5 ms, 0.8x the speed of flash."),
        ("tflops", None, "At 2,048 queries, wgmma reaches 2,000 TFLOP/s, 0.8x the speed of flash."),
        ("registers", None, "At 2,048 queries, registers goes from 3 (mma) to 5 (wgmma)."),
    ],
)
def test_the_sentence_compares_the_best_step_with_the_baseline(y, baseline, said):
    assert records(record(), "", x="queries", y=y, baseline=baseline).sentence == said


def test_the_caption_names_the_source():
    caption = "NVIDIA H100 80GB HBM3, bfloat16; baseline: FA-2 (torch 2.11.0); measured on 2026-11-22."
    view = records(record(), "", series={"mma": "mma", "flash": "FA-2"})
    assert view.data["caption"] == caption
    fallback = Results("attention", HEADER, record().rows, "NVIDIA T4")
    view = records(fallback, "", series=["mma"])
    assert view.data["caption"].endswith("2026-11-22. This machine's NVIDIA T4 has no record of attention.")


def test_what_was_not_measured_is_left_open_and_named():
    view = records(record(without=[("mma", 2048)]), "", where={"problem": {"8x1024": "short", "8x2048": "long"}})
    assert shown(view)[1][1] == ["long", "", "2,000", "2,500", "2,000"]
    assert view.data["caption"].endswith("Not measured: mma at long.")
    assert view.data["charts"]["wide"].count(">not measured</text>") == 1


def test_numbers_get_lines_and_problems_get_bars():
    lines, bars = (records(record(), "", x=x).data["charts"]["wide"] for x in ("queries", "problem"))
    assert ">2,048</text>" in lines and ">8x2048</text>" not in lines
    assert bars.count(">8x2048</text>") == 1 and bars.count(">wgmma</text>") == 2
    one = records(record(), "", x="queries", where={"queries": 1024}).data["charts"]["wide"]
    assert one.count(">1,024</text>") == 1 and one.count(">wgmma</text>") == 1


def test_a_line_that_ends_early_says_where():
    view = records(record(without=[("mma", 2048)]), "", x="queries")
    assert ">mma (to 1,024)</text>" in view.data["charts"]["narrow"]


def test_problems_come_in_the_order_that_is_asked_for():
    rows = shown(records(record(), "", where={"problem": ["8x2048", "8x1024"]}))[1]
    assert [name for name, *_ in rows] == ["8x2048", "8x1024"]


def test_the_peak_is_the_published_one():
    view = records(record(), "", x="queries", peak=True)
    assert ">989 TFLOP/s: bfloat16 tensor at its peak</text>" in view.data["charts"]["wide"]
    view = records(record(), "", y="gb_s", peak=True)
    assert ">3,350 GB/s: DRAM at its peak</text>" in view.data["charts"]["wide"]
    view = records(record(), "", y="gb_s", peak={"a link": 63})
    assert ">63 GB/s: a link</text>" in view.data["charts"]["wide"]
    with pytest.raises(ValueError, match="not for time_ms of bfloat16"):
        records(record(), "", y="time_ms", peak=True)
    with pytest.raises(ValueError, match="No peak of NVIDIA X is known"):
        records(Results("attention", {"gpu": "NVIDIA X"}, record().rows), "", peak=True)


def test_rows_of_several_measurements_are_refused_with_what_they_differ_in():
    causal = row("mma", 1024, "copy", causal=True, time_ms=1.5)
    with pytest.raises(ValueError, match="rows are of mma with queries 1024, and they differ in causal: choose one in"):
        records(record(causal), "", x="queries")
    assert shown(records(record(causal), "", x="queries", where={"causal": False}))[1][0][1] == "500"


def test_a_baseline_measured_twice_has_its_median_and_the_twin_of_each_step_is_left_out():
    again = row("mma", 1024, "copy", baseline_time_ms=0.44)
    assert shown(records(record(again), "", y="time_ms"))[1][0][-1] == "0.42"
    twins = [
        row(step, 1024, "copy", baseline="CUDA C++", baseline_time_ms=time) for step, time in zip(STEPS, (2.1, 0.9))
    ]
    assert "CUDA C++ ms" not in shown(records(record(*twins), "", y="time_ms"))[0]
    with pytest.raises(ValueError, match="rows are of CUDA C[+][+] with problem 8x1024, and they differ in step"):
        records(record(*twins), "", series=["mma", "wgmma", "CUDA C++"])
    one = records(record(*twins), "", series=["mma", "CUDA C++"], y="time_ms")
    assert shown(one)[1][0] == ["8x1024", "2", "2.1"]


def test_unknown_names_are_told_with_those_there_are():
    with pytest.raises(KeyError, match="no row is of 'fast': choose from mma, wgmma, flash, copy"):
        records(record(), "", series=["fast"])
    with pytest.raises(KeyError, match="attention has no field 'speed': choose from step, problem, queries"):
        records(record(), "", y="speed")
    with pytest.raises(ValueError, match="attention has no row with {'dtype': 'int8'}: choose other values"):
        records(record(), "", where={"dtype": "int8"})
    with pytest.raises(KeyError, match="counters has no field 'step': choose from kernel, problem"):
        records("counters", "")
    later = row("wgmma", 2048, "copy", first_ms=3.0)
    with pytest.raises(ValueError, match="attention has no first_ms over queries with {'queries': 1024}"):
        records(record(later), "", x="queries", y="first_ms", where={"queries": 1024})


def test_more_than_can_be_told_apart_is_refused():
    many = [{**row("mma", n, "copy"), "step": f"s{i}"} for i in range(len(STEP_STYLES) + 1) for n in (1024, 2048)]
    with pytest.raises(ValueError, match="6 lines of one kind, more than 5: choose fewer with series or where"):
        records(Results("attention", HEADER, many), "", x="queries")
    bars = [{**row("mma", 1024, "copy"), "problem": f"p{i}"} for i in range(25)]
    with pytest.raises(ValueError, match="50 bars, more than 48"):
        records(Results("attention", HEADER, bars), "")


def test_the_chart_takes_its_colours_from_the_theme_and_is_the_same_each_time():
    charts, again = (records(record(), "", x="queries").data["charts"] for _ in range(2))
    assert charts == again
    for svg in charts.values():
        assert "var(--fg)" in svg and "var(--A)" in svg and COLOURS["fg"] not in svg


@pytest.mark.parametrize("x", ["queries", "problem"])
def test_a_still_picture_is_drawn(tmp_path, x):
    records(record(), "Kernels that `wait`", x=x).save_png(tmp_path / "view.png")
    assert (tmp_path / "view.png").stat().st_size > 10_000


def test_names_are_moved_apart_and_no_further():
    assert spread_apart([0, 100], 12) == [0, 100]
    assert spread_apart([50, 50], 12) == [44, 56]
    assert spread_apart([0, 10, 20, 100], 12) == [-2, 10, 22, 100]
    assert spread_apart([0, 11, 12], 12) == pytest.approx([23 / 3 - 12, 23 / 3, 23 / 3 + 12])


@pytest.mark.parametrize("operation", ["attention_decode", "conv_tensor", "gemm_calls", "layouts", "norm_rows"])
def test_records_of_every_kind_can_be_drawn(operation):
    """Of one problem and format, with all its steps and baselines."""
    found = results.load(operation)
    where = {name: found.rows[0][name] for name in ("problem", "dtype", "call") if name in found.rows[0]}
    columns, rows = shown(records(found, "All", where=where))
    assert {row["step"] for row in found.select(**where)} <= {name.removesuffix(" TFLOP/s") for name in columns}
    assert "" not in rows[0]


def test_steps_that_compute_different_things_have_baselines_of_their_own():
    where = {"problem": str(2**24), "dtype": "float32"}
    steps = ["axpy", "dot"]
    with pytest.raises(ValueError, match="rows are of torch with problem 16777216, and they differ in step"):
        records("blas", "", where=where)
    _, (cells,) = shown(records("blas", "", y="ratio", series=steps, baseline="torch", where=where))
    own = [results.load("blas").select(step=step, baseline="torch", **where)[0]["ratio"] for step in steps]
    assert [float(cell) for cell in cells[1:]] == pytest.approx(own, rel=1e-2)


def test_series_may_be_the_formats_of_one_kernel():
    view = records("batch", "Two formats", x="batch", y="time_ms", series_by="dtype")
    columns, rows = shown(view)
    assert columns[1:] == ["float16 ms", "float32 ms"] and len(rows) == 7
    assert view.data["caption"].startswith("cuBLAS on NVIDIA H100") and view.data["legend"] == []
    with pytest.raises(KeyError, match="no field 'form'"):
        records("batch", "", x="batch", series_by="form")


def test_series_may_be_numbers_which_come_in_rising_order():
    mixed = [row("mma", n, "copy") for n in (2048, 1024)]
    without = {**mixed[0], "queries": None}
    found = Results("attention", HEADER, [*mixed, without])
    columns, rows = shown(records(found, "", x="dtype", series_by="queries", y="time_ms", series=[1024, 2048]))
    assert columns[1:] == ["1,024 queries ms", "2,048 queries ms"] and rows == [["bfloat16", "2", "2"]]
    alone = [{name: value for name, value in one.items() if "baseline" not in name} for one in mixed]
    columns, _ = shown(records(Results("attention", HEADER, alone), "", x="dtype", series_by="queries"))
    assert columns[1:] == ["1,024 queries TFLOP/s", "2,048 queries TFLOP/s"]
    view = records(found, "", x="dtype", series_by="queries", series={1024: "short"}, limits={1024: 625.0})
    assert view.sentence == "At bfloat16, short reaches 500 TFLOP/s." and shown(view)[1][-1] == [
        "computed limit",
        "625",
    ]
    with pytest.raises(KeyError, match="no row is of 512: choose from 1024, 2048, copy"):
        records(found, "", x="dtype", series_by="queries", series=[512])


def test_numbers_of_series_have_their_unit():
    rows = [{"step": "copy", "problem": "a", "working_set_kb": kb, "time_ms": kb / 8} for kb in (64, 8)]
    columns, _ = shown(records(Results("x", HEADER, rows), "", y="time_ms", series_by="working_set_kb"))
    assert columns[1:] == ["working set of 8 KB ms", "working set of 64 KB ms"]


def test_sizes_that_series_do_not_share_are_no_gaps():
    """A vector routine moves 4, 8 or 12 bytes per element, so that most sizes in bytes are of one routine alone."""
    moved = {width * 2**power: f"{power}" for power in (24, 26, 28) for width in (4, 8, 12)}
    where = {"step": ["axpy", "dot", "nrm2"], "min_bytes": moved}
    view = records("blas", "Bytes", x="min_bytes", y="gb_s", series=where["step"], baseline="copy", where=where)
    assert "Not measured" not in view.data["caption"] and "copy (labkit " in view.data["caption"]
    assert view.sentence.startswith("At 28, axpy reaches")


def test_a_step_without_the_field_of_the_x_axis_is_the_same_everywhere():
    tiles = [{"step": "blocked", "tile": tile, "gflops": float(tile), "time_ms": 64 / tile} for tile in (16, 32)]
    plain = add_computed({"step": "rows", "gflops": 8.0, "time_ms": 8.0, "baseline": "NumPy", "baseline_time_ms": 1.0})
    found = Results("loops", {"cpu": "a CPU"}, [*tiles, plain])
    view = records(found, "", x="tile", y="gflops")
    assert shown(view)[0] == ["tile", "blocked GFLOP/s", "rows GFLOP/s", "NumPy GFLOP/s"]
    assert shown(view)[1] == [["16", "16", "8", "64"], ["32", "32", "8", "64"]]
    assert view.sentence == "At tile = 32, blocked reaches 32 GFLOP/s, 0.5x the speed of NumPy."


def test_a_place_with_a_unit_is_named_with_it():
    found = Results("loops", {}, [{"step": "walk", "working_set_kb": kb, "time_ns": kb / 8} for kb in (16, 1024)])
    view = records(found, "", x="working_set_kb", y="time_ns")
    assert view.sentence == "At a working set of 1,024 KB, walk takes 128 ns."
    assert shown(view)[0] == ["working set, KB", "walk ns"]


def test_bars_of_a_single_series_have_the_names_of_their_problems():
    def drawn(*names):
        series = [Series(name, name, {"a": 1.0, "b": 2.0}, True) for name in names]
        picture = RecordsChart(series, ["a", "b"], ["layer a", "layer b"], "layer", "speed", None, False)
        axes = Figure().subplots()
        picture(axes)
        assert picture.heights
        return [tick.get_text() for tick in axes.get_yticklabels()], axes.get_xlabel(), picture.heights["wide"]

    labels, xlabel, height = drawn("FFT")
    assert (labels, xlabel) == (["layer a", "layer b"], "FFT: speed")
    labels, xlabel, taller = drawn("FFT", "Winograd")
    assert (labels, xlabel) == (["FFT", "Winograd"] * 2, "speed") and height < taller / 1.5


def test_bars_that_would_be_taller_than_a_screen_stand_in_two_columns():
    def drawn(places, size):
        names, steps = [f"layer {place}" for place in range(places)], ("FFT", "Winograd", "im2col")
        series = [Series(step, step, dict.fromkeys(names, 10.0 * (step == "FFT") + 1), True) for step in steps]
        picture = RecordsChart(series, names, names, "layer", "speed", Peak(5, "a peak"), False)
        figure = Figure(layout="constrained")
        chart.draw(figure, size, picture, picture.heights)
        columns = [[text.get_text() for text in axes.texts if "layer" in text.get_text()] for axes in figure.axes]
        return columns, figure

    assert drawn(4, "wide")[0] == [["layer 0", "layer 1", "layer 2", "layer 3"]]
    columns, figure = drawn(5, "wide")
    assert columns == [["layer 0", "layer 1", "layer 2"], ["layer 3", "layer 4"]]
    left, right = figure.axes
    assert left.get_xlim() == right.get_xlim() and left.get_ylim() == right.get_ylim(), "bars can be compared"
    assert [len([text for text in axes.texts if text.get_text() == "a peak"]) for axes in figure.axes] == [1, 1]
    (columns, tall), (_, taller) = drawn(5, "narrow"), drawn(6, "narrow")
    assert len(columns) == 1 and figure.get_figheight() < tall.get_figheight() < taller.get_figheight()


def test_the_part_of_a_bar_beyond_the_peak_of_arithmetic_is_hatched():
    def drawn(series, **options):
        view = records(record(), "", peak=True, series=series, where={"problem": "8x2048"}, **options)
        drawn_bars = [bar for group in view._drawn(None).axes[0].containers for bar in group]
        bars = [(bar.get_x(), bar.get_width(), bool(bar.get_hatch())) for bar in drawn_bars]
        return bars, view.data["legend"]

    peak = GPUS["H100 SXM"].peak_tflops["bfloat16 tensor"]
    bars, legend = drawn(["mma", "wgmma"])
    assert bars == [(0, 500, False), (0, peak, False), (peak, 2000 - peak, True)]
    assert legend == [("▨", "A", "hatched: counted by the definition, not carried out")]
    assert drawn(["mma"]) == ([(0, 500, False)], [])
    assert drawn(["mma", "copy"])[1][-1][:2] == ("▨", "dim"), "of a baseline"
    assert drawn(["mma", "wgmma"], y="gb_s")[1] == [], "a bandwidth beyond DRAM's is a cache's"


def test_a_baseline_counts_beside_drawn_steps_alone():
    """A record may hold gradients of the same FLOPs, whose baseline does something else."""
    gradient = row("mma", 1024, "copy", step="gradient", baseline_time_ms=1.2)
    with pytest.raises(ValueError, match="copy has several values of time_ms with problem 8x1024, 0.4 to 1.2: choose"):
        records(record(gradient), "", y="time_ms", series=["mma", "gradient", "copy"])
    assert shown(records(record(gradient), "", y="time_ms", series=["mma", "copy"]))[1][0][-1] == "0.4"
    assert shown(records(record(gradient), "", y="time_ms", series=["gradient", "copy"]))[1][0][-1] == "1.2"


def test_no_line_strikes_a_text_through():
    figure = records(record(), "", y="ratio", baseline="copy", x="problem")._drawn(None)
    (axes,) = figure.axes
    assert all(text.get_bbox_patch() for text in axes.texts if text.get_text() not in ("copy",))


def test_the_sentence_is_about_the_place_that_the_title_is_about():
    about = {n: records(record(), "", x="queries", baseline="copy", about=n).sentence for n in (1024, 2048, None)}
    assert about[1024].startswith("At 1,024 queries, wgmma reaches 1,250 TFLOP/s")
    assert about[2048] == about[None] != about[1024]
    with pytest.raises(ValueError, match="The sentence cannot be about queries 512: choose from 1024, 2048"):
        records(record(), "", x="queries", about=512)
    alone = records(record(), "", y="error", series=["mma", "flash"]).sentence
    assert alone.endswith("error goes from 0.001 (mma) to 0.002 (flash).")
