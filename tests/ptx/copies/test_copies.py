"""`cp.async`: what is copied, when it is there, what it counts, and what is said of wrong use."""

import numpy as np
import pytest
from cells import kernel_in, line_of
from numba import float64, uint8, uint16

import labkit
from labkit import ptx
from labkit.simulator.errors import KernelError

# a use of each instruction, and the least compute capability that has it (tests/ptx/test_capabilities.py)
LINES = {
    "ptx.cp_async(tile, (t, 8), x, (t, 8), 16, q)": (8, 0),
    "ptx.cp_async(tile, (t, 8), x, (t, 8), 4, 4)": (8, 0),
    "ptx.cp_async_commit()": (8, 0),
    "ptx.cp_async_wait(2)": (8, 0),
}

NAMES = dict(ptx=ptx, uint8=uint8, uint16=uint16, float64=float64, BEHIND=-1)

COPY = """
@cuda.jit
def copy(x, valid, out):
    tile = cuda.shared.array((8, PITCH), KIND, alignment=16)
    t = cuda.threadIdx.x
    for i in range(PITCH):
        tile[t, i] = 77
    ptx.cp_async(tile, (t, 16 // ITEM), x, (t, START), WIDTH, valid[t])
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    for i in range(PITCH):
        out[t, i] = tile[t, i]
"""
VALID = np.array([16, 0, 1, 2, 7, 8, 13, 15])


