"""The tensor-core ladder: right in every format on sides that are no multiple of a tile, and what each step counts."""

import re
from math import prod

import numpy as np
import pytest

from labkit import cuda, gemm, ptx, simulate
from labkit.gemm import formats
from labkit.gemm.tensor import operands

STEPS = gemm.ladder("tensor")
FORMATS = {"bf16": ptx.BF16, "fp16": ptx.FP16, "e4m3": ptx.E4M3}
SHAPES = [(136, 264, 80), (1, 16, 16), (200, 8, 272)]  # M, N, K; a row has a multiple of 16 bytes


def problem(M, N, K, number, seed=0):
    """A, B and a C of NaN in a format, and A @ B.T in float64."""
    rng = np.random.default_rng([seed, M, N, K])
    A = formats.encode(rng.standard_normal((M, K)), number)
    B = formats.encode(rng.standard_normal((N, K)), number)
    result = operands.RESULTS[number]
    C = formats.encode(np.full((M, N), np.nan), result)
    return A, B, C, formats.decode(A, number) @ formats.decode(B, number).T


def simulated(step, A, B, C, number=ptx.BF16, grid=None):
    """The step's trace, and C afterwards."""
    kernel = operands.in_format(step.kernel, number)
    own_grid, block = step.geometry(*C.shape)
    trace = simulate(kernel, grid or own_grid, block, *step.arguments(A, B, C), shared_bytes=step.shared_bytes)
    result = trace.outputs[2]
    return trace, np.asarray(getattr(result, "array", result)).view(C.dtype)


def relative_error(C, expected, number):
    got = formats.decode(C, operands.RESULTS[number])
    return np.linalg.norm(got - expected) / np.linalg.norm(expected)


# What rounding the result alone costs: half a unit in the last place, spread evenly, is 0.29 of a unit.
ROUNDING = {ptx.BF16: 2.0**-9, ptx.FP16: 2.0**-12, ptx.TF32: 2.0**-11}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.slug)
def test_a_step_is_right(step, shape, name):
    number = FORMATS[name]
    A, B, C, expected = problem(*shape, number)
    trace, C = simulated(step, A, B, C, number)
    assert [finding.message for finding in trace.findings if finding.severity == "error"] == []
    assert relative_error(C, expected, number) < ROUNDING[operands.RESULTS[number]]


@pytest.mark.parametrize("step", [s for s in STEPS if hasattr(s.module, "STAGES")], ids=lambda step: step.slug)
def test_the_ring_wraps_and_blocks_take_several_tiles(step):
    K = (2 * step.module.STAGES + 1) * 64 + 16
    A, B, C, expected = problem(264, 520, K, ptx.BF16)
    own_grid, _ = step.geometry(*C.shape)
    persistent = step.slug == "persistent"
    trace, C = simulated(step, A, B, C, grid=2 if persistent else own_grid)
    assert [finding.message for finding in trace.findings if finding.severity == "error"] == []
    assert relative_error(C, expected, ptx.BF16) < ROUNDING[ptx.BF16]


def test_a_persistent_step_takes_float32_as_tf32():
    A, B, C, expected = problem(136, 268, 84, ptx.TF32)
    trace, C = simulated(gemm.step("tensor", "persistent"), A, B, C, ptx.TF32, grid=2)
    assert [finding.message for finding in trace.findings if finding.severity == "error"] == []
    assert 1e-5 < relative_error(C, expected, ptx.TF32) < ROUNDING[ptx.TF32]


def test_ldmatrix_meets_no_bank_twice():
    A, B, C, _ = problem(128, 128, 64, ptx.BF16)

    def conflicts(slug):
        trace, _ = simulated(gemm.step("tensor", slug), A, B, C)
        return sum(site.bank_conflicts for site in trace.sites if site.site.space == "shared")

    assert conflicts("mma") > 0
    assert conflicts("ldmatrix") == 0


def costs(step) -> dict[str, str]:
    """The costs that a step states, as expressions by what they are."""
    lines = re.findall(r"^    (\S.*?)  +(\S.*?)(?:, of .*)?$", step.module.__doc__, re.MULTILINE)
    return {what: expression for expression, what in lines}


