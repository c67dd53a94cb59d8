"""Blocks of a cluster: their numbers, their barrier, tiles for several of them, and what breaks them."""

import numpy as np
import pytest
from cells import kernel_in
from numba import float32, float64, int32, uint16, uint64

import labkit
from labkit import cuda, ptx
from labkit.simulator.errors import KernelError, LaunchError

# a use of each instruction, and the least compute capability that has it (tests/ptx/test_capabilities.py)
LINES = {
    "q = ptx.cluster_rank()": (9, 0),
    "ptx.cluster_sync()": (9, 0),
    "q = int(ptx.cluster_load(barriers, 1, q))": (9, 0),
    "ptx.cluster_store(barriers, 1, q, 7)": (9, 0),
}

RANKS = """
@cuda.jit(cluster=4)
def ranks(out):
    out[cuda.blockIdx.y, cuda.blockIdx.x] = ptx.cluster_rank()
"""

# Each block of a pair loads one half of every tile for both; a stage is free when both have read it.
PAIR = """
@cuda.jit(cluster=2)
def pair(source, out, steps):
    tile = cuda.shared.array((STAGES, 16, 64), uint16, alignment=1024)
    full = cuda.shared.array(STAGES, uint64)
    empty = cuda.shared.array(STAGES, uint64)
    t, rank = cuda.threadIdx.x, ptx.cluster_rank()
    if t == 0:
        for stage in range(STAGES):
            ptx.mbarrier_init(full, stage, 1)
            ptx.mbarrier_init(empty, stage, 2)
        ptx.mbarrier_init_fence()
    ptx.cluster_sync()
    if t < 32:
        if t == 0:
            for step in range(steps):
                stage = step % STAGES
                ptx.mbarrier_wait(empty, stage, step // STAGES + 1 & 1)
                ptx.mbarrier_expect(full, stage, 2048)
                ptx.tma_load_multicast(
                    tile, (stage, 8 * rank, 0), source, (16 * step + 8 * rank, 0), full, stage, 3
                )
    else:
        for step in range(steps):
            stage = step % STAGES
            ptx.mbarrier_wait(full, stage, step // STAGES & 1)
            for r in range(16):
                for c in range(t - 32, 64, 32):
                    out[cuda.blockIdx.x, step, r, c] = tile[stage, r, c]
            cuda.syncwarp()
            if t == 32:
                ptx.mbarrier_arrive_at(empty, stage, 0)
                ptx.mbarrier_arrive_at(empty, stage, 1)
    ptx.cluster_sync()
"""
STEPS, STAGES = 9, 3


def kernel(text):
    return kernel_in(text, ptx=ptx, uint16=uint16, uint64=uint64, STAGES=STAGES)


def run(text, blocks=6, steps=STEPS):
    source = np.random.default_rng(4).integers(0, 1 << 16, (16 * STEPS, 64), np.uint16)
    out = np.zeros((blocks, STEPS, 16, 64), np.uint16)
    trace = labkit.simulate(kernel(text), blocks, 64, ptx.TensorMap(source, (8, 64)), out, steps)
    return trace, source.reshape(STEPS, 16, 64)


def test_blocks_are_numbered_within_their_cluster():
    trace = labkit.simulate(kernel(RANKS), (8, 2), 32, np.zeros((2, 8), np.int32))
    assert np.array_equal(trace.outputs[0], [[0, 1, 2, 3, 0, 1, 2, 3]] * 2)


def test_a_pair_of_blocks_shares_every_tile():
    trace, source = run(PAIR)
    assert not trace.errors, trace.errors
    lies = np.empty_like(source).reshape(STEPS, 16, 8, 8)
    for r in range(16):
        for piece in range(8):
            lies[:, r, piece ^ (r % 8)] = source.reshape(STEPS, 16, 8, 8)[:, r, piece]
    assert np.array_equal(trace.outputs[1], np.broadcast_to(lies.reshape(STEPS, 16, 64), trace.outputs[1].shape))


def test_a_tile_for_two_blocks_is_read_once():
    trace, _ = run(PAIR, blocks=2)
    read = next(c for c in trace.sites if c.site.array == "source")
    written = next(c for c in trace.sites if c.site.array == "tile" and c.site.kind == "store")
    assert read.bytes == STEPS * 16 * 128
    assert written.bytes == 2 * read.bytes


