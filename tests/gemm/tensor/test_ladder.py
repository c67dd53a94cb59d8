"""The tensor-core ladder: right in every format on sides that are no multiple of a tile, and what each step counts."""

import re
from math import prod

import numpy as np
import pytest

from labkit import cuda, gemm, ladder
from labkit.arrays.workspace import Workspace
from labkit.formats import BF16, FP16, TF32
from labkit.simulator import host
from labkit.simulator.in_place import simulate_in_place

STEPS = gemm.ladder("tensor")


def relative_error(problem, operands, after, format=BF16):
    return ladder.relative_error(problem, problem.expected(operands, format), after, format)


def simulated(step, problem, format=BF16, grid=None):
    """The step's trace, and its relative error; on another grid if that is given."""
    operands = problem.operands(format)
    copies = tuple(map(np.copy, operands))
    (launch,) = step.launches(*copies, format=format, workspace=Workspace(memory=host))
    where = grid or launch.grid, launch.block
    trace = simulate_in_place(launch.kernel, *where, *launch.arguments, shared_bytes=launch.shared_bytes)
    return trace, relative_error(problem, operands, copies, format)


@pytest.mark.parametrize("step", [s for s in STEPS if hasattr(s.module, "STAGES")], ids=lambda step: step.slug)
@pytest.mark.sample(2)
def test_the_ring_wraps_and_blocks_take_several_tiles(step):
    problem = step.problem(264, 520, (2 * step.STAGES + 1) * 64 + 16)
    trace, error = simulated(step, problem, grid=2 if step.slug == "persistent" else None)
    assert trace.errors == ()
    assert error < BF16.rounding


def test_a_persistent_step_takes_float32_as_tf32():
    trace, error = simulated(gemm.step("tensor", "persistent"), gemm.LayerProblem(136, 268, 84), TF32, grid=2)
    assert trace.errors == ()
    assert 1e-5 < error < TF32.rounding


def test_ldmatrix_meets_no_bank_twice():
    def conflicts(slug):
        trace, _ = simulated(gemm.step("tensor", slug), gemm.LayerProblem(128, 128, 64))
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
    trace, _ = simulated(step, gemm.LayerProblem(M, N, K))

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


def test_a_step_writes_to_arrays_of_the_device():
    step, problem = gemm.step("tensor", "copy_engine"), gemm.LayerProblem(24, 40, 48)
    operands = problem.operands(FP16)
    on_device = tuple(map(cuda.to_device, operands))
    step.launch(*on_device, format=FP16)
    assert relative_error(problem, operands, [X.copy_to_host() for X in on_device], FP16) < FP16.rounding


def test_operands_that_do_not_fit_are_refused_in_a_sentence():
    A, B, C = gemm.LayerProblem(8, 16, 32).operands(BF16)
    launch = STEPS[0].launch
    with pytest.raises(TypeError, match="arrays of bfloat16 hold uint16"):
        launch(A.astype(np.float32), B.astype(np.float32), C)
    with pytest.raises(TypeError, match="arrays of float16 hold float16"):
        launch(A, B, C, format=FP16)
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
@pytest.mark.sample(4)
def test_a_split_product_is_right_and_the_same_in_every_run(shape, swapped, splits):
    problem, workspace = gemm.LayerProblem(*shape), Workspace()
    A, B, C = operands = problem.operands(BF16)
    results = []
    for _ in range(2):  # the second finds the counters that the first has left
        on_device = [*map(cuda.to_device, (A, B, C))]
        tiling = {"bm": 64, "bn": 16, "stages": 3, "splits": splits, "swapped": swapped}
        for launch in gemm.step("tensor", "split").launches_for_tiling(*on_device, BF16, workspace, **tiling):
            launch.run()
        results.append(on_device[2].copy_to_host())
    assert relative_error(problem, operands, (A, B, results[0])) < BF16.rounding
    assert (results[0] == results[1]).all()


def test_copies_to_tf32_round_to_the_nearest_and_ties_to_even():
    """What an H100 gave for these numbers times one."""
    tie = 2.0**-11
    A = np.zeros((8, 32), np.float32)
    A[0, :5] = [1 + tie, 1 + 3 * tie, -1 - tie, 1 + 0.99 * tie, 1 + 1.01 * tie]
    C = np.zeros((8, 32), np.float32)
    _, _, C = gemm.step("tensor", "persistent").simulate(A, np.eye(32, dtype=np.float32), C, format=TF32).operands
    assert C[0, :5].tolist() == [1, 1 + 4 * tie, -1, 1, 1 + 2 * tie]
