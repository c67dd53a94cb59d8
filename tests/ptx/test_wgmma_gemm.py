"""A GEMM as a GPU's best are: a producer that fills a ring of tiles, two warpgroups that multiply them.

Right, it has no findings; with any one of its waits, arrivals, fences or commits gone, it has.
"""

import numpy as np
import pytest
from cells import kernel_in
from numba import uint16, uint64

import labkit
from labkit import ptx

ROWS, COLUMNS, STEP, STAGES = 128, 64, 64, 4
TILE_A, TILE_B = ROWS * STEP * 2, COLUMNS * STEP * 2
NAMES = dict(
    ROWS=ROWS,
    COLUMNS=COLUMNS,
    STEP=STEP,
    STAGES=STAGES,
    A_SHAPE=(STAGES, ROWS, STEP),
    B_SHAPE=(STAGES, COLUMNS, STEP),
    B_FIRST=STAGES * TILE_A,
    FULL_FIRST=STAGES * (TILE_A + TILE_B),
    EMPTY_FIRST=STAGES * (TILE_A + TILE_B) + 8 * STAGES,
    STAGE_BYTES=TILE_A + TILE_B,
    SUMS=COLUMNS // 2,
    FORMAT=ptx.BF16,
)
SHARED_BYTES = STAGES * (TILE_A + TILE_B) + 16 * STAGES

GEMM = """
@cuda.jit(launch_bounds=(384, 1))
def gemm(A, B, C, K):
    a = ptx.shared_array(0, A_SHAPE, uint16)
    b = ptx.shared_array(B_FIRST, B_SHAPE, uint16)
    full = ptx.shared_array(FULL_FIRST, STAGES, uint64)
    empty = ptx.shared_array(EMPTY_FIRST, STAGES, uint64)
    t = cuda.threadIdx.x
    if t == 0:
        for stage in range(STAGES):
            ptx.mbarrier_init(full, stage, 1)
            ptx.mbarrier_init(empty, stage, 2)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    row, column = cuda.blockIdx.y * ROWS, cuda.blockIdx.x * COLUMNS
    steps = (K + STEP - 1) // STEP
    if t < 128:
        ptx.setmaxnreg_dec(40)
        if t == 0:
            for k in range(steps):
                stage = k % STAGES
                ptx.mbarrier_wait(empty, stage, k // STAGES + 1 & 1)
                ptx.mbarrier_expect(full, stage, STAGE_BYTES)
                ptx.tma_load(a, (stage, 0, 0), A, (row, k * STEP), full, stage)
                ptx.tma_load(b, (stage, 0, 0), B, (column, k * STEP), full, stage)
    else:
        ptx.setmaxnreg_inc(232)
        acc = cuda.local.array(SUMS, float32)
        for i in range(SUMS):
            acc[i] = 0
        group = t // 128 - 1
        ptx.wgmma_fence()
        for k in range(steps):
            stage = k % STAGES
            ptx.mbarrier_wait(full, stage, k // STAGES & 1)
            for i in range(4):
                ptx.wgmma(acc, 0, COLUMNS, a, (stage, 64 * group, 16 * i), b, (stage, 0, 16 * i), FORMAT)
            ptx.wgmma_commit()
            ptx.wgmma_wait(0)
            if t % 128 == 0:
                ptx.mbarrier_arrive(empty, stage)
        row += 64 * group + t % 128 // 32 * 16 + t % 32 // 4
        column += t % 4 * 2
        for j in range(COLUMNS // 8):
            for h in range(2):
                for c in range(2):
                    if row + 8 * h < C.shape[0] and column + 8 * j + c < C.shape[1]:
                        C[row + 8 * h, column + 8 * j + c] = acc[4 * j + 2 * h + c]
"""


def bits(values):
    """float32 of a few bits as bfloat16."""
    return (values.view(np.uint32) >> 16).astype(np.uint16)


def operand(rows, columns, seed):
    return np.random.default_rng(seed).integers(-8, 9, (rows, columns)).astype(np.float32) / 4


