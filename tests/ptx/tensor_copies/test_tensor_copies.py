"""Copies of boxes by TMA: where the bytes lie, what lies outside, and what must be waited for."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from cells import kernel_in, line_of
from numba import types, uint8, uint16, uint64

import labkit
from labkit import cuda, ptx
from labkit.simulator import host
from labkit.simulator.errors import KernelError, LaunchError

# a use of each instruction, and the least compute capability that has it (tests/ptx/test_capabilities.py)
LINES = {
    "ptx.tma_load(tile, (0, 0), tensor_map, (t, 64), barriers, 1)": (9, 0),
    "ptx.tma_load_multicast(tile, (0, 0), tensor_map, (t, 64), barriers, 1, 3)": (9, 0),
    "ptx.tma_load_pixels(tile, (0, 0), pixel_map, (t, t, -1, 64), (t, 2), barriers, 1)": (9, 0),
    "ptx.tma_load_pixels_multicast(tile, (0, 0), pixel_map, (t, t, -1, 64), (t, 2), barriers, 1, 3)": (9, 0),
    "ptx.tma_prefetch(tensor_map)": (9, 0),
    "ptx.tma_store(tensor_map, (t, 64), tile, (0, 0))": (9, 0),
    "ptx.tma_store_pixels(pixel_map, (t, t, 2, 64), tile, (0, 0))": (9, 0),
    "ptx.tma_add(sums, 4 * t, part, 8, 12)": (9, 0),
    "ptx.tma_store_commit()": (9, 0),
    "ptx.tma_store_wait(1)": (9, 0),
}

LOAD = """
@cuda.jit
def load(source, row, column, out):
    tile = cuda.shared.array((ROWS, 64), uint16, alignment=1024)
    bar = cuda.shared.array(1, uint64)
    t = cuda.threadIdx.x
    if t == 0:
        ptx.mbarrier_init(bar, 0, 1)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    if t == 0:
        ptx.mbarrier_expect(bar, 0, ROWS * 128)
        ptx.tma_load(tile, (0, 0), source, (row + ROWS * cuda.blockIdx.x, column), bar, 0)
    ptx.mbarrier_wait(bar, 0, 0)
    for r in range(ROWS):
        out[cuda.blockIdx.x, r, t] = tile[r, t]
"""

STORE = """
@cuda.jit
def store(target, x, row, column):
    tile = cuda.shared.array((ROWS, 64), uint16, alignment=1024)
    t = cuda.threadIdx.x
    for r in range(ROWS):
        tile[r, t] = x[r, t]
    ptx.fence_async()
    cuda.syncthreads()
    if t == 0:
        ptx.tma_store(target, (row, column), tile, (0, 0))
        ptx.tma_store_commit()
        ptx.tma_store_wait(0)
    cuda.syncthreads()
    for r in range(ROWS):
        tile[r, t] = 0