@pytest.mark.parametrize(
    "before, after, kinds",
    [
        ("                ptx.mbarrier_arrive_at(empty, stage, 1)\n", "", "deadlock"),
        ("mbarrier_arrive_at(empty, stage, 1)", "mbarrier_arrive_at(empty, stage, 0)", "deadlock mbarrier"),
        ("full, stage, 3\n", "full, stage, 1\n", "deadlock"),
        ("ptx.mbarrier_init(empty, stage, 2)", "ptx.mbarrier_init(empty, stage, 1)", "race in-flight mbarrier"),
        ("            ptx.mbarrier_wait(full, stage, step // STAGES & 1)\n", "", "in-flight uninitialised"),
        ("        ptx.mbarrier_init_fence()\n    ptx.cluster_sync()\n",
         "        ptx.mbarrier_init_fence()\n    cuda.syncthreads()\n", "race mbarrier"),
        ("    if t < 32:\n", "    if t < 32:\n        ptx.cluster_sync()\n", "deadlock"),
    ],
)  # fmt: skip
def test_a_broken_pair_is_found_out(before, after, kinds):
    assert PAIR.count(before) == 1, before
    trace, _ = run(PAIR.replace(before, after), blocks=2)
    assert set(kinds.split()) & {f.kind for f in trace.errors}, trace.errors


END = "                ptx.mbarrier_arrive_at(empty, stage, 1)\n    ptx.cluster_sync()\n"
DRAIN = """\
    if t == 0:
        for step in range(steps, steps + STAGES):
            ptx.mbarrier_wait(empty, step % STAGES, step // STAGES + 1 & 1)
"""


@pytest.mark.parametrize("steps", [1, STEPS])
def test_a_block_stays_while_others_of_its_cluster_may_arrive_at_its_barriers(steps):
    assert PAIR.count(END) == 1
    trace, _ = run(PAIR.replace(END, END.replace("    ptx.cluster_sync()\n", "")), blocks=4, steps=steps)
    assert {f.kind for f in trace.errors} == {"cluster"}
    told = "thread 32 of block 1 reaches empty of another block of its cluster, where thread 0 of block 0"
    assert any(told in f.message for f in trace.errors)
    assert all("`ptx.cluster_sync()` at the end" in f.remedy for f in trace.errors)


def test_a_block_that_waits_for_the_last_arrivals_may_end():
    trace, _ = run(PAIR.replace(END, END.replace("    ptx.cluster_sync()\n", DRAIN)))
    assert not trace.errors, trace.errors


def test_clusters_fill_the_grid_and_name_blocks_that_exist():
    with pytest.raises(LaunchError, match="5 blocks along x"):
        run(PAIR, blocks=5)
    with pytest.raises(LaunchError, match="a cluster has 1, 2, 4 or 8 blocks, not 3"):
        run(PAIR.replace("cluster=2", "cluster=3"))
    with pytest.raises(KernelError, match="no block 2 in it"):
        run(PAIR.replace("(empty, stage, 1)", "(empty, stage, 2)"))
    with pytest.raises(KernelError, match="no block 2 in it"):
        run(PAIR.replace("full, stage, 3\n", "full, stage, 5\n"))
    with pytest.raises(LaunchError, match="leave `sample` out"):
        labkit.simulate(kernel(RANKS), (512, 2), 32, np.zeros((2, 512), np.int32), sample=8)


def test_a_copy_with_other_constants_keeps_its_clusters():
    assert labkit.specialise(kernel(PAIR), STAGES=2).options["cluster"] == 2


@pytest.mark.needs("gpu")
def test_a_gpu_runs_the_blocks_in_clusters():
    out = np.zeros((2, 8), np.int32)
    kernel(RANKS)[(8, 2), 32](out)
    cuda.synchronize()
    assert np.array_equal(out, [[0, 1, 2, 3, 0, 1, 2, 3]] * 2)


# --- shared memory of other blocks ---