def mapped(values, rows):
    """The tensor map of a bfloat16 matrix, whose rows are padded to 16 bytes."""
    padded = np.zeros((len(values), -(-values.shape[1] // 8) * 8), np.uint16)
    padded[:, : values.shape[1]] = bits(values)
    return ptx.TensorMap(padded, (rows, STEP))


def run(text, M, N, K):
    made = kernel_in(text, ptx=ptx, uint16=uint16, uint64=uint64, **NAMES)
    A, B = operand(M, K, 1), operand(N, K, 2)
    grid = (-(-N // COLUMNS), -(-M // ROWS))
    arguments = mapped(A, ROWS), mapped(B, COLUMNS), np.zeros((M, N), np.float32), K
    trace = labkit.simulate(made, grid, 384, *arguments, shared_bytes=SHARED_BYTES)
    return trace, A.astype(np.float64) @ B.T.astype(np.float64)


@pytest.mark.parametrize("M, N, K", [(256, 128, 640), (130, 70, 600), (40, 200, 72), (129, 8, 20)])
def test_it_is_right_and_has_no_findings(M, N, K):
    trace, expected = run(GEMM, M, N, K)
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[2], expected)


def mutant(before, after=""):
    assert GEMM.count(before) == 1, before
    return GEMM.replace(before, after)


def line(call):
    """The one line of the kernel that makes this call."""
    (found,) = [text + "\n" for text in GEMM.splitlines() if call in text]
    return found


@pytest.mark.parametrize(
    "before, after, kinds",
    [
        (line("mbarrier_wait(empty"), "", "in-flight mbarrier deadlock"),
        (line("mbarrier_wait(full"), "", "uninitialised"),
        (line("mbarrier_expect"), "", "deadlock"),
        (line("tma_load(b"), "", "deadlock"),
        (line("wgmma_fence"), "", "warpgroup"),
        (line("wgmma_commit"), "", "in-flight"),
        (line("wgmma_wait"), "", "in-flight"),
        ("ptx.mbarrier_arrive(empty, stage)", "pass", "deadlock"),
        (line("mbarrier_init_fence"), "", "mbarrier"),
        (line("    cuda.syncthreads()"), "", "race"),
        ("k // STAGES + 1 & 1", "k // STAGES & 1", "deadlock"),
        ("wait(full, stage, k // STAGES & 1", "wait(full, stage, k // STAGES + 1 & 1", "uninitialised"),
        ("mbarrier_wait(full, stage, k // STAGES & 1", "mbarrier_wait(full, 0, k // STAGES & 1", "in-flight deadlock"),
        ("mbarrier_wait(empty, stage,", "mbarrier_wait(empty, 0,", "race"),
        ("a, (stage, 64 * group,", "a, ((stage + 1) % STAGES, 64 * group,", "in-flight uninitialised"),
        ("A, (row, k * STEP), full, stage)", "A, (row, k * STEP), full, (stage + 1) % STAGES)", "deadlock in-flight"),
        ("mbarrier_arrive(empty, stage)", "mbarrier_arrive(empty, 0)", "deadlock"),
        ("ptx.mbarrier_init(empty, stage, 2)", "ptx.mbarrier_init(empty, stage, 1)", "mbarrier"),
        ("ptx.mbarrier_init(empty, stage, 2)", "ptx.mbarrier_init(empty, stage, 3)", "deadlock"),
        ("full, stage, STAGE_BYTES", "full, stage, STAGE_BYTES // 2", "deadlock"),
        ("            if t % 128 == 0:\n", "            if t % 32 == 0:\n", "mbarrier"),
        ("        if t == 0:\n            for k", "        if t < 2:\n            for k", "mbarrier in-flight"),
        ("            ptx.wgmma_wait(0)\n", "            ptx.wgmma_wait(1)\n", "race in-flight"),
    ],
)  # fmt: skip
def test_what_is_missing_is_found_out(before, after, kinds):
    trace, _ = run(mutant(before, after), 120, 40, 520)
    assert set(kinds.split()) & {f.kind for f in trace.errors}, trace.errors


def test_an_arrival_before_the_wait_lets_the_tile_be_overwritten():
    early = GEMM.replace(line("wgmma_wait"), "").replace(
        "ptx.mbarrier_arrive(empty, stage)\n", "ptx.mbarrier_arrive(empty, stage)\n" + line("wgmma_wait")
    )
    trace, _ = run(early, 120, 40, 520)
    assert {(f.kind, f.array) for f in trace.errors} == {("race", "a"), ("race", "b")}


def test_registers_that_are_not_there():
    trace, _ = run(mutant("setmaxnreg_inc(232)", "setmaxnreg_inc(240)"), 128, 64, 64)
    (finding,) = trace.errors
    assert finding.kind == "deadlock"
    assert "want 40, 240, 240 registers per thread, 66,560 in all" in finding.message


@pytest.mark.needs("numba-cuda")
@pytest.mark.needs("toolkit")
def test_it_assembles_without_spills(tmp_path):
    from numba import types
    from test_compile import assembled

    from labkit.cuda.compiling import ptx_text
    from labkit.ptx.tensor_copies.map_types import TensorMapType

    made = kernel_in(GEMM, ptx=ptx, uint16=uint16, uint64=uint64, **NAMES)
    arguments = TensorMapType(2), TensorMapType(2), types.Array(types.float32, 2, "C"), types.int64
    report, _ = assembled(ptx_text(made, arguments, (9, 0, "a")), (9, 0, "a"), tmp_path)
    assert "0 bytes spill stores, 0 bytes spill loads" in report
