"""Warp collectives: what the lanes of a warp tell one another, in whole, partial and divided warps."""

import numpy as np
import pytest
from cells import kernel_in, line_of, run_cell
from numba import float32, int32, types, uint32
from numba_oracle import type_in_numba

import labkit
from labkit import cuda
from labkit.simulator import numba_types, run
from labkit.simulator.errors import KernelError
from labkit.simulator.values import Array

FULL = 0xFFFFFFFF
CALLS = {
    "shfl_sync": "-1, x, 0",
    "shfl_up_sync": "-1, x, 1",
    "shfl_down_sync": "-1, x, 1",
    "shfl_xor_sync": "-1, x, 1",
    "all_sync": "-1, x",
    "any_sync": "-1, x",
    "eq_sync": "-1, x",
    "ballot_sync": "-1, x",
    "match_any_sync": "-1, x",
    "match_all_sync": "-1, x",
    "syncthreads_count": "x",
    "syncthreads_and": "x",
    "syncthreads_or": "x",
    "activemask": "",
    "lanemask_lt": "",
}
LANES = np.arange(32)
SCALARS = {name: getattr(types, name) for name in "int8 int16 uint32 uint64".split()}


def outcome(expression, x, block=32, out=np.int64, blocks=1):
    """Return `expression` in each thread, where `x` is the thread's element and `t` its number in the block."""
    kernel = kernel_in(
        f"""
        @cuda.jit
        def kernel(values, out):
            t = cuda.threadIdx.x
            i = cuda.grid(1)
            x = values[i]
            out[i] = {expression}
        """,
        **SCALARS,
    )
    trace = labkit.simulate(kernel, blocks, block, x, np.zeros(len(x), out))
    return trace.outputs[1], trace


def errors(kernel, block, *arguments, grid=1):
    return labkit.simulate(kernel, grid, block, *arguments).errors


# --- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize(
    ("call", "source"),
    [
        ("shfl_sync(-1, x, 5)", np.full(32, 5)),
        ("shfl_sync(-1, x, t * 3)", LANES * 3 % 32),
        ("shfl_up_sync(-1, x, 3)", np.where(LANES < 3, LANES, LANES - 3)),
        ("shfl_down_sync(-1, x, 3)", np.where(LANES > 28, LANES, LANES + 3)),
        ("shfl_xor_sync(-1, x, 5)", LANES ^ 5),
        ("shfl_down_sync(-1, x, 33)", np.where(LANES > 30, LANES, LANES + 1)),
        ("shfl_sync(-1, x, -1)", np.full(32, 31)),
    ],
)
def test_a_shuffle_reads_another_lane_of_each_warp(call, source, dtype):
    x = (np.arange(96) * 1.5 - 7).astype(dtype)
    shuffled, trace = outcome(f"cuda.{call}", x, 48, dtype, blocks=2)  # the second warp of a block is half empty
    whole = np.r_[0:32, 48:80]
    np.testing.assert_array_equal(shuffled[whole], x[whole].reshape(2, 32)[:, source].ravel())
    shuffled, trace = outcome(f"cuda.{call}", x, 96, dtype)
    np.testing.assert_array_equal(shuffled, x.reshape(3, 32)[:, source].ravel())
    assert trace.errors == ()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("all_sync(-1, x < 40)", lambda v: (v < 40).all()),
        ("all_sync(-1, x)", lambda v: v.all()),
        ("any_sync(-1, x > 40)", lambda v: (v > 40).any()),
        ("eq_sync(-1, x)", lambda v: v.astype(bool).all() or not v.any()),
        ("ballot_sync(-1, x % 3 == 0)", lambda v: np.packbits(v % 3 == 0, bitorder="little").view(np.int32)[0]),
    ],
)
def test_a_vote_joins_each_warp(call, expected):
    x = np.concatenate([LANES, LANES + 32, LANES * 0, LANES * 0 + 7])
    voted, trace = outcome(f"cuda.{call}", x, 64, blocks=2)
    np.testing.assert_array_equal(voted, np.repeat([expected(v) for v in x.reshape(4, 32)], 32))
    assert trace.errors == ()


