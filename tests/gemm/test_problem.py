"""The GEMM problem: operands, oracle, error bound, and what bad operands are told."""

import numpy as np
import pytest

from labkit import cuda, gemm, ladder
from labkit.formats import BF16, E4M3, FP32

P = gemm.Problem(5, 7, 3)


def test_flops_and_least_bytes():
    assert P.flops == 2 * 5 * 7 * 3
    assert P.min_bytes() == 4 * (5 * 3 + 3 * 7 + 5 * 7)
    assert P.min_bytes(BF16) == P.min_bytes() / 2
    assert P.min_bytes(E4M3) == 5 * 3 + 3 * 7 + 2 * 5 * 7


def test_operands_are_the_same_for_a_seed_and_others_for_another():
    A, B, C = P.operands(seed=1)
    assert (A.shape, B.shape, C.shape) == ((5, 3), (3, 7), (5, 7))
    assert A.dtype == B.dtype == C.dtype == np.float32
    assert np.isnan(C).all(), "what a kernel leaves unwritten must show"
    assert (P.operands(seed=1)[0] == A).all() and (P.operands(seed=2)[0] != A).any()


def test_the_bound_holds_for_float32_and_not_for_coarser_arithmetic():
    A, B, _ = gemm.Problem(40, 30, 500).operands()
    bound = gemm.error_bound(A, B)
    assert (np.abs(A @ B - gemm.oracle(A, B)) <= bound).all()
    coarse = A.astype(np.float16).astype(np.float32) @ B.astype(np.float16).astype(np.float32)
    assert not (np.abs(coarse - gemm.oracle(A, B)) <= bound).all()
    assert not (np.abs(A[:, :-1] @ B[:-1] - gemm.oracle(A, B)) <= bound).all(), "a k left out"


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


@pytest.mark.parametrize(
    ("operands", "error", "says"),
    [
        (
            ([[1.0]], ones(1, 1), ones(1, 1)),
            TypeError,
            "A is a list, not an array: make it one with np.array",
        ),
        ((ones(2, 3), 4.0, ones(2, 2)), TypeError, "B is a float, not an array"),
        (
            (ones(2, 3), ones(3, 4, dtype=np.float64), ones(2, 4)),
            TypeError,
            r"B holds float64.*B.astype\(np.float32\)",
        ),
        ((ones(2, 3), ones(3), ones(2, 4)), ValueError, "B has 1 dimensions, but a matrix has 2"),
        ((ones(2, 3), ones(4, 3), ones(2, 3)), ValueError, "A is 2 x 3 and B is 4 x 3"),
        ((ones(2, 3), ones(3, 4), ones(4, 2)), ValueError, "C is 4 x 2, but A @ B is 2 x 4"),
        ((ones(0, 3), ones(3, 4), ones(0, 4)), ValueError, "A is empty"),
    ],
)
def test_bad_operands_get_one_sentence(operands, error, says):
    with pytest.raises(error, match=says) as caught:
        gemm.check_operands(*operands)
    assert "\n" not in str(caught.value)


def test_sizes_of_good_operands_on_host_and_device():
    A, B, C = P.operands()
    assert gemm.check_operands(A, B, C) == (5, 7, 3)
    assert gemm.check_operands(*map(cuda.to_device, (A, B, C))) == (5, 7, 3)


def test_some_rows_of_a_large_product_tell_its_error():
    problem = gemm.Problem(1100, 40, 50)
    A, B, C = operands = problem.operands()
    expected = problem.expected(problem.checked_part(operands))
    assert expected[2].value.shape == (64, 40)
    right = (A, B, A @ B)
    assert ladder.relative_error(problem, expected, right, FP32) < 1e-6
    assert ladder.relative_error(problem, expected, (A, B, 1.01 * (A @ B)), FP32) == pytest.approx(0.01, rel=1e-3)
    right[2][7, 3] = C[7, 3]
    assert np.isnan(ladder.relative_error(problem, expected, right, FP32)), "one element that nobody wrote"


def test_large_operands_repeat_numbers_but_no_rows():
    A, _, _ = gemm.LayerProblem(2048, 16, 2048).operands(BF16)
    assert len(np.unique(A[:, :8], axis=0)) == 2048
