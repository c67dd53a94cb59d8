"""The general tensor-core step: each kind of plan, every format, alpha, beta and batches; and what plans are."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit import cuda, ptx, simulate
from labkit.gemm import formats
from labkit.gemm.tensor import operands, s08_general
from labkit.gemm.tensor.plans import SHARED_BYTES, Plan, Work, estimate, in_boxes, most_stages, plans

SMS = 132
FORMATS = {"bf16": ptx.BF16, "fp16": ptx.FP16, "e4m3": ptx.E4M3, "tf32": ptx.TF32}
KINDS = {
    "large tiles": Plan(128, 256, 2),
    "a last box within the one before": Plan(128, 168, 2),
    "one warpgroup": Plan(64, 72, 3),
    "parts along k": Plan(64, 64, 2, splits=3),
    "swapped": Plan(64, 8, 3, swapped=True),
    "swapped, in parts": Plan(128, 16, 2, splits=2, swapped=True),
}
ROUNDING = {ptx.BF16: 2.0**-9, ptx.FP16: 2.0**-12, ptx.TF32: 2.0**-11}


def problem(shape, number, batches=()):
    """A, B and C in a format, and what they stand for."""
    M, N, K = shape
    rng = np.random.default_rng(shape)
    result = operands.RESULTS[number]
    sides = ((M, K), number), ((N, K), number), ((M, N), result)
    made = [formats.encode(rng.standard_normal((*batches, *side)), kind) for side, kind in sides]
    values = [formats.decode(X, kind) for X, (_, kind) in zip(made, sides, strict=True)]
    return made, values


def simulated(plan, number, arrays, alpha=1.0, beta=0.0, blocks=None):
    """The errors that the simulator finds; C is written."""
    A, B, C = arrays
    form = s08_general.Form.of(A, B, number, plan)
    grid, block = s08_general._geometry(plan, *s08_general._tiles(plan, *C.shape[-2:]), 1)
    taken = s08_general._arguments(A, B, C, form, alpha, beta, 0)
    kernel = s08_general._compiled_for(form)
    trace = simulate(kernel, blocks or grid, block, *taken, shared_bytes=form.shared_bytes)
    C = trace.outputs[3]
    return [f.message for f in trace.findings if f.severity == "error"], np.asarray(C).reshape(-1)


def relative_error(C, expected, number):
    return np.linalg.norm(formats.decode(C, operands.RESULTS[number]) - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_plan_of_each_kind_is_right_where_the_ring_wraps_and_a_block_takes_several_tiles(kind, name):
    number, plan = FORMATS[name], KINDS[kind]
    per_stage = 128 // operands.DTYPES[number].itemsize
    K = (2 * plan.stages * plan.splits + 1) * per_stage + 16
    shape = (24, 264, K) if plan.swapped else (264, 264, K)
    (A, B, C), (a, b, c) = problem(shape, number)
    errors, flat = simulated(plan, number, (A, B, C), 0.5, -2.0, blocks=2)
    assert errors == []
    assert (
        relative_error(flat.view(C.dtype).reshape(C.shape), 0.5 * a @ b.T - 2 * c, number)
        < 2 * ROUNDING[operands.RESULTS[number]]
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", ["A", "B", "AB"])
def test_operands_may_be_columns_in_memory(kind, columns):
    plan = KINDS[kind]
    shape = (24, 264, 470) if plan.swapped else (264, 264, 470)
    if columns != "AB":  # rows of the other end at multiples of 16 bytes
        shape = *shape[:2], 472
    (A, B, C), (a, b, c) = problem(shape, ptx.BF16)
    A, B = (np.asfortranarray(X) if name in columns else X for name, X in (("A", A), ("B", B)))
    errors, flat = simulated(plan, ptx.BF16, (A, B, C), 0.5, -2.0, blocks=2)
    assert errors == []
    result = flat.view(C.dtype).reshape(C.shape)
    assert relative_error(result, 0.5 * a @ b.T - 2 * c, ptx.BF16) < 2 * ROUNDING[ptx.BF16]


def test_a_kernel_fits_shared_memory_however_its_operands_lie():
    deepest = [Plan(rows, cols, most_stages(rows, cols)) for rows in (64, 128) for cols in (64, 72, 168, 256)]
    (A, B, _), _ = problem((128, 512, 64), ptx.BF16)
    for plan in deepest:
        for X, Y in ((A, B), (A, np.asfortranarray(B)), (np.asfortranarray(A), np.asfortranarray(B))):
            form = s08_general.Form.of(X, Y, ptx.BF16, plan)
            assert form.shared_bytes + 1024 <= SHARED_BYTES
            assert form.plan.stages == plan.stages or plan.cols % 64 and not Y.flags.c_contiguous


@pytest.mark.needs("numba-cuda")
@pytest.mark.needs("toolkit")
def test_a_launch_that_begins_early_waits_before_it_touches_global_memory():
    from numba import types

    from labkit.compiler import ptx_text
    from labkit.ptx.tensor_copies.on_gpu import TensorMapType

    maps, words, numbers = [TensorMapType(3)] * 3, types.Array(types.uint32, 3, "C"), [types.int64] * 6
    parts, arrived = types.Array(types.float32, 4, "C"), types.Array(types.uint32, 1, "C")
    of_kernel = (*maps, words, *numbers, types.float32, types.float32, parts, arrived)
    for plan in (KINDS["large tiles"], KINDS["parts along k"]):
        kernel = s08_general._compiled_for(s08_general.Form(ptx.BF16, plan, ptx.K_MAJOR, ptx.K_MAJOR))
        code = ptx_text(kernel, of_kernel, (9, 0, "a"))
        touching = [code.find(text) for text in ("cp.async.bulk.tensor", "ld.global", "st.global", "atom.")]
        assert 0 < code.index("griddepcontrol.wait") < min(place for place in touching if place >= 0)


def launched(plan, A, B, C, **factors):
    """C after a launch on arrays of the device."""
    A, B, C = map(cuda.to_device, (A, B, C))
    s08_general.launch_as(A, B, C, plan, **factors)
    return C.copy_to_host()


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_takes_one_launch(kind):
    (A, B, C), (a, b, c) = problem((40, 136, 144), ptx.FP16, batches=(3,))
    C = launched(KINDS[kind], A, B, C, alpha=2.0, beta=1.0)
    assert relative_error(C, 2 * a @ b.transpose(0, 2, 1) + c, ptx.FP16) < 2 * ROUNDING[ptx.FP16]


def test_what_c_held_does_not_matter_where_beta_is_0():
    (A, B, C), (a, b, _) = problem((16, 64, 64), ptx.BF16)
    C[:] = formats.BF16_NAN
    C = launched(KINDS["one warpgroup"], A, B, C)
    assert relative_error(C, a @ b.T, ptx.BF16) < ROUNDING[ptx.BF16]


def test_operands_that_do_not_fit_are_refused_in_a_sentence():
    (A, B, C), _ = problem((16, 64, 64), ptx.BF16, batches=(2,))
    with pytest.raises(ValueError, match="batches of as many each"):
        s08_general.launch_as(A, B[:1], C, KINDS["one warpgroup"])
    for plan in (Plan(96, 64, 2), Plan(64, 56, 2), Plan(64, 12, 2, swapped=True), Plan(64, 64, 1), Plan(64, 64, 2, 0)):
        with pytest.raises(ValueError, match="is no plan: it has 64 or 128 rows"):
            s08_general.launch_as(A, B, C, plan)
    with pytest.raises(ValueError, match="both run along k"):
        s08_general.launch_as(A, B[:, :, :32], C, KINDS["one warpgroup"])


# --- plans ---------------------------------------------------------------------------------------

works = st.builds(
    Work, st.integers(1, 20000), st.integers(1, 20000), st.integers(1, 4000).map(lambda n: 16 * n), st.integers(1, 5)
)


@given(works)
@settings(max_examples=50, deadline=None)
def test_every_plan_fits_a_block_and_the_copy_engine(work):
    found = plans(work, SMS)
    assert found
    for plan in found:
        assert plan.stages >= 2 and plan.splits >= 1
        assert (plan.stages * (plan.rows + plan.cols) + 2 * plan.rows) * 128 + 1024 <= SHARED_BYTES
        assert plan.rows in (64, 128) and plan.cols % 8 == 0 and 8 <= plan.cols <= 256
        assert plan.swapped or plan.cols >= 64  # a box of C
    times = [estimate(plan, work, SMS) for plan in found]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("plan", "copied_bytes", "whole"),
    [
        (Plan(128, 256, 4), 10**9, True),
        (Plan(128, 200, 4), 10**9, True),
        (Plan(128, 200, 4), 0, False),  # what need not be copied can be
        (Plan(64, 8, 16, 1, True), 10**9, True),
    ],
)
def test_boxes_are_whole_where_a_copy_would_take_longer(plan, copied_bytes, whole):
    taken = in_boxes(plan, Work(8192, 8192, 2 * 8192), SMS, copied_bytes)
    assert taken.cols % 64 == 0 if whole else taken == plan
    assert taken == plan or plan.cols % 64


@pytest.mark.parametrize("N", [11008, 14336])
def test_the_first_plan_lets_few_sms_rest(N):
    first = plans(Work(256, N, 2 * 4096), SMS)[0]
    tiles = ceil(256 / first.rows) * ceil(N / first.cols) * first.splits
    assert tiles / (ceil(tiles / SMS) * SMS) > 0.95