def test_matches_name_the_lanes_with_the_same_bits():
    x = np.array([0.0, -0.0, np.nan, 1.5] * 8)
    alike, _ = outcome("cuda.match_any_sync(-1, x)", x, out=np.uint32)
    np.testing.assert_array_equal(alike, np.tile(np.uint32(0x11111111) << np.arange(4, dtype=np.uint32), 8))
    every, _ = outcome("cuda.match_all_sync(-1, x)[0]", x)
    assert not every.any()
    same, _ = outcome("cuda.match_all_sync(-1, x)[0]", np.full(40, 3), block=40)
    np.testing.assert_array_equal(same[:32], -1)
    np.testing.assert_array_equal(same[32:], 0xFF)
    told, _ = outcome("cuda.match_all_sync(-1, x)[1]", np.full(40, 3), block=40)
    assert told.all()


@cuda.jit
def masks_of_lanes(active, below):
    i = cuda.grid(1)
    if i % 2 == 0:
        active[i] = cuda.activemask()
    else:
        active[i] = cuda.activemask()
    below[i] = cuda.lanemask_lt()


def test_lanes_know_who_is_here_and_who_comes_before_them():
    trace = labkit.simulate(masks_of_lanes, 1, 40, np.zeros(40, np.uint32), np.zeros(40, np.uint32))
    active, below = trace.outputs
    np.testing.assert_array_equal(active[:32], np.tile([0x55555555, 0xAAAAAAAA], 16))
    np.testing.assert_array_equal(active[32:], np.tile([0x55, 0xAA], 4))
    np.testing.assert_array_equal(below, 2 ** (np.arange(40) % 32) - 1)


@cuda.jit
def groups_vote_on_their_own(out):
    t = cuda.threadIdx.x
    if t % 4 == 0:
        ballot = cuda.ballot_sync(0x11111111, True)
    elif t % 4 == 1:
        ballot = cuda.ballot_sync(0x22222222, True)
    elif t % 4 == 2:
        ballot = cuda.ballot_sync(0x44444444, True)
    else:
        ballot = cuda.ballot_sync(0x88888888, True)
    out[t] = ballot


@cuda.jit
def tiles_of_a_warp(x, out):
    """Each four lanes add up their own values, all in the same call, each with the mask of its tile."""
    t = cuda.threadIdx.x
    tile = uint32(0xF) << uint32(t % 32 // 4 * 4)
    v = x[t]
    v += cuda.shfl_xor_sync(tile, v, 1)
    v += cuda.shfl_xor_sync(tile, v, 2)
    out[t] = v


def test_groups_of_a_warp_may_call_each_with_its_own_mask():
    trace = labkit.simulate(groups_vote_on_their_own, 1, 32, np.zeros(32, np.uint32))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[0], np.uint32(0x11111111) << (np.arange(32, dtype=np.uint32) % 4))
    x = np.arange(64, dtype=np.float32)
    trace = labkit.simulate(tiles_of_a_warp, 1, 64, x, np.zeros(64, np.float32))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[1], np.repeat(x.reshape(16, 4).sum(1), 4))


# --- barriers that count ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("count", lambda v: np.count_nonzero(v)),
        ("and", lambda v: v.all()),
        ("or", lambda v: v.any()),
    ],
)
def test_a_barrier_counts_a_condition_over_each_block(call, expected, dtype):
    x = np.concatenate([np.ones(72), np.arange(72) % 5, np.zeros(72)]).astype(dtype)
    counted, trace = outcome(f"cuda.syncthreads_{call}(x)", x, 72, blocks=3)
    np.testing.assert_array_equal(counted, np.repeat([expected(v) for v in x.reshape(3, 72)], 72))
    assert trace.counters.barriers == 3
    assert trace.errors == ()


