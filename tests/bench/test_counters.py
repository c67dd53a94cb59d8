"""The kernels whose counters are compared are right, and the comparison says so where it should."""

import json

import numpy as np
import pytest

from labkit import attention, gemm, simulate
from labkit.bench.counters import compare
from labkit.bench.counters.compared import COUNTERS, METRICS
from labkit.bench.counters.kernels import STEPS, launches
from labkit.bench.counters.machine_code import wavefront_factor, widths_bytes
from labkit.bench.counters.ncu import Profiled, read
from labkit.forecast.sass import Instruction, Sass
from labkit.formats import BF16

LAUNCHES = {f"{one.title} {one.problem}": one for one in launches()}
ELSEWHERE = {f"{ladder} {slug}" for _, ladder, slug in STEPS}  # what tests/ladder holds to its oracles
SMALL = {name: one for name, one in LAUNCHES.items() if np.prod(one.grid) <= 4096 and one.title not in ELSEWHERE}


def code(**times):
    """Machine code that holds each instruction so many times; a dot in a name is written `_`."""
    names = [name.replace("_", ".") for name, count in times.items() for _ in range(count)]
    return Sass(tuple(Instruction(16 * i, name, None, 0) for i, name in enumerate(names)), ())


TILED = code(LDG_E=2, LDS=16, LDS_128=4, FFMA=16, STG_E=1)


def block_sums(x, out):
    return x.reshape(out.size, -1).sum(1)


def placed(x, index, out):
    out = out.copy()
    out[index] = x
    return out


def spaced(x, out, step):
    out = out.copy()
    out[::step] = x
    return out


def exchanged(x, out, step, elements):
    blocks = x.reshape(-1, 256, elements)
    return blocks[:, np.arange(256) * step % 256].ravel()


def stencil(x, out):
    out = out.copy()
    out[1:-1] = x[1:-1] + (x[:-2] + x[2:]) / 4
    return out


