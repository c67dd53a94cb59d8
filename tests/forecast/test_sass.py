"""What the compiler made of each line, and how often it runs: on code written by hand, and on compiled kernels."""

import re
from collections import Counter

import numpy as np
import pytest
from numba import float32

import labkit
from labkit import cuda, gemm, results
from labkit.cuda import cpp
from labkit.forecast import sass
from labkit.forecast.sass import SassError

compiles = pytest.mark.needs("numba-cuda", "toolkit", "nvdisasm")


@cuda.jit
def summed(x, out):
    i = cuda.grid(1)
    total = float32(0)
    for k in range(x.shape[1]):
        total += x[i, k]
    out[i] = total


@cuda.jit
def accumulated(A, B, C):
    i, j = cuda.grid(2)
    for k in range(16):
        C[i, j] += A[i, k] * B[k, j]


@cuda.jit
def copied(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = x[i]


@cuda.jit
def counted(x, bins):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, x[i], 1)


HALF = np.float32(0.5)


@cuda.jit
def halved(x):
    x[cuda.grid(1)] *= HALF


@cuda.jit(device=True)
def squared(x):
    return x * x


@cuda.jit
def squares(x):
    x[cuda.grid(1)] = squared(x[cuda.grid(1)])


def code(load, store):
    """A loop unrolled four times with two loads in one, one round of two that may be skipped, and a loop of one."""
    return f"""
	.section	.text.summed
	//## File "some.py", line {load}
        /*0000*/               @!P0 BRA `(.L_x_2) ;
.L_x_1:
        /*0010*/                   LDG.E.64 R2, [R4.64] ;
        /*0020*/                   LDG.E R3, [R4.64+0x8] ;
        /*0030*/                   LDG.E R6, [R4.64+0xc] ;
        /*0040*/                   FADD R0, R0, R2 ;
        /*0050*/                   FADD R0, R0, R3 ;
        /*0060*/                   FADD R0, R0, R3 ;
        /*0070*/                   FADD R0, R0, R6 ;
        /*0080*/               @P1 BRA `(.L_x_1) ;
.L_x_2:
        /*0090*/              @!P2 BRA `(.L_x_3) ;
        /*00a0*/                   LDG.E R2, [R4.64] ;
        /*00b0*/                   LDG.E R3, [R4.64] ;
        /*00c0*/                   FADD R0, R0, R2 ;
        /*00d0*/                   FADD R0, R0, R3 ;
.L_x_3:
        /*00e0*/              @!P2 BRA `(.L_x_5) ;
.L_x_4:
        /*00f0*/                   LDG.E R2, [R4.64] ;
        /*0100*/                   FADD R0, R0, R2 ;
        /*0110*/               @P1 BRA `(.L_x_4) ;
.L_x_5:
	//## File "some.py", line {store}
        /*0120*/                   STG.E [R8.64], R0 ;
        /*0130*/                   EXIT ;
.L_x_6:
        /*0140*/                   BRA `(.L_x_6);
        /*0150*/                   NOP;
"""


def simulated(columns):
    x = np.ones((64, columns), np.float32)
    return labkit.simulate(summed, 2, 32, x, np.zeros(64, np.float32))


@pytest.mark.parametrize(
    ("columns", "passes"),
    [(8, (2, 0, 0)), (7, (1, 1, 1)), (1, (0, 0, 1)), (2, (0, 1, 0)), (402, (100, 1, 0))],
)
def test_passes_of_an_unrolled_loop(columns, passes):
    """What a trace executed is shared out as compilers unroll: fours, then a two, then ones."""
    trace = simulated(columns)
    load, store = (trace.first_line + offset for offset in (5, 6))
    found = sass.parsed(code(load, store))
    assert found.loops == ((0x10, 0x80), (0xF0, 0x110))
    of = found.passes(trace)
    assert [of[block] for block in (0x10, 0xA0, 0xF0)] == [2 * n for n in passes]  # two warps
    flops, loads, stores = found.beside(trace)
    assert loads.requested == flops.requested == flops.executed == 2 * columns
    assert loads.executed == 2 * (3 * passes[0] + 2 * passes[1] + passes[2])
    assert (stores.requested, stores.executed, stores.factor) == (2, 2, 1)
    assert loads.instructions == {"LDG.E": 5, "LDG.E.64": 1}
    assert loads.text == "total += x[i, k]"