@cuda.jit
def counts_where_warps_part(x, out):
    t = cuda.threadIdx.x
    rounds = 0
    if t < 32:
        while cuda.syncthreads_or(int32(x[t] > rounds)) != 0:
            rounds += 1
    else:
        while cuda.syncthreads_or(int32(x[t] > rounds)) != 0:
            rounds += 2
    out[t] = rounds


@cuda.jit
def the_rest_has_left(x, out):
    t = cuda.threadIdx.x
    if t >= 50:
        return
    out[t] = cuda.syncthreads_count(x[t])


def test_a_count_reaches_warps_that_run_apart():
    trace = labkit.simulate(counts_where_warps_part, 1, 64, np.full(64, 5), np.zeros(64, np.int64))
    np.testing.assert_array_equal(trace.outputs[1], np.repeat([5, 10], 32))


def test_threads_that_have_returned_do_not_count():
    trace = labkit.simulate(the_rest_has_left, 1, 64, np.full(64, 5), np.zeros(64, np.int64))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[1], np.where(np.arange(64) < 50, 50, 0))


# --- masks and lanes that do not fit ---------------------------------------------------------------


@cuda.jit
def full_mask_in_a_branch(x, out):
    t = cuda.threadIdx.x
    if t < 20:
        out[t] = cuda.shfl_sync(FULL, x[t], 0)


@cuda.jit
def ballot_in_a_shorter_loop(x, out):
    t = cuda.threadIdx.x
    for k in range(t // 16 + 1):
        out[t] += cuda.ballot_sync(FULL, x[t] > k)


@cuda.jit
def everyone_with_half_a_mask(x, out):
    t = cuda.threadIdx.x
    out[t] = cuda.shfl_sync(0xFFFF, x[t], 0)


@cuda.jit
def different_masks(x, out):
    t = cuda.threadIdx.x
    mask = FULL
    if t == 3:
        mask = 0xFF
    out[t] = cuda.any_sync(mask, x[t] > 0)


@cuda.jit
def syncwarp_in_a_branch(x, out):
    t = cuda.threadIdx.x
    if t < 8:
        out[t] = x[t]
        cuda.syncwarp()


@pytest.mark.parametrize(
    ("kernel", "call", "lanes", "says"),
    [
        (full_mask_in_a_branch, "cuda.shfl_sync", [0, 20], "names lane 20 of its warp"),
        (ballot_in_a_shorter_loop, "cuda.ballot_sync", [16, 0], "does not make this call with the same mask"),
        (everyone_with_half_a_mask, "cuda.shfl_sync", [16], "bit 16 is not set"),
        (different_masks, "cuda.any_sync", [0, 3], "with the same mask"),
        (syncwarp_in_a_branch, "cuda.syncwarp", [0, 8], "waits forever"),
    ],
    ids=lambda p: getattr(p, "__name__", None),
)
def test_a_mask_that_does_not_name_those_who_call_is_an_error(kernel, call, lanes, says):
    found = [f for f in errors(kernel, 32, np.arange(32), np.zeros(32, np.int64)) if f.kind == "mask"]
    assert len(found) == 1
    (finding,) = found
    assert finding.line == line_of(kernel, call)
    assert [t.thread[0] for t in finding.threads] == lanes
    assert says in finding.message and finding.remedy in finding.message


@cuda.jit
def ballot_names_the_branch(x, n, out):
    """The right form of a shuffle in a branch: a ballot ahead of it names the lanes that come."""
    t = cuda.threadIdx.x
    mask = cuda.ballot_sync(FULL, t < n)
    if t < n:
        out[t] = cuda.shfl_sync(mask, x[t], 0)


@cuda.jit
def the_others_have_returned(x, n, out):
    t = cuda.threadIdx.x
    if t >= n:
        return
    out[t] = cuda.shfl_sync(FULL, x[t], 0)


@pytest.mark.parametrize("kernel", [ballot_names_the_branch, the_others_have_returned], ids=lambda k: k.__name__)
@pytest.mark.parametrize("block", [32, 40])
def test_lanes_that_have_returned_or_do_not_exist_need_not_come(kernel, block):
    trace = labkit.simulate(kernel, 1, block, np.arange(40) + 7, 20, np.zeros(40, np.int64))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[2], np.where(np.arange(40) < 20, 7, 0))


