"""`norm.layer_norm_backward` and `norm.rms_norm_backward`: right gradients, also by plans, and what is refused."""

import re

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import cuda, norm
from labkit.formats import BF16, FP32

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
SETTINGS = settings(max_examples=100 if WHOLE else 8, phases=[Phase.generate])
CALLS = {"layer": norm.layer_norm_backward, "rms": norm.rms_norm_backward}
RESULTS = {"layer": ("dx", "dweight", "dbias"), "rms": ("dx", "dweight")}


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize("kind", CALLS)
def test_gradients_are_right_on_random_problems(kind, format):
    @SETTINGS
    @given(
        sizes=st.tuples(st.integers(1, 9), st.sampled_from((2, 5, 48, 77, 256, 600))),
        seed=st.integers(0, 2**16),
        left_out=st.sets(st.sampled_from(RESULTS[kind])),
        take=st.sampled_from((np.copy, cuda.to_device)),
    )
    def check(sizes, seed, left_out, take):
        one = norm.RowBackward(*sizes, kind)
        before = dict(zip(one.ARRAYS, one.operands(format, seed)))
        taken = {name: take(X) for name, X in before.items() if X is not None and name not in left_out}
        result = CALLS[kind](**taken, format=str(format))
        expected = one.expected((*before.values(), one), format)
        for name, X in zip(RESULTS[kind], result, strict=True):
            assert name in left_out or X is taken[name]
            held = X if isinstance(X, np.ndarray) else X.copy_to_host()
            assert expected[one.ARRAYS.index(name)].holds((format if name == "dx" else FP32).decode(held)), name

    check()


def test_a_plan_runs_for_other_rows():
    one = norm.RowBackward(5, 48)
    first, second = one.operands(seed=0), one.operands(seed=1)
    arrays, others = (list(map(cuda.to_device, of[:-1])) for of in (first, second))
    plan = norm.plan(norm.layer_norm_backward, **dict(zip(one.ARRAYS, arrays)))
    for run, before, of in ((plan, first, arrays), (lambda: plan(*others), second, others)):
        run()
        assert one.is_right(before, (*(X.copy_to_host() for X in of), one))


X, C, R = np.ones((3, 5), np.float32), np.ones(5, np.float32), np.ones(3, np.float32)

REFUSED = {
    "no weights": (lambda: norm.rms_norm_backward(X, X, None, R), "weight is None: give an array"),
    "no statistics": (lambda: norm.layer_norm_backward(X, X, C, None, R), "mean is None: give an array"),
    "another gradient": (lambda: norm.rms_norm_backward(X[:2], X, C, R), "dy is 2 x 5, but 3 x 5 beside x of 3 x 5"),
    "another type": (lambda: norm.rms_norm_backward(X.astype(float), X, C, R), "x holds float32 and dy float64"),
    "dx in dy": (lambda: in_place(), "dx shares memory with dy, which is read while dx is written"),
}


def in_place():
    dy, x, weight, rstd = map(cuda.to_device, (X, X, C, R))
    return norm.rms_norm_backward(dy, x, weight, rstd, dx=dy)


@pytest.mark.parametrize(("refused", "words"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_gradient_is_refused_in_a_sentence(refused, words):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)) as raised:
        refused()
    assert "\n" not in str(raised.value)