"""
ROWS = 24


def kernel(text):
    return kernel_in(text, ptx=ptx, uint8=uint8, uint16=uint16, uint64=uint64, ROWS=ROWS)


def numbers(*shape):
    return np.random.default_rng(3).integers(0, 1 << 16, shape, np.uint16)


def box_of(array, row, column):
    """The elements of a box, zeros outside of the array."""
    wide = np.pad(array, 512)
    return wide[512 + row : 512 + row + ROWS, 512 + column : 512 + column + 64]


def swizzled(box):
    """A tile as it lies in shared memory: pieces of 8 elements change places within their row."""
    pieces = box.reshape(len(box), 8, 8)
    lies = np.empty_like(pieces)
    for r in range(len(box)):
        for p in range(8):
            lies[r, p ^ (r % 8)] = pieces[r, p]
    return lies.reshape(box.shape)


def changed(text, before, after=""):
    assert text.count(before) == 1, before
    return text.replace(before, after)


def mutant(text, before, after=""):
    return kernel(changed(text, before, after))


def load(made, row=0, column=0, source=None, blocks=1):
    source = numbers(72, 200) if source is None else source
    tensor_map = ptx.TensorMap(source, (ROWS, 64))
    return labkit.simulate(made, blocks, 64, tensor_map, row, column, np.zeros((blocks, ROWS, 64), np.uint16))


@pytest.mark.parametrize("row, column", [(0, 0), (5, 8), (60, 152), (-7, -16), (72, 0), (0, 200), (-24, 8), (0, -64)])
def test_a_box_lies_swizzled_in_its_tile_with_zeros_outside_of_the_array(row, column):
    source = numbers(72, 200)
    trace = load(kernel(LOAD), row, column, source, blocks=3)
    assert not trace.errors
    for block, out in enumerate(trace.outputs[3]):
        assert np.array_equal(out, swizzled(box_of(source, row + ROWS * block, column)))


@pytest.mark.parametrize("column", [4, 150, -10])
def test_a_box_begins_at_a_multiple_of_16_bytes_as_tma_wants_it(column):
    with pytest.raises(KernelError, match=f"multiple of 16 bytes along the last axis, not at element {column} of 2"):
        load(kernel(LOAD), 5, column)


def test_a_box_of_three_axes():
    made = kernel(LOAD.replace("row + ROWS * cuda.blockIdx.x, column", "row, column, 0"))
    source = numbers(5, 9, 72)
    trace = labkit.simulate(made, 1, 64, ptx.TensorMap(source, (4, 6, 64)), 3, 5, np.zeros((1, ROWS, 64), np.uint16))
    assert not trace.errors
    box = np.zeros((4, 6, 64), np.uint16)
    box[:2, :4] = source[3:, 5:, :64]
    assert np.array_equal(trace.outputs[3][0], swizzled(box.reshape(ROWS, 64)))


def narrow(box, columns):
    """Rows of so many elements as they lie in shared memory: the pieces of a line of 128 bytes are swizzled alike."""
    lines = box.reshape(-1, 8, 8)
    lies = np.empty_like(lines)
    for line in range(len(lines)):
        for p in range(8):
            lies[line, p ^ line % (columns // 8)] = lines[line, p]
    return lies.reshape(-1, 64)


@pytest.mark.parametrize("where", ["simulated", pytest.param("launched", marks=pytest.mark.needs("gpu"))])
@pytest.mark.parametrize("columns", [16, 32])
@pytest.mark.parametrize("row, column", [(0, 0), (5, 8), (60, 152), (-7, -16)])
def test_rows_of_32_and_64_bytes_lie_several_to_a_line(row, column, columns, where):
    source, lines = numbers(72, 200), ROWS * columns // 64
    made = kernel_in(
        changed(LOAD, "row + ROWS * cuda.blockIdx.x", "row"), ptx=ptx, uint16=uint16, uint64=uint64, ROWS=lines
    )
    out = np.zeros((1, lines, 64), np.uint16)
    if where == "launched":
        on_gpu = cuda.to_device(out)
        made[1, 64](ptx.TensorMap(cuda.to_device(source), (ROWS, columns)), row, column, on_gpu)
        out = on_gpu.copy_to_host()
    else:
        trace = labkit.simulate(made, 1, 64, ptx.TensorMap(source, (ROWS, columns)), row, column, out)
        assert not trace.errors
        out = trace.outputs[3]
    assert np.array_equal(out[0], narrow(box_of(source, row, column)[:, :columns].copy(), columns))


def test_a_store_of_rows_of_64_bytes_undoes_what_a_load_did():
    target, box = np.zeros((72, 200), np.uint16), numbers(ROWS, 32)
    made = kernel_in(STORE, ptx=ptx, uint16=uint16, ROWS=ROWS // 2)
    trace = labkit.simulate(made, 1, 64, ptx.TensorMap(target, (ROWS, 32)), narrow(box, 32), 5, 8)
    assert not trace.errors
    assert np.array_equal(trace.outputs[0][5 : 5 + ROWS, 8:40], box) and trace.outputs[0].sum() == box.sum()


def test_a_load_counts_the_sectors_of_its_rows_past_l1():
    trace = load(kernel(LOAD), row=60, column=152)  # 12 rows of 48 elements: 96 bytes each, 3 or 4 sectors
    site = next(c for c in trace.sites if c.site.space == "global" and c.site.kind == "load")
    assert (site.accesses, site.requests, site.bytes, site.l1_hits) == (12 * 48, 1, 12 * 96, 0)
    first = 2 * (200 * np.arange(60, 72) + 152)
    assert site.sectors == sum((first + 95) // 32 - first // 32 + 1)
    assert site.site.line == line_of(kernel(LOAD), "tma_load") or site.site.array == "source"
    written = next(c for c in trace.sites if c.site.array == "tile" and c.site.kind == "store")
    assert (written.accesses, written.wavefronts) == (ROWS * 64, ROWS)


def only(trace, kind):
    (finding,) = [f for f in trace.errors if f.kind == kind]
    return finding


def test_who_reads_a_tile_without_waiting_is_told_to_wait():
    made = mutant(LOAD, "    ptx.mbarrier_wait(bar, 0, 0)\n")
    (finding,) = [f for f in load(made).errors if f.line == line_of(made, "= tile[")]
    assert finding.kind == "in-flight"
    assert "before the copy that thread 0 of block 0 began" in finding.message
    assert "ptx.mbarrier_wait" in finding.remedy


@pytest.mark.parametrize(
    "before, after, kind, part",
    [
        ("ptx.mbarrier_wait(bar, 0, 0)", "ptx.mbarrier_wait(bar, 0, 1)", "in-flight", "ptx.mbarrier_wait"),
        ("        ptx.mbarrier_expect(bar, 0, ROWS * 128)\n", "", "deadlock", "0 of 1 arrival and 3,072 of 0 expected"),
        ("ROWS * 128)", "ROWS * 64)", "deadlock", "1 of 1 arrival and 3,072 of 1,536 expected bytes"),
        ("ROWS * 128)", "ROWS * 256)", "deadlock", "3,072 of 6,144 expected bytes"),
        ("        ptx.mbarrier_init_fence()\n", "", "mbarrier", "TMA may not know"),
        (", alignment=1024", "", "misaligned", "alignment=1024"),
        ("tile, (0, 0), source", "tile, (1, 0), source", "bounds", "the array ends before"),
        (LOAD[LOAD.index("    ptx.mbarrier_wait"):], "    out[0, 0, t] = 1\n", "in-flight", "nobody waits for"),
        ("(row + ROWS * cuda.blockIdx.x, column), bar, 0)\n",
         "(row + ROWS * cuda.blockIdx.x, column), bar, 0)\n    tile[0, t] = 1\n", "in-flight", "has arrived there"),
        ("    ptx.mbarrier_wait(bar, 0, 0)\n",
         "    if t == 0:\n        ptx.mbarrier_arrive(bar, 0)\n    ptx.mbarrier_wait(bar, 0, 0)\n",
         "mbarrier", "wait for the end of a phase before arriving for the next"),
        ("    if t == 0:\n        ptx.mbarrier_expect", "    tile[0, t] = 1\n    cuda.syncthreads()\n"
         "    if t == 0:\n        ptx.mbarrier_expect", "proxy", "ptx.fence_async()"),
    ],
)  # fmt: skip
def test_a_broken_load_is_found_out(before, after, kind, part):
    trace = load(mutant(LOAD, before, after))
    assert any(f.kind == kind and part in f.message for f in trace.errors), trace.errors


def store(made, row=0, column=0):
    return labkit.simulate(made, 1, 64, ptx.TensorMap(numbers(72, 200), (ROWS, 64)), numbers(ROWS, 64), row, column)


@pytest.mark.parametrize("row, column", [(0, 0), (5, 8), (60, 152), (-7, -16), (72, 0)])
def test_a_store_writes_what_lies_in_the_array(row, column):
    trace = store(kernel(STORE), row, column)
    assert not [f for f in trace.errors if f.kind != "unwritten"]
    expected = numbers(72, 200)
    rows, columns = np.arange(ROWS) + row, np.arange(64) + column
    box = swizzled(numbers(ROWS, 64))  # the same exchange, back
    for r, y in enumerate(rows):
        for c, x in enumerate(columns):
            if 0 <= y < 72 and 0 <= x < 200:
                expected[y, x] = box[r, c]
    assert np.array_equal(trace.outputs[0], expected)


@pytest.mark.parametrize(
    "before, kind, part",
    [
        ("    ptx.fence_async()\n", "proxy", "ptx.fence_async()"),
        ("        ptx.tma_store_wait(0)\n", "in-flight", "has read it"),
        ("        ptx.tma_store_commit()\n", "in-flight", "has read it"),
        ("    ptx.fence_async()\n    cuda.syncthreads()\n", "race", "syncthreads"),
        ("        ptx.tma_store_wait(0)\n    cuda.syncthreads()\n    for r in range(ROWS):\n        tile[r, t] = 0\n",
         "in-flight", "ends before the store"),
    ],
)  # fmt: skip
def test_a_broken_store_is_found_out(before, kind, part):
    trace = store(mutant(STORE, before))
    assert any(f.kind == kind and part in f.message for f in trace.errors), trace.errors


def test_a_tile_that_was_written_and_fenced_takes_a_copy():
    written = (
        "    tile[0, t] = 1\n    ptx.fence_async()\n    cuda.syncthreads()\n    if t == 0:\n        ptx.mbarrier_expect"
    )
    assert not load(mutant(LOAD, "    if t == 0:\n        ptx.mbarrier_expect", written)).errors


def store_by_two(value, row, column=0):
    made = mutant(changed(STORE, "tile[r, t] = x[r, t]", f"tile[r, t] = {value}"), "(row, column)", f"({row}, column)")
    return labkit.simulate(made, 2, 64, ptx.TensorMap(numbers(72, 200), (ROWS, 64)), numbers(ROWS, 64), 0, column)


@pytest.mark.parametrize("row", ["row", "row + 20 * cuda.blockIdx.x"])
def test_blocks_that_store_other_values_to_one_place_race(row):
    (finding,) = store_by_two("x[r, t] ^ cuda.blockIdx.x", row).errors
    assert finding.kind == "race" and finding.array == "target"


@pytest.mark.parametrize("column", [0, -16, 152])
@pytest.mark.parametrize(
    "value, row", [("x[r, t]", "row"), ("x[r, t] ^ cuda.blockIdx.x", "row + ROWS * cuda.blockIdx.x")]
)
def test_blocks_that_store_one_value_or_to_places_of_their_own_do_not_race(value, row, column):
    assert not store_by_two(value, row, column).errors


# A thread stores a tile, does something with the array that it stored to, and waits for what it began.
STORE_AND_USE = """
@cuda.jit
def use(again, target, x, out):
    tile = cuda.shared.array((ROWS, 64), uint16, alignment=1024)
    other = cuda.shared.array((ROWS, 64), uint16, alignment=1024)
    bar = cuda.shared.array(1, uint64)
    t = cuda.threadIdx.x
    if t == 0:
        ptx.mbarrier_init(bar, 0, 1)
        ptx.mbarrier_init_fence()
    for r in range(ROWS):
        tile[r, t] = x[r, t]
        other[r, t] = x[r, t] OTHER
    ptx.fence_async()
    cuda.syncthreads()
    if t == 0:
        ptx.tma_store(target, (0, 0), tile, (0, 0))
        ptx.tma_store_commit()
        ptx.tma_store_wait(0)
        THREAD
        ptx.tma_store_commit()
        ptx.tma_store_wait(0)
    cuda.syncthreads()
    BLOCK
