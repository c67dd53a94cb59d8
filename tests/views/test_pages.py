"""Saved pages in headless Chromium: keys, sentences, tables, themes, widths; no kernel and no network."""

from pathlib import Path

import numpy as np
import pytest

import labkit
from labkit import attention, conv, cuda, formats, gemm
from labkit.gemm.fp32 import s03_tiled
from labkit.loops import SMALL_CPU, trace
from labkit.views import (
    Standing,
    attention_errors,
    attention_row,
    banks,
    butterflies,
    cache,
    cached_tiles,
    chained_fragments,
    collapse,
    descriptor,
    divergence,
    dq_sums,
    filtering,
    format_map,
    grid_to_lane,
    inspector,
    io_curve,
    key_order,
    landscape,
    latency_hiding,
    lowering,
    memory,
    memory_order,
    occupancy,
    passes,
    pixel_rows,
    playground,
    ragged,
    records,
    rescaled_output,
    rescaling,
    rotation,
    schedule,
    score_tiles,
    sectors,
    shuffles,
    spectral_product,
    spectrum,
    split_cache,
    suitability,
    terms,
    tile_sizes,
    tile_transform,
    tiling,
    transposing,
    variance_errors,
    walks,
    warp_loads,
    warp_timeline,
    whole_ladder,
    window,
    winners,
    workspace_limits,
    wraparound,
)
from labkit.views.base import COLOURS
from tests.views.test_cached_tiles import tiled
from tests.views.test_key_order import ORDER
from tests.views.test_key_order import run as packed_fours
from tests.views.test_pixel_rows import run as gathered
from tests.views.test_transposing import run as transposed
from tests.views.test_walks import along_rows, down_columns
from tests.views.test_whole_ladder import RUNGS

VIEWS = [
    "tiling",
    "walks",
    "cache",
    "cached_tiles",
    "memory",
    "banks",
    "inspector",
    "window",
    "whole_ladder",
    "lowering",
    "law",
    "pixel_rows",
    "format_map",
    "occupancy",
    "filtering",
    "spectrum",
    "spectral_product",
    "butterflies",
    "passes",
    "collapse",
    "tile_transform",
    "terms",
    "wraparound",
    "schedule",
    "landscape",
    "playground",
    "variance_errors",
    "winners",
    "suitability",
    "workspace_limits",
    "score_tiles",
    "rescaled_output",
    "dq_sums",
    "rotation",
    "split_cache",
    "chained_fragments",
    "io_curve",
    "key_order",
    "warp_timeline",
    "tile_sizes",
    "ragged",
    "attention_errors",
    "attention_row",
    "records",
    "rescaling",
    "sectors",
    "memory_order",
    "transposing",
    "shuffles",
    "descriptor",
]

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timeout(120)]

TILE = 8
SPECTRA = conv.spectra(np.eye(16, dtype=np.float32), np.ones((2, 3, 3), np.float32))


@cuda.jit
def scaled(x, out):
    i = cuda.grid(1)
    value = x[i]
    out[i] = value * np.float32(2)


@cuda.jit
def slid(x, w, y):
    column, row = cuda.grid(2)
    total = np.float32(0)
    for s in range(w.shape[1]):
        total += x[row, column + s] * w[0, s]
    y[row, column] = total