@cuda.jit
def warp_sums(x, out):
    t = cuda.threadIdx.x
    v = x[t]
    k = 16
    while k > 0:
        v += cuda.shfl_down_sync(FULL, v, k)
        k //= 2
    if t % 32 == 0:
        out[t // 32] = v


@cuda.jit
def reads_one_that_returned(x, out):
    t = cuda.threadIdx.x
    if t == 9:
        return
    out[t] = cuda.shfl_xor_sync(FULL, x[t], 1)


@cuda.jit
def reads_outside_the_mask(x, out):
    t = cuda.threadIdx.x
    if t < 8:
        out[t] = cuda.shfl_down_sync(0xFF, x[t], 1)


@pytest.mark.parametrize(
    ("kernel", "block", "who", "says"),
    [
        (warp_sums, 40, 32, "lane 0 of its warp, reads by `cuda.shfl_down_sync` the value of lane 16, which does not"),
        (reads_one_that_returned, 32, 8, "the value of lane 9, which has returned"),
        (reads_outside_the_mask, 32, 7, "the value of lane 8, which does not make this call"),
    ],
    ids=lambda p: getattr(p, "__name__", None),
)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_result_that_depends_on_a_lane_that_takes_no_part_is_an_error(kernel, block, who, says, dtype):
    (finding,) = errors(kernel, block, np.arange(40, dtype=dtype), np.zeros(40, dtype))
    assert (finding.kind, finding.line) == ("shuffle", line_of(kernel, "cuda.shfl"))
    assert finding.threads[0].thread[0] == who
    assert says in finding.message


@cuda.jit
def eight_lanes_add_up(x, out):
    """Lanes 4 to 7 get what is undefined, and nothing depends on it."""
    t = cuda.threadIdx.x
    if t < 8:
        v = x[t]
        v += cuda.shfl_down_sync(0xFF, v, 4)
        v += cuda.shfl_down_sync(0xFF, v, 2)
        v += cuda.shfl_down_sync(0xFF, v, 1)
        if t == 0:
            out[0] = v


@cuda.jit
def partial_warp_adds_up(x, out):
    t = cuda.threadIdx.x
    lanes = min(32, cuda.blockDim.x - t // 32 * 32)
    v = x[t]
    k = 16
    while k > 0:
        other = cuda.shfl_down_sync(FULL, v, k)
        if t % 32 + k < lanes:
            v += other
        k //= 2
    if t % 32 == 0:
        out[t // 32] = v


@pytest.mark.parametrize(
    ("kernel", "block", "expected"), [(eight_lanes_add_up, 32, [28, 0]), (partial_warp_adds_up, 50, [496, 729])]
)
def test_an_undefined_value_that_nothing_depends_on_is_no_error(kernel, block, expected):
    trace = labkit.simulate(kernel, 1, block, np.arange(50, dtype=np.float32), np.zeros(2, np.float32))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[1], expected)


# --- any groups of any warp, against the rules as PTX states them ----------------------------------

ABSENT, GONE, HERE = range(3)  # what a lane does: it goes another way, it has returned, it makes the call


def bits_of(lanes):
    return int(np.array(sum(1 << int(k) for k in lanes), np.uint32).view(np.int32))


def in_words_of_ptx(call, roles, masks, values, operands):
    """Return each lane's result by the pseudo-code of the PTX ISA; None where that is undefined."""
    results = [None] * 32
    for lane in np.flatnonzero(roles == HERE):
        group = [k for k in range(32) if roles[k] == HERE and masks[lane] >> k & 1]
        if call.startswith("shfl"):
            b = int(operands[lane]) & 31
            sources = {"shfl_sync": b, "shfl_up_sync": lane - b, "shfl_down_sync": lane + b, "shfl_xor_sync": lane ^ b}
            source = sources[call]
            source = source if 0 <= source < 32 else lane
            results[lane] = values[source] if source in group else None
            continue
        bits = {k: values[k].tobytes() for k in group}
        yes = [k for k in group if values[k]]
        alike = [k for k in group if bits[k] == bits[lane]]
        results[lane] = {
            "all_sync": len(yes) == len(group),
            "any_sync": len(yes) > 0,
            "eq_sync": len(yes) in (0, len(group)),
            "ballot_sync": bits_of(yes),
            "match_any_sync": bits_of(alike),
            "match_all_sync": bits_of(alike) if len(alike) == len(group) else 0,
        }[call]
    return results


def random_warp(rng, dtype):
    """Lanes that come, left or went another way; those that come are in groups, and masks name returned lanes too."""
    roles = rng.choice([ABSENT, GONE, HERE, HERE], 32).astype(np.int32)
    groups = rng.integers(0, rng.integers(1, 5), 32)
    masks = np.zeros(32, np.uint32)
    extra = sum(1 << int(k) for k in np.flatnonzero((roles == GONE) & (rng.random(32) < 0.5)))
    for group in set(groups):
        members = np.flatnonzero((groups == group) & (roles == HERE))
        masks[members] = extra | sum(1 << int(k) for k in members)
    values = rng.integers(-1, 2, 32).astype(dtype)
    return roles, masks, values, rng.integers(-40, 40, 32).astype(np.int32)


def collective_kernel(call):
    arguments = "masks[i], values[i]" + ", operands[i]" * call.startswith("shfl")
    return kernel_in(f"""
        @cuda.jit
        def kernel(roles, masks, values, operands, out):
            i = cuda.grid(1)
            if roles[i] == 1:
                return
            if roles[i] == 2:
                out[i] = cuda.{call}({arguments}){"[0]" * (call == "match_all_sync")}
        """)


GROUPED = [name for name in CALLS if name.endswith("_sync")]


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        (call, dtype)
        for call in GROUPED
        for dtype in (np.int32, np.int64, np.float32, np.float64)
        if call.startswith(("shfl", "match")) or dtype in (np.int32, np.int64)
    ],
)
def test_groups_of_any_form_get_what_ptx_says(call, dtype):
    rng = np.random.default_rng(len(call))
    warps = [random_warp(rng, dtype) for _ in range(24)]
    roles, masks, values, operands = map(np.concatenate, zip(*warps))
    out = np.zeros(len(values), dtype if call.startswith("shfl") else np.int64)
    trace = labkit.simulate(collective_kernel(call), 8, 96, roles, masks, values, operands, out)
    expected = [result for warp in warps for result in in_words_of_ptx(call, *warp)]
    defined = np.array([result is not None for result in expected])
    np.testing.assert_array_equal(trace.outputs[4][defined], [e for e in expected if e is not None])
    undefined = (~defined & (roles == HERE)).any()
    assert [f.kind for f in trace.errors] == ["shuffle"] * bool(undefined and call.startswith("shfl"))


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("call", GROUPED)
def test_groups_of_any_form_get_the_same_on_a_gpu(call):
    rng = np.random.default_rng(len(call))
    warps = [random_warp(rng, np.int32) for _ in range(24)]
    roles, masks, values, operands = map(np.concatenate, zip(*warps))
    expected = [result for warp in warps for result in in_words_of_ptx(call, *warp)]
    defined = np.array([result is not None for result in expected])
    out = np.zeros(len(values), np.int64)
    collective_kernel(call)[8, 96](roles, masks, values, operands, out)
    np.testing.assert_array_equal(out[defined], [e for e in expected if e is not None])


