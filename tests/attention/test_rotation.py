"""What rotations do to outliers, held against the kernel that multiplies e4m3."""

import numpy as np
import pytest

from labkit import attention, formats
from labkit.attention import rotation as study
from labkit.attention.fp8.problem import quantise_blocks

LENGTH, HEAD_DIM = 128, 64


def test_stages_are_orthogonal_and_the_last_one_is_a_hadamard_matrix():
    Q, K, _, signs = study.draw_operands(0, 16, HEAD_DIM)
    for stages in range(7):
        q, k = (study.rotate(X, signs, stages) for X in (Q, K))
        assert q @ k.T == pytest.approx(Q @ K.T, abs=1e-12)
    matrix = study.rotate(np.eye(HEAD_DIM), signs, 6)
    assert np.abs(matrix) == pytest.approx(np.full((HEAD_DIM, HEAD_DIM), HEAD_DIM**-0.5))
    one = np.zeros((1, HEAD_DIM))
    one[0, 5] = 10
    for stages in range(7):
        assert np.count_nonzero(study.rotate(one, signs, stages)) == 2**stages


def test_the_study_errs_as_the_kernel_does():
    small = study.rotation_study(LENGTH, HEAD_DIM)
    step, problem = attention.ladder("fp8").step("block_scaled"), attention.AttentionFP8(1, 1, LENGTH, HEAD_DIM)
    for stages in (0, 6):
        squares = []
        for seed in range(study.SEEDS):
            Q, K, V, signs = study.draw_operands(seed, LENGTH, HEAD_DIM)
            P = np.exp(Q @ K.T / HEAD_DIM**0.5)
            exact = P @ V / P.sum(1, keepdims=True)
            rotated = (study.rotate(Q, signs, stages), study.rotate(K, signs, stages), V)
            codes_and_scales = quantise_blocks(*(np.float32(X)[None, None] for X in rotated))
            O, lse = np.zeros((1, 1, LENGTH, HEAD_DIM), np.uint16), np.zeros((1, 1, LENGTH), np.float32)
            run = step.simulate(*codes_and_scales, O, lse, problem)
            squares.append(np.mean((formats.BF16.decode(run.operands[6][0, 0]) - exact) ** 2))
        assert np.sqrt(np.mean(squares)) == pytest.approx(small.errors["a scale per 128 rows"][stages], rel=0.15)


def test_a_rotation_lowers_the_error_of_attention_by_that_of_the_largest_scores():
    _, _, score_errors, errors = study.rotation_study(512)
    all_scores, largest = score_errors.values()
    assert all_scores[-1] == pytest.approx(all_scores[0], rel=0.1)
    assert largest[0] > 2 * all_scores[0] and largest[-1] < 0.75 * largest[0]
    for name, values in errors.items():
        assert values[-1] < 0.8 * values[0], name
    ends = [[values[n] for values in errors.values()] for n in (0, -1)]
    assert all(max(of) < 1.3 * min(of) for of in ends), "scales of blocks alone do not help against such outliers"


def test_int8_errs_less_than_e4m3_until_an_outlier_sets_its_steps():
    e4m3, int8 = attention.cache_errors().values()
    ratios = {kind: int8[kind] / e4m3[kind] for kind in e4m3}
    assert ratios["without outliers"] == pytest.approx(0.25, abs=0.03)
    assert ratios["with outliers"] > 0.8 and ratios["with outliers, rotated"] < 0.25
    assert int8["with outliers, rotated"] < 0.4 * int8["with outliers"]


def test_a_scale_per_row_makes_its_largest_element_exact():
    _, K, *_ = study.draw_operands(0, 64, HEAD_DIM)
    rounded = study.round_to_e4m3(K, 1)
    largest = np.abs(K).argmax(1)[:, None]
    assert np.take_along_axis(rounded, largest, 1) == pytest.approx(np.take_along_axis(K, largest, 1), rel=1e-6)
    steps = np.abs(K).max(1, keepdims=True) / 127
    assert (np.abs(study.round_to_int8(K) - K) <= steps / 2 + 1e-12).all()
