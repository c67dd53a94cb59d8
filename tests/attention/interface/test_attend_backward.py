"""`attention.attend_backward`: right gradients for arrays as they lie, or refused."""

import re

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import attention, cuda
from labkit.attention.interface.choice import FORMATS

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
Problem = attention.AttentionBackward
SETTINGS = settings(max_examples=60 if WHOLE else 3, phases=[Phase.generate], deadline=None)
GRADIENTS = "dQ", "dK", "dV"


@pytest.mark.sample(1)
@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_gradients_are_right_on_random_problems(format):
    @SETTINGS
    @given(
        sizes=st.tuples(st.integers(1, 2), st.sampled_from((2, 4)), st.integers(1, 40), st.sampled_from((8, 32, 72))),
        keys=st.integers(1, 60),
        options=st.fixed_dictionaries(
            {
                "causal": st.booleans(),
                "window": st.sampled_from((None, 7)),
                "scale": st.sampled_from((None, -0.3)),
                "layout": st.sampled_from(("BHSD", "BSHD")),
            }
        ),
        deterministic=st.booleans(),
        left_out=st.sets(st.sampled_from(GRADIENTS)),
        take=st.sampled_from((np.copy, cuda.to_device)),
        seed=st.integers(0, 2**16),
    )
    def check(sizes, keys, options, deterministic, left_out, take, seed):
        problem = Problem(*sizes, keys, 2, **options)
        before = problem.operands(format, seed)
        taken = {name: take(X) for name, X in zip(Problem.ARRAYS, before) if name not in left_out}
        found = attention.attend_backward(**taken, **options, format=str(format), deterministic=deterministic)
        expected = problem.expected(before, format)
        for name, X in zip(GRADIENTS, found, strict=True):
            assert name in left_out or X is taken[name]
            held = X if isinstance(X, np.ndarray) else X.copy_to_host()
            assert expected[Problem.ARRAYS.index(name)].holds(format.result.decode(held)), name

    check()


def test_what_attend_gives_is_what_it_takes():
    problem = Problem(1, 2, 20, 16, causal=True)
    before = problem.operands()
    Q, K, V, O, lse, dO = (
        np.zeros_like(X) if name in ("O", "lse") else X for name, X in zip(Problem.ARRAYS[:6], before)
    )
    attention.attend(Q, K, V, O=O, lse=lse, causal=True)
    found = attention.attend_backward(dO, Q, K, V, O, lse, causal=True)
    for place, X in zip((6, 7, 8), found, strict=True):
        assert problem.expected(before)[place].holds(X)


RNG = np.random.default_rng(0)
Q = RNG.standard_normal((2, 4, 6, 8)).astype(np.float32)
K = RNG.standard_normal((2, 2, 9, 8)).astype(np.float32)
LSE = np.zeros((2, 4, 6), np.float32)


def in_place():
    dO, Q_, K_, V_, O_, lse = map(cuda.to_device, (Q, Q, K, K, Q, LSE))
    return attention.attend_backward(dO, Q_, K_, V_, O_, lse, dQ=dO)


REFUSED = {
    "no gradient": (lambda: attention.attend_backward(None, Q, K, K, Q, LSE), "dO is None: give an array"),
    "no log-sum-exp": (lambda: attention.attend_backward(Q, Q, K, K, Q, None), "lse is None: give an array"),
    "a gradient of another shape": (
        lambda: attention.attend_backward(Q[:, :, :5], Q, K, K, Q, LSE),
        "dO is 2 x 4 x 5 x 8, but 2 x 4 x 6 x 8 beside these Q and K: change it",
    ),
    "another type": (
        lambda: attention.attend_backward(Q.astype(np.float16), Q, K, K, Q, LSE),
        "Q holds float32 and dO float16: make them alike",
    ),
    "a word for a choice": (
        lambda: attention.attend_backward(Q, Q, K, K, Q, LSE, deterministic="no"),
        "deterministic is 'no': say True or False",
    ),
    "dQ in dO": (in_place, "dQ shares memory with dO, which is read while dQ is written"),
}


@pytest.mark.parametrize(("refused", "words"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_gradient_is_refused_in_a_sentence(refused, words):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)) as raised:
        refused()
    assert "\n" not in str(raised.value)
