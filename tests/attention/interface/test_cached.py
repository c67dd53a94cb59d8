"""`attention.attend_cached` and `plan_cached`: right for caches of any kind, or refused in a sentence."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import attention, cuda
from labkit.calls.call import forget
from labkit.calls.plan import Plan
from labkit.formats import BF16, FP16, FP32

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
Problem = attention.AttentionDecode
ARRAYS = Problem.ARRAYS


@pytest.fixture(autouse=True)
def as_a_new_process():
    forget()
    yield
    forget()


def options_of(problem, format) -> dict:
    return {name: getattr(problem, name) for name in ("causal", "scale", "layout")} | {"format": str(format)}


@settings(max_examples=60 if WHOLE else 5, phases=[Phase.generate], deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 3), st.sampled_from((2, 6)), st.integers(1, 4), st.sampled_from((8, 64, 128))),
    keys=st.integers(1, 90),
    causal=st.booleans(),
    page=st.none() | st.sampled_from((16, 32)),
    more=st.integers(0, 3),
    layout=st.sampled_from(("BHSD", "BSHD")),
    left_out=st.sets(st.sampled_from(("O", "lse", "lengths", "table"))),
    on=st.sampled_from(("host", "device")),
    format=st.sampled_from((BF16, FP16)),
)
def test_attention_to_a_cache_is_right_on_random_problems(
    sizes, keys, causal, page, more, layout, left_out, on, format
):
    if page is not None:
        keys, left_out = -(-keys // page) * page, left_out - {"table"}
    problem = Problem(*sizes, keys, 2, causal, layout=layout, page=page, ragged="lengths" not in left_out)
    problem = replace(problem, pool=problem.pool + more) if page else problem
    before = problem.operands(format)
    taken = {name: X.copy() if on == "host" else cuda.to_device(X) for name, X in zip(ARRAYS, before)}
    given = {name: X for name, X in taken.items() if name not in left_out}
    O = attention.attend_cached(**given, **options_of(problem, format))
    assert "O" in left_out or O is taken["O"]
    found = {name: X if on == "host" else X.copy_to_host() for name, X in (taken | {"O": O}).items()}
    for place, right in problem.expected(before, format).items():
        name = ARRAYS[place]
        held = (format if name == "O" else FP32).decode(found[name])
        assert right.holds(held) or (name in left_out and name != "O"), name


def test_a_plan_serves_sequences_that_grow():
    problem = Problem(3, 4, 1, 64, 80, 2)
    before = problem.operands(BF16)
    arrays = dict(zip(ARRAYS, (cuda.to_device(X) for X in before[:-1])))
    plan = attention.plan_cached(**arrays, format="bfloat16")
    assert isinstance(plan, Plan)
    for lengths in ([80, 1, 0], [17, 2, 1]):
        lengths = np.array(lengths, np.int32)
        arrays["lengths"].copy_to_device(lengths)
        plan()
        given = (*before[:3], lengths, *before[4:])
        after = *given[:5], arrays["O"].copy_to_host(), arrays["lse"].copy_to_host(), problem
        assert problem.is_right(given, after, BF16)


@pytest.mark.parametrize(
    ("name", "change", "kind", "why"),
    [
        ("K", lambda X: X[:, :, :, :8], ValueError, "K is 6 x 1 x 16 x 8, but 6 x 1 x 16 x 64 beside the other arrays"),
        ("table", lambda X: X[0], ValueError, "table is 3: give it 2 axes, batch and pages"),
        ("table", lambda X: X[:1], ValueError, "table is 1 x 3, but 2 x 3 beside the other arrays"),
        (
            "lengths",
            lambda X: X.astype(np.int64),
            TypeError,
            "lengths holds int64, but it is to hold int32: convert it",
        ),
        ("V", lambda X: X.view(np.float16), TypeError, "Q holds uint16 and V float16: make them alike"),
        ("Q", lambda X: X.astype(np.float32), TypeError, "Q holds float32, but bfloat16 is held by arrays of uint16"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(name, change, kind, why):
    problem = Problem(2, 2, 1, 64, 48, 1, page=16)
    arrays = dict(zip(ARRAYS, problem.operands(BF16)[:-1]))
    arrays[name] = change(arrays[name])
    with pytest.raises(kind, match=why):
        attention.attend_cached(**arrays, format="bfloat16")


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("lengths", {0: 49}, "lengths holds 49, and there is room for 48 keys: give 0 to 48"),
        ("lengths", {1: -1}, "lengths holds -1, and there is room for 48 keys: give 0 to 48"),
        ("table", {(0, 2): 6}, "table holds 6 where a sequence has keys, and there are 6 pages: give 0 to 5"),
        ("table", {(1, 0): -1}, "table holds -1 where a sequence has keys, and there are 6 pages: give 0 to 5"),
    ],
)
def test_keys_that_there_are_not_are_told_of_arrays_of_the_host(name, change, why):
    problem = Problem(2, 2, 1, 64, 48, 1, page=16, ragged=True)
    arrays = dict(zip(ARRAYS, problem.operands(BF16)[:-1]))
    arrays["lengths"][:] = 48, 3
    arrays["table"][:] = (0, 1, 2), (3, -1, 99)  # whose last pages nobody uses
    attention.attend_cached(**arrays, format="bfloat16")
    for place, value in change.items():
        arrays[name][place] = value
    with pytest.raises(ValueError, match=why):
        attention.attend_cached(**arrays, format="bfloat16")


def test_many_short_sequences_of_several_lengths_are_simulated():
    rng = np.random.default_rng(0)
    Q, K, V = (rng.standard_normal((8, 8, n, 64)).astype(np.float16) for n in (1, 256, 256))
    lengths = np.arange(0, 256, 32, dtype=np.int32)
    O = attention.attend_cached(Q, K, V, lengths)
    for b, length in enumerate(lengths):
        scores = np.einsum("hqd,hkd->hqk", Q[b].astype(float), K[b, :, :length].astype(float)) / 8
        weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e9))
        right = weights @ V[b, :, :length].astype(float) / np.maximum(weights.sum(-1, keepdims=True), 1e-30)
        np.testing.assert_allclose(O[b], right, atol=2e-3)


def test_an_array_that_is_missing_is_named():
    _, K, V, *_ = Problem(2, 2, 1, 64, 48, 1).operands(BF16)
    with pytest.raises(TypeError, match="Q is None: give an array"):
        attention.attend_cached(None, K, V)