def copied(dtype, width, valid, start=0):
    item = np.dtype(dtype).itemsize
    x = np.random.default_rng(item).integers(1, 77, (8, 64), dtype=np.uint8).view(dtype)
    kind = labkit.simulator.numba_types.type_of(np.dtype(dtype))
    kernel = kernel_in(COPY, **NAMES, PITCH=64 // item, KIND=kind, ITEM=item, WIDTH=width, START=start)
    out = np.zeros((8, 64 // item), dtype)
    return x, labkit.simulate(kernel, 1, 8, x, valid, out), kernel


@pytest.mark.parametrize("width", [4, 8, 16])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_zeros_take_the_place_of_the_bytes_that_are_not_valid(dtype, width):
    valid = np.minimum(VALID, width)
    x, trace, _ = copied(dtype, width, valid)
    assert not trace.errors
    expected = np.full((8, 64 // x.itemsize), 77, dtype).view(np.uint8)
    expected[:, 16 : 16 + width] = np.where(np.arange(width) < valid[:, None], x.view(np.uint8)[:, :width], 0)
    assert np.array_equal(trace.outputs[2].view(np.uint8), expected)


def test_a_copy_without_a_valid_byte_may_name_any_source():
    text = COPY.replace("(t, START)", "(t + 1000 * (valid[t] == 0), START)")
    x = np.arange(8 * 32, dtype=np.uint16).reshape(8, 32)
    kernel = kernel_in(text, **NAMES, PITCH=32, KIND=uint16, ITEM=2, WIDTH=16, START=8)
    trace = labkit.simulate(kernel, 1, 8, x, VALID // 16 * 16, np.zeros((8, 32), np.uint16))
    assert not trace.errors
    assert np.array_equal(trace.outputs[2][:, 8], [8, 0, 0, 0, 0, 0, 0, 0])


def test_it_counts_as_one_access_of_all_its_bytes():
    _, trace, _ = copied(np.uint16, 16, np.full(8, 16))
    load, store = (c for c in trace.sites if c.site.elements == 8)
    assert (load.site.space, load.accesses, load.requests, load.bytes, load.sectors) == ("global", 8, 1, 128, 8)
    assert (store.site.space, store.accesses, store.requests, store.bytes) == ("shared", 8, 1, 128)
    assert (store.wavefronts, store.bank_conflicts) == (4, 3)  # 64 bytes apart, four rows begin in one bank


AGAIN = """
@cuda.jit
def again(x, out):
    tile = cuda.shared.array(2048, uint8, alignment=16)
    t = cuda.threadIdx.x
    for i in range(2):
        ptx.cp_async(tile, WIDTH * t, x, WIDTH * t, WIDTH, WIDTH)
        ptx.cp_async_commit()
        ptx.cp_async_wait(0)
    out[t] = tile[WIDTH * t]
"""


@pytest.mark.parametrize("width, hits", [(4, 4), (8, 8), (16, 0)])
def test_only_16_bytes_at_once_pass_l1_by(width, hits):
    x = np.arange(2048).astype(np.uint8)
    trace = labkit.simulate(kernel_in(AGAIN, **NAMES, WIDTH=width), 1, 32, x, np.zeros(32, np.uint8))
    load = next(c for c in trace.sites if c.site.array == "x")
    assert (load.sectors, load.l1_hits) == (2 * width, hits)


# --- groups and waits ------------------------------------------------------------------------------

GROUPS = """
@cuda.jit
def grouped(x, out):
    tile = cuda.shared.array((3, 128), float32, alignment=16)
    t = cuda.threadIdx.x
    for stage in range(3):
        ptx.cp_async(tile, (stage, 4 * t), x, 4 * t, 16, 16)
        COMMIT
    ptx.cp_async_wait(PENDING)
    for stage in range(3):
        out[stage, t] = tile[stage, 4 * t]
"""
X = np.arange(1, 129, dtype=np.float32)


def grouped(pending, commit="ptx.cp_async_commit()"):
    kernel = kernel_in(GROUPS.replace("COMMIT", commit), **NAMES, PENDING=pending)
    return kernel, labkit.simulate(kernel, 2, 32, X, np.zeros((3, 32), np.float32))


@pytest.mark.parametrize("pending", range(4))
def test_a_wait_covers_all_groups_but_the_newest(pending):
    kernel, trace = grouped(pending)
    out = trace.outputs[1]
    assert np.array_equal(out[:, 0] == 1, np.arange(3) < 3 - pending)
    if pending == 0:
        assert not trace.errors
        return
    (found,) = trace.errors
    assert (found.kind, found.line, found.other_line) == (
        "in-flight",
        line_of(kernel, "out["),
        line_of(kernel, "async("),
    )
    assert (found.array, found.index, found.count) == ("tile", (3 - pending, 0), 64 * pending)
    assert "thread 0 of block 0 reads tile" in found.message
    assert "before the copy that thread 0 of block 0 began in line" in found.message
    assert f"this copy's had {pending - 1} newer: leave at most {pending - 1}," in found.remedy


def test_a_wait_covers_no_copy_whose_group_is_open():
    _, trace = grouped(0, commit="pass")
    assert {f.kind for f in trace.errors} == {"in-flight"}
    assert not trace.outputs[1].any()


def test_each_thread_has_groups_of_its_own():
    text = """
    @cuda.jit
    def own(x, out):
        tile = cuda.shared.array(256, float32, alignment=16)
        t = cuda.threadIdx.x
        ptx.cp_async(tile, 4 * t, x, 4 * t, 16, 16)
        ptx.cp_async_commit()
        if t % 2 == 0:
            ptx.cp_async_commit()
        ptx.cp_async_wait(1)
        out[t] = tile[4 * t]
    """
    kernel = kernel_in(text, **NAMES)
    trace = labkit.simulate(kernel, 1, 32, X, np.zeros(32, np.float32))
    assert np.array_equal(trace.outputs[1] != 0, np.arange(32) % 2 == 0)
    assert [(f.kind, f.threads[0].thread[0], f.count) for f in trace.errors] == [("in-flight", 1, 16)]


@pytest.mark.parametrize(
    "line, verb",
    [
        ("tile[4 * t] = 1", "writes"),
        ("cuda.atomic.add(tile, 4 * t, 1)", "updates"),
        ("ptx.cp_async(tile, 4 * t, x, 4 * t, 4, 4)", "writes"),
        ("a, b, c, d = ptx.load4(tile, 4 * t)", "reads"),
    ],
)
def test_nobody_touches_what_is_on_its_way(line, verb):
    text = f"""
    @cuda.jit
    def early(x, out):
        tile = cuda.shared.array(256, float32, alignment=16)
        t = cuda.threadIdx.x
        ptx.cp_async(tile, 4 * t, x, 4 * t, 16, 16)
        ptx.cp_async_commit()
        {line}
        ptx.cp_async_wait(0)
        out[t] = tile[4 * t]
    """
    kernel = kernel_in(text, **NAMES)
    found = labkit.simulate(kernel, 1, 32, X, np.zeros(32, np.float32)).errors
    assert {(f.kind, f.line) for f in found if f.kind == "in-flight"} >= {("in-flight", line_of(kernel, line))}
    assert f"thread 0 of block 0 {verb} tile[0] before the copy" in found[0].message


@pytest.mark.parametrize("wait, place, early", [(1, "4 * t + 3", 32), (1, "4 * t + 2", 0), (0, "4 * t + 3", 0)])
def test_nobody_writes_what_a_copy_still_reads(wait, place, early):
    """Of 12 bytes and 4, in two groups, the first has been read when one may be in flight."""
    text = f"""
    @cuda.jit
    def overwrite(x):
        tile = cuda.shared.array(256, float32, alignment=16)
        t = cuda.threadIdx.x
        ptx.cp_async(tile, 4 * t, x, 4 * t, 16, 12)
        ptx.cp_async_commit()
        ptx.cp_async(tile, 128 + t, x, 4 * t + 3, 4, 4)
        ptx.cp_async_commit()
        ptx.cp_async_wait({wait})
        x[{place}] = -1
        ptx.cp_async_wait(0)
    """
    kernel = kernel_in(text, **NAMES)
    found = labkit.simulate(kernel, 1, 32, X).errors
    assert [(f.kind, f.line, f.count) for f in found] == [("in-flight", line_of(kernel, "= -1"), early)] * bool(early)
    assert all("writes x[3] before the copy that thread 0 of block 0 began in line" in f.message for f in found)


RING = """
@cuda.jit
def ring(x, out):
    tiles = cuda.shared.array((STAGES, 32), float32, alignment=16)
    t = cuda.threadIdx.x
    for step in range(AHEAD + x.size // 32):
        if step < x.size // 32:
            ptx.cp_async(tiles, (step % STAGES, t), x, step * 32 + t, 4, 4)
        ptx.cp_async_commit()
        if step >= AHEAD:
            ptx.cp_async_wait(WAIT)
            out[(step - AHEAD) * 32 + t] = tiles[(step - AHEAD) % STAGES, t]
"""


@pytest.mark.parametrize(
    "stages, ahead, pending, cure",
    [(2, 1, 2, "In line"), (2, 2, 2, "The ring is too short"), (1, 1, 1, "The ring is too short")],
)
def test_a_ring_that_is_too_short_is_told_from_a_wait_that_is_missing(stages, ahead, pending, cure):
    kernel = kernel_in(RING, **NAMES, STAGES=stages, AHEAD=ahead, WAIT=pending)
    use, again = labkit.simulate(kernel, 1, 32, X, np.zeros_like(X)).errors
    assert (use.kind, use.line) == ("in-flight", line_of(kernel, "= tiles["))  # what goes wrong comes before its cause
    assert use.remedy.startswith(cure)
    assert "begins a copy to tiles[0, 0] before the copy that thread 0 of block 0 began there" in again.message
    assert again.remedy.startswith("The ring is too short")


SHARING = """
@cuda.jit
def sharing(x, out):
    tile = cuda.shared.array(256, float32, alignment=16)
    t = cuda.threadIdx.x
    FIRST
    ptx.cp_async(tile, 4 * t, x, 4 * t, 16, 16)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    THEN
    out[t] = tile[4 * (63 - t)]
"""


@pytest.mark.parametrize(
    "first, then, errors",
    [
        ("", "cuda.syncthreads()", 0),
        ("", "", 1),
        ("out[t] = tile[t]", "cuda.syncthreads()", 2),  # read before anything was written, and overwritten
        ("tile[4 * (63 - t)] = 1", "cuda.syncthreads()", 1),
        ("tile[4 * (63 - t)] = 1; cuda.syncthreads()", "cuda.syncthreads()", 0),
    ],
)
def test_a_copy_is_a_write_of_its_thread(first, then, errors):
    kernel = kernel_in(SHARING.replace("FIRST", first or "pass").replace("THEN", then or "pass"), **NAMES)
    found = labkit.simulate(kernel, 1, 64, np.arange(256, dtype=np.float32), np.zeros(64, np.float32)).errors
    assert len(found) == errors
    assert {f.kind for f in found} <= {"race", "uninitialised"}


def test_a_copy_races_with_those_who_still_read_its_place_however_late_it_is_waited_for():
    text = """
    @cuda.jit
    def over(x, out):
        tile = cuda.shared.array(256, float32, alignment=16)
        t = cuda.threadIdx.x
        for i in range(4):
            tile[4 * t + i] = 0
        cuda.syncthreads()
        out[t] = tile[4 * (63 - t)]
        ptx.cp_async(tile, 4 * t, x, 4 * t, 16, 16)
        ptx.cp_async_commit()
        cuda.syncthreads()
        ptx.cp_async_wait(0)
        out[t] += tile[4 * t]
    """
    kernel = kernel_in(text, **NAMES)
    (found,) = labkit.simulate(kernel, 1, 64, np.ones(256, np.float32), np.zeros(64, np.float32)).errors
    assert (found.kind, {found.line, found.other_line}) == (
        "race",
        {line_of(kernel, "= tile"), line_of(kernel, "cp_async(")},
    )


def test_a_barrier_before_the_wait_is_none_behind_it():
    text = """
    @cuda.jit
    def order(x, out):
        tile = cuda.shared.array(256, float32, alignment=16)
        t = cuda.threadIdx.x
        ptx.cp_async(tile, 4 * t, x, 4 * t, 16, 16)
        ptx.cp_async_commit()
        cuda.syncthreads()
        ptx.cp_async_wait(0)
        out[t] = tile[4 * (63 - t)]
    """
    kernel = kernel_in(text, **NAMES)
    (found,) = labkit.simulate(kernel, 1, 64, np.ones(256, np.float32), np.zeros(64, np.float32)).errors
    assert (found.kind, found.line, found.other_line) == ("race", line_of(kernel, "= tile"), line_of(kernel, "async("))
    assert found.remedy.startswith("Put `cuda.syncthreads()` after the wait for the copy of line")


def test_copies_that_nobody_waits_for_do_no_harm():
    text = """
    @cuda.jit
    def gone(x, out):
        tile = cuda.shared.array(128, float32, alignment=16)
        t = cuda.threadIdx.x
        ptx.cp_async(tile, 4 * t, x, 4 * t, 16, 16)
        out[t] = x[t]
    """
    assert not labkit.simulate(kernel_in(text, **NAMES), 300, 32, X, np.zeros(32, np.float32)).errors


def test_a_tile_that_is_one_of_two_is_copied_to_and_read():
    text = """
    @cuda.jit
    def chosen(x, y, out):
        here = cuda.shared.array(128, float32, alignment=16)
        there = cuda.shared.array(128, float32, alignment=16)
        t = cuda.threadIdx.x
        tile, source = here, x
        if cuda.blockIdx.x % 2 == 1:
            tile = there
        if cuda.blockIdx.x > 1:
            source = y
        ptx.cp_async(tile, 4 * t, source, 4 * t, 16, 16)
        ptx.cp_async_commit()
        ptx.cp_async_wait(0)
        cuda.syncwarp()
        out[cuda.blockIdx.x, t] = tile[127 - t]
    """
    out = np.zeros((4, 32), np.float32)
    trace = labkit.simulate(kernel_in(text, **NAMES), 4, 32, X, -X, out)
    assert not trace.errors
    assert np.array_equal(trace.outputs[2], np.outer([1, 1, -1, -1], X[:95:-1]))
    assert sum(c.l1_hits for c in trace.sites) == 0


# --- dynamic shared memory -------------------------------------------------------------------------

POOL = """
@cuda.jit
def pooled(x, out):
    pool = cuda.shared.array(0, uint16, alignment=128)
    A = pool[:HALF].reshape(2, 32, 8)
    B = pool[HALF:].reshape(2, 32, 8)
    words = cuda.shared.array(0, float32, alignment=128)
    t = cuda.threadIdx.x
    ptx.cp_async(A, (1, t, 0), x, (t, 0), 16, 16)
    ptx.cp_async(B, (1, t, 0), x, (31 - t, 0), 16, 16)
    ptx.cp_async_commit()
    ptx.cp_async_wait(WAIT)
    cuda.syncwarp()
    got = ptx.ldmatrix4(B, (1, t, 0))
    out[t, 0], out[t, 1] = got[0], words[128 + t]
"""


def pooled(wait):
    x = np.arange(256, dtype=np.uint16).reshape(32, 8)
    kernel = kernel_in(POOL, **NAMES, HALF=512, WAIT=wait)
    return x, labkit.simulate(kernel, 2, 32, x, np.zeros((32, 2), np.float64), shared_bytes=2048)


def test_parts_of_dynamic_shared_memory_keep_its_alignment():
    x, trace = pooled(0)
    assert not trace.errors
    expected = x[::-1].view(np.uint32)[:8].reshape(-1)[:32]
    assert np.array_equal(trace.outputs[1][:, 0], expected)
    assert np.array_equal(trace.outputs[1][:, 1], x.view(np.float32).reshape(-1)[:32])


def test_memory_on_its_way_is_known_under_every_dtype():
    _, trace = pooled(1)
    assert [(f.kind, f.array) for f in trace.errors] == [("in-flight", "pool"), ("in-flight", "words")]


# --- what is wrong ---------------------------------------------------------------------------------


def test_both_places_lie_at_multiples_of_the_width():
    _, trace, kernel = copied(np.uint16, 16, np.full(8, 16), start=4)
    (found,) = trace.errors
    assert (found.kind, found.array, found.line, found.index) == ("misaligned", "x", line_of(kernel, "async("), (0, 4))
    text = COPY.replace("alignment=16", "alignment=8")
    kernel = kernel_in(text, **NAMES, PITCH=32, KIND=uint16, ITEM=2, WIDTH=16, START=0)
    x = np.zeros((8, 32), np.uint16)
    found, *_ = labkit.simulate(kernel, 1, 8, x, VALID, x).errors
    assert (found.kind, found.array) == ("misaligned", "tile")
    assert found.remedy == "Pass `alignment=16` where tile is made."


def test_a_copy_reads_inside_its_row():
    _, trace, kernel = copied(np.float32, 16, np.full(8, 16), start=16)
    found = trace.errors[0]
    assert (found.kind, found.array, found.line, found.index) == ("bounds", "x", line_of(kernel, "async("), (0, 16))


@pytest.mark.parametrize(
    "call", ["ptx.cp_async(tile, (t - 8, 0), x, (t, 0), 16, 16)", "ptx.ldmatrix4(tile, (t - 8, 0))"]
)
def test_no_index_of_a_tile_counts_from_the_end(call):
    text = f"""
    @cuda.jit
    def below(x, out):
        tile = cuda.shared.array((32, 8), uint16, alignment=16)
        t = cuda.threadIdx.x
        for i in range(8):
            tile[t, i] = 1
        cuda.syncwarp()
        {call}
        out[t] = x[-1, 0]
    """
    kernel = kernel_in(text, **NAMES)
    (found,) = labkit.simulate(kernel, 1, 32, np.zeros((32, 8), np.uint16), np.zeros(32)).errors
    assert (found.kind, found.line, found.index, found.count) == ("bounds", line_of(kernel, call), (-8, 0), 8)
    assert "does not count a negative index from the end" in found.message and found.remedy.endswith("such as 24.")


SHARED_PLACE = """
@cuda.jit
def meet(x, out):
    tile = cuda.shared.array((32, 8), uint16, alignment=16)
    t = cuda.threadIdx.x
    ptx.cp_async(tile, (t // 2, 0), x, (t // EACH, 0), 16, 16)
    ptx.cp_async_commit()
    ptx.cp_async_wait(0)
    out[t] = 1
"""


@pytest.mark.parametrize("each, races", [(1, True), (2, False)])
def test_copies_of_other_values_to_one_place_race(each, races):
    x = np.arange(32 * 8, dtype=np.uint16).reshape(32, 8)
    trace = labkit.simulate(kernel_in(SHARED_PLACE, **NAMES, EACH=each), 2, 32, x, np.zeros(32, np.uint8))
    assert {(f.kind, f.array) for f in trace.errors} == ({("race", "tile")} if races else set())


def test_an_empty_source_is_said_to_be_too_short():
    line = "ptx.cp_async(tile, (0, 0), x, 0, 16, 16)"
    kernel = kernel_in(BODY.format(line=line), **NAMES)
    (found,) = labkit.simulate(kernel, 1, 32, np.zeros(0, np.float32), 16, np.zeros(4)).errors
    assert (found.kind, found.line) == ("bounds", line_of(kernel, line))


def test_no_more_is_read_than_is_copied():
    with pytest.raises(KernelError, match="a copy of 8 bytes reads 0 to 8 of them, not 16"):
        copied(np.float32, 8, np.full(8, 16))
    with pytest.raises(KernelError, match="not -4"):
        copied(np.float32, 8, np.full(8, -4))


BODY = """
@cuda.jit
def wrong(x, n, out):
    tile = cuda.shared.array((8, 8), float32, alignment=16)
    other = cuda.shared.array((8, 8), uint16, alignment=16)
    wide = cuda.shared.array((8, 8), float64, alignment=16)
    {line}
    out[0] = 0
"""


@pytest.mark.parametrize(
    "line, message",
    [
        ("ptx.cp_async(tile, (0, 0), x, 0, 12, 4)", "a copy has 4, 8, 16 bytes of float32, not 12"),
        ("ptx.cp_async(wide, (0, 0), out, 0, 4, 4)", "a copy has 8, 16 bytes of float64, not 4"),
        ("ptx.cp_async(tile, (0, 0), x, 0, n, 4)", "`n` is the width of a copy, which is fixed when a kernel is"),
        ("ptx.cp_async(other, (0, 0), x, 0, 16, 4)", "a copy needs two arrays of one dtype, not of float32 and uint16"),
        ("ptx.cp_async(x, 0, tile, (0, 0), 16, 16)", "reaches shared arrays; and this is a global one"),
        ("ptx.cp_async(tile, 0, x, 0, 16, 16)", "`tile` has 2 dimensions: give it 2 indices, not 1"),
        ("ptx.cp_async(tile, (0, 0), x, 0, 16)", "`ptx.cp_async` takes 6 arguments by position, not 5"),
        ("ptx.cp_async(tile, (0, 0), x, 0, 16, 0.5)", "how many bytes of a copy are read is a whole number"),
        ("ptx.cp_async_wait(n)", "`n` is how many groups may be in flight, which is fixed when a kernel is compiled"),
        ("ptx.cp_async_wait(BEHIND)", "at least no group is in flight: -1 is less than that"),
        ("ptx.cp_async_wait(BEHIND + 2)", r"`BEHIND \+ 2` is how many .* compiled: write `N = BEHIND \+ 2` above"),
        ("ptx.cp_async_wait(x.size + 2)", r"`x.size \+ 2` is how many .* compiled: make it a whole number"),
        ("ptx.cp_async_wait(np.int64(1))", r"`np.int64\(1\)` is how many groups may be in flight, which is fixed"),
        ("ptx.cp_async_wait()", "`ptx.cp_async_wait` takes 1 argument by position, not 0"),
        ("ptx.cp_async_commit(1)", "`ptx.cp_async_commit` takes no arguments, not 1"),
    ],
)
def test_wrong_use_is_refused_in_a_sentence(line, message):
    with pytest.raises(KernelError, match=message):
        labkit.simulate(kernel_in(BODY.format(line=line), **NAMES), 1, 32, X, 16, np.zeros(4))


AHEAD = """
@cuda.jit
def ahead(x, out):
    tile = cuda.shared.array((2, 32), float32)
    t, total = cuda.threadIdx.x, float32(0)
    for step in range(5):
        if step < 4:
            ptx.cp_async(tile, (step % 2, t), x, (step, t), 4, 4)
        ptx.cp_async_commit()
        ptx.cp_async_wait(LEFT)
        if step > 0:
            total += tile[(step - 1) % 2, t]
    out[t] = total
"""


@pytest.mark.parametrize("left, alone", [(1, 32), (0, 4 * 32)])
def test_loads_with_no_copy_in_flight_are_counted(left, alone):
    kernel = kernel_in(AHEAD, **NAMES, LEFT=left)
    trace = labkit.simulate(kernel, 1, 32, np.ones((4, 32), np.float32), np.zeros(32, np.float32))
    assert not trace.errors
    assert sum(c.alone for c in trace.sites) == alone