def stencil_2d(x, out):
    out = out.copy()
    out[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 4 - x[1:-1, 1:-1]
    return out


ORACLES = {
    **{step.slug: lambda A, B, C: A @ B for step in gemm.ladder("fp32")},
    "copy": lambda x, out: x,
    "strided_copy": lambda x, out, step: x[::step],
    "strided_store": spaced,
    "shifted_copy": lambda x, out, shift: x[shift : shift + out.size],
    "gather": lambda x, index, out: x[index],
    "scatter": placed,
    "copy2": lambda x, out: x,
    "copy4": lambda x, out: x,
    "exchange2": lambda x, out, step: exchanged(x, out, step, 2),
    "exchange4": lambda x, out, step: exchanged(x, out, step, 4),
    "transpose_naive": lambda x, out: x.T,
    "transpose_tiled": lambda x, out: x.T,
    "transpose_padded": lambda x, out: x.T,
    "sum_interleaved": block_sums,
    "sum_sequential": block_sums,
    "sum_atomic": lambda x, out: x.sum(keepdims=True),
    "sum_strided": lambda x, out: x.reshape(-1, out.size).sum(0),
    "histogram_global": lambda x, counts: np.bincount(x, minlength=256),
    "histogram_shared": lambda x, counts: np.bincount(x, minlength=256),
    "stencil_1d": stencil,
    "stencil_1d_shared": stencil,
    "stencil_2d": stencil_2d,
    "stencil_2d_shared": stencil_2d,
    "axpy": lambda a, x, y: a * x + y,
    "dot": lambda x, y, out: np.dot(x, y)[None],
    "matvec_by_row": lambda A, x, out: A @ x,
    "matvec_by_column": lambda A, x, out: x @ A,
}
RESULT = {"strided_copy": 1, "strided_store": 1, "shifted_copy": 1, "exchange2": 1, "exchange4": 1}


def test_there_are_kernels_enough_of_every_kind():
    assert len({one.kernel.__name__ for one in LAUNCHES.values()}) >= 20
    assert len(LAUNCHES) == len(launches()), "a title and a problem name one launch"


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.sample(12)
def test_a_kernel_is_right_and_without_an_error(name):
    one = LAUNCHES[name]
    given = one.arguments()
    trace = simulate(one.kernel, one.grid, one.block, *given, shared_bytes=one.shared_bytes)
    assert not trace.errors
    kernel = one.kernel.__name__
    out = trace.outputs[RESULT.get(kernel, -1)]
    assert np.allclose(out, ORACLES[kernel](*given), rtol=1e-3, atol=1e-3)


def test_an_instruction_tells_its_width():
    assert widths_bytes(code(LDG_E=1, LDG_E_U8=1, LDG_E_64_CONSTANT=1, LDS_128=1), "global load") == [4, 1, 8]


def test_the_sass_factor_is_the_share_of_the_sources_accesses_that_the_machine_code_makes():
    one = LAUNCHES["tiled 200x120x72"]
    trace = one.simulate()
    factors = {counter.name: counter.factor(TILED, trace) for counter in COUNTERS}
    assert factors.pop("shared_load_requests") == 20 / 32
    assert factors.pop("shared_load_wavefronts") == (16 + 4 * 2) / 32, "all lanes of a half-warp read the same four"
    assert set(factors.values()) == {1}


def test_loads_that_the_machine_code_merges_otherwise_leave_wavefronts_as_they_are():
    one = LAUNCHES["tiled 200x120x72"]
    trace = one.simulate()
    assert wavefront_factor(TILED, trace) == 24 / 32
    assert wavefront_factor(code(LDS=32), trace) == 1
    assert wavefront_factor(code(LDS=24, LDS_128=2), trace) == 1, "half of them, and it is unknown which"


def test_a_counter_that_a_launch_leaves_open_is_not_held_against_it():
    one = LAUNCHES["histogram_global 262144"]
    trace = one.simulate()
    metrics = dict.fromkeys(METRICS, 1.0)
    rows = {row["counter"]: row for row in compare(one, trace, Profiled(metrics, code()))}
    left_open = {name for name, row in rows.items() if row["held"] is None}
    assert left_open == {"l2_hit_rate", "global_atomic_sectors"}
    assert all(bool(row["reason"]) == (name in left_open) for name, row in rows.items())


def test_what_comes_from_l2_is_what_the_formula_of_attention_says():
    one = LAUNCHES["forward persistent 1x4/2x512x128 causal"]
    from_l2 = next(counter for counter in COUNTERS if counter.name == "bytes_from_l2")
    problem = attention.AttentionForward(1, 4, 512, 128, 512, 2, True)
    trace, moved = one.simulate(), attention.traffic.q_outer(problem, 128, 128, BF16)
    assert from_l2.concerns(trace)
    assert from_l2.predicted(trace) == sum(moved[name] for name in "QKV")
    assert not from_l2.concerns(LAUNCHES["forward online 64x512"].simulate()), "L1 keeps some of it"


def test_dram_is_not_written_what_l2_still_holds():
    one = LAUNCHES["copy 262144"]
    trace = one.simulate()
    read, written = (c for c in COUNTERS if c.name.startswith("dram_"))
    assert (read.predicted(trace), written.predicted(trace)) == (1 << 20, 0)


def test_a_run_of_ncu_is_read_launch_by_launch(tmp_path):
    table, sass = tmp_path / "ncu.csv", tmp_path / "sass.json"
    table.write_text(
        '==PROF== Connected\n"ID","Kernel Name","Metric Name","Metric Value"\n'
        '"0","copy","a.sum","1,024"\n"0","copy","b.sum","n/a"\n"1","copy","a.sum","7"\n'
    )
    sass.write_text(json.dumps([f".section .text.{name}\n  /*0000*/ {name} ;\n" for name in ("LDG", "STG")]))
    first, second = read(table, sass)
    assert [one.sass.instructions[0].name for one in (first, second)] == ["LDG", "STG"]
    assert first.metrics["a.sum"] == 1024 and np.isnan(first.metrics["b.sum"])
    assert second.metrics == {"a.sum": 7}
    table.write_text("==ERROR== no permission\n")
    with pytest.raises(RuntimeError, match="no permission"):
        read(table, sass)


def test_a_counter_that_is_off_misses_its_bound():
    one = LAUNCHES["tiled 200x120x72"]
    trace = one.simulate()
    metrics = dict.fromkeys(METRICS, 0.0) | {
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": trace.counters.global_load_requests,
        "smsp__sass_inst_executed_op_shared_ld.sum": trace.counters.shared_loads / 32 * 20 / 32,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": trace.counters.global_load_sectors + 1,
    }
    rows = {row["counter"]: row for row in compare(one, trace, Profiled(metrics, TILED))}
    assert rows["global_load_requests"]["held"] and rows["shared_load_requests"]["held"]
    assert not rows["global_load_sectors"]["held"]
    assert "global_atomic_requests" not in rows, "neither side counts any"
