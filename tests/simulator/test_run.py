"""`simulate`: bad input, arrays of every kind, what a Trace holds, and counters against numbers worked out by hand."""

import json
import re

import numpy as np
import pytest
from cells import kernel_in, line_of
from numba import float32, float64, int32, types

import labkit
from labkit import cuda
from labkit.gemm.fp32 import s01_naive, s02_coalesced, s03_tiled
from labkit.simulator import host
from labkit.simulator.errors import KernelError, LaunchError, SimulatorError
from labkit.simulator.run import translated


@cuda.jit
def copy(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i]


@cuda.jit
def copy2(x, y):
    col, row = cuda.grid(2)
    if row < x.shape[0] and col < x.shape[1]:
        y[row, col] = x[row, col]


@cuda.jit
def add_one(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


def vector(count=64, dtype=np.float32):
    return np.arange(count).astype(dtype)


def site(trace, text, kind="load"):
    (found,) = (s for s in trace.sites if s.site.text == text and s.site.kind == kind)
    return found


# --- bad input -----------------------------------------------------------------------------------

X, Y = vector(), np.zeros(64, np.float32)


@cuda.jit
def greedy(x, y):
    s = cuda.shared.array(12_289, float32)
    s[0] = x[0]
    y[0] = s[0]


@cuda.jit
def of_a_pair(t, y):
    y[cuda.threadIdx.x] = t[1][cuda.threadIdx.x]


@cuda.jit
def dynamic(x, y):
    s = cuda.shared.array(0, float32)
    s[cuda.threadIdx.x] = x[cuda.threadIdx.x]
    y[cuda.threadIdx.x] = s[cuda.threadIdx.x]


def exec_kernel():
    names = {}
    exec("def kernel(x, y):\n    y[0] = x[0]\n", names)
    return names["kernel"]


UNALIGNED = host.DeviceArray(np.zeros(64, "f4,i1")["f0"])
BAD = {
    "object array": (copy, 1, 64, (X.astype(object), Y), {}, "`x` has dtype object", "use float32"),
    "complex array": (copy, 1, 64, (X.astype(complex), Y), {}, "complex number", "store its `.real`"),
    "text array": (copy, 1, 64, (X.astype(str), Y), {}, "dtype <U", "use float32"),
    "dates": (copy, 1, 64, (X.astype("M8[s]"), Y), {}, "datetime64", "use float32"),
    "records": (copy, 1, 64, (np.zeros(64, "f4,i4"), Y), {}, "`x[i]` is a record", "pick `x[i].f0`"),
    "swapped bytes": (copy, 1, 64, (X.astype(">f4"), Y), {}, ">f4", "use float32"),
    "0-d array": (copy, 1, 64, (np.array(1.0), Y), {}, "no dimensions", "`x[()]`"),
    "list": (copy, 1, 64, ([1.0], Y), {}, "is a list", "np.array(x"),
    "tuple": (copy, 1, 64, ((1.0, 2.0), Y), {}, "is a tuple of 2 values", "has no `size`"),
    "dict": (copy, 1, 64, ({}, Y), {}, "is a dict", "NumPy arrays"),
    "a number too large": (copy, 1, 64, (2**64, Y), {}, "64 bits", "argument `x`"),
    "apart": (copy, 1, 32, (np.zeros(64, np.float32)[::2], Y), {}, "side by side", "`np.ascontiguousarray(x)`"),
    "apart in a tuple": (of_a_pair, 1, 32, ((X, X[::2]), Y), {}, "`t[1]` do not lie", "np.ascontiguousarray"),
    "read-only": (copy, 1, 32, (X, np.broadcast_to(Y[:1], 64)), {}, "`y` is read-only", "`y.copy()`"),
    "unaligned array": (copy, 1, 32, (UNALIGNED, Y), {}, "not aligned", "`x.copy()`"),
    "grid of 0": (copy, 0, 64, (X, Y), {}, "the grid is 0", "at least 1"),
    "negative grid": (copy, (4, -1), 64, (X, Y), {}, "the grid is (4, -1)", "at least 1"),
    "block of 0": (copy, 1, 0, (X, Y), {}, "the block is 0", "at least 1"),
    "float grid": (copy, 64 / 16, 16, (X, Y), {}, "not 4.0", "`//`"),
    "four dimensions": (copy, (1, 1, 1, 1), 64, (X, Y), {}, "one to three", "(1, 1, 1, 1)"),
    "text as grid": (copy, "4", 64, (X, Y), {}, "the grid must be", "'4'"),
    "True as block": (copy, 1, True, (X, Y), {}, "the block must be", "True"),
    "2048 threads": (copy, 1, 2048, (X, Y), {}, "2048 threads", "make the block smaller"),
    "deep block": (copy, 1, (1, 1, 128), (X, Y), {}, "64 deep", "use x and y"),
    "large grid in y": (copy, (1, 70_000), 1, (X, Y), {}, "too large", "65535"),
    "static shared": (greedy, 1, 64, (X, Y), {}, "49156 bytes", "smaller tiles"),
    "dynamic shared": (dynamic, 1, 64, (X, Y), {"shared_bytes": 250_000}, "250000 bytes", "smaller tiles"),
    "negative shared": (dynamic, 1, 64, (X, Y), {"shared_bytes": -4}, "shared_bytes", "0 or more"),
    "unknown GPU": (copy, 1, 64, (X, Y), {"gpu": "H9000"}, "H9000", "H100"),
    "record outside": (copy, 1, 64, (X, Y), {"record": [(1, 0, 0)]}, "(1, 0, 0)", "choose one inside"),
    "inspect outside": (copy, 1, 64, (X, Y), {"inspect": (0, 64)}, "(64, 0, 0)", "choose one inside"),
    "inspect one number": (copy, 1, 64, (X, Y), {"inspect": 3}, "inspect", "(block, thread)"),
    "not a function": ("copy", 1, 64, (X, Y), {}, "must be a function", "`@cuda.jit`"),
    "a builtin": (abs, 1, 64, (X, Y), {}, "must be a function", "`@cuda.jit`"),
    "a class": (Exception, 1, 64, (X, Y), {}, "must be a function", "`@cuda.jit`"),
    "a kernel from exec": (exec_kernel(), 1, 64, (X, Y), {}, "cannot be read", "file or a notebook cell"),
    "a lambda": (lambda x, y: x[0], 1, 64, (X, Y), {}, "not a lambda", "`def`"),
    "too few arguments": (copy, 1, 64, (X,), {}, "but 1 was given", "pass `y`"),
    "too many arguments": (copy, 1, 64, (X, Y, Y), {}, "but 3 were given", "leave"),
    "a matrix for a vector": (copy, 1, 64, (X.reshape(8, 8), Y), {}, "`x` has 2 dimensions", "`x[row, col]`"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_in_one_sentence_that_says_what_to_change(what):
    kernel, grid, block, arguments, options, mistake, remedy = BAD[what]
    with pytest.raises(SimulatorError) as refused:
        labkit.simulate(kernel, grid, block, *arguments, **options)
    message = str(refused.value)
    assert mistake in message and remedy in message
    assert not re.search(r"[.!?] [A-Z]", message) and "\n" not in message


def test_errors_say_whether_the_launch_or_the_kernel_is_wrong():
    with pytest.raises(LaunchError):
        labkit.simulate(copy, 0, 64, X, Y)
    with pytest.raises(KernelError) as refused:
        labkit.simulate(copy, 1, 64, X.reshape(8, 8), Y)
    assert refused.value.line == line_of(copy, "y[i] = x[i]")


# --- arrays of every kind ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split())
def test_every_element_type_is_copied_and_kept(dtype):
    x = vector(dtype=dtype)
    trace = labkit.simulate(copy, 1, 64, x, np.zeros(64, dtype))
    np.testing.assert_array_equal(trace.outputs[1], x)
    assert trace.outputs[1].dtype == np.dtype(dtype)
    assert trace.array("y").dtype == dtype and trace.array("y").itemsize == x.itemsize


VIEWS = {
    "every second": lambda: vector(128)[::2],
    "backwards": lambda: vector(64)[::-1],
    "backwards by three": lambda: vector(192)[::-3],
    "an offset": lambda: vector(80)[16:],
    "a column": lambda: vector(256).reshape(64, 4)[:, 1],
    "read-only": lambda: np.broadcast_to(vector(), (1, 64))[0],
    "one value for all": lambda: np.broadcast_to(np.float32(7), 64),
    "empty": lambda: vector(0),
}


@pytest.mark.parametrize("what", VIEWS)
def test_views_of_vectors_are_read_as_numpy_reads_them(what):
    x = VIEWS[what]()
    before = x.copy()
    trace = labkit.simulate(copy, 1, 64, host.DeviceArray(x), np.full(x.size, 9, np.float32))
    np.testing.assert_array_equal(trace.outputs[1], before)
    np.testing.assert_array_equal(x, before)
    assert [f for f in trace.errors if f.kind != "unwritten"] == []


MATRICES = {
    "C order": lambda: vector(35 * 21).reshape(35, 21),
    "Fortran order": lambda: np.asfortranarray(vector(35 * 21).reshape(35, 21)),
    "transposed": lambda: vector(35 * 21).reshape(21, 35).T,
    "a window": lambda: vector(50 * 40).reshape(50, 40)[5:40, 9:30],
    "upside down": lambda: vector(35 * 21).reshape(35, 21)[::-1, ::-1],
    "every third column": lambda: vector(35 * 63).reshape(35, 63)[:, ::3],
}


@pytest.mark.parametrize("source", MATRICES)
@pytest.mark.parametrize("target", MATRICES)
def test_views_of_matrices_are_read_and_written_as_numpy_does(source, target):
    x, y = MATRICES[source](), MATRICES[target]()
    y[:] = 0
    trace = labkit.simulate(copy2, (2, 5), (16, 8), host.DeviceArray(x), host.DeviceArray(y))
    np.testing.assert_array_equal(trace.outputs[1], x)
    assert trace.outputs[1].shape == x.shape
    assert not y.any()
    assert trace.errors == ()


def test_a_transposed_matrix_is_read_where_its_elements_lie():
    x = np.zeros((32, 32), np.float32)
    sectors = [site(labkit.simulate(copy2, 1, (32, 32), a, x.copy()), "x[row, col]").sectors for a in (x, x.T)]
    assert sectors == [32 * 4, 32 * 32]


def test_one_array_given_twice_is_one_array():
    @cuda.jit
    def shifted(x, y):
        i = cuda.grid(1)
        value = x[i]
        y[(i + 1) % y.size] = value

    x = vector()
    apart = labkit.simulate(shifted, 2, 32, x, x.copy())
    assert apart.errors == ()
    same = labkit.simulate(shifted, 2, 32, x, x)
    np.testing.assert_array_equal(same.outputs[0], same.outputs[1])
    assert {f.kind for f in same.errors} == {"race"}
    np.testing.assert_array_equal(x, vector())


def test_overlapping_views_share_their_elements():
    @cuda.jit
    def forward(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i]

    buffer = vector(65)
    trace = labkit.simulate(forward, 1, 64, buffer[:-1], buffer[1:])
    assert {f.kind for f in trace.errors} == {"race"}
    np.testing.assert_array_equal(trace.outputs[0][1:], trace.outputs[1][:-1])
    disjoint = labkit.simulate(forward, 1, 64, vector(128)[:64], vector(128)[64:])
    assert disjoint.errors == ()


@pytest.mark.parametrize("first", [0, 1])
def test_a_view_given_before_the_array_that_holds_it_shares_elements_too(first):
    @cuda.jit
    def into_both(a, b):
        i = cuda.grid(1)
        if i < 8:
            a[i] = i + 1

    whole = np.zeros(32, np.float32)
    part = whole[8:16]
    arguments = (part, whole) if first == 0 else (whole[:16], whole[8:])
    trace = labkit.simulate(into_both, 1, 32, *arguments)
    if first == 0:
        np.testing.assert_array_equal(trace.outputs[1][8:16], np.arange(1, 9))
    else:
        np.testing.assert_array_equal(trace.outputs[1], np.zeros(24))
        np.testing.assert_array_equal(trace.outputs[0][:8], np.arange(1, 9))


def test_overlapping_views_of_several_dtypes_are_refused():
    x = vector()
    with pytest.raises(LaunchError, match="`x` and `y` overlap in memory with different dtypes; pass a copy"):
        labkit.simulate(copy, 1, 64, x, x.view(np.int32))


def test_scalars_keep_the_type_numba_gives_them():
    @cuda.jit
    def scaled(x, y, scale):
        i = cuda.grid(1)
        y[i] = x[i] * scale

    for scale, widens in ((np.float32(0.5), False), (0.5, True), (3, True)):
        trace = labkit.simulate(scaled, 1, 64, X, Y, scale)
        np.testing.assert_array_equal(trace.outputs[1], X * np.float32(scale))
        assert trace.outputs[2] == scale
        assert ("float64" in {f.kind for f in trace.findings}) is widens


def test_a_partial_last_block_and_a_tall_grid_cover_every_element():
    @cuda.jit
    def linear(y):
        x, r, z = cuda.grid(3)
        if x < y.shape[2] and r < y.shape[1] and z < y.shape[0]:
            y[z, r, x] += 1 + cuda.blockIdx.z * 100

    trace = labkit.simulate(linear, (3, 2, 4), (3, 5, 1), np.zeros((4, 9, 7)))
    np.testing.assert_array_equal(trace.outputs[0], np.ones((4, 9, 7)) + 100 * np.arange(4)[:, None, None])


# --- what a Trace holds --------------------------------------------------------------------------


def test_print_shows_each_threads_values_in_order():
    @cuda.jit
    def talk(x):
        i = cuda.grid(1)
        if i % 2 == 0:
            print("thread", i, x[i], i > 2)

    trace = labkit.simulate(talk, 1, 6, vector(6))
    assert trace.printed == ("thread 0 0.0 False", "thread 2 2.0 False", "thread 4 4.0 True")


def test_inspect_follows_one_thread_through_a_divergent_kernel():
    @cuda.jit
    def wander(x, y):
        i = cuda.grid(1)
        value = 0
        if i % 2 == 0:
            value = i
        else:
            value = -i
        for k in range(i):
            if k == 2:
                break
            value += 10
        y[i] = value

    trace = labkit.simulate(wander, 2, 4, X, Y, inspect=(1, 1))
    lines = [line_of(wander, text) for text in (
        "i = cuda", "value = 0", "value = -i", "for k", "value += 10", "for k", "value += 10", "for k", "y[i]",
    )]  # fmt: skip
    steps = [s for s in trace.steps if s.line in lines]
    assert [s.line for s in steps] == lines
    assert [s.variables.get("value") for s in steps][2:] == [-5, -5, 5, 5, 15, 15, 15]
    assert steps[-1].variables["i"] == 5 and steps[-1].variables["k"] == 2
    assert trace.outputs[1][5] == 15


def test_inspect_shows_what_the_thread_itself_assigned():
    @cuda.jit
    def walks(x, y):
        i = cuda.grid(1)
        for k in range(i):
            v = k * 2  # noqa: F841
        for n in range(9):
            if n == i:
                break
        if i > 3:
            w = 1  # noqa: F841
        else:
            z = 2  # noqa: F841
        y[i] = 1

    last = labkit.simulate(walks, 1, 32, X, Y, inspect=(0, 2)).steps[-1]
    assert last.variables == {"i": 2, "k": 1, "v": 2, "n": 2, "z": 2}
    last = labkit.simulate(walks, 1, 32, X, Y, inspect=(0, 0)).steps[-1]
    assert last.variables == {"i": 0, "n": 0, "z": 2}


def test_inspect_stops_where_the_thread_returns():
    @cuda.jit
    def leaves(x, y):
        i = cuda.grid(1)
        if i >= 3:
            return
        y[i] = x[i]

    stays = labkit.simulate(leaves, 1, 8, X, Y, inspect=(0, 2)).steps
    goes = labkit.simulate(leaves, 1, 8, X, Y, inspect=(0, 3)).steps
    assert stays[-1].line == line_of(leaves, "y[i]")
    assert line_of(leaves, "y[i]") not in {s.line for s in goes}


def test_a_trace_serialises_to_json():
    trace = labkit.simulate(s03_tiled.tiled, 1, (16, 16), *(np.zeros((16, 16), np.float32) for _ in range(3)))
    data = json.loads(json.dumps(trace.to_json()))
    assert data["kernel"] == "tiled" and data["grid"] == [1, 1, 1]
    assert {a["name"] for a in data["arrays"]} == {"A", "B", "C", "A_tile", "B_tile"}
    assert data["counters"]["flops"] == 2 * 16**3
    assert repr(trace) == "<Trace of tiled: grid (1, 1, 1), block (16, 16, 1), 0 errors, 0 pieces of advice>"


def test_source_and_lines_are_those_of_the_cell():
    kernel = kernel_in(
        """
        # a comment
        HALF = 32

        @cuda.jit
        def kernel(x, y):
            i = cuda.grid(1)
            if i < HALF:
                y[i] = x[i]
        """
    )
    trace = labkit.simulate(kernel, 1, 64, X, Y)
    assert (trace.kernel, trace.first_line, trace.filename[:6]) == ("kernel", 4, "<cell ")
    assert trace.source.startswith("@cuda.jit\ndef kernel(x, y):")
    assert {s.site.line for s in trace.sites} == {8}


# --- samples -------------------------------------------------------------------------------------


def brute_force_tiled(M, N, K, tile, block):
    """(text, warp) -> lists of flat indices, a row an instruction, of the tiled matmul's global loads."""
    rows = {"A": [], "B": []}
    for start in range(0, K, tile):
        for warp in range(tile * tile // 32):
            a, b = [], []
            for lane in range(32):
                thread = warp * 32 + lane
                x, y = thread % tile, thread // tile
                row, col = block[1] * tile + y, block[0] * tile + x
                a.append(row * K + start + x if row < M and start + x < K else -1)
                b.append((start + y) * N + col if start + y < K and col < N else -1)
            rows["A"].append((warp, a))
            rows["B"].append((warp, b))
    return {name: [r for r in rows[name] if max(r[1]) >= 0] for name in rows}


@pytest.mark.parametrize("block", [(0, 0, 0), (1, 1, 0), (2, 0, 0)])
def test_samples_are_the_accesses_of_the_recorded_block(block):
    M, N, K = 20, 37, 41
    A, B, C = np.ones((M, K), np.float32), np.ones((K, N), np.float32), np.zeros((M, N), np.float32)
    trace = labkit.simulate(s03_tiled.tiled, *s03_tiled.geometry(M, N), A, B, C, record=[block])
    samples = trace.samples
    assert samples.blocks == (block,)
    expected = brute_force_tiled(M, N, K, 16, block)
    for name in ("A", "B"):
        number = next(i for i, s in enumerate(trace.sites) if s.site.array == name)
        here = samples.site == number
        got = sorted(
            (int(w), list(map(int, row))) for w, row in zip(samples.warp[here], samples.index[here], strict=True)
        )
        assert got == sorted(expected[name])
    barriers = samples.line[samples.site < 0]
    assert set(barriers) == {line_of(s03_tiled.tiled, "syncthreads", n) for n in (0, 1)}
    assert len(barriers) == 2 * 3 * 8  # two in each of three k-tiles, a row a warp
    assert (np.diff(samples.block) >= 0).all()


def test_samples_of_several_blocks_and_of_none():
    trace = labkit.simulate(copy, 4, 32, vector(128), np.zeros(128, np.float32), record=[3, (1, 0, 0)])
    assert trace.samples.blocks == ((3, 0, 0), (1, 0, 0))
    loads = trace.samples.site == next(i for i, s in enumerate(trace.sites) if s.site.kind == "load")
    first = {int(b): int(row[0]) for b, row in zip(trace.samples.block[loads], trace.samples.index[loads], strict=True)}
    assert first == {0: 96, 1: 32}
    assert len(labkit.simulate(copy, 4, 32, vector(128), np.zeros(128, np.float32), record=[]).samples) == 0


def test_samples_of_strided_views_count_in_the_arrays_own_order():
    x = np.zeros((8, 64), np.float32)
    trace = labkit.simulate(copy2, 1, (4, 8), host.DeviceArray(x)[:, ::16], np.zeros((8, 4), np.float32))
    loads = trace.samples.site == next(i for i, s in enumerate(trace.sites) if s.site.kind == "load")
    np.testing.assert_array_equal(trace.samples.index[loads], [np.arange(32)])


# --- counters --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (4, 16), (8, 32), (32, 32)])
def test_sectors_of_a_warp_for_each_stride(stride, sectors):
    @cuda.jit
    def strided(x, y, stride):
        i = cuda.grid(1)
        y[i] = x[i * stride]

    trace = labkit.simulate(strided, 3, 32, np.zeros(96 * stride, np.float32), np.zeros(96, np.float32), stride)
    load = site(trace, "x[i * stride]")
    assert (load.requests, load.accesses, load.bytes, load.sectors) == (3, 96, 384, 3 * sectors)
    assert site(trace, "y[i]", "store").sectors == 12
    c = trace.counters
    assert (c.global_loads, c.global_stores) == (96, 96)
    assert (c.global_load_requests, c.global_store_requests) == (3, 3)
    assert (c.global_load_sectors, c.global_store_sectors) == (3 * sectors, 12)
    assert c.global_bytes == 2 * 384


@pytest.mark.parametrize(("dtype", "sectors"), [(np.uint8, 1), (np.int16, 2), (np.float32, 4), (np.float64, 8)])
def test_sectors_of_a_warp_for_each_width(dtype, sectors):
    trace = labkit.simulate(copy, 1, 32, np.zeros(32, dtype), np.zeros(32, dtype))
    assert site(trace, "x[i]").sectors == sectors


def test_one_element_for_all_is_one_sector_and_an_unaligned_row_touches_one_more():
    @cuda.jit
    def broadcast(x, y):
        y[cuda.grid(1)] = x[3]

    @cuda.jit
    def next_one(x, y):
        i = cuda.grid(1)
        y[i] = x[i + 1]

    assert site(labkit.simulate(broadcast, 2, 64, X, np.zeros(128, np.float32)), "x[3]").sectors == 4
    assert site(labkit.simulate(next_one, 1, 32, X, np.zeros(32, np.float32)), "x[i + 1]").sectors == 5


@pytest.mark.parametrize(("start", "sectors"), [(0, 4), (3, 5), (8, 4), (127, 5), (129, 5)])
def test_a_slice_of_a_device_array_keeps_its_place_in_memory(start, sectors):
    device = host.to_device(np.zeros(256, np.float32))
    for part in (device[start : start + 32], device.reshape(2, 128).ravel()[start:][:32]):
        trace = labkit.simulate(copy, 1, 32, part, np.zeros(32, np.float32))
        assert site(trace, "x[i]").sectors == sectors
        assert trace.array("x").base_address % 512 == 4 * start % 512
    moved = host.to_device(device[start : start + 32].copy_to_host())
    for begins_anew in (moved, np.zeros(256, np.float32)[start : start + 32]):
        assert site(labkit.simulate(copy, 1, 32, begins_anew, np.zeros(32, np.float32)), "x[i]").sectors == 4


def test_overlapping_slices_of_a_device_array_both_keep_their_places():
    device = host.to_device(np.zeros(256, np.float32))
    trace = labkit.simulate(copy, 1, 32, device[5:37], device[37:69])
    assert [(s.site.array, s.sectors) for s in trace.sites] == [("x", 5), ("y", 5)]
    trace = labkit.simulate(copy, 1, 32, device[6:38], device[3:35])
    assert [trace.array(name).base_address for name in "xy"] == [24, 12]


def test_a_device_array_of_the_module_keeps_its_place_too():
    part = host.to_device(np.arange(64, dtype=np.float32))[3:35]

    @cuda.jit
    def kernel(y):
        i = cuda.grid(1)
        y[i] = part[i]

    assert site(labkit.simulate(kernel, 1, 32, np.zeros(32, np.float32)), "part[i]").sectors == 5


def test_a_device_array_seen_as_wider_elements_must_be_aligned():
    halves = host.to_device(np.zeros(130, np.uint8))
    with pytest.raises(LaunchError, match="`x` has elements that are not aligned; pass a copy"):
        labkit.simulate(copy, 1, 32, halves[1:129].view(np.float32), np.zeros(32, np.float32))


def test_requests_count_warps_with_an_active_lane():
    @cuda.jit
    def some(x, y):
        i = cuda.grid(1)
        if i % 64 < 3:
            y[i] = x[i]

    load = site(labkit.simulate(some, 2, 128, vector(256), np.zeros(256, np.float32)), "x[i]")
    assert (load.requests, load.accesses, load.sectors) == (4, 12, 4)
    ragged = site(labkit.simulate(copy, 1, 40, vector(40), np.zeros(40, np.float32)), "x[i]")
    assert (ragged.requests, ragged.accesses, ragged.sectors) == (2, 40, 5)


def column_reader(width, dtype):
    return kernel_in(
        f"""
        @cuda.jit
        def columns(y):
            s = cuda.shared.array((32, {width}), {dtype})
            t = cuda.threadIdx.x
            for row in range(32):
                s[row, t] = row
            cuda.syncwarp()
            for row in range(32):
                y[row, t] = s[t, row]
        """
    )


@pytest.mark.parametrize(
    ("width", "dtype", "loads", "stores"),
    [
        (32, "float32", 32, 1),  # all lanes in one bank
        (33, "float32", 1, 1),
        (34, "float32", 2, 1),
        (36, "float32", 4, 1),
        (32, "float64", 32, 2),  # half-warps, 16 rows apart by 64 words
        (33, "float64", 2, 2),
        (32, "np.int8", 8, 1),  # 4 lanes' rows 32 bytes apart share 8 banks
    ],
)
def test_bank_conflicts_of_a_column_for_each_row_length(width, dtype, loads, stores):
    trace = labkit.simulate(column_reader(width, dtype), 1, 32, np.zeros((32, 32), dtype.removeprefix("np.")))
    load, store = site(trace, "s[t, row]"), site(trace, "s[row, t]", "store")
    least = 2 if dtype == "float64" else 1
    assert (load.requests, load.wavefronts, load.bank_conflicts) == (32, 32 * loads, 32 * (loads - least))
    assert (store.wavefronts, store.bank_conflicts) == (32 * stores, 0)
    c = trace.counters
    assert (c.shared_loads, c.shared_stores) == (1024, 1024)
    assert c.shared_load_wavefronts == 32 * loads
    assert c.bank_conflicts == load.bank_conflicts


def test_lanes_that_read_one_word_share_a_pass():
    @cuda.jit
    def broadcast(y):
        s = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        s[t] = t
        s[t + 32] = t
        cuda.syncwarp()
        y[t] = s[0] + s[t // 2] + s[t // 16 * 32]

    trace = labkit.simulate(broadcast, 1, 32, np.zeros(32, np.float32))
    assert site(trace, "s[0]").wavefronts == 1
    assert site(trace, "s[t // 2]").wavefronts == 1
    assert site(trace, "s[t // 16 * 32]").wavefronts == 2


def test_flops_count_active_lanes_by_type():
    @cuda.jit
    def work(x, y):
        i = cuda.grid(1)
        a = x[i] * x[i] + float32(1)
        if i < 10:
            a = a - float32(2)
            b = float64(i) / 3.0
            y[i] = b
        n = i * 2 + 1
        y[i] = a
        y[i] += n

    counters = labkit.simulate(work, 1, 64, X, np.zeros(64)).counters
    assert counters.flops_by_dtype == {"float32": 2 * 64 + 10, "float64": 10 + 64}
    assert counters.flops == 2 * 64 + 10 + 10 + 64


@pytest.mark.parametrize("shape", [(64, 64, 64), (17, 40, 33)])
@pytest.mark.parametrize("step", [s01_naive, s02_coalesced, s03_tiled], ids=lambda s: s.__name__.rsplit(".")[-1])
def test_a_matmul_has_two_flops_a_product_and_one_store_an_output(step, shape):
    M, N, K = shape
    A, B, C = (np.ones(s, np.float32) for s in ((M, K), (K, N), (M, N)))
    kernel = getattr(step, step.__name__.split("_")[-1])
    counters = labkit.simulate(kernel, *step.geometry(M, N), A, B, C).counters
    padded = (M, N, K) if step is not s03_tiled else tuple(-(-n // 16) * 16 for n in shape)
    assert counters.flops == 2 * np.prod(padded)
    assert counters.global_stores == M * N


def test_a_barrier_counts_once_a_block():
    @cuda.jit
    def waits(y):
        for _ in range(3):
            cuda.syncthreads()
        y[cuda.grid(1)] = 1

    assert labkit.simulate(waits, 5, 96, np.zeros(480)).counters.barriers == 15


def test_atomics_are_counted_apart():
    @cuda.jit
    def count(x, total):
        s = cuda.shared.array(1, int32)
        if cuda.threadIdx.x == 0:
            s[0] = 0
        cuda.syncthreads()
        cuda.atomic.add(s, 0, 1)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.atomic.add(total, 0, s[0])

    trace = labkit.simulate(count, 3, 64, X, np.zeros(1, np.int64))
    assert trace.outputs[1][0] == 192
    c = trace.counters
    assert (c.shared_atomics, c.global_atomics, c.global_loads, c.global_stores) == (192, 3, 0, 0)


# --- caches ------------------------------------------------------------------------------------------


@cuda.jit
def twice(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] + x[i]


def copied(count, gpu):
    x = np.ones(count, np.float32)
    return labkit.simulate(copy, -(-count // 256), 256, x, np.zeros_like(x), gpu=gpu, record=[]).counters


def test_a_copy_larger_than_l2_moves_each_byte_once():
    bytes_ = 4 * 2**21  # 8 MiB each way, twice the T4's L2
    c = copied(2**21, "T4")
    assert c.global_load_sectors == c.global_store_sectors == bytes_ // 32
    assert c.dram_read_bytes == bytes_
    assert c.dram_write_bytes == bytes_
    assert c.l1_hits == 0


def test_a_copy_smaller_than_l2_is_read_once_and_written_back_once():
    c = copied(2**16, "H100 SXM")
    assert (c.dram_read_bytes, c.dram_write_bytes) == (4 * 2**16, 4 * 2**16)
    assert c.l2_sectors == 2 * 4 * 2**16 // 32


def test_the_second_read_of_an_element_hits_l1():
    trace = labkit.simulate(twice, 4, 256, vector(1024), np.zeros(1024, np.float32))
    first, second = (s for s in trace.sites if s.site.kind == "load")
    assert (first.l1_hits, second.l1_hits) == (0, second.sectors)
    assert trace.counters.l1_hit_rate == 0.5
    assert trace.counters.dram_read_bytes == 4096


def test_blocks_that_read_the_same_elements_meet_in_l2():
    @cuda.jit
    def shared_by_blocks(x, y):
        y[cuda.grid(1)] = x[cuda.threadIdx.x]

    c = labkit.simulate(shared_by_blocks, 16, 64, X, np.zeros(1024, np.float32)).counters
    assert c.dram_read_bytes == 256
    loads = 16 * 8
    assert c.global_load_sectors == loads
    assert c.l2_hits >= loads - 8 - c.l1_hits


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"record": 0}, "record is a list of blocks"),
        ({"record": "a"}, "record is a list of blocks"),
        ({"record": ("a",)}, "the recorded block is one to three whole numbers"),
        ({"inspect": ("a", "b")}, "the inspected block is one to three whole numbers"),
        ({"inspect": (0.5, 1)}, "the inspected block is one to three whole numbers"),
    ],
)
def test_what_to_record_and_inspect_is_checked(options, part):
    with pytest.raises(LaunchError, match=part):
        labkit.simulate(copy, 1, 32, X, Y, **options)


def test_slices_of_one_device_array_overlap_as_they_do_in_a_launch():
    device = host.to_device(np.arange(65, dtype=np.float32))
    assert {f.kind for f in labkit.simulate(copy, 2, 32, device[1:65], device[0:64]).errors} == {"race"}
    assert device[64] == 64


def test_a_translated_kernel_tells_its_code_and_its_types():
    kernel = kernel_in("@cuda.jit\ndef kernel(x):\n    half = x[cuda.grid(1)] / 2\n    x[0] = half")
    program = translated(kernel, np.zeros(4, np.int32))
    assert program.variables["half"] == {types.float64}
    assert "v_half = " in program.text