@pytest.mark.parametrize("step", [s for s in STEPS if s.slug != "split"], ids=lambda step: step.slug)
def test_a_step_costs_what_its_docstring_says(step):
    M, N, K = 256, 512, 512  # enough of k to fill every ring
    A, B, C, _ = problem(M, N, K, ptx.BF16)
    trace, _ = simulated(step, A, B, C)

    def per_output(amount, array_space, bytes=None, names=()):
        loads = [s for s in trace.sites if (s.site.kind, s.site.space) == ("load", array_space)]
        chosen = [s for s in loads if bytes in (None, s.site.bytes) and (not names or s.site.array in names)]
        return sum(getattr(s, amount) for s in chosen) / (M * N)

    by_engine = any(s.site.array in ("A_map", "left_map") for s in trace.sites)
    counted = {
        "global loads per output": per_output("accesses", "global", 16),
        "shared loads per output": per_output("accesses", "shared", 4),
        "copies per output": per_output("requests" if by_engine else "accesses", "global"),
        "`ldmatrix` per output and lane": per_output("accesses", "shared", 16),
        "`wgmma` of a warpgroup per output": per_output("requests", "shared", names=("A_tiles", "left_tiles")),
        "barriers per block": trace.counters.barriers / prod(trace.grid),
        "bank conflicts per block": trace.counters.bank_conflicts / prod(trace.grid),
        "bytes of shared memory per block": trace.shared_bytes // 4096 * 4096,  # but for a ring's barriers
    }
    stated = costs(step)
    assert len(stated) >= 3
    for what, expression in stated.items():
        assert eval(expression, {"K": K}, vars(step.module)) == counted[what], what


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.slug)
def test_a_launch_writes_the_product(step):
    A, B, C, expected = problem(24, 40, 48, ptx.FP16)
    A, B, out = map(cuda.to_device, (A, B, C))
    step.launch(A, B, out)
    assert relative_error(out.copy_to_host(), expected, ptx.FP16) < ROUNDING[ptx.FP16]


def test_operands_that_do_not_fit_are_refused_in_a_sentence():
    A, B, C, _ = problem(8, 16, 32, ptx.BF16)
    launch = STEPS[0].launch
    with pytest.raises(TypeError, match="uint16"):
        launch(A.astype(np.float32), B.astype(np.float32), C)
    with pytest.raises(TypeError, match="stored as uint16"):
        launch(A, B, C.astype(np.float32))
    with pytest.raises(ValueError, match="both run along k"):
        launch(A, B[:, :16], C)
    with pytest.raises(ValueError, match="make C of that shape"):
        launch(A, B, C[:, :8])
    with pytest.raises(ValueError, match="a multiple of 8 elements"):
        launch(A[:, :30], B[:, :30], C)


@pytest.mark.parametrize("shape", [(5, 72, 400), (136, 72, 272)], ids=str)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("splits", [1, 3])
def test_a_split_product_is_right_and_the_same_in_every_run(shape, swapped, splits):
    from labkit.gemm.tensor import s07_split

    A, B, C, expected = problem(*shape, ptx.BF16)
    A, B = map(cuda.to_device, (A, B))
    results = []
    for _ in range(2):  # the second finds the counters that the first has left
        out = cuda.to_device(C)
        s07_split.launch_as(A, B, out, 64, 16, 3, splits, swapped)
        results.append(out.copy_to_host())
    assert relative_error(results[0], expected, ptx.BF16) < ROUNDING[ptx.BF16]
    assert (results[0] == results[1]).all()


def test_copies_to_tf32_round_to_the_nearest_and_ties_to_even():
    """What an H100 gave for these numbers times one."""
    tie = 2.0**-11
    A = np.zeros((8, 32), np.float32)
    A[0, :5] = [1 + tie, 1 + 3 * tie, -1 - tie, 1 + 0.99 * tie, 1 + 1.01 * tie]
    C = np.zeros((8, 32), np.float32)
    _, C = simulated(gemm.step("tensor", "persistent"), A, np.eye(32, dtype=np.float32), C, ptx.TF32)
    assert C[0, :5].tolist() == [1, 1 + 4 * tie, -1, 1, 1 + 2 * tie]