# --- whole algorithms ------------------------------------------------------------------------------


@cuda.jit
def block_sum(x, out):
    partial = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    v = x[i] if i < x.size else float32(0)
    for k in range(5):
        v += cuda.shfl_xor_sync(FULL, v, 16 >> k)
    if t % 32 == 0:
        partial[t // 32] = v
    cuda.syncthreads()
    if t < 32:
        v = partial[t] if t < cuda.blockDim.x // 32 else float32(0)
        for k in range(5):
            v += cuda.shfl_xor_sync(FULL, v, 16 >> k)
        if t == 0:
            cuda.atomic.add(out, 0, v)


@cuda.jit
def warp_scan(x, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    v = x[i]
    for k in range(5):
        before = cuda.shfl_up_sync(FULL, v, 1 << k)
        if lane >= 1 << k:
            v += before
    out[i] = v


@cuda.jit
def compacted(x, out, count):
    """A warp-aggregated atomic: one lane counts for all that have something to write."""
    i = cuda.grid(1)
    keep = x[i] > 0
    mask = cuda.ballot_sync(FULL, keep)
    if keep:
        below, total = 0, 0
        for k in range(32):
            bit = mask >> k & 1
            total += bit
            if k < cuda.laneid:
                below += bit
        base = 0
        if below == 0:
            base = cuda.atomic.add(count, 0, total)
        leader = 0
        while mask >> leader & 1 == 0:
            leader += 1
        base = cuda.shfl_sync(mask, base, leader)
        out[base + below] = x[i]


def test_reductions_scans_and_aggregated_atomics_over_warps():
    rng = np.random.default_rng(5)
    x = rng.integers(-4, 5, 256).astype(np.float32)
    trace = labkit.simulate(block_sum, 3, 96, x, np.zeros(1, np.float32))
    assert trace.errors == () and trace.outputs[1][0] == x.sum()
    trace = labkit.simulate(warp_scan, 2, 128, x, np.zeros(256, np.float32))
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[1], np.cumsum(x.reshape(8, 32), axis=1).ravel())
    trace = labkit.simulate(compacted, 4, 64, x, np.zeros(256, np.float32), np.zeros(1, np.int64))
    assert trace.errors == ()
    kept = int(trace.outputs[2][0])
    np.testing.assert_array_equal(np.sort(trace.outputs[1][:kept]), np.sort(x[x > 0]))


# --- types -----------------------------------------------------------------------------------------

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()


def type_here(call, dtype):
    cell = run_cell(f"@cuda.jit\ndef kernel(a):\n    x = a[0]\n    r = {call}\n    a[0] = x\n")
    try:
        program = run._program(cell["kernel"].py_func, (Array(numba_types.type_of(dtype), 1, "global"),), watch=False)
    except KernelError:
        return None
    return program.variables.get("r", {types.Tuple((types.int32, types.boolean))}).pop()


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("name", CALLS)
def test_collectives_take_and_give_the_types_of_numba(name):
    for dtype in map(np.dtype, DTYPES):
        x = numba_types.type_of(dtype)
        given = [{"x": x}.get(a, types.int64) for a in CALLS[name].split(", ") if a]
        assert type_here(f"cuda.{name}({CALLS[name]})", dtype) == type_in_numba(name, *given), dtype


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("cuda.shfl_sync(-1, uint32(x), 0)", "convert it first"),
        ("cuda.shfl_sync(0.5, x, 0)", "the mask is a whole number of 32 or 64 bits"),
        ("cuda.shfl_down_sync(-1, x, int8(1))", "the delta is a whole number of 32 or 64 bits"),
        ("cuda.shfl_down_sync(-1, x, 1, 16)", "it takes 3 arguments, not 4"),
        ("cuda.all_sync(x > 0)", "write `cuda.all_sync(mask, condition)`"),
        ("cuda.any_sync(-1, x * 0.5)", "write a comparison"),
        ("cuda.syncthreads_count(x > 0)", r"write `int32\(x > 0\)`"),
        ("cuda.activemask(1)", "takes 0 arguments, not 1"),
    ],
)
def test_what_numba_does_not_take_is_refused_in_a_sentence(call, says):
    with pytest.raises(KernelError, match=says.replace("(mask, condition)", r"\(mask, condition\)")):
        outcome(call, LANES)
