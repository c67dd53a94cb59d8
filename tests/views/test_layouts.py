"""Pictures of arrays that are not in C order: every access at its row and column, sectors where they lie in memory."""

import numpy as np
import pytest

import labkit
from labkit import cuda, ptx
from labkit.bench._lab import find_chromium
from labkit.loops import trace as trace_loop
from labkit.machine.gpus import CacheLevel, Cpu
from labkit.simulator.host import DeviceArray
from labkit.views import banks, cache, memory, tiling
from labkit.views.base import unpack
from labkit.views.cache import cached_flags
from labkit.views.replay import replay_launch

X = np.arange(48 * 48, dtype=np.float32).reshape(48, 48)
LAYOUTS = {
    "C order": X[:24, :32].copy(),
    "Fortran order": np.asfortranarray(X[:24, :32]),
    "transposed": X[:32, :24].T,
    "every other row": X[::2, :32],
    "some columns": X[:24, 3:35],
    "every other column": np.arange(24 * 64, dtype=np.float32).reshape(24, 64)[:, ::2],
    "upside down": X[23::-1, :32],
    "mirrored": X[:24, 31::-1],
    "transposed, mirrored, with steps": np.arange(64 * 48, dtype=np.float32).reshape(64, 48)[::-2, ::2].T,
}
layouts = pytest.mark.parametrize("A", LAYOUTS.values(), ids=LAYOUTS)


@cuda.jit
def rows(A, out):
    col = cuda.threadIdx.x
    total = np.float32(0)
    for row in range(A.shape[0]):
        total += A[row, col]
    out[col] = total


@cuda.jit
def whole(A, out):
    col, row = cuda.grid(2)
    if row < A.shape[0] and col < A.shape[1]:
        out[row, col] = A[row, col]


def by_rows(A):
    """A run of one warp, which reads a row after the other."""
    return labkit.simulate(rows, 1, 32, DeviceArray(A), np.zeros(32, np.float32))


def column(view, name):
    return [row[view.data["table"]["columns"].index(name)] for row in view.data["table"]["rows"]]


@layouts
def test_samples_name_each_lanes_row_and_column(A):
    trace = labkit.simulate(whole, (1, 24), (32, 1), DeviceArray(A), np.zeros(A.shape, np.float32), record=((0, 7, 0),))
    number = next(i for i, c in enumerate(trace.sites) if c.site.array == "A")
    np.testing.assert_array_equal(trace.samples.index[trace.samples.site == number], [7 * 32 + np.arange(32)])