"""
LOAD_IT = """ptx.mbarrier_expect(bar, 0, ROWS * 128)
        ptx.tma_load(other, (0, 0), target, (ROW, 0), bar, 0)
        ptx.mbarrier_wait(bar, 0, 0)"""


def store_and_use(thread="pass", block="pass", other=""):
    text = STORE_AND_USE.replace("THREAD", thread).replace("BLOCK", block).replace("OTHER", other)
    array = numbers(72, 64)
    boxes = ptx.TensorMap(array, (ROWS, 64))
    return labkit.simulate(kernel(text), 1, 64, array, boxes, numbers(ROWS, 64), np.zeros(64, np.uint16))


@pytest.mark.parametrize(
    "thread, block, other, does",
    [
        ("out[0] = again[3, 5]", "pass", "", "reads again[3, 5]"),
        ("pass", "out[t] = again[3, t]", "", "reads again[3, 0]"),
        (LOAD_IT.replace("ROW,", "8,"), "pass", "", "reads target[8, 0]"),
        ("again[3, 5] = 0", "pass", "", "writes again[3, 5]"),
        ("ptx.tma_store(target, (8, 0), other, (0, 0))", "pass", "^ 1", "writes target[8, 0]"),
    ],
)
def test_nobody_uses_what_was_stored_in_the_same_launch(thread, block, other, does):
    """`cp.async.bulk.wait_group.read` says that the tile has been read, not that the array has been written."""
    (finding,) = store_and_use(thread, block, other).errors
    assert finding.kind == "in-flight"
    assert f"thread 0 of block 0 {does} before the store that thread 0 of block 0 began" in finding.message
    assert "let a later launch read it" in finding.remedy


@pytest.mark.parametrize(
    "thread, block, other",
    [
        ("out[0] = again[ROWS, 5]", "out[t] = again[ROWS, t]", ""),
        (LOAD_IT.replace("ROW,", "ROWS,"), "pass", ""),
        ("ptx.tma_store(target, (ROWS, 0), other, (0, 0))", "pass", "^ 1"),
        ("ptx.tma_store(target, (0, 0), other, (0, 0))", "pass", ""),
    ],
)
def test_what_lies_beside_a_store_is_free_and_the_same_values_do_no_harm(thread, block, other):
    assert not store_and_use(thread, block, other).errors


OVERWRITE = LOAD.replace("def load(source,", "def load(again, source,")


@pytest.mark.parametrize("place, is_early", [("before", True), ("beside", False), ("after", False)])
def test_nobody_writes_what_a_load_still_reads(place, is_early):
    write, wait = "    if t == 0:\n        again[ROW, 3] = 5\n", "    ptx.mbarrier_wait(bar, 0, 0)\n"
    write = write.replace("ROW", "40" if place == "beside" else "4")
    made = mutant(OVERWRITE, wait, wait + write if place == "after" else write + wait)
    array, out = numbers(72, 200), np.zeros((1, ROWS, 64), np.uint16)
    found = labkit.simulate(made, 1, 64, array, ptx.TensorMap(array, (ROWS, 64)), 0, 0, out).errors
    assert [(f.kind, f.line) for f in found] == [("in-flight", line_of(made, "again[4"))] * is_early
    assert all("before the copy that thread 0 of block 0 began" in f.message for f in found)


def test_a_launch_without_a_gpu_writes_to_the_array_under_the_map(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simulator")
    array, x = np.zeros((ROWS, 64), np.uint16), numbers(ROWS, 64)
    kernel(STORE)[1, 64](ptx.TensorMap(array, (ROWS, 64)), x, 0, 0)
    assert np.array_equal(array, swizzled(x))
    device = cuda.to_device(np.zeros((ROWS, 64), np.uint16))
    kernel(STORE)[1, 64](ptx.TensorMap(device, (ROWS, 64)), x, 0, 0)
    assert np.array_equal(device.copy_to_host(), swizzled(x))


def test_an_array_is_the_same_beside_its_map():
    made = kernel(
        STORE.replace("def store(target,", "def store(again, target,") + "    if t == 0:\n        again[0, 0] = 7\n"
    )
    array = numbers(72, 200)
    trace = labkit.simulate(made, 1, 64, array, ptx.TensorMap(array, (ROWS, 64)), numbers(ROWS, 64), 8, 0)
    assert not trace.errors
    assert np.array_equal(trace.outputs[0], trace.outputs[1])
    assert trace.outputs[0][0, 0] == 7 and (trace.outputs[0][8] != array[8]).any()


@pytest.mark.parametrize(
    "array, box",
    [
        (np.zeros((8, 64), np.uint16), (8, 24)),
        (np.zeros((8, 64), np.uint16), (64,)),
        (np.zeros((8, 60), np.uint16), (8, 64)),
        (np.zeros((8, 64), np.uint16)[::-1], (8, 64)),
        (np.zeros((512, 64), np.uint16), (512, 64)),
        (np.zeros((0, 64), np.uint16), (8, 64)),
        (np.zeros((1, 1, 1, 1, 8, 64), np.uint16), (1, 1, 1, 1, 8, 64)),
    ],
)
def test_boxes_that_tma_does_not_take(array, box):
    with pytest.raises(ValueError, match="box|rows|axes|backwards"):
        ptx.TensorMap(array, box)


@pytest.mark.parametrize(
    "array, box",
    [
        ([[1, 2]], (8, 64)),
        (np.zeros((8, 64), np.uint16), 64),
        (np.zeros((8, 64), np.uint16), (8.5, 64)),
        (np.zeros((8, 16)), (8, 16)),
        (np.zeros((8, 8), complex), (8, 8)),
        (np.zeros((8, 128), np.bool_), (8, 128)),
    ],
)
def test_maps_of_other_things_are_refused_in_a_sentence(array, box):
    with pytest.raises(TypeError, match="describes an array|tuple of whole numbers|moves numbers"):
        ptx.TensorMap(array, box)


def test_a_map_of_a_slice_begins_at_a_multiple_of_16_bytes():
    whole = host.to_device(numbers(72, 208))
    source = numbers(72, 208)
    assert np.array_equal(load(kernel(LOAD), source=whole[:, 8:]).outputs[3][0], swizzled(box_of(source[:, 8:], 0, 0)))
    with pytest.raises(LaunchError, match="the tensor map `source` does not begin at a multiple of 16 bytes"):
        load(kernel(LOAD), source=whole[:, 4:])


IN_A_FUNCTION = """
@cuda.jit(device=True)
def fetch(tile, tensor_map, row, column, bar):
    if cuda.threadIdx.x == 0:
        ptx.mbarrier_expect(bar, 0, ROWS * 128)
        ptx.tma_load(tile, (0, 0), tensor_map, (row, column), bar, 0)
    ptx.mbarrier_wait(bar, 0, 0)
