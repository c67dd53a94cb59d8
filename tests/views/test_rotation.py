"""A rotation of outliers: its picture, and its study held against the kernel that multiplies e4m3."""

import numpy as np
import pytest

from labkit import attention, formats
from labkit.attention import rotation as study
from labkit.attention.fp8.problem import quantise_blocks
from labkit.views import rotation
from labkit.views.base import unpack

LENGTH, HEAD_DIM = 128, 64


@pytest.fixture(scope="module")
def small():
    return study.rotation_study(LENGTH, HEAD_DIM)


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


def test_the_study_errs_as_the_kernel_does(small):
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


def test_a_rotation_lowers_the_error_of_attention():
    errors = study.rotation_study(512).errors
    for name, values in errors.items():
        assert values[-1] < 0.8 * values[0], name
    ends = [[values[n] for values in errors.values()] for n in (0, -1)]
    assert all(max(of) < 1.3 * min(of) for of in ends), "scales of blocks alone do not help against such outliers"


def test_the_picture_shows_the_row_at_each_stage(small):
    view = rotation(*small)
    row, off = unpack(view.data["row"]), unpack(view.data["off"])
    assert row == pytest.approx(small.row, rel=1e-6) and off == pytest.approx(small.rounded - small.row, abs=1e-6)
    assert np.ptp(small.scores) < 1e-9
    assert view.data["say"][0].startswith("A row of K as it is: its largest element is ")
    share = (off[0] ** 2).max() / (off[0] ** 2).sum()
    assert f"**{share:.0%} of the squared rounding error** comes from one element" in view.data["say"][0]
    assert "spread over 64 elements" in view.data["say"][6]
    assert [stat[0] for stat in view.data["stats"]["values"]] == [f"{x:.1f}" for x in np.abs(small.row).max(1)]


def test_a_still_picture_and_what_is_refused(small, tmp_path):
    view = rotation(*small)
    for step in (0, 6):
        view.save_png(tmp_path / "rotation.svg", step=step)
        assert (tmp_path / "rotation.svg").stat().st_size > 5000
    with pytest.raises(ValueError, match="a score for each stage"):
        rotation(small.row, small.rounded, small.scores[1:], small.errors)
    with pytest.raises(ValueError, match="a value for each stage"):
        rotation(*small[:3], {"one": [0.1]})