def test_a_trip_that_stands_before_its_loop_runs_once():
    trace = simulated(8)
    line = trace.first_line + 5
    found = sass.parsed(f"""
	.section	.text.summed
	//## File "some.py", line {line}
        /*0000*/                   LDG.E R2, [R4.64] ;
        /*0010*/                   FADD R0, R0, R2 ;
        /*0020*/              @!P0 BRA `(.L_x_2) ;
.L_x_1:
        /*0030*/                   LDG.E R2, [R4.64] ;
        /*0040*/                   FADD R0, R0, R2 ;
        /*0050*/               @P1 BRA `(.L_x_1) ;
.L_x_2:
        /*0060*/                   EXIT ;
""")
    assert found.passes(trace) == {0x00: 2, 0x30: 14, 0x60: 2}
    assert found.executed(trace) == 2 * 3 + 14 * 3 + 2


def test_code_that_no_line_tells_of_has_no_factor():
    trace = simulated(8)
    found = sass.parsed(code(trace.first_line + 5, trace.first_line + 6).replace("FADD", "IADD3"))
    (loads,) = [row for row in found.beside(trace) if row.kind == "global load"]
    assert loads.requested == 16 and loads.executed is loads.factor is None
    assert found.executed(trace) is None


NESTED = """
	.section	.text.nested
        /*0000*/                   MOV R0, RZ ;
.L_x_1:
        /*0010*/                   LDG.E R2, [R4.64] ;
        /*0020*/                   STS [R8], R2 ;
.L_x_2:
        /*0030*/                   LDS R3, [R8] ;
        /*0040*/                   FFMA R0, R3, R3, R0 ;
        /*0050*/                   FFMA R1, R3, R3, R1 ;
        /*0060*/               @P1 BRA `(.L_x_2) ;
        /*0070*/                   BAR.SYNC 0x0 ;
        /*0080*/               @P0 BRA `(.L_x_1) ;
        /*0090*/                   EXIT ;
"""


def test_a_round_has_as_many_passes_of_its_inner_loop_as_its_multiply_adds_ask_for():
    assert sass.parsed(NESTED).instructions_per_iteration(16) == 4 + 8 * 4


def test_a_loop_that_stands_alone_is_its_own_round():
    alone = NESTED.replace("@P1 BRA `(.L_x_2)", "NOP")
    assert sass.parsed(alone).instructions_per_iteration(2) == 7
    assert sass.parsed(alone).instructions_per_iteration(16) == 8 * 7  # the round was unrolled into eight


def test_a_round_of_several_loops_is_refused():
    twice = NESTED.replace("BAR.SYNC 0x0", "@P1 BRA `(.L_x_2)")
    with pytest.raises(SassError, match="at most one other"):
        sass.parsed(twice).instructions_per_iteration(16)
    with pytest.raises(SassError, match="at most one other"):
        sass.parsed(NESTED.replace("BRA", "NOP")).instructions_per_iteration(16)


def test_several_functions_are_refused():
    with pytest.raises(SassError, match="not one kernel with its functions inlined"):
        sass.parsed(code(8, 9) + code(8, 9))


@pytest.mark.parametrize("name", ["ptxas", "nvdisasm"])
def test_a_tool_that_is_missing_is_named_with_what_brings_it(name, monkeypatch):
    monkeypatch.setattr(sass, "tool", lambda name: None)
    with pytest.raises(SassError, match=f"`{name}` of the CUDA toolkit is not here: `pip install nvidia-cuda-"):
        sass._run_tool(name)


@pytest.mark.needs("numba-cuda")
def test_a_compiler_that_is_missing_is_named_with_what_brings_it(monkeypatch):
    from numba import cuda

    def compile(*_, **__):
        raise ImportError("libNVVM is not available")

    monkeypatch.setattr(cuda, "compile", compile)
    with pytest.raises(SassError, match="NVVM of the CUDA toolkit: `pip install nvidia-nvvm` brings it"):
        sass.compiled(lambda x: None, np.zeros(1))


@compiles
def test_a_device_function_is_compiled_into_its_kernel():
    code = sass.compiled(squares, np.zeros(4, np.float32))
    assert [i.name for i in code.instructions].count("FMUL") == 1


def rows_of(kernel, grid, block, *arguments, target=(9, 0)):
    trace = labkit.simulate(kernel, grid, block, *arguments)
    found = sass.compiled(kernel, *arguments, compute_capability=target)
    assert found.spill_bytes == 0 and 8 <= found.registers <= 64
    assert found.executed(trace) > sum(site.requests for site in trace.sites) / 2
    return {(row.text, row.kind): row for row in found.beside(trace)}