@cuda.jit
def lowered(x, matrix):
    i = cuda.grid(1)
    for s in range(matrix.shape[0]):
        matrix[s, i] = x[i // 8, i % 8 + s]


@cuda.jit
def lowered_3x3(x, matrix):
    i = cuda.grid(1)
    for t in range(9):
        matrix[t, i] = x[i // 6 + t // 3, i % 6 + t % 3]


@cuda.jit
def racy(x, out, reads):
    held = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    held[i] = x[i]
    out[i] = held[63 - i if reads else i]


def setup_reads(reads):
    """A launch in which threads read what others store without a barrier, or do not."""
    return 1, 64, np.ones(64, np.float32), np.zeros(64, np.float32), reads


@cuda.jit
def last_word(out):
    if cuda.threadIdx.x % 32 == 0:
        out[0] = cuda.threadIdx.x // 32


@cuda.jit
def stored_as_an_mma_does(S, P):
    lane = cuda.threadIdx.x
    g, t = lane // 4, lane % 4
    for n in range(2):
        S[g, 8 * n + 2 * t], S[g, 8 * n + 2 * t + 1] = 1, 2
        S[g + 8, 8 * n + 2 * t], S[g + 8, 8 * n + 2 * t + 1] = 3, 4
    P[g, t], P[g + 8, t], P[g, t + 4], P[g + 8, t + 4] = 1, 2, 3, 4


def chained():
    return labkit.simulate(stored_as_an_mma_does, 1, 32, np.zeros((16, 16), np.float32), np.zeros((16, 8), np.uint32))


def multiplied_by_wgmma():
    A, B = (np.zeros((rows, 128), np.uint16) for rows in (128, 256))
    return gemm.step("tensor", "wgmma").simulate(A, B, np.zeros((128, 256), np.uint16)).traces[0]


def shares_of_dq():
    """A backward problem, its operands, and a run whose blocks add to dQ."""
    problem = attention.AttentionBackward(1, 1, 192, 64, keys=256)
    operands = problem.operands(formats.BF16)
    step = attention.ladder("backward").step("bulk_reduction")
    traces = step.simulate(*operands, format=formats.BF16, record=[(0, 0, 0), (1, 0, 0)]).traces
    return problem, operands, traces[1], traces[1:2]


@cuda.jit
def read_pages(K, out):
    i = cuda.grid(1)
    out[i] = K[2 - i // 2 * 2, i % 2, 0]


def four_keys():
    """A query, pages of two keys, the table of one sequence, and its length."""
    return np.ones((1, 1)), np.arange(6.0).reshape(3, 2, 1), np.array([[2, 0]]), [4]


def two_stages():
    """A row before and after a rotation, its rounded values, and errors of scores and of O."""
    row = np.array([[0.0, 2.0], [1.5, -1.5]])
    return row, row * 1.03, {"all scores": [0.1, 0.1]}, {"one scale": [0.02, 0.01], "scales of blocks": [0.02, 0.01]}


def rows_of_two():
    """Logits, their maxima, sums relative to these, and plain sums: of two rows, the second of which overflows."""
    x = np.float32([[0, 1], [100, 101]])
    totals = np.float32([[1, 1 + np.exp(-1)]] * 2)
    return x, x, totals, np.float32([[1, 3.72], [np.inf, np.inf]])


def setup(TILE):
    A = np.ones((16, 16), np.float32)
    return (16 // TILE, 16 // TILE), (TILE, TILE), A, A, np.zeros_like(A)


def setup_from_two(blocks):
    """Launches that fail with one block, the slider's first position."""
    if blocks == 1:
        raise ValueError("one block is too few")
    return blocks, 32, np.ones(96, np.float32), np.zeros(96, np.float32)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Each view, and the page it was saved to."""
    A = np.ones((32, 32), np.float32)
    product = labkit.simulate(s03_tiled.tiled, (2, 2), (16, 16), A, A, A * 0, record=((1, 1, 0),))
    x = np.ones(64, np.float32)
    y = np.zeros((6, 8), np.float32)
    walked = labkit.simulate(slid, 1, (8, 6), np.ones((6, 10), np.float32), np.ones((1, 3), np.float32), y)
    layer = conv.Forward(N=1, C=1, H=6, W=6, K=1, R=3, S=3).operands()
    small = {"N": 2, "C": 8, "H": 12, "W": 12, "K": 8, "R": 3, "S": 3}
    as_defined = conv.ladder("direct").step("naive").simulate(*layer).traces[0]
    by_tiles = {f"{m} x {m}": conv.ladder("winograd").step(f"f{m}x{m}").simulate(*layer).traces for m in (2, 4)}
    one_head = attention.AttentionForward(1, 1, 40, 64, causal=True)
    of_rows = attention.ladder("forward").step("q_outer").simulate(*one_head.operands(), record=((0, 0, 0),)).traces[0]
    in_16_bits = attention.AttentionForward(1, 1, 64, 64, keys=128)
    operands = in_16_bits.operands(formats.BF16)
    in_tiles = attention.ladder("forward").step("wgmma").simulate(*operands, format=formats.BF16).traces[0]
    followed = labkit.simulate(scaled, 2, 32, x, x * 0, inspect=(1, 3))
    summed = [trace(loop, A, x[:1], cpu=SMALL_CPU, record=5000) for loop in (along_rows, down_columns)]
    multiplied = {T: trace(tiled, A, A, A * 0, T, cpu=SMALL_CPU, record=100_000) for T in (4, 8)}
    cached = labkit.simulate(read_pages, 2, 2, np.float32(four_keys()[1]), x[:4] * 0, record=[(0,), (1,)])
    views = {
        "tiling": tiling(product),
        "walks": walks(dict(zip(("rows", "columns"), summed)), SMALL_CPU),
        "cache": cache(summed[0], cpu=SMALL_CPU, steps=100),
        "cached_tiles": cached_tiles(multiplied, SMALL_CPU),
        "memory": memory(product),
        "banks": banks(product),
        "inspector": inspector(followed),
        "window": window(walked),
        "whole_ladder": whole_ladder(RUNGS, "A GPU"),
        "wraparound": wraparound(conv.circular(np.ones((20, 28), np.float32), np.ones((1, 5, 5), np.float32))),
        "spectrum": spectrum(SPECTRA.x, SPECTRA.X),
        "spectral_product": spectral_product(SPECTRA),
        "butterflies": butterflies(np.array([[1, 2], [1, 2], [3, -1]])),
        "lowering": lowering(
            labkit.simulate(lowered, 1, 48, np.ones((6, 10), np.float32), np.empty((3, 48), np.float32))
        ),
        "collapse": collapse(as_defined, by_tiles),
        "tile_transform": tile_transform(by_tiles),
        "filtering": filtering(np.eye(9, 12), np.ones((1, 3, 3)) / 9, np.zeros((1, 7, 10)), ["blur"]),
        "passes": passes(
            {
                "twice": [labkit.simulate(scaled, 2, 32, x, x * 0)] * 2,
                "once": [labkit.simulate(scaled, 2, 32, x, x * 0)],
            }
        ),
        "pixel_rows": pixel_rows(gathered()),
        "format_map": format_map(size=14, taps=(1, 3), channels=(64, 3), batches=(1, 64)),
        "occupancy": occupancy({"TILE = 16": product, "again": product}),
        "ragged": ragged({"A @ A": product}, "C"),
        "terms": terms(np.array([[[0.5, 0.5]], [[1.0, -0.5]]]), np.array([[1.0, 1.0]])),
        "schedule": schedule(labkit.explore(last_word, 1, 64, np.zeros(1, np.float32))),
        "landscape": landscape(
            {
                "copied": Standing("float32", 0.25, {"H100 SXM": 0.75}, (product,), 10**6),
                "multiplied": Standing("float16 tensor", 1000, {"H200": 600}),
            }
        ),
        "variance_errors": variance_errors(
            [1.0, 1e4],
            [0.1, 1.0],
            np.ones((2, 2, 4), np.float32) * np.arange(4, dtype=np.float32),
            {"right": np.full((2, 2), 1.25, np.float32), "wrong": np.ones((2, 2), np.float32)},
        ),
        "score_tiles": score_tiles(one_head, {"once": of_rows, "again": of_rows}),
        "rescaled_output": rescaled_output(one_head, of_rows, 39),
        "dq_sums": dq_sums(*shares_of_dq()),
        "rotation": rotation(*two_stages()),
        "split_cache": split_cache({"once": cached, "again": cached}, *four_keys(), tile=2),
        "chained_fragments": chained_fragments(chained()),
        "key_order": key_order(packed_fours(), ORDER),
        "io_curve": io_curve(one_head, {name: ([of_rows], 64) for name in ("standard", "KV-outer", "Q-outer")}),
        "tile_sizes": tile_sizes(one_head),
        "attention_errors": attention_errors(
            [1, 8],
            np.array([[0.5, 0.3, 0.2], [0.9, 0.1, 0]]),
            {"bfloat16": [0.02, 0.4], "float32": [1e-6, np.inf]},
            {"bfloat16": [0.01, 0.1], "float32": [1e-6, 1e-5]},
        ),
        "attention_row": attention_row(
            ["two", "words"],
            {
                "all": (np.float32([[0, 1], [2, 0]]), np.full((2, 2), 0.5), np.eye(2), np.full((2, 2), 0.5)),
                "causal": (
                    np.float32([[0, -np.inf], [2, 0]]),
                    np.float32([[1, 0], [0.9, 0.1]]),
                    -np.eye(2),
                    -np.eye(2),
                ),
            },
        ),
        "warp_timeline": warp_timeline({"wgmma": in_tiles, "again": in_tiles}, {"K_tiles": "scores"}),
        "descriptor": descriptor(multiplied_by_wgmma()),
        "records": records("gemm", "A ladder", where={"problem": "4096x4096x4096"}, peak=True),
        "rescaling": rescaling([0, 100], *rows_of_two()),
        "warp_loads": warp_loads({"once": product, "again": product}),
        "grid_to_lane": grid_to_lane(),
        "latency_hiding": latency_hiding(),
        "divergence": divergence({"once": product, "again": product}),
        "sectors": sectors(channels=(3, 64), itemsizes=(2, 4)),
        "memory_order": memory_order(),
        "transposing": transposing({"tiled": transposed("tiled"), "padded": transposed("padded")}),
        "shuffles": shuffles(np.array([[0, 1, 2, 3], [2, 4, 5, 6], [6, 9, 11, 12]])),
        "winners": winners(sides=(14, 56), taps=(3, 5), channels=(64, 16), batches=(1, 64), limits_mb=(0, None)),
        "suitability": suitability({"plain": conv.Forward(**small), "stride 2": conv.Forward(**small, stride_h=2)}),
        "workspace_limits": workspace_limits(conv.Forward(**small), (0, None)),
        "playground": playground(s03_tiled.tiled, setup, TILE=[4, 8]),
        "racy": playground(racy, setup_reads, view=memory, reads=[0, 1]),
        "law": lowering(
            labkit.simulate(lowered_3x3, 1, 24, np.ones((6, 8), np.float32), np.empty((9, 24), np.float32)),
            setting=(1, 0),
        ),
        "mended": playground(
            scaled, setup_from_two, view=lambda run: (memory if run.grid[0] == 2 else tiling)(run), blocks=[2, 1, 3]
        ),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, view in views.items():
        view.save_html(folder / f"{name}.html")
    return {name: (view, (folder / f"{name}.html").as_uri()) for name, view in views.items()}


@pytest.fixture
def show(browser, pages):
    """Opens a view's page, offline; nothing may go wrong in it."""
    complaints, opened = [], []

    def open_page(name, width=1000, height=900, script=None, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, offline=True, **options)
        if script:
            context.add_init_script(script)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
        page.goto(pages[name][1])
        page.wait_for_selector(".labkit-view[data-revision]")
        opened.append(context)
        return page

    yield open_page
    for context in opened:
        context.close()
    assert complaints == []


def sentence(page):
    return page.locator(".labkit-view .say").first.inner_text()


def step(page):
    return int(page.locator(".labkit-view[data-step]").first.get_attribute("data-step"))


def test_keys_step_and_the_sentence_follows(show, pages):
    page, says = show("tiling"), pages["tiling"][0].data["say"]
    plain = [say.replace("`", "").replace("**", "") for say in says]
    assert sentence(page) == plain[0]
    page.keyboard.press("Tab")
    for key, at in [
        ("ArrowRight", 1),
        ("ArrowRight", 2),
        ("ArrowLeft", 1),
        ("End", len(says) - 1),
        ("Home", 0),
    ]:
        page.keyboard.press(key)
        assert (step(page), sentence(page)) == (at, plain[at])
    assert page.locator(".say").get_attribute("aria-live") == "polite"


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("format_map", "1 image", "64 images"),
        ("io_curve", "head_dim 64", "head_dim 128"),
        ("latency_hiding", "8 warps", "12 warps"),
        ("occupancy", "TILE = 16", "again"),
        ("workspace_limits", "no workspace", "any workspace"),
        ("key_order", "lane 2", "lane 3"),
        ("attention_errors", "spread 8", None),
    ],
)
def test_the_counter_shows_the_value_of_a_step(show, pages, name, first, second):
    page, view = show(name), pages[name][0]
    assert len(view.data["counter"]) == len(view.data["say"])
    counter, scrubber = page.locator(".bar > .num"), page.locator(".bar > input[type=range]")
    assert (counter.inner_text(), scrubber.get_attribute("aria-valuetext")) == (first, first)
    if second:
        page.get_by_label("step forward").click()
        assert (counter.inner_text(), scrubber.get_attribute("aria-valuetext")) == (second, second)


def test_the_counter_keeps_the_value_where_a_menu_shows_other_data(show):
    page = show("occupancy")
    page.locator("select").select_option(index=0)
    assert page.locator(".bar > .num").inner_text() == "TILE = 16"


def test_a_counter_has_a_text_for_each_step(pages):
    counters = {name: view.data["counter"] for name, (view, _) in pages.items() if "counter" in view.data}
    assert len(counters) > 12
    for name, texts in counters.items():
        assert len(texts) == len(pages[name][0].data["say"]), name


def test_the_counter_counts_steps_that_are_no_values(show, pages):
    page, steps = show("tiling"), len(pages["tiling"][0].data["say"])
    assert page.locator(".bar > .num").inner_text() == f"1 / {steps}"
    assert page.locator(".bar > input[type=range]").get_attribute("aria-valuetext") == f"step 1 of {steps}"


def test_the_picture_changes_with_the_step(show):
    page = show("tiling")
    draw = "() => [...document.querySelectorAll('canvas')].map(canvas => canvas.toDataURL())"
    first = page.evaluate(draw)
    page.get_by_label("step forward").click()
    assert all(a != b for a, b in zip(first, page.evaluate(draw), strict=True))


def test_space_plays_and_pauses_without_flooding_a_screen_reader(show):
    page = show("tiling")
    page.keyboard.press("Tab")
    page.keyboard.press(" ")
    page.wait_for_function("() => Number(document.querySelector('.labkit-view').dataset.step) > 1")
    assert page.locator(".say").get_attribute("aria-live") == "off"
    page.keyboard.press(" ")
    stopped = step(page)
    page.wait_for_timeout(500)
    assert step(page) == stopped and page.locator(".say").get_attribute("aria-live") == "polite"


def test_playing_is_slow_where_motion_is_unwanted(show):
    page = show("tiling", reduced_motion="reduce")
    page.get_by_label("play").click()
    page.wait_for_timeout(800)
    assert step(page) == 0


def test_focus_is_seen(show):
    page = show("tiling")
    for _ in range(4):
        page.keyboard.press("Tab")
        style = "() => getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(style) == "solid"


def test_the_table_holds_the_steps_and_marks_the_one_shown(show, pages):
    page, view = show("tiling"), pages["tiling"][0]
    page.get_by_text("The data as a table").click()
    rows = page.locator("details tbody tr")
    rows.first.wait_for()
    assert rows.count() == len(view.data["say"])
    page.get_by_label("step forward").click()
    assert rows.nth(1).get_attribute("class") == "now"
    assert "copies B[" in rows.nth(1).inner_text()


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.sample(5)
def test_every_view_is_drawn_in_both_themes_and_fits_a_narrow_page(show, name, scheme):
    page = show(name, width=480, color_scheme=scheme)
    background = page.evaluate("() => getComputedStyle(document.querySelector('.labkit-view')).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 27, 32)"}[scheme]
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 480
    blank = """() => [...document.querySelectorAll('canvas')].filter(canvas => {
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        return new Set(new Uint32Array(pixels.buffer)).size < 3;
    }).length"""
    assert page.evaluate(blank) == 0


@pytest.mark.parametrize("name", ["winners", "suitability"])
def test_a_map_that_is_wider_than_a_phone_scrolls_beside_its_names(show, name):
    page = show(name, width=320)
    cells = page.get_by_role("gridcell").get_by_role("button")
    page.evaluate("() => document.querySelectorAll('.cells').forEach(map => { map.style.minWidth = '700px'; })")
    page.evaluate("() => { document.querySelector('.wide').scrollLeft = 1000; }")
    assert cells.last.evaluate("cell => cell.getBoundingClientRect().right") < 320
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320
    on_top = """head => {
        const {left, top, width, height} = head.getBoundingClientRect();
        return document.elementFromPoint(left + width / 2, top + height / 2) === head;
    }"""
    assert page.get_by_role("rowheader").first.evaluate(on_top), "a row's name stays"


def test_what_a_warp_does_next_stands_below_a_line_that_is_narrow(show):
    overlap = """() => [...document.querySelectorAll('.line .at:not([hidden])')].map(badge => {
        const text = document.createRange(), {left, top} = badge.getBoundingClientRect();
        text.selectNodeContents(badge.previousSibling);
        const code = text.getBoundingClientRect();
        return top >= code.bottom - 1 ? 'below' : left >= code.right ? 'beside' : 'on it';
    })"""
    for width, place in ((320, "below"), (1000, "beside")):
        page = show("schedule", width=width)
        page.locator(".labkit-view").focus()
        page.keyboard.press("Home")
        found = page.evaluate(overlap)
        assert found and set(found) == {place}


RECORD_BOXES = """(() => {
    window.boxes = [];
    for (const name of ['strokeRect', 'fillRect']) {
        const draw = CanvasRenderingContext2D.prototype[name];
        CanvasRenderingContext2D.prototype[name] = function (...box) {
            boxes.push([name, String(this[name === 'fillRect' ? 'fillStyle' : 'strokeStyle']).toUpperCase(), ...box]);
            draw.apply(this, box);
        };
    }
})()"""


def test_vermilion_is_for_what_a_step_touches(show):
    page = show("spectrum")
    hot = page.locator(".legend span", has=page.locator("i[style*=hot]"))
    assert hot.all_inner_texts() == ["the chosen wave"]
    boxes = show("lowering", script=RECORD_BOXES).evaluate("() => boxes")
    meters = {colour for name, colour, *box in boxes if name == "fillRect" and box[3] == 12 and box[0] == 190}
    assert meters == {COLOURS["A"].upper(), COLOURS["D"].upper()}, "images and matrix"
    page = show("attention_row", script=RECORD_BOXES)
    hollow = f"() => boxes.filter(([name, colour]) => name === 'strokeRect' && colour === '{COLOURS['C']}').length"
    assert page.evaluate(hollow) == 0
    page.get_by_label("run").select_option("causal")
    assert page.evaluate(hollow) > 0 and "hollow: negative" in page.locator(".legend").inner_text()


def test_reads_per_load_are_written_as_factors_are_everywhere(show):
    page = show("tiling", script=f"({RECORD_CANVAS_TEXTS})()")
    go_through(page)
    texts = page.evaluate("() => texts") + page.locator(".stat b").all_inner_texts()
    assert [text for text in texts if text[:1].isdigit() and text.endswith("x")]
    assert not [text for text in texts if "\u00d7" in text]


RECORD_CANVAS_TEXTS = """() => {
    window.texts = [];
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
        texts.push(text);
        draw.call(this, text, ...at);
    };
}"""

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


def go_through(page):
    """Show the first steps, some in the middle, and the last."""
    page.locator(".labkit-view").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "PageDown", "PageDown", "End"):
        page.keyboard.press(key)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.sample(5)
def test_text_in_pictures_stands_out_and_is_not_small(show, name, scheme):
    page = show(name, width=930, script=CONTRAST, color_scheme=scheme)
    go_through(page)
    assert page.evaluate("() => [...new Set([...weak, ...small])]") == []


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ["tiling", "schedule", "landscape", "inspector", "passes", "walks"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_forced_colours_leave_pictures_legends_and_the_current_line(show, name, scheme):
    page = show(name, width=930, script=CONTRAST, color_scheme=scheme, forced_colors="active")
    go_through(page)
    assert page.evaluate("() => [...new Set(weak)]") == []
    style = "(node, name) => getComputedStyle(node)[name]"
    for canvas in page.locator("canvas").all():
        card = {"light": "rgb(255, 255, 255)", "dark": "rgb(23, 27, 32)"}[scheme]
        assert canvas.evaluate(style, "backgroundColor") == card
    swatches = page.locator(".legend i")
    assert set(swatches.evaluate_all("all => all.map(one => getComputedStyle(one).forcedColorAdjust)")) <= {"none"}
    for part in page.locator(".line.now, .line.now *").all():
        assert part.evaluate(style, "forcedColorAdjust") == "none", "a plate behind its text would hide it"
        assert part.evaluate(style, "color") != part.evaluate(style, "backgroundColor")


def test_forced_colours_leave_charts_and_their_legend(show):
    page = show("records", color_scheme="dark", forced_colors="active")
    assert page.locator("svg").evaluate("svg => getComputedStyle(svg).backgroundColor") == "rgb(23, 27, 32)"
    marks = page.locator(".legend b").evaluate_all("all => all.map(one => getComputedStyle(one).forcedColorAdjust)")
    assert marks and set(marks) == {"none"}


LOWER = 599  # pixels that JupyterLab leaves of 1280 x 720

MEASURE = """() => {
    const boxOf = node => node.getBoundingClientRect();
    const boxes = selector => [...document.querySelectorAll(selector)].map(boxOf).filter(box => box.height);
    const pictures = boxes('.labkit-view canvas, .labkit-view [role=grid]');
    const top = Math.min(...pictures.map(box => box.top)), bottom = Math.max(...pictures.map(box => box.bottom));
    const outside = boxes('.sliders, .labkit-view > .bar').filter(box => box.top >= bottom || box.bottom <= top);
    return pictures.length ? bottom - top + outside.reduce((sum, box) => sum + box.height, 0) : 0;
}"""


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.sample(5)
def test_a_picture_and_its_controls_fit_one_screen(show, name):
    page = show(name, width=930, height=LOWER)
    assert page.evaluate(MEASURE) <= LOWER


def test_controls_stay_on_the_screen_beside_a_picture_that_is_taller(show):
    page = show("playground", width=930, height=300)
    box = {part: page.locator(part).first for part in (".sliders", "canvas", ".labkit-view .labkit-view > .bar")}
    box["canvas"].evaluate("canvas => canvas.scrollIntoView({block: 'start'})")
    for part in (".sliders", ".labkit-view .labkit-view > .bar"):
        place = box[part].bounding_box()
        assert place["y"] >= -1 and place["y"] + place["height"] <= 301, part


def test_steps_are_right_under_the_picture_and_numbers_after_them(show):
    page = show("window")
    bar, numbers = (page.locator(part).first.bounding_box() for part in (".bar", ".stats"))
    boxes = [canvas.bounding_box() for canvas in page.locator("canvas").all()]
    assert max(box["y"] + box["height"] for box in boxes) <= bar["y"] < numbers["y"]


COUNT_SHAPES = """(() => {
    window.shapes = [];
    for (const name of ['strokeRect', 'fillRect']) {
        const draw = CanvasRenderingContext2D.prototype[name];
        CanvasRenderingContext2D.prototype[name] = function (...box) {
            shapes.push([name, ...box]);
            draw.apply(this, box);
        };
    }
})()"""


def test_now_and_barriers_have_a_shape_and_not_just_a_colour(show, pages):
    page, data = show("tiling", script=COUNT_SHAPES), pages["tiling"][0].data
    page.evaluate("() => { shapes.length = 0; }")
    page.get_by_label("step forward").click()
    shapes = page.evaluate("() => shapes")
    rings = [box for name, *box in shapes if name == "strokeRect" and abs(box[2] - box[3]) < 1e-9 and box[2] < 30]
    assert len(rings) >= 32, "one around each element that the warp touches"
    tall = [box for name, *box in shapes if name == "fillRect" and box[3] == 30]
    assert len(tall) == data["phases"].count("barrier") > 0


def test_the_strip_of_phases_moves_the_steps(show, pages):
    page, steps = show("tiling"), len(pages["tiling"][0].data["say"])
    strip = page.get_by_label("the steps by phase")
    box = strip.bounding_box()
    strip.click(position={"x": box["width"] * (steps - 0.5) / steps, "y": 20})
    assert step(page) == steps - 1


def test_a_click_chooses_a_pixel(show, pages):
    page, says = show("lowering"), pages["lowering"][0].data["say"]
    images, matrix = page.locator("canvas").nth(0), page.locator("canvas").nth(1)
    images.click(position={"x": 3, "y": 40})
    assert sentence(page) == says[0].replace("`", "").replace("**", "")
    matrix.click(position={"x": 3, "y": 36 + 2 * matrix.bounding_box()["width"] / 48})
    assert "x[0, 2]" in sentence(page), "the third row of the matrix begins with it"


def test_the_inspector_marks_the_line_and_what_changed(show):
    page = show("inspector")
    page.get_by_label("step forward").click()
    assert "value = x[i]" in page.locator(".line.now").inner_text()
    changed = page.locator(".variables tr.now")
    assert changed.count() == 1 and "value" in changed.inner_text()


def test_another_outcome_shows_another_order_from_where_they_part(show, pages):
    page, kept = show("schedule"), pages["schedule"][0].data["kept"]
    choice = page.get_by_label("an order that ends with")
    assert choice.locator("option").all_inner_texts() == [f"{order['label']} (1 of 2 orders)" for order in kept]
    choice.select_option("1")
    page.wait_for_function("() => document.activeElement.tagName === 'SELECT'")
    assert sentence(page) == kept[1]["say"][1].replace("`", "").replace("**", "")
    line = page.locator(".line.now")
    assert "\u25c2" not in line.inner_text(), "both warps have ended"
    assert page.locator(".line .at:visible").count() == 0
    page.get_by_label("step back").click()
    assert line.inner_text().endswith("\u25c2 next: warp 0")


def test_the_array_is_drawn_as_wide_as_its_place_beside_the_source(show):
    """A canvas that the layout narrows afterwards shows letters as slivers."""
    for width in (480, 868, 1000):
        page = show("schedule", width=width)
        drawn = "() => [...document.querySelectorAll('canvas')].map(c => c.width - c.getBoundingClientRect().width)"
        assert all(abs(difference) <= 1 for difference in page.evaluate(drawn))


def test_tiles_of_another_size_are_a_choice_away(show, pages):
    page, kept = show("collapse"), pages["collapse"][0].data["kept"]
    page.get_by_label("tiles").select_option("4 x 4")
    page.wait_for_function("() => document.activeElement.tagName === 'SELECT'")
    assert sentence(page) == kept[1]["say"][0].replace("**", "")
    page.locator(".labkit-view").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator(".stat b").first.inner_text() == "144"


def test_a_menu_chooses_whose_sm_is_filled(show, pages):
    page, kept = show("occupancy"), pages["occupancy"][0].data["kept"]
    page.locator(".labkit-view").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_label("GPU").select_option("T4")
    page.wait_for_function("() => document.activeElement.tagName === 'SELECT'")
    assert sentence(page) == kept[0]["say"][1].replace("**", "")
    assert page.locator(".stat b").all_inner_texts() == ["4", "32 of 32", "24"]


def test_a_playground_without_its_kernel_offers_the_kept_runs(show, pages):
    page = show("playground")
    slider = page.get_by_label("TILE", exact=True)
    slider.press("ArrowLeft")
    assert sentence(page).startswith("TILE = 4")
    slider.press("ArrowLeft")
    assert sentence(page).startswith("TILE = 4")
    assert "tiles of 4 x 4" in page.locator(".labkit-view h2").nth(1).inner_text()


def test_the_picture_of_a_playground_is_right_under_its_sliders_and_the_counters_in_a_row_below(show):
    page = show("playground", width=930)
    sliders, picture, counters, found = (
        page.locator(f".labkit-view {part}").first.bounding_box()
        for part in (".sliders", "canvas", ".counted", ".found")
    )
    assert sliders["y"] + sliders["height"] <= picture["y"] <= sliders["y"] + sliders["height"] + 70
    assert picture["y"] + picture["height"] <= counters["y"] and counters["y"] + counters["height"] <= found["y"]
    first, second = (page.locator(".counted dd").nth(n).bounding_box() for n in range(2))
    assert first["y"] == second["y"] and first["x"] < second["x"]
    inner = page.locator(".labkit-view .labkit-view")
    assert inner.locator("h2").is_hidden() and "tiles of 8 x 8" in inner.get_attribute("aria-label")


@pytest.mark.parametrize("width", [1000, 856, 320])
def test_names_of_counters_hold_several_words_in_a_line(show, width):
    boxes = show("playground", width=width).locator(".counted > div")
    assert min(box.bounding_box()["width"] for box in boxes.all()) >= (150 if width > 320 else 120)


def test_errors_of_a_playground_stand_above_its_picture(show):
    page = show("racy")
    found, picture = page.locator(".found"), page.locator("canvas").first
    assert "Error: Race" in found.inner_text() and found.bounding_box()["y"] < picture.bounding_box()["y"]
    page.get_by_label("reads", exact=True).fill("0")
    assert "Error" not in found.inner_text() and found.bounding_box()["y"] > picture.bounding_box()["y"]


def test_the_size_of_a_lowered_matrix_has_its_curves_and_a_dot(show):
    page = show("law", script=f"({RECORD_CANVAS_TEXTS})()")
    texts = page.evaluate("() => texts")
    factor = 3 * 3 * 4 * 6 / (6 * 8)
    assert {"matrix, relative to images", "stride 1", "R = 1", f"{factor:.2f}x"} <= set(texts)


def test_a_playground_whose_first_run_fails_shows_the_right_view_afterwards(show):
    page = show("mended")
    assert "one block is too few" in sentence(page)
    heading, slider = page.locator(".labkit-view h2").nth(1), page.get_by_label("blocks", exact=True)
    for key, shown in (("Home", "Memory: warp 0"), ("End", "Accesses: block"), ("Home", "Memory: warp 0")):
        slider.press(key)
        assert heading.inner_text().startswith(shown)
        assert page.locator("canvas").count() > 0


def test_a_chart_of_records_has_its_message_source_and_rows(show, pages):
    page, view = show("records"), pages["records"][0]
    assert page.locator("h2").inner_text() == "A ladder"
    assert "NVIDIA H100 80GB HBM3, float32; baseline: cuBLAS fp32" in page.locator(".footer").inner_text()
    assert page.locator("[role=img] svg").count() == 1
    page.get_by_text("The data as a table").click()
    cells = page.locator("details tbody :is(th, td)")
    cells.first.wait_for()
    assert cells.all_inner_texts() == view.data["table"]["rows"][0]
    heads = page.locator("details tbody th")
    assert heads.evaluate_all("all => all.map(one => [one.scope, getComputedStyle(one).position])") == [
        ["row", "static"]
    ]


def test_a_landscape_shows_the_roofs_of_the_gpu_and_precision_that_are_chosen(show):
    page = show("landscape")
    picture = "() => document.querySelector('canvas').toDataURL()"
    told, drawn = page.locator(".body .say"), page.evaluate(picture)
    page.get_by_text("Kernels on this GPU: FLOP/byte and speeds").click()
    cells = page.locator(".body td")
    assert "meet at 20 FLOP/byte" in told.inner_text() and "Nothing is recorded" not in told.inner_text()
    assert cells.nth(4).inner_text() == "750 GFLOP/s" and cells.nth(5).inner_text() == "90%"
    page.get_by_label("GPU", exact=True).select_option("H200")
    assert "meet at 13.9 FLOP/byte" in told.inner_text() and "Nothing is recorded" in told.inner_text()
    assert cells.nth(4).inner_text() == "" and page.evaluate(picture) != drawn
    page.get_by_label("precision", exact=True).select_option("float16 tensor")
    assert "meet at 206 FLOP/byte" in told.inner_text() and "Of 1 kernel at" in told.inner_text()


def test_a_landscape_without_a_kernel_at_the_precision_says_so_and_sends_nobody_elsewhere(show):
    page = show("landscape")
    page.evaluate(RECORD_CANVAS_TEXTS)
    told = page.locator(".body .say")
    page.get_by_label("precision", exact=True).select_option("bfloat16 tensor")
    nothing = "No kernel here computes in bfloat16 tensor."
    assert told.inner_text().endswith(nothing)
    texts = page.evaluate("() => texts")
    assert nothing in texts and not [text for text in texts if text.startswith("Choose")]
    page.get_by_label("GPU", exact=True).select_option("V100")
    page.get_by_label("precision", exact=True).select_option("float16")
    assert told.inner_text().endswith("No kernel here computes in float16.")
    page.evaluate("() => { texts.length = 0; }")
    page.get_by_label("precision", exact=True).select_option("float32")
    assert not [text for text in page.evaluate("() => texts") if text.startswith("No kernel")]


def test_a_landscape_keeps_the_precision_for_the_next_gpu_that_has_it(show):
    page = show("landscape")
    page.get_by_label("precision", exact=True).select_option("float8 tensor")
    for gpu, precision in (("T4", "float32"), ("L4", "float8 tensor")):
        page.get_by_label("GPU", exact=True).select_option(gpu)
        assert page.get_by_label("precision", exact=True).input_value() == precision


def test_sliders_and_arrow_keys_move_the_map_of_winners(show, pages):
    page, data = show("winners"), pages["winners"][0].data
    told, cells, ranking = page.locator(".body .say"), page.get_by_role("gridcell"), page.locator(".row tbody tr")
    assert "64 images of 14 x 14, any workspace, float32: of 4 cells" in told.inner_text()
    page.get_by_role("slider", name="images").fill("0")
    assert "1 image of 14 x 14, any workspace" in told.inner_text()
    assert "No layer like this" in page.locator(".body").inner_text()
    page.get_by_role("slider", name="images").fill("1")
    page.get_by_role("slider", name="side of an image").fill("1")
    assert "64 images of 56 x 56" in told.inner_text()
    before = ranking.count()
    page.get_by_label("workspace", exact=True).select_option("no workspace")
    assert "no workspace, float32: of 4 cells, ranked first implicit_gemm in 4" in told.inner_text()
    assert ranking.count() < before and "no workspace" in ranking.last.inner_text()
    chosen = page.locator("button[aria-pressed=true]")
    chosen.press("ArrowLeft")
    chosen.press("ArrowUp")
    label = chosen.get_attribute("aria-label")
    assert label.startswith(f"3 x 3 taps, {data['channels'][0]} channels: implicit_gemm")
    assert "; timed" not in label
    assert "Layers were timed with any workspace." in page.locator(".body").inner_text()
    page.get_by_label("workspace", exact=True).select_option("any workspace")
    assert "; timed" in chosen.get_attribute("aria-label")
    assert "56 x 56, 64 filters" in page.locator(".body").inner_text()
    assert cells.count() == 4 and page.locator("button[tabindex='0']").count() == 1


def test_a_cell_tells_why_an_algorithm_does_not_apply(show):
    page = show("suitability")
    page.get_by_label("step forward").click()
    assert sentence(page).startswith("stride 2: ") and "winograd" in sentence(page).split(";")[1]
    chosen = page.locator("button[aria-pressed=true]")
    assert chosen.get_attribute("aria-label") == "stride 2, winograd: does not apply"
    assert "stride" in page.locator(".body table").inner_text()
    chosen.press("ArrowUp")
    assert chosen.get_attribute("aria-label") == "plain, winograd: applies"
    assert "applies, predicted" in page.locator(".body table").inner_text()


def test_another_format_shows_how_much_faster_it_is(show):
    page = show("winners")
    page.get_by_label("bfloat16").check()
    told, chosen = page.locator(".body .say"), page.locator("button[aria-pressed=true]")
    assert "bfloat16: faster than the best float32 in 4 of 4 cells" in told.inner_text()
    assert "tensor/" in chosen.get_attribute("aria-label")
    assert "the speed of float32" in chosen.get_attribute("aria-label")
    assert chosen.locator("b").inner_text().endswith("x")


def test_sliders_choose_mean_and_spread(show):
    page = show("variance_errors")
    assert page.locator("td", has_text="1.25").count() == 2, "the kernel that is right, and float64"
    colours = (
        "nodes => nodes.map(node => getComputedStyle(node)[node.matches('td > span') ? 'color' : 'backgroundColor'])"
    )
    marks, swatches = page.locator("td > span"), page.locator(".legend i")
    assert marks.count() and marks.evaluate_all(colours) == swatches.evaluate_all(colours), "a mark, and its legend"
    page.get_by_label("mean", exact=True).fill("0")
    page.get_by_label("spread", exact=True).fill("0")
    assert "The mean is 10 spreads from zero, its square 100 variances." in page.locator(".body .say").inner_text()


def test_a_slider_moves_all_logits_and_only_the_plain_sum_follows(show):
    page = show("rescaling")
    page.get_by_label("step forward").click()
    numbers = page.locator(".stat b")
    assert numbers.all_inner_texts() == ["1.00", "0.37", "1.37", "3.72"]
    page.get_by_role("slider", name="added to every logit").fill("1")
    assert numbers.all_inner_texts() == ["101.00", "0.37", "1.37", "infinite"]
    assert sentence(page).startswith("Value 2 is 101.00, a new maximum") and "overflowed" in sentence(page)


def test_a_menu_masks_keys_and_the_step_is_the_query(show):
    page = show("attention_row")
    numbers = page.locator(".stat b")
    assert numbers.all_inner_texts() == ["2", "1.00", "50%", "100%"]
    page.get_by_label("run").select_option("causal")
    assert numbers.all_inner_texts() == ["1", "0.00", "100%", "100%"]
    assert sentence(page).startswith("two (query 1) sees 1 of 2 keys.")
    page.get_by_label("step forward").click()
    assert sentence(page).startswith("words (query 2) sees 2 of 2 keys. two scores highest, 2.00, and gets 90%")


def test_words_keep_their_width_on_a_phone(show):
    page = show("attention_row", width=200)
    scroll, canvas = page.locator(".wide"), page.locator("canvas")
    wide = canvas.bounding_box()["width"]
    assert wide == 190 + 34 * 2 > scroll.bounding_box()["width"]
    scroll.evaluate("scroll => { scroll.scrollLeft = 1000; }")
    assert canvas.bounding_box()["x"] + wide < 200 and page.evaluate("document.documentElement.scrollWidth") <= 200


def test_sliders_and_steps_move_the_sectors_of_each_layout(show):
    page = show("sectors")
    told, heads = page.locator(".body .say"), page.locator(".row p:first-child > b:nth-child(2)")
    assert told.inner_text() == (
        "64 channels of 2 bytes: 2 sectors in NCHW, 8 in NCHW_VECT_C 4, 32 in NCHW_VECT_C 32 and NHWC."
    )
    assert heads.all_inner_texts() == ["2 sectors", "8 sectors", "32 sectors", "32 sectors"]
    page.get_by_label("the warp reads").select_option("a tensor core's tile of 16 x 16")
    assert told.inner_text() == "64 channels of 2 bytes, the whole tile: 16 sectors in every layout."
    page.get_by_role("slider", name="first pixel").fill("1")
    assert heads.all_inner_texts() == [f"{count} sectors" for count in (32, 24, 16, 16)]
    page.get_by_role("slider", name="bytes per element").fill("1")
    assert heads.all_inner_texts() == [f"{count} sectors" for count in (48, 40, 32, 32)]
    page.get_by_role("slider", name="channels").fill("0")
    picture = "() => [...document.querySelectorAll('canvas')].map(canvas => canvas.toDataURL())"
    first = page.evaluate(picture)
    page.get_by_label("step forward").click()
    assert all(a != b for a, b in zip(first, page.evaluate(picture), strict=True))
    page.locator(".labkit-view").focus()
    page.keyboard.press("End")
    assert told.inner_text().startswith("3 channels of 4 bytes, the whole tile: 8 sectors in NHWC, 9 in NCHW, 10 in")
    page.get_by_label("the warp reads").select_option("one channel, neighbours along W")
    assert told.inner_text() == "3 channels of 4 bytes: the warp has read all of it already."


def test_a_menu_chooses_whom_tensor_cores_serve(show, pages):
    page, kept = show("warp_timeline"), pages["warp_timeline"][0].data["kept"]
    menu, canvas = page.locator("select").first, page.locator("canvas")
    before, plain = canvas.screenshot(), kept[0]["say"][-1].replace("`", "").replace("**", "")
    assert sentence(page) == plain and kept[0]["say"] != kept[1]["say"]
    menu.select_option("serves the first request")
    assert sentence(page) == kept[1]["say"][-1].replace("`", "").replace("**", "")
    assert canvas.screenshot() != before
    assert page.evaluate("document.activeElement.tagName") == "SELECT", "the menu keeps the focus"
    page.locator(".labkit-view").focus()
    page.keyboard.press("Home")
    assert sentence(page).startswith("Cycle 0.")


def test_a_menu_or_a_click_on_a_copy_follows_a_tile(show, pages):
    page, run = show("warp_timeline"), pages["warp_timeline"][0].data["runs"][0]
    menu, canvas, told = page.locator("select").last, page.locator("canvas"), page.locator("p.wait[role=status]").first
    plain = canvas.screenshot()
    assert told.is_hidden()
    menu.select_option("K tile 1")
    assert told.inner_text().startswith(f"K tile 1 of wgmma {run['tiles'][0]['say']} K tile 1 of again")
    assert canvas.screenshot() != plain
    menu.select_option("none")
    assert told.is_hidden() and canvas.screenshot() == plain
    width, middle = canvas.bounding_box()["width"], sum(run["tiles"][1]["copy"]) / 2
    left = 92 + middle / pages["warp_timeline"][0].data["common"]["cycles"] * (width - 92 - 18)
    canvas.click(position={"x": left, "y": 28})
    assert menu.input_value() == run["tiles"][1]["name"] == "V tile 1"
    page.locator("select").first.select_option("serves the first request")
    assert page.locator("select").last.input_value() == "V tile 1", "the tile stays in the other order"


def test_sliders_choose_a_tile_and_what_does_not_fit_is_said(show, pages):
    page, data = show("tile_sizes"), pages["tile_sizes"][0].data
    pictures = page.locator("canvas")
    before = [pictures.nth(n).screenshot() for n in range(2)]
    assert sentence(page) == data["say"][0].replace("**", "")
    page.get_by_label("queries of a tile").focus()
    page.keyboard.press("End")
    assert "256 queries x 128 keys, head_dim 128, bfloat16. It does not fit" in sentence(page)
    assert all(pictures.nth(n).screenshot() != old for n, old in enumerate(before))
    page.get_by_label("float32").check()
    assert "float32. It does not fit: Q, K and V take 384 KB" in sentence(page)


def test_a_page_in_a_dark_notebook_has_no_light_rim(show):
    page = show("filtering", width=600, color_scheme="light")
    page.evaluate("() => { document.body.dataset.jpThemeLight = 'false'; }")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(17, 20, 24)"


def test_the_pointer_and_the_sliders_move_the_window(show):
    page = show("filtering", width=900)
    page.get_by_label("column of y").fill("4")
    assert page.locator("canvas").count() == 3
    page.locator("canvas").first.hover(position={"x": 8, "y": 26})
    assert page.get_by_label("column of y").input_value() == "0"
