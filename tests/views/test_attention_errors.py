"""Errors of attention by the spread of scores, and that NumPy's roundings, of which some are, are those of kernels."""

import numpy as np
import pytest

from labkit import attention, formats
from labkit.attention.errors import emulate
from labkit.views import attention_errors
from labkit.views.base import unpack

WEIGHTS = np.array([[0.2, 0.5, 0.3], [0.1, 0.0, 0.9]])
STORED = {"bfloat16": [0.02, 0.4], "float32": [1e-6, 3e-6]}
FUSED = {"bfloat16": [0.01, 0.1], "float32": [1e-6, 1e-6]}


@pytest.fixture(scope="module")
def view():
    return attention_errors([1, 8], WEIGHTS, STORED, FUSED)


def test_weights_are_shown_by_rank_and_errors_by_format_and_way(view):
    assert unpack(view.data["weights"]) == pytest.approx(-np.sort(-WEIGHTS, axis=1))
    errors = unpack(view.data["errors"])
    assert view.data["names"] == ["bfloat16", "float32"]
    assert errors[0] == pytest.approx(np.array([STORED["bfloat16"], FUSED["bfloat16"]]))
    assert view.data["limits"] == [1e-6, 1]


def test_a_sentence_says_what_storing_the_scores_costs(view):
    assert view.data["start"] == 1
    assert view.sentence == (
        "Scores spread by 8: the largest of 3 probabilities is 0.90. Storing the scores multiplies the error of O by "
        "4.0 in bfloat16 and by 3.0 in float32."
    )


def test_the_table_has_a_row_per_spread(view):
    table = view.data["table"]
    assert table["columns"][2:] == [f"{name}, {way}" for name in STORED for way in ("scores stored", "fused")]
    assert table["rows"][1] == ["8", "0.900", "4.0e-01", "1.0e-01", "3.0e-06", "1.0e-06"]


def test_a_result_that_is_no_number_is_shown_as_such(tmp_path):
    view = attention_errors([1], WEIGHTS[:1], {"float16": [np.inf]}, {"float16": [0.01]})
    assert view.data["table"]["rows"][0][2] == "inf"
    assert view.sentence.endswith("With scores stored in float16, O is no longer a finite number.")
    view.save_html(tmp_path / "errors.html")
    view.save_png(tmp_path / "errors.png")
    assert (tmp_path / "errors.png").stat().st_size > 5000


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match="numbers above 0 in rising order"):
        attention_errors([8, 1], WEIGHTS, STORED, FUSED)
    with pytest.raises(ValueError, match="fused bfloat16: give both in the same formats"):
        attention_errors([1, 8], WEIGHTS, STORED, {"bfloat16": [1, 2]})
    with pytest.raises(ValueError, match="float32 has 1 entries, and there are 2 spreads"):
        attention_errors([1, 8], WEIGHTS, STORED | {"float32": [1]}, FUSED)


@pytest.mark.parametrize("spread", [1, 16])
@pytest.mark.parametrize(("slug", "form"), [("standard", formats.FP32), ("mma", formats.FP16), ("mma", formats.BF16)])
def test_numpy_rounds_as_kernels_do(slug, form, spread):
    problem = attention.AttentionForward(1, 1, 48, 64, keys=64, scale=spread / 8)
    operands = problem.operands(form)
    q, k, v = (form.decode(X[0, 0]).astype(float) for X in operands[:3])
    powers = np.exp(problem.factor * (q @ k.T))
    right = powers @ v / powers.sum(1, keepdims=True)
    found = form.decode(attention.ladder("forward").step(slug).simulate(*operands, format=form).operands[3][0, 0])
    alike = emulate(q, k, v, problem.factor, form, stores_scores=slug == "standard")
    share = np.linalg.norm(alike - right) / np.linalg.norm(found - right)
    # kernels add up in float32 as well, which counts beside roundings to float32
    assert (0.1 if form is formats.FP32 else 0.7) < share < 1.5


def test_the_study_has_each_spread_in_each_format_and_storing_scores_costs_digits_in_16_bits():
    study = attention.error_study((1, 16))
    assert attention_errors(*study).data["names"] == ["bfloat16", "float16", "float32"]
    assert np.shape(study.weights) == (2, 64) and study.weights.sum(1) == pytest.approx([1, 1])
    for name in ("bfloat16", "float16"):
        assert study.stored[name][1] > 1.5 * study.fused[name][1]
    assert max(study.fused["float32"] + study.stored["float32"]) < 1e-5