"""


def test_a_device_function_takes_the_map_and_waits():
    begin, end = LOAD.index("    if t == 0:\n        ptx.mbarrier_expect"), LOAD.index("    for r in range")
    call = "    fetch(tile, source, row, column, bar)\n"
    trace = load(kernel(IN_A_FUNCTION + LOAD[:begin] + call + LOAD[end:]), 5, 8)
    assert not trace.errors
    assert np.array_equal(trace.outputs[3][0], swizzled(box_of(numbers(72, 200), 5, 8)))


@pytest.mark.needs("numba-cuda")
def test_a_kernel_gets_its_map_by_value_while_another_thread_compiles_a_device_function(monkeypatch):
    from labkit.cuda import compiling
    from labkit.ptx.tensor_copies.map_types import TensorMapType

    begun, done = Event(), Event()

    def compile_device(dispatcher, *_):
        begun.set()
        assert done.wait(60)

    monkeypatch.setattr(compiling.CUDADispatcher, "compile_device", compile_device)
    device_function = compiling.jit(device=True)(changed)
    kinds = TensorMapType(2), types.int64, types.int64, types.Array(uint16, 3, "C")
    with ThreadPoolExecutor(1) as other:
        compiled = other.submit(device_function.compile_device, ())
        assert begun.wait(60)
        try:
            text = compiling.ptx_text(kernel(LOAD), kinds, (9, 0))
        finally:
            done.set()
        compiled.result()
    assert "cvta.param.u64" in text  # the address at which the launch has put it


def test_a_thread_can_be_looked_at_beside_tma():
    arguments = ptx.TensorMap(numbers(72, 200), (ROWS, 64)), 0, 0, np.zeros((1, ROWS, 64), np.uint16)
    trace = labkit.simulate(kernel(LOAD), 1, 64, *arguments, inspect=(0, 3))
    assert trace.steps[-1].variables["r"] == ROWS - 1


def test_a_map_is_no_array_and_an_array_no_map():
    for before, after, part in [
        ("out[cuda.blockIdx.x, r, t] = tile[r, t]", "out[0, r, t] = source[r, t]", "a tensor map"),
        ("tile, (0, 0), source, (row + ROWS * cuda.blockIdx.x, column)", "tile, (0, 0), out, (0, 0, 0)", "TensorMap"),
        ("(row + ROWS * cuda.blockIdx.x, column)", "row", "a tuple of 2 whole numbers"),
        ("(row + ROWS * cuda.blockIdx.x, column)", "(row, 0.5)", "a tuple of 2 whole numbers"),
    ]:
        with pytest.raises(KernelError, match=part):
            load(mutant(LOAD, before, after))


ROUNDS = """
@cuda.jit
def rounds(source, target):
    tile = cuda.shared.array((ROWS, 64), uint16, alignment=1024)
    bar = cuda.shared.array(1, uint64)
    t = cuda.threadIdx.x
    if t == 0:
        ptx.mbarrier_init(bar, 0, 1)
        ptx.mbarrier_init_fence()
        ptx.mbarrier_expect(bar, 0, ROWS * 128)
        ptx.tma_load(tile, (0, 0), source, (0, 0), bar, 0)
    cuda.syncthreads()
    for turn in range(2):
        ptx.mbarrier_wait(bar, 0, turn % 2)
        for r in range(ROWS):
            for c in range(t, 64, 32):
                tile[r, c] += uint16(1)
        ptx.fence_async()
        cuda.syncwarp()
        if t == 0:
            ptx.tma_store(target, (turn * ROWS, 0), tile, (0, 0))
            ptx.tma_store_commit()
            if turn == 0:
                ptx.tma_store_wait(0)
                ptx.mbarrier_expect(bar, 0, ROWS * 128)
                ptx.tma_load(tile, (0, 0), source, (ROWS, 0), bar, 0)
    if t == 0:
        ptx.tma_store_wait(0)
"""


def rounds(made):
    source = numbers(2 * ROWS, 64)
    maps = [ptx.TensorMap(X, (ROWS, 64)) for X in (source, np.zeros_like(source))]
    return source, labkit.simulate(made, 1, 32, *maps)


def test_lanes_that_wait_for_a_load_come_after_the_store_before_it():
    """Lane 0 waited for its store, then asked for the load: who has waited for that may write."""
    source, trace = rounds(kernel(ROUNDS))
    assert not trace.errors and np.array_equal(trace.outputs[1], source + np.uint16(1))


def test_lanes_that_write_what_is_being_stored_race_with_it():
    _, trace = rounds(mutant(ROUNDS, "        cuda.syncwarp()\n"))
    assert {finding.kind for finding in trace.errors} & {"race", "in-flight", "unfenced"}