@layouts
def test_a_trace_knows_where_every_element_lies(A):
    info = by_rows(A).array("A")
    numbers = np.arange(A.size)
    addresses = info.addresses(numbers)
    in_numpy = [A[row:, col:].ctypes.data for row in range(A.shape[0]) for col in range(A.shape[1])]
    assert (addresses - addresses[0]).tolist() == [address - in_numpy[0] for address in in_numpy]
    sector = int(addresses[100]) // 32
    expected = sorted(np.flatnonzero(addresses // 32 == sector).tolist(), key=lambda n: addresses[n])
    assert info.elements_in(sector, 32).tolist() == expected


@layouts
def test_the_memory_view_moves_the_sectors_that_were_counted(A):
    trace = by_rows(A)
    counted = next(c for c in trace.sites if c.site.array == "A")
    assert sum(column(memory(trace, array="A"), "sectors")) == counted.sectors


def test_the_memory_view_says_what_a_turned_array_costs():
    view = memory(by_rows(LAYOUTS["transposed"]), array="A")
    assert "32 lanes load from 32 sectors and use 128 of 1024 bytes" in view.sentence
    assert "Neighbours in memory are one below the other in A." in view.sentence
    assert view.data["firsts"][0] == "A[0, 0] to A[7, 0]"
    assert "one below" not in memory(by_rows(LAYOUTS["every other row"]), array="A").sentence


def test_what_lies_in_a_sector_is_told_in_the_order_of_memory():
    assert memory(by_rows(LAYOUTS["C order"]), array="A").data["firsts"][1] == "A[1, 0] to A[1, 7]"
    assert memory(by_rows(LAYOUTS["mirrored"]), array="A").data["firsts"][0] == "A[0, 31] to A[0, 24]"
    assert memory(by_rows(LAYOUTS["every other column"]), array="A").data["firsts"][0] == "A[0, 0] to A[0, 3]"


@cuda.jit
def fours(x, out):
    i = cuda.grid(1)
    a, b, c, d = ptx.load4(x, 4 * i)
    out[i] = a + b + c + d


def test_a_vector_load_uses_all_that_it_takes():
    trace = labkit.simulate(fours, 1, 32, np.ones(128, np.float32), np.zeros(32, np.float32))
    assert "32 lanes load from 16 sectors and use 512 of 512 bytes" in memory(trace, array="x").sentence


@cuda.jit
def shared_fours(out):
    tile = cuda.shared.array((32, 4), np.float32, alignment=16)
    i = cuda.threadIdx.x
    ptx.store4(tile, (i, 0), np.float32(1), np.float32(2), np.float32(3), np.float32(4))
    out[i] = tile[i, 3]


def test_a_vector_store_to_shared_memory_takes_the_wavefronts_that_were_counted():
    trace = labkit.simulate(shared_fours, 1, 32, np.zeros(32, np.float32))
    counted = next(c for c in trace.sites if c.site.kind == "store" and c.site.space == "shared")
    view = banks(trace, line=counted.site.line)
    assert unpack(view.data["sides"][0]["passes"]).tolist() == [counted.wavefronts] == [4]


BODY = np.dtype([("place", np.float64, 3), ("mass", np.float32), ("kind", np.int8)], align=True)  # 32 bytes
PAIR = np.dtype([("left", np.float32), ("right", np.float32, 4)])  # 20 bytes, so that some lie in two sectors


@cuda.jit
def masses(bodies, out):
    i = cuda.grid(1)
    out[i] = bodies[i].mass


@cuda.jit
def lefts(pairs, out):
    i = cuda.grid(1)
    out[i] = pairs[i].left


@pytest.mark.parametrize("kernel, kind", [(masses, BODY), (lefts, PAIR)])
def test_one_field_of_each_record_leaves_most_of_them_unused(kernel, kind):
    trace = labkit.simulate(kernel, 1, 32, np.zeros(32, kind), np.zeros(32, np.float32))
    name = kernel.__name__.replace("masses", "bodies").replace("lefts", "pairs")
    sectors = 32 * kind.itemsize // 32
    assert (
        f"32 lanes load from {sectors} sectors and use 128 of {32 * sectors} bytes"
        in memory(trace, array=name).sentence
    )
    assert replay_launch(trace).asked == trace.counters.global_load_sectors == sectors


@cuda.jit
def shared_records(out):
    tile = cuda.shared.array(32, BODY)
    i = cuda.threadIdx.x
    tile[i].mass = np.float32(1)
    out[i] = tile[i].mass


def test_a_field_in_shared_memory_takes_the_wavefronts_that_were_counted():
    trace = labkit.simulate(shared_records, 1, 32, np.zeros(32, np.float32))
    assert unpack(banks(trace).data["sides"][0]["passes"]).tolist() == [8, 8]
    assert trace.counters.shared_load_wavefronts == 8


@layouts
def test_a_replay_asks_for_and_misses_what_the_launch_did(A):
    trace = by_rows(A)
    replayed = replay_launch(trace)
    assert replayed.asked == trace.counters.global_load_sectors
    assert replayed.asked - replayed.misses == trace.counters.l1_hits


def held(view, step):
    """Which elements of A the cache view draws as in the cache, by row and column."""
    shape = view.data["arrays"][0]["shape"]
    return cached_flags(view.data, step)[0].reshape(shape)


def test_a_turned_arrays_sectors_run_down_its_columns():
    view = cache(by_rows(LAYOUTS["transposed"]))
    first = held(view, 0)
    assert first[:8].all() and not first[8:].any()
    assert "**32 sectors of 32 had to come in**, the first with `A[0, 0]` to `A[7, 0]`." in view.data["say"][0]
    assert view.data["say"][1].endswith("L1 had all of it.")


def test_a_mirrored_arrays_sectors_lie_in_its_rows():
    view = cache(by_rows(LAYOUTS["mirrored"]))
    first = held(view, 0)
    assert first[0].all() and not first[1:].any()


@cuda.jit
def two(x, y, out):
    i = cuda.threadIdx.x
    out[i] = x[i] + y[i]


def test_arrays_that_share_sectors_share_what_is_in_the_cache():
    both = cuda.to_device(np.ones(64, np.float32))
    view = cache(labkit.simulate(two, 1, 32, both[::2], both[1::2], np.zeros(32, np.float32)))
    assert all(elements.all() for elements in cached_flags(view.data, 0))
    assert "8 sectors of 8 had to come in" in view.data["say"][0] and view.data["say"][1].endswith("all of it.")


def walk(A, out):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i] += A[i, j]


def test_a_loops_cache_line_runs_down_a_column_in_fortran_order():
    tiny = Cpu("tiny", 1, 1.0, (CacheLevel("L1", 1024, 2, 4),), 10.0, {"float32": 32.0}, "")
    traced = trace_loop(walk, np.ones((16, 16), order="F"), np.zeros(16), cpu=tiny, record=60)
    view = cache(traced, cpu=tiny)
    say = next(s for s in view.data["say"] if "`A[0, 0]` was" in s)
    assert "its line of 64 bytes comes in, `A[0, 0]` to `A[7, 0]`." in say
    first = held(view, view.data["say"].index(say))
    assert first[:8, 0].all() and first.sum() == 8
    by_row = next(s for s in view.data["say"] if "`A[0, 1]` was" in s)
    assert "not in the cache" in by_row


def test_the_tiling_view_counts_the_sectors_of_a_turned_array():
    def sectors(A):
        trace = labkit.simulate(whole, 1, (32, 24), DeviceArray(A), np.zeros((24, 32), np.float32))
        return tiling(trace).data["say"][0]

    assert "4 sectors per warp" in sectors(LAYOUTS["C order"])
    assert "32 sectors per warp" in sectors(LAYOUTS["transposed"])
    assert "warp 0 loads `A[0, :]`" in sectors(LAYOUTS["upside down"])


@pytest.mark.needs("chromium")
def test_the_page_draws_sectors_down_the_columns(tmp_path):
    from playwright.sync_api import sync_playwright

    trace = by_rows(LAYOUTS["transposed"])
    view = cache(trace)
    code = view.module().replace("export default", "const widget =")
    memory(trace, array="A").save_html(tmp_path / "memory.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        draw = "const replay = new Playback(labkitUnpack(data)); replay.goTo(0);"
        held = "return Array.from(replay.arrays[0].pieces, piece => !!replay.held.get(piece));"
        drawn = page.evaluate(f"data => {{ {code} {draw} {held} }}", view.data)
        page.goto((tmp_path / "memory.html").as_uri())
        stats = page.locator(".stats").first.inner_text()
        browser.close()
    assert drawn == [n < 8 * 32 for n in range(24 * 32)]
    assert "1,024\nbytes moved\n128\nbytes used" in stats
