"""A warp's sectors and banks, held against the simulator's own counts."""

from collections import Counter

import numpy as np
import pytest
from matplotlib.figure import Figure

import labkit
from labkit import cuda, ptx
from labkit.gemm.fp32 import s01_naive
from labkit.views import banks, memory
from labkit.views.base import unpack

WARP = 32
WIDE, TYPE = 32, np.float32


@cuda.jit
def transposed(x, out):
    tile = cuda.shared.array((32, WIDE), TYPE)
    i = cuda.threadIdx.x
    for row in range(32):
        tile[row, i] = x[row, i]
    cuda.syncthreads()
    for row in range(32):
        out[row, i] = tile[i, row]


@cuda.jit
def strided(x, out):
    i = cuda.threadIdx.x
    out[i] = x[2 * i]


def turned(wide, dtype=np.float32):
    x = np.ones((32, 32), dtype)
    return labkit.simulate(labkit.specialise(transposed, WIDE=wide, TYPE=dtype), 1, 32, x, x * 0)


def sectors(view):
    return [row[view.data["table"]["columns"].index("sectors")] for row in view.data["table"]["rows"]]


def test_a_column_walk_uses_an_eighth_of_what_it_moves():
    A = np.ones((64, 64), np.float32)
    trace = labkit.simulate(s01_naive.naive, *s01_naive.geometry(64, 64), A, A, A * 0)
    view = memory(trace, array="A")
    assert "32 lanes (16 different elements) load from 16 sectors and use 64 of 512 bytes" in view.sentence
    assert "12.5% of the bytes moved are used" in view.sentence


def test_sectors_are_those_that_the_simulator_counted():
    trace = turned(32)  # one block of one warp, so the view's accesses are the launch's
    for site in ("x", "out"):
        counted = next(c.sectors for c in trace.sites if c.site.array == site)
        assert sum(sectors(memory(trace, array=site))) == counted


def test_every_other_element_uses_half():
    x = np.ones(64, np.float32)
    view = memory(labkit.simulate(strided, 1, 32, x, x[:32] * 0), array="x")
    assert sectors(view) == [8] and "50% of the bytes moved are used" in view.sentence


