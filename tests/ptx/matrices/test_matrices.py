"""`ldmatrix`, `stmatrix` and `mma`: against their definitions, what they count, and what is said of wrong use."""

import fragments
import numpy as np
import pytest
from cells import kernel_in, line_of
from numba import uint8, uint16, uint32

import labkit
from labkit import ptx
from labkit.formats import SYMBOLS
from labkit.ptx.matrices import MULTIPLIED
from labkit.simulator.errors import KernelError

# a use of each instruction, and the least compute capability that has it (tests/ptx/test_capabilities.py)
LINES = {
    "q = ptx.ldmatrix2(tile, (t, 8))[1]": (7, 5),
    "q = ptx.ldmatrix4(tile, (t, 8))[3]": (7, 5),
    "q = ptx.ldmatrix2_transposed(tile, (t, 8))[1]": (7, 5),
    "q = ptx.ldmatrix4_transposed(tile, (t, 8))[3]": (7, 5),
    "ptx.stmatrix4(tile, (t, 8), q, q, q, q)": (9, 0),
    "ptx.stmatrix4_transposed(tile, (t, 8), q, q, q, q)": (9, 0),
}
NEWER = {"float8 tensor": (8, 9)}  # arithmetic that came after `mma` itself
LINES |= {
    f"ptx.mma(acc, 4, (q, q, q, q), (q, q), ptx.{symbol})": NEWER.get(format.arithmetic, (8, 0))
    for symbol, format in SYMBOLS.items()
    if format in MULTIPLIED
}

NAMES = dict(ptx=ptx, uint8=uint8, uint16=uint16, uint32=uint32)
WARPS = 3

MMA = """
@cuda.jit
def multiply(a, b, sums):
    acc = cuda.local.array((2, 5), KIND)
    t = cuda.threadIdx.x
    for i in range(4):
        acc[1, 1 + i] = sums[t, i]
    ptx.mma(acc, (1, 1), (a[t, 0], a[t, 1], a[t, 2], a[t, 3]), (b[t, 0], b[t, 1]), FORMAT)
    for i in range(4):
        sums[t, i] = acc[1, 1 + i]
"""
ROW_BITS = 256  # of k in an instruction


def depth_of(format):
    """Numbers along k that an instruction multiplies."""
    return ROW_BITS // format.bits


def codes_of(rng, shape, format):
    """Random numbers of a format, as their codes."""
    if format.accumulator_dtype.kind == "i":
        values = rng.integers(-format.largest - 1, format.largest + 1, shape)
    else:
        values = rng.standard_normal(shape)
    return format.encode(values).view(f"u{format.itemsize}")


@pytest.mark.parametrize("format", MULTIPLIED, ids=str)
def test_a_product_of_fragments_is_that_of_the_matrices(format):
    depth, dtype = depth_of(format), format.accumulator_dtype
    rng = np.random.default_rng(format.number)
    A = [codes_of(rng, (16, depth), format) for _ in range(WARPS)]
    B = [codes_of(rng, (depth, 8), format) for _ in range(WARPS)]
    C = [(10 * rng.standard_normal((16, 8))).astype(dtype) for _ in range(WARPS)]
    a = np.concatenate([fragments.registers(m, fragments.A[depth], 4) for m in A])
    b = np.concatenate([fragments.registers(m, fragments.B[depth], 2) for m in B])
    sums = np.array([[m[fragments.c(lane, i)] for i in range(4)] for m in C for lane in range(32)], dtype)
    kind = labkit.simulator.numba_types.type_of(dtype)
    kernel = kernel_in(MMA, **NAMES, FORMAT=format.number, KIND=kind)
    trace = labkit.simulate(kernel, 1, 32 * WARPS, a, b, sums)
    assert not trace.errors
    for warp in range(WARPS):
        left, right = (format.multiplied_values(X[warp].view(format.dtype)).astype(np.float64) for X in (A, B))
        product = left @ right + C[warp]
        found = np.array([[trace.outputs[2][32 * warp + lane, i] for i in range(4)] for lane in range(32)])
        expected = np.array([[product[fragments.c(lane, i)] for i in range(4)] for lane in range(32)])
        if dtype == np.int32:
            assert np.array_equal(found, expected)
        else:
            assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
    assert trace.counters.flops_by_dtype == {format.arithmetic: 2 * 16 * 8 * depth * WARPS}


def test_tf32_takes_the_upper_19_bits():
    a = np.full((32, 4), 0x3F801FFF, np.uint32)  # a little above 1
    b = np.full((32, 2), 0x3F800000, np.uint32)
    kernel = kernel_in(MMA, **NAMES, FORMAT=ptx.TF32, KIND=labkit.simulator.numba_types.types.float32)
    trace = labkit.simulate(kernel, 1, 32, a, b, np.zeros((32, 4), np.float32))
    assert (trace.outputs[2] == 8).all()