# Each block sums its part of x, asks all others of its cluster for theirs, and writes what they add up to.
SUM = """
@cuda.jit(cluster=4)
def sum_of_all(x, out):
    part = cuda.shared.array(2, float32)
    t, rank = cuda.threadIdx.x, ptx.cluster_rank()
    if t == 0:
        part[1] = x[cuda.blockIdx.x]
    ptx.cluster_sync()
    total = float32(0)
    if t < 4:
        total = ptx.cluster_load(part, 1, (rank + t) % 4)
        out[cuda.blockIdx.x, t] = total
    ptx.cluster_sync()
"""
# Each block tells all others of its cluster what it has, each in a place of its own.
TELL = """
@cuda.jit(cluster=4)
def tell(x, out):
    parts = cuda.shared.array((1, 4), int32)
    t, rank = cuda.threadIdx.x, ptx.cluster_rank()
    ptx.cluster_sync()
    if t < 4:
        ptx.cluster_store(parts, (0, rank), t, x[cuda.blockIdx.x])
    ptx.cluster_sync()
    if t < 4:
        out[cuda.blockIdx.x, t] = parts[0, t]
"""


def run_on(text, dtype, blocks=8):
    x = np.arange(10, 10 + blocks).astype(dtype)
    made = kernel_in(text, ptx=ptx, float32=float32, int32=int32, uint16=uint16)
    return x, labkit.simulate(made, blocks, 64, x, np.zeros((blocks, 4), dtype))


def test_blocks_read_each_others_shared_memory():
    x, trace = run_on(SUM, np.float32)
    assert not trace.errors, trace.errors
    each = np.arange(8)
    assert np.array_equal(trace.outputs[1], x[each[:, None] // 4 * 4 + (each[:, None] + np.arange(4)) % 4])
    (found,) = [of for of in trace.sites if of.site.kind == "load" and of.site.array == "part"]
    assert (found.accesses, found.requests, found.bank_conflicts) == (8 * 4, 8, 0)


def test_blocks_write_each_others_shared_memory():
    x, trace = run_on(TELL, np.int32)
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[1], np.repeat(x.reshape(2, 4), 4, axis=0))


SYNC, OUT = "    ptx.cluster_sync()\n", "        out[cuda.blockIdx.x, t] = total\n"


@pytest.mark.parametrize(
    ("text", "before", "after", "kind", "told"),
    [
        (SUM, SYNC + "    total", "    cuda.syncthreads()\n    total", "race", "part"),
        (SUM, OUT + SYNC, OUT, "cluster", "and all others may have ended by then"),
        (SUM, "        part[1] = x", "        part[0] = x", "uninitialised", "part"),
        (SUM, "cluster_load(part, 1,", "cluster_load(part, 2,", "bounds", "part"),
        (
            TELL,
            SYNC + "    if t < 4:\n        out",
            "    cuda.syncthreads()\n    if t < 4:\n        out",
            "race",
            "parts",
        ),
        (TELL, SYNC + "    if t < 4:\n        ptx", "    if t < 4:\n        ptx", "cluster", "need not run yet"),
        (TELL, "(0, rank), t,", "(0, 0), t,", "race", "parts"),
    ],
)
def test_a_broken_exchange_is_found_out(text, before, after, kind, told):
    assert text.count(before) == 1, before
    _, trace = run_on(text.replace(before, after), np.float32 if text is SUM else np.int32)
    assert [f for f in trace.errors if f.kind == kind and told in f.message], trace.errors


def test_what_no_block_can_reach_is_refused():
    for before, after, why in (
        ("(rank + t) % 4", "rank + t", "there is no block 4 in it"),
        ("array(2, float32)", "array(2, uint16)", "moves 4 or 8 bytes, which elements of uint16 have not"),
        ("cluster_load(part,", "cluster_load(x,", "reaches shared arrays"),
    ):
        with pytest.raises(KernelError, match=why):
            run_on(SUM.replace(before, after), np.float32)


@pytest.mark.needs("gpu")
@pytest.mark.parametrize(("text", "dtype"), [(SUM, np.float32), (TELL, np.int32), (TELL, np.float64)])
def test_blocks_reach_each_others_shared_memory_on_the_gpu(text, dtype):
    name = {np.int32: "int32", np.float64: "float64"}.get(dtype, "int32")
    made = kernel_in(text.replace("int32)", f"{name})"), ptx=ptx, float32=float32, int32=int32, float64=float64)
    x, out = np.arange(10, 18).astype(dtype), np.zeros((8, 4), dtype)
    made[8, 64](x, out)
    cuda.synchronize()
    each = np.arange(8)[:, None]
    others = (each + np.arange(4)) % 4 if text is SUM else np.arange(4)
    assert np.array_equal(out, x[each // 4 * 4 + others])