@cuda.jit
def shared_by_lanes(x, out, lanes):
    i = cuda.threadIdx.x
    out[i] = x[i // lanes * 8]


@pytest.mark.parametrize(
    ("lanes", "end"),
    [
        (
            32,
            "32 lanes (1 different element) load from 1 sector and use 4 of 32 bytes. A broadcast: it serves 32 lanes.",
        ),
        (16, "load from 2 sectors and use 8 of 64 bytes. A broadcast: a sector serves 16 lanes."),
        (4, "load from 8 sectors and use 32 of 256 bytes. 12.5% of the bytes moved are used."),
    ],
)
def test_a_broadcast_is_no_waste(lanes, end):
    x = np.ones(256, np.float32)
    view = memory(labkit.simulate(shared_by_lanes, 1, 32, x, x[:32] * 0, lanes), array="x")
    assert view.sentence.endswith(end)


def test_a_line_picks_its_accesses():
    trace = turned(32)
    line = next(c.site.line for c in trace.sites if c.site.array == "out")
    view = memory(trace, line=line)
    assert {row[1] for row in view.data["table"]["rows"]} == {line}
    with pytest.raises(ValueError, match=r"makes no global access at line 1; in this kernel there are .*x\[row, i\]"):
        memory(trace, line=1)


@pytest.mark.parametrize("wide", [32, 33, 36])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_wavefronts_are_those_that_the_simulator_counted(wide, dtype):
    trace = turned(wide, dtype)
    view = banks(trace, array="tile")
    counted = trace.counters.shared_load_wavefronts + trace.counters.shared_store_wavefronts
    assert int(unpack(view.data["sides"][0]["passes"]).sum()) == counted


@cuda.jit
def by_vectors(x, out, step, repeats):
    kept = cuda.shared.array(1024, np.float32, alignment=16)
    t = cuda.threadIdx.x
    a, b, c, d = ptx.load4(x, 4 * t)
    ptx.store4(kept, 4 * (step * t % 256), a, b, c, d)
    cuda.syncthreads()
    a, b, c, d = ptx.load4(kept, 4 * (t // repeats % 8))
    out[t] = a + b + c + d


def vectors(step, repeats=2):
    x = np.ones(128, np.float32)
    return labkit.simulate(by_vectors, 1, 32, x, np.zeros(32, np.float32), step, repeats)


def drawn_words(view, step):
    """Return the wavefronts that the still picture draws, and the number of words in each, from the first one on."""
    figure = Figure()
    view.draw_still(figure, view.data, step)
    bars = [bar for bar in figure.axes[0].patches if bar.get_height() > 0]
    counts = Counter(int(bar.get_y() + height) for bar in bars for height in range(int(bar.get_height())))
    assert sorted(counts) == list(range(len(counts)))
    return [counts[wavefront] for wavefront in sorted(counts)]


@pytest.mark.parametrize(
    ("step", "words_per_wavefront"),
    [
        (1, [32] * 4),  # eight lanes in all banks
        (2, [16] * 8),  # four lanes in half of the banks, then the other four
        (8, [4] * 32),  # a lane at a time
        (33, [32] * 4),
    ],
)
def test_a_vector_of_16_bytes_per_lane_is_drawn_eight_lanes_at_a_time(step, words_per_wavefront):
    trace = vectors(step)
    view = banks(trace, array="kept")
    stores = int(unpack(view.data["sides"][0]["passes"])[0])
    assert stores == trace.counters.shared_store_wavefronts == len(words_per_wavefront)
    assert drawn_words(view, 0) == words_per_wavefront
    assert "A wavefront serves at most 8 lanes that store 16 bytes each, so 4 is the least." in view.data["say"][0]


@pytest.mark.parametrize(
    ("repeats", "lanes"),
    [
        (1, 8),  # each eight lanes read the same 128 bytes, and each needs a wavefront
        (2, 16),  # neighbours read the same vector
    ],
)
def test_what_groups_of_lanes_read_alike_is_drawn_for_each_group(repeats, lanes):
    trace = vectors(1, repeats)
    view = banks(trace, array="kept")
    groups = WARP // lanes
    assert int(unpack(view.data["sides"][0]["passes"])[1]) == trace.counters.shared_load_wavefronts == groups
    assert drawn_words(view, 1) == [32] * groups
    said = f"A wavefront serves at most {lanes} lanes that load 16 bytes each, so {groups} is the least."
    assert said in view.data["say"][1]


RECORD_BOXES = """() => {
    window.boxes = [];
    const draw = CanvasRenderingContext2D.prototype.fillRect;
    CanvasRenderingContext2D.prototype.fillRect = function (x, y, width, height) {
        if (height === 5) boxes.push(y);
        draw.call(this, x, y, width, height);
    };
}"""


@pytest.mark.needs("chromium")
@pytest.mark.parametrize(("repeats", "wavefronts"), [(1, 4), (2, 2)])
def test_the_page_draws_what_the_still_picture_draws(browser, tmp_path, repeats, wavefronts):
    banks(vectors(1, repeats), array="kept").save_html(tmp_path / "banks.html")
    page = browser.new_page()
    page.goto((tmp_path / "banks.html").as_uri())
    page.wait_for_selector(".labkit-view[data-revision]")
    page.evaluate(RECORD_BOXES)
    page.get_by_label("step forward").click()
    words = Counter(page.evaluate("() => boxes"))
    assert [*words.values()] == [32] * wavefronts
    page.close()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("wide", [32, 33])
def test_the_picture_has_as_many_wavefronts_as_the_counter(wide, dtype):
    view = banks(turned(wide, dtype), array="tile")
    passes = unpack(view.data["sides"][0]["passes"])
    for step in range(0, len(passes), 7):
        assert len(drawn_words(view, step)) == passes[step]
    assert ("serves at most 16 lanes" in view.data["say"][0]) == (dtype == np.float64)


def test_padding_is_compared_side_by_side():
    view = banks(turned(32), turned(33), labels=("row length 32", "row length 33"))
    assert "tile[i, row]: 32 wavefronts with row length 32 and 1 wavefront with row length 33" in view.sentence
    assert [side["label"] for side in view.data["sides"]] == ["row length 32", "row length 33"]


def test_an_unlabelled_side_is_called_by_its_array():
    assert banks(turned(33)).data["sides"][0]["label"] == "tile[32][33]"


def test_a_kernel_without_shared_memory_has_no_banks():
    x = np.ones(64, np.float32)
    with pytest.raises(ValueError, match="makes no shared access; in this kernel there is none"):
        banks(labkit.simulate(strided, 1, 32, x, x[:32] * 0))


def test_still_pictures(tmp_path):
    for name, view in (("memory", memory(turned(32))), ("banks", banks(turned(32), turned(33)))):
        view.save_png(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 5000


def test_banks_need_a_trace():
    with pytest.raises(TypeError, match=r"banks takes a trace, what `labkit.simulate` returned, not nothing"):
        banks()


def test_a_block_may_be_given_as_one_number():
    trace = turned(32)
    assert memory(trace, block=0).title == memory(trace, block=np.int64(0)).title == memory(trace).title
    with pytest.raises(ValueError, match=r"Block \(5, 0\) was not recorded"):
        memory(trace, block=5)