def test_sums_of_int8_wrap_as_int32():
    a, b = np.full((32, 4), 0x7F7F7F7F, np.uint32), np.full((32, 2), 0x7F7F7F7F, np.uint32)
    kernel = kernel_in(MMA, **NAMES, FORMAT=ptx.INT8, KIND=labkit.simulator.numba_types.types.int32)
    trace = labkit.simulate(kernel, 1, 32, a, b, np.full((32, 4), 2**31 - 1, np.int32))
    assert (trace.outputs[2] == 32 * 127**2 - 2**31 - 1).all()


# --- matrices from shared memory -------------------------------------------------------------------

LOAD = """
@cuda.jit
def fetch(x, rows, out):
    tile = cuda.shared.array((SIZE, PITCH), KIND, alignment=16)
    t = cuda.threadIdx.x
    for i in range(PITCH):
        if t < SIZE:
            tile[t, i] = x[t, i]
    cuda.syncwarp()
    got = ptx.LOAD(tile, (rows[t], 0))
    for m in range(COUNT):
        out[t, m] = got[m]
"""
SIZE = 32


def fetched(call, count, dtype=np.uint16, rows=None, size=SIZE, pitch_bytes=16, kind=None):
    pitch = pitch_bytes // np.dtype(dtype).itemsize
    x = np.random.default_rng(1).integers(0, 256, (size, pitch_bytes), dtype=np.uint8).view(dtype)
    rows = np.random.default_rng(2).permutation(size)[:32] if rows is None else rows
    kind = kind or labkit.simulator.numba_types.type_of(np.dtype(dtype))
    text = LOAD.replace("LOAD", call)
    kernel = kernel_in(text, **NAMES, SIZE=size, PITCH=pitch, KIND=kind, COUNT=count)
    trace = labkit.simulate(kernel, 1, 32, x, rows, np.zeros((32, count), np.uint32))
    return x, rows, trace, kernel


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [2, 4])
def test_each_lane_gets_two_elements_of_each_matrix(count, transposed, dtype):
    x, rows, trace, _ = fetched(f"ldmatrix{count}{'_transposed' * transposed}", count, dtype)
    assert not trace.errors
    for matrix in range(count):
        elements = x.view(np.uint16)[rows[8 * matrix : 8 * matrix + 8]]
        if transposed:
            elements = elements.T
        for lane in range(32):
            row, column = lane // 4, lane % 4 * 2
            low, high = int(elements[row, column]), int(elements[row, column + 1])
            assert trace.outputs[2][lane, matrix] == low | high << 16


def test_two_matrices_ask_lanes_16_to_31_for_nothing():
    rows = np.where(np.arange(32) < 16, np.arange(32), 10**6)
    _, _, trace, _ = fetched("ldmatrix2", 2, rows=rows)
    assert not trace.errors
    loads = next(c for c in trace.sites if c.site.elements == 8)
    assert (loads.accesses, loads.requests, loads.bytes, loads.wavefronts) == (16, 1, 256, 2)


@pytest.mark.parametrize("pitch_bytes, passes", [(16, 4), (64, 16), (128, 32), (80, 4), (144, 4)])
def test_a_pass_serves_eight_rows_where_they_lie_in_different_banks(pitch_bytes, passes):
    _, _, trace, _ = fetched("ldmatrix4", 4, rows=np.arange(32), pitch_bytes=pitch_bytes)
    loads = next(c for c in trace.sites if c.site.elements == 8)
    assert (loads.wavefronts, loads.bank_conflicts) == (passes, passes - 4)