@pytest.mark.parametrize("size", [(128, 128, 64), (200, 120, 72)], ids=str)
@pytest.mark.parametrize("target", [(7, 5), (8, 0), (9, 0)], ids=str)
@compiles
def test_the_tiled_kernel_reads_a_row_of_its_tile_four_at_a_time(size, target):
    step = gemm.step("fp32", "tiled")
    rows = rows_of(step.kernel, *step.geometry(*size[:2]), *gemm.Problem(*size).operands(), target=target)
    line = "total += A_tile[y, k] * B_tile[k, x]"
    assert rows.pop((line, "shared load")).factor == pytest.approx(20 / 32)
    assert {row.factor for row in rows.values()} == {1}


@pytest.mark.parametrize("slug", ["naive", "coalesced"])
@pytest.mark.parametrize("size", [(64, 64, 256), (200, 120, 72)], ids=str)
@compiles
def test_a_loop_unrolled_sixteen_times_loads_as_often_as_its_source(slug, size):
    step = gemm.step("fp32", slug)
    rows = rows_of(step.kernel, *step.geometry(*size[:2]), *gemm.Problem(*size).operands())
    assert [row.factor for row in rows.values()] == [pytest.approx(1)] * 3
    assert next(iter(rows.values())).instructions["FFMA"] > 16


@compiles
def test_an_element_is_loaded_once_and_stored_in_every_trip():
    """C may be A or B, so the stores stay; but what was just stored is not loaded again."""
    A = np.ones((32, 32), np.float32)
    rows = rows_of(accumulated, (4, 4), (8, 8), A, A, np.zeros_like(A))
    factors = {kind: row.factor for (_, kind), row in rows.items()}
    assert factors == {"FLOPs": 1, "global load": 33 / 48, "global store": 1}


@pytest.mark.parametrize("size", [4096, 1000])
@compiles
def test_a_copy_without_arithmetic_is_told_by_its_stores(size):
    x = np.ones(size, np.float32)
    rows = rows_of(copied, 4, 64, x, x.copy())
    assert [row.factor for row in rows.values()] == [pytest.approx(1)] * 2


@compiles
def test_a_histogram_is_told_by_its_atomics():
    rows = rows_of(counted, 4, 64, np.arange(1000) % 16, np.zeros(16, np.int32))
    assert {kind: row.factor for (_, kind), row in rows.items()} == {"global load": 1, "global atomic": 1}


@compiles
def test_a_number_from_outside_is_no_device_function():
    assert len(rows_of(halved, 2, 32, np.ones(64, np.float32))) == 3


@pytest.mark.parametrize(("slug", "multiply_adds"), [("tiled", 16), ("register_tile", 8 * 8 * 8)])
@compiles
def test_a_step_is_as_fast_as_its_twin_or_its_machine_code_says_why(slug, multiply_adds):
    """Within 3%; and up to 10% slower where a round of it takes as many more instructions."""
    step = gemm.step("fp32", slug)
    ours = sass.compiled(step.kernel, *gemm.Problem(8, 8, 8).operands()).instructions_per_iteration(multiply_adds)
    twin = sass.of_cubin(cpp.cubin(f"gemm/fp32/{step.name}", (9, 0))).instructions_per_iteration(multiply_adds)
    rows = results.load("gemm", "nvidia-h100-80gb-hbm3").select(step=slug, baseline="CUDA C++")
    assert rows
    for row in rows:
        assert row["ratio"] >= min(0.97, max(0.9, twin / ours))


@pytest.mark.parametrize("slug", ["register_tile", "vectorised", "swizzle", "double_buffering", "warp_tiles", "tuned"])
@compiles
@pytest.mark.sample(4)
def test_a_step_says_which_share_of_its_instructions_are_multiply_adds(slug):
    step = gemm.step("fp32", slug)
    (said,) = re.findall(r"(\d+)%[^%]*multiply-adds \(sm_90\)", step.module.__doc__)
    code = sass.compiled(step.kernel, *gemm.Problem(8, 8, 8).operands(), compute_capability=(9, 0))
    if slug == "tuned":  # of the loop over k alone, in a loop that copies tiles
        blocks = Counter(one.block for one in code.instructions)
        adds = Counter(one.block for one in code.instructions if one.opcode == "FFMA")
        share = max(adds.values()) / blocks[max(adds, key=adds.get)]
        assert int(said) / 100 < share
    else:
        assert 8 * 8 * 8 / code.instructions_per_iteration(8 * 8 * 8) == pytest.approx(int(said) / 100, abs=0.03)
