"""A GEMM by asynchronous copies and tensor cores: right, counted, and found out when anything of it is left away."""

import pipeline
import pytest

from labkit import specialise
from labkit.forecast import roofline, time_model


@pytest.mark.parametrize("shape", [(64, 96, 160), (40, 72, 104), (16, 8, 8)], ids="whole ragged tiny".split())
def test_it_multiplies_and_nothing_is_said_of_it(shape):
    trace, error = pipeline.run(pipeline.gemm, *shape)
    assert not trace.errors
    assert error < 2e-7


def test_an_older_gpu_is_simulated_all_the_same():
    trace, error = pipeline.run(pipeline.gemm, 32, 32, 64, gpu="T4")
    assert not trace.errors and error < 2e-7 and trace.gpu == "T4"


@pytest.mark.parametrize(
    "change, kind",
    [
        (dict(COMMITS=False), "in-flight"),
        (dict(WAITS=False), "in-flight"),
        (dict(PENDING=pipeline.PENDING + 1), "in-flight"),
        (dict(MEETS=False), "race"),
        (dict(COPIES_BEHIND=False), "race"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_left_away_is_found_out(change, kind):
    trace, _ = pipeline.run(specialise(pipeline.gemm, **change), 32, 64, 160)
    assert {f.kind for f in trace.errors} == {kind}
    assert {f.array for f in trace.errors} == {"a_tile", "b_tile"}


def test_the_barrier_belongs_behind_the_wait():
    trace, _ = pipeline.run(specialise(pipeline.gemm, MEETS=False), 32, 64, 160)
    found = next(f for f in trace.errors if f.array == "a_tile" and f.line > f.other_line)
    cure = f"Put `cuda.syncthreads()` after the wait for the copy of line {found.other_line}, before line {found.line}."
    assert found.remedy == cure


@pytest.mark.parametrize("stages", [2, 4])
def test_a_ring_of_any_length_goes_round(stages):
    trace, error = pipeline.run(specialise(pipeline.gemm, STAGES=stages, PENDING=stages - 2), 32, 32, 288)
    assert not trace.errors and error < 3e-7


def test_the_swizzle_is_what_keeps_the_banks_apart():
    m, n, k = 64, 64, 64
    traces = {on: pipeline.run(specialise(pipeline.gemm, SWIZZLES=on), m, n, k)[0] for on in (True, False)}
    blocks, steps = 4, 2
    fewest = blocks * 2 * steps * 2 * 3 * 4  # warps, halves of a step, calls, quarters
    assert traces[True].counters.shared_load_wavefronts == fewest
    assert traces[True].counters.bank_conflicts == 0
    assert traces[False].counters.shared_load_wavefronts == 4 * fewest  # rows of 64 bytes: two lie side by side
    assert "bank-conflict" not in {f.kind for f in traces[True].findings}
    advice = next(f for f in traces[False].findings if f.kind == "bank-conflict")
    assert advice.remedy.startswith("Pad the rows by 8 elements")
    assert "swizzle them" in advice.remedy


def test_its_arithmetic_stands_under_the_roof_of_the_tensor_cores():
    trace, _ = pipeline.run(pipeline.gemm, 64, 64, 64)
    assert trace.counters.flops_by_dtype == {"bfloat16 tensor": 2 * 64**3}
    bound = roofline.time_bound(trace)
    peak = roofline.peak_tflops("H100 SXM", "bfloat16 tensor") * 4 / 132  # of four blocks
    assert bound.terms["bfloat16 tensor arithmetic"] == pytest.approx(2 * 64**3 / peak / 1e9)
    modelled = time_model.modelled_time(trace)
    requests = sum(c.requests for c in trace.sites)  # those of `mma` among them
    assert f"{requests:,} loads" in modelled.formulas["instruction issue"]


def test_global_memory_is_read_in_whole_sectors_past_l1():
    trace, _ = pipeline.run(pipeline.gemm, 64, 64, 64)
    loads = [c for c in trace.sites if c.site.space == "global" and c.site.kind == "load"]
    assert {c.site.array for c in loads} == {"A", "B"} and {c.l1_hits for c in loads} == {0}
    assert sum(c.sectors for c in loads) * 32 == sum(c.bytes for c in loads) == 4 * 2 * 2 * 32 * 64 * 2 // 2
    assert trace.counters.shared_stores == sum(c.accesses for c in loads)
