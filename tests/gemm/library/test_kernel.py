"""The library's kernel: each kind of tiling, every format, alpha, beta and batches; what it counts; and its launch."""

import re
from itertools import product

import numpy as np
import pytest
from sampling import sampled

from labkit import cuda, simulate
from labkit.formats import BF16, E4M3, FP16, FP32, TF32
from labkit.gemm.library import constants, kernel
from labkit.gemm.library.form import Form
from labkit.gemm.library.launches import launches
from labkit.gemm.library.tilings import SHARED_BYTES, Tiling, max_stages

FORMATS = [BF16, FP16, E4M3, TF32]
KINDS = {
    "large tiles": Tiling(128, 256, 2),
    "a last box within the one before": Tiling(128, 168, 2),
    "one warpgroup": Tiling(64, 72, 3),
    "parts along k": Tiling(64, 64, 2, splits=3),
    "swapped": Tiling(64, 8, 3, swapped=True),
    "swapped, in parts": Tiling(128, 16, 2, splits=2, swapped=True),
}
ROUNDING = {BF16: 2.0**-9, FP16: 2.0**-12, FP32: 2.0**-11}  # half a unit in the last place; of TF32's for float32


def problem(shape, format, batches=()):
    """A, B and C in a format, and what they stand for."""
    M, N, K = shape
    rng = np.random.default_rng(shape)
    sides = ((M, K), format), ((N, K), format), ((M, N), format.result)
    made = [kind.encode(rng.standard_normal((*batches, *side))) for side, kind in sides]
    values = [kind.decode(X) for X, (_, kind) in zip(made, sides, strict=True)]
    return made, values


def simulated(tiling, arrays, alpha=1.0, beta=0.0, blocks=None):
    """The trace of a launch, and C afterwards."""
    (one,) = launches(*arrays, tiling, alpha, beta)
    trace = simulate(one.kernel, blocks or one.grid, one.block, *one.arguments, shared_bytes=one.shared_bytes)
    C = arrays[2]
    return trace, np.asarray(trace.outputs[3].array).reshape(-1).view(C.dtype).reshape(C.shape)


def errors(trace):
    return [finding.message for finding in trace.errors]


def relative_error(C, expected, format):
    return np.linalg.norm(format.result.decode(C) - expected) / np.linalg.norm(expected)


@pytest.mark.parametrize(("kind", "format"), sampled(product(KINDS, FORMATS), 5), ids=str)
@pytest.mark.sample(2)
def test_a_tiling_of_each_kind_is_right_where_the_ring_wraps_and_a_block_takes_several_tiles(kind, format):
    tiling = KINDS[kind]
    K = (2 * tiling.stages * tiling.splits + 1) * 128 // format.itemsize + 16
    shape = (24, 264, K) if tiling.swapped else (264, 264, K)
    arrays, (a, b, c) = problem(shape, format)
    trace, C = simulated(tiling, arrays, 0.5, -2.0, blocks=2)
    assert errors(trace) == []
    assert relative_error(C, 0.5 * a @ b.T - 2 * c, format) < 2 * ROUNDING[format.result]


@pytest.mark.parametrize(("kind", "columns"), sampled(product(KINDS, ["A", "B", "AB"]), 3))
def test_operands_may_be_columns_in_memory(kind, columns):
    tiling = KINDS[kind]
    shape = (24, 264, 470) if tiling.swapped else (264, 264, 470)
    if columns != "AB":  # rows of the other end at multiples of 16 bytes
        shape = *shape[:2], 472
    (A, B, C), (a, b, c) = problem(shape, BF16)
    A, B = (np.asfortranarray(X) if name in columns else X for name, X in (("A", A), ("B", B)))
    trace, result = simulated(tiling, (A, B, C), 0.5, -2.0, blocks=2)
    assert errors(trace) == []
    assert relative_error(result, 0.5 * a @ b.T - 2 * c, BF16) < 2 * ROUNDING[BF16]


def test_the_kernel_costs_what_its_docstring_says():
    M, N, K = 256, 512, 512  # enough of k to fill the ring
    arrays, _ = problem((M, N, K), BF16)
    trace, _ = simulated(Tiling(constants.BM, constants.BN, constants.STAGES), arrays)

    def requests(*names):
        sites = [site for site in trace.sites if site.site.kind == "load" and site.site.array in names]
        return sum(site.requests for site in sites) / (M * N)

    counted = {
        "copies per output": requests("left.map", "right.map"),
        "`wgmma` of a warpgroup per output": requests("left_tiles"),
        "bytes of shared memory per block": trace.shared_bytes // 4096 * 4096,  # but for a ring's barriers
    }
    stated = re.findall(r"^    (\S.*?)  +(\S.*?)(?:, of .*)?$", kernel.__doc__, re.MULTILINE)
    assert len(stated) == len(counted)
    for expression, what in stated:
        assert eval(expression, {"K": K}, vars(constants)) == counted[what], what


def test_a_kernel_fits_shared_memory_however_its_operands_lie():
    deepest = [Tiling(rows, cols, max_stages(rows, cols)) for rows in (64, 128) for cols in (64, 72, 168, 256)]
    (A, B, C), _ = problem((128, 512, 64), BF16)
    for tiling in deepest:
        for X, Y in ((A, B), (A, np.asfortranarray(B)), (np.asfortranarray(A), np.asfortranarray(B))):
            form = Form.of(X, Y, C, BF16, tiling)
            assert form.shared_bytes + 1024 <= SHARED_BYTES
            assert form.tiling.stages == tiling.stages or tiling.cols % 64 and not Y.flags.c_contiguous


def launched(tiling, A, B, C, **factors):
    """C after a launch on arrays of the device."""
    A, B, C = map(cuda.to_device, (A, B, C))
    for one in launches(A, B, C, tiling, **factors):
        one.run()
    return C.copy_to_host()


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_takes_one_launch(kind):
    (A, B, C), (a, b, c) = problem((40, 136, 144), FP16, batches=(3,))
    C = launched(KINDS[kind], A, B, C, alpha=2.0, beta=1.0)
    assert relative_error(C, 2 * a @ b.transpose(0, 2, 1) + c, FP16) < 2 * ROUNDING[FP16]


def test_what_c_held_does_not_matter_where_beta_is_0():
    (A, B, C), (a, b, _) = problem((16, 64, 64), BF16)
    C = BF16.encode(np.full(C.shape, np.nan))
    C = launched(KINDS["one warpgroup"], A, B, C)
    assert relative_error(C, a @ b.T, BF16) < ROUNDING[BF16]


def test_operands_that_do_not_fit_are_refused_in_a_sentence():
    (A, B, C), _ = problem((16, 64, 64), BF16, batches=(2,))
    with pytest.raises(ValueError, match="batches of as many each"):
        launches(A, B[:1], C, KINDS["one warpgroup"])
    for tiling in (
        Tiling(96, 64, 2),
        Tiling(64, 56, 2),
        Tiling(64, 12, 2, swapped=True),
        Tiling(64, 64, 1),
        Tiling(64, 64, 2, 0),
    ):
        with pytest.raises(ValueError, match="is not a tiling: it has 64 or 128 rows"):
            launches(A, B, C, tiling)
    with pytest.raises(ValueError, match="both run along k"):
        launches(A, B[:, :, :32], C, KINDS["one warpgroup"])
    with pytest.raises(TypeError, match="A holds int64, but tensor cores multiply arrays of float32, float16, uint16"):
        launches(A.astype(np.int64), B, C, KINDS["one warpgroup"])