def test_rows_that_are_the_same_do_not_conflict():
    _, _, trace, _ = fetched("ldmatrix4", 4, rows=np.arange(32) // 8, pitch_bytes=128)
    loads = next(c for c in trace.sites if c.site.elements == 8)
    assert (loads.wavefronts, loads.bank_conflicts) == (4, 0)


STORE = """
@cuda.jit
def put(x, rows, out):
    tile = cuda.shared.array((32, 16), uint16, alignment=16)
    t = cuda.threadIdx.x
    ptx.stmatrix4(tile, (rows[t], 8), x[t, 0], x[t, 1], x[t, 2], x[t, 3])
    cuda.syncwarp()
    for i in range(8):
        out[t, i] = tile[t, 8 + i]
"""


def test_storing_matrices_is_the_reverse_of_loading_them():
    rng = np.random.default_rng(3)
    x, rows = rng.integers(0, 1 << 32, (32, 4), dtype=np.uint32), rng.permutation(32)
    trace = labkit.simulate(kernel_in(STORE, **NAMES), 1, 32, x, rows, np.zeros((32, 8), np.uint16))
    assert not trace.errors
    for matrix in range(4):
        for lane in range(32):
            row = trace.outputs[2][rows[8 * matrix + lane // 4]]
            assert int(row[lane % 4 * 2]) | int(row[lane % 4 * 2 + 1]) << 16 == x[lane, matrix]
    stores = next(c for c in trace.sites if c.site.elements == 8)
    passes = sum(np.bincount(eight % 4).max() for eight in rows.reshape(4, 8))  # rows lie 32 bytes apart
    assert (stores.accesses, stores.bytes, stores.wavefronts) == (32, 512, passes)


STORE_TRANSPOSED = """
@cuda.jit
def put(x, rows, out):
    tile = cuda.shared.array((32, PITCH), KIND, alignment=16)
    t = cuda.threadIdx.x
    ptx.stmatrix4_transposed(tile, (rows[t], HALF), x[t, 0], x[t, 1], x[t, 2], x[t, 3])
    cuda.syncwarp()
    for i in range(HALF):
        out[t, i] = tile[t, HALF + i]
"""


@pytest.mark.parametrize("kind", [uint16, uint8])
def test_storing_matrices_transposed_is_the_reverse_of_loading_them_so(kind):
    each = 16 // kind.bitwidth  # elements of 16 bits
    rng = np.random.default_rng(3)
    x, rows = rng.integers(0, 1 << 32, (32, 4), dtype=np.uint32), rng.permutation(32)
    out = np.zeros((32, 8 * each), f"u{2 // each}")
    names = NAMES | dict(KIND=kind, PITCH=16 * each, HALF=8 * each)
    trace = labkit.simulate(kernel_in(STORE_TRANSPOSED, **names), 1, 32, x, rows, out)
    assert not trace.errors, trace.errors
    stored = trace.outputs[2].view(np.uint16)
    for matrix in range(4):
        for lane in range(32):
            two = stored[rows[8 * matrix + lane % 4 * 2 + np.arange(2)], lane // 4]
            assert int(two[0]) | int(two[1]) << 16 == x[lane, matrix]
    stores = next(c for c in trace.sites if c.site.elements == 8 * each)
    assert (stores.accesses, stores.bytes) == (32, 512)


# --- what is wrong ---------------------------------------------------------------------------------


def test_what_another_lane_wrote_needs_a_barrier_of_the_warp():
    text = LOAD.replace("LOAD", "ldmatrix4").replace("    cuda.syncwarp()\n", "")
    kernel = kernel_in(text, **NAMES, SIZE=32, PITCH=8, KIND=uint16, COUNT=4)
    x = np.zeros((32, 8), np.uint16)
    found = labkit.simulate(kernel, 1, 32, x, np.arange(32), np.zeros((32, 4), np.uint32)).errors
    assert {(f.kind, f.array, f.line) for f in found} == {("race", "tile", line_of(kernel, "ldmatrix4"))}


def test_a_row_begins_at_a_multiple_of_16_bytes():
    rows = np.arange(32)
    _, _, trace, kernel = fetched("ldmatrix4", 4, rows=rows, pitch_bytes=24)
    found = next(f for f in trace.errors if f.kind == "misaligned")
    assert (found.line, found.array, found.index) == (line_of(kernel, "ldmatrix4"), "tile", (1, 0))
    assert "reads 8 elements at once from tile[1, 0] on, which is byte 24 of shared memory" in found.message


def test_a_row_lies_inside_the_tile():
    _, _, trace, kernel = fetched("ldmatrix4", 4, rows=np.arange(32) + 1)
    (found,) = (f for f in trace.errors if f.kind == "bounds")
    assert (found.line, found.index) == (line_of(kernel, "ldmatrix4"), (32, 0))


@pytest.mark.parametrize("line", ["got = ptx.ldmatrix4(tile, (0, 0))", "ptx.mma(acc, 0, (q, q, q, q), (q, q), 0)"])
@pytest.mark.parametrize("condition, block", [("t != 5", 64), ("True", 48)])
def test_all_lanes_of_a_warp_take_part(line, condition, block):
    text = f"""
    @cuda.jit
    def parted(out):
        tile = cuda.shared.array((8, 8), uint16, alignment=16)
        acc = cuda.local.array(4, float32)
        for i in range(4):
            acc[i] = 0
        t = cuda.threadIdx.x
        q = uint32(0)
        if t < 64:
            tile[t % 8, t // 8] = 0
        cuda.syncthreads()
        if {condition}:
            {line}
        out[t] = acc[0]
    """
    kernel = kernel_in(text, **NAMES)
    trace = labkit.simulate(kernel, 1, block, np.zeros(64, np.float32))
    (found,) = (f for f in trace.errors if f.kind == "mask")
    assert found.line == line_of(kernel, line)
    if block == 64:
        assert "thread 0 of block 0 calls" in found.message and "thread 5 of block 0, of the same warp" in found.message
    else:
        assert "its warp has only 16 threads" in found.message


def test_accumulators_hold_something():
    text = """
    @cuda.jit
    def empty(out):
        acc = cuda.local.array(4, float32)
        q = uint32(0)
        acc[0] = 0
        ptx.mma(acc, 0, (q, q, q, q), (q, q), 0)
        out[cuda.threadIdx.x] = acc[0]
    """
    kernel = kernel_in(text, **NAMES)
    found = labkit.simulate(kernel, 1, 32, np.zeros(32, np.float32)).errors[0]
    assert (found.kind, found.array, found.line, found.index) == ("uninitialised", "acc", line_of(kernel, "mma"), (1,))


def test_accumulators_end_inside_their_array():
    text = """
    @cuda.jit
    def beyond(out):
        acc = cuda.local.array(6, float32)
        for i in range(6):
            acc[i] = 0
        q = uint32(0)
        ptx.mma(acc, 4, (q, q, q, q), (q, q), 0)
        out[cuda.threadIdx.x] = acc[0]
    """
    found, *_ = labkit.simulate(kernel_in(text, **NAMES), 1, 32, np.zeros(32, np.float32)).errors
    assert (found.kind, found.array, found.index) == ("bounds", "acc", (7,))


BODY = """
@cuda.jit
def wrong(x, out):
    tile = cuda.shared.array((8, 8), uint16, alignment=16)
    wide = cuda.shared.array((8, 8), float64, alignment=16)
    acc = cuda.local.array(4, float32)
    q = uint32(0)
    n = cuda.threadIdx.x
    {line}
    out[0] = 0
"""


@pytest.mark.parametrize(
    "line, message",
    [
        ("ptx.mma(acc, 0, (q, q), (q, q), 0)", r"`\(q, q\)` is a tuple of 2 values, and a fragment here is"),
        ("ptx.mma(acc, 0, (1.0, q, q, q), (q, q), 0)", "a fragment here is a tuple of 4 uint32"),
        ("ptx.mma(acc, 0, q, (q, q), 0)", "`q` is uint32, and a fragment here is a tuple of 4 uint32"),
        ("ptx.mma(acc, 0, (q, q, q, q), (q, q), 9)", "is `ptx.BF16`, `ptx.FP16`, .* or `ptx.INT8`, not 9"),
        ("ptx.mma(acc, 0, (q, q, q, q), (q, q), n)", "`n` is the format, which is fixed when a kernel is compiled"),
        ("ptx.mma(acc, 0, (q, q, q, q), (q, q), 4)", "INT8 adds up in int32, and `acc` is an array of float32"),
        ("ptx.mma(tile, (0, 0), (q, q, q, q), (q, q), 0)", "reaches local arrays; and this is a shared one"),
        ("ptx.mma(acc, (0, 0), (q, q, q, q), (q, q), 0)", "`acc` has 1 dimension: give it 1 index, not 2"),
        ("ptx.mma(acc, 0, (q, q, q, q), (q, q))", "`ptx.mma` takes 5 arguments by position, not 4"),
        ("a = ptx.ldmatrix4(x, 0)", "reaches shared arrays; and this is a global one"),
        ("a = ptx.ldmatrix4(wide, (0, 0))", "from elements of 1, 2 or 4 bytes, not of float64"),
        ("a = ptx.ldmatrix4(tile, 0)", "`tile` has 2 dimensions: give it 2 indices, not 1"),
        ("a = ptx.ldmatrix4(tile, (0, 0.5))", "an index must be a whole number"),
        ("ptx.stmatrix4_transposed(wide, (0, 0), q, q, q, q)", "elements of 1 or 2 bytes, not of float64"),
        ("ptx.stmatrix4(tile, (0, 0), q, q)", "`ptx.stmatrix4` takes 6 arguments by position, not 4"),
    ],
)
def test_wrong_use_is_refused_in_a_sentence(line, message):
    with pytest.raises(KernelError, match=message):
        labkit.simulate(kernel_in(BODY.format(line=line), **NAMES), 1, 32, np.zeros(64), np.zeros(4))
