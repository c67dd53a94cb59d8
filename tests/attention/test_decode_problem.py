"""The problem of decoding: its formula, pages and lengths, what its bytes are, and what is refused."""

import numpy as np
import pytest

from labkit import attention
from labkit.attention.decode import problem as problem_of_decoding
from labkit.formats import BF16, FP16, FP32
from labkit.ladder import relative_error

Problem = attention.AttentionDecode
O, LSE = Problem.ARRAYS.index("O"), Problem.ARRAYS.index("lse")
PROBLEMS = [
    Problem(5, 4, 2, 16, 40, 2, True, ragged=True),
    Problem(4, 4, 1, 16, 40, 2, False, layout="BSHD", page=16, ragged=True),
    Problem(2, 2, 3, 8, 20, 1, True, page=7),
]


def by_formula(problem, operands):
    """O and log-sum-exp of each query on its own, by the formula, position by position through the table."""
    Q, K, V, lengths, table, *_ = (np.asarray(X, np.float64) for X in operands[:5])
    if problem.layout == "BSHD":
        Q, K, V = (X.swapaxes(1, 2) for X in (Q, K, V))
    value, lse = np.zeros(Q.shape), np.full(Q.shape[:3], -np.inf)
    for b, h, i in np.ndindex(Q.shape[:3]):
        length = int(lengths[b])
        last = length - problem.queries + i if problem.causal else length - 1
        places = [(int(table[b, p // problem.positions]), p % problem.positions) for p in range(last + 1)]
        if places:
            k, v = (np.array([X[page, h // problem.heads_per_kv, place] for page, place in places]) for X in (K, V))
            scores = k @ Q[b, h, i] * problem.factor
            lse[b, h, i] = np.log(np.exp(scores).sum())
            value[b, h, i] = np.exp(scores - lse[b, h, i]) @ v
    return (value if problem.layout == "BHSD" else value.swapaxes(1, 2)), lse


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_the_formula_is_that_of_attention_over_the_keys_of_each_sequence(problem):
    before = problem.operands(FP32)
    of_o, of_lse = problem.expected(before).values()
    value, lse = by_formula(problem, before)
    assert np.allclose(of_o.value, value, rtol=1e-12, atol=1e-12) and np.allclose(of_lse.value, lse, rtol=1e-12)


@pytest.mark.parametrize("format", [BF16, FP16], ids=str)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_a_rounded_result_is_right_and_one_key_less_is_not(problem, format):
    before = problem.operands(format)
    after = list(before)
    for place, one in problem.expected(before, format).items():
        after[place] = format.result.encode(one.value) if place == O else one.value.astype(np.float32)
    assert problem.is_right(before, tuple(after), format)
    fewer = (*before[:3], np.maximum(before[3] - 1, 0), *before[4:])
    for place, one in problem.expected(fewer, format).items():
        after[place] = format.result.encode(one.value) if place == O else one.value.astype(np.float32)
    assert not problem.is_right(before, tuple(after), format)


def test_sequences_differ_in_length_and_nothing_is_behind_them():
    problem = Problem(6, 4, 1, 8, 100, 2, page=16, ragged=True)
    _, K, V, lengths, table, *_ = problem.operands(FP32)
    assert lengths[:3].tolist() == [1, 0, 100] and len(set(lengths)) > 3
    for b, length in enumerate(lengths):
        used = -(-length // 16)
        assert (table[b, used:] == -1).all() and (table[b, :used] >= 0).all()
        if length % 16:
            assert np.isnan(K[table[b, used - 1], :, length % 16 :]).all()
            assert not np.isnan(V[table[b, used - 1], :, : length % 16]).any()
    used = table[table >= 0]
    assert len(set(used)) == len(used) and (np.diff(used) != 1).any()


def test_pages_hold_the_numbers_of_the_cache_without_them():
    plain, paged = Problem(3, 2, 1, 8, 40, 2, ragged=True), Problem(3, 2, 1, 8, 40, 2, page=16, ragged=True)
    one, other = (problem.expected(problem.operands()) for problem in (plain, paged))
    assert all(np.array_equal(one[place].value, other[place].value) for place in (O, LSE))


def test_bytes_are_those_of_the_keys_that_there_are():
    """K and V of 8 heads of 128 float16, a query of 32 heads and its result, and log-sum-exp."""
    problem = Problem(2, 32, 1, 128, 1000, 8)
    of_queries = 2 * 32 * (2 * 128 * 2 + 4)
    assert problem.min_bytes(BF16) == 2 * 2 * 1000 * 8 * 128 * 2 + of_queries + 4 * (2 + 2)
    assert problem.flops == 4 * 2 * 32 * 1000 * 128
    ragged = Problem(3, 32, 1, 128, 1000, 8, ragged=True)
    assert ragged.flops == 4 * 32 * 1001 * 128 and ragged.lengths.sum() == 1001


@pytest.mark.parametrize("more", [{}, {"page": 16}, {"layout": "BSHD"}], ids=str)
def test_a_part_has_the_results_of_the_whole(more, monkeypatch):
    problem = Problem(4, 6, 1, 8, 50, 3, ragged=True, **more)
    before = problem.operands()
    whole = problem.expected(before)
    monkeypatch.setattr(problem_of_decoding, "LARGE", 0)
    some = problem.expected(problem.checked_part(before))
    heads = 1 if problem.layout == "BHSD" else 2
    assert np.array_equal(some[O].value, whole[O].value[::3].take([4, 5], heads))
    assert np.array_equal(some[LSE].value, whole[LSE].value[::3, 4:])
    after = list(before)
    after[O], after[LSE] = (whole[place].value.astype(np.float32) for place in (O, LSE))
    assert relative_error(problem, some, tuple(after), FP32) < 1e-6
    after[O] = after[O] * 2
    assert relative_error(problem, some, tuple(after), FP32) == pytest.approx(1)


def test_what_is_no_page_is_refused():
    for page, kind, why in (
        (0, ValueError, "page is 0, but a page has 1 position or more"),
        (2.5, TypeError, "page is"),
    ):
        with pytest.raises(kind, match=why):
            Problem(1, 2, 1, 8, 20, 1, page=page)


def test_lengths_and_tables_hold_int32():
    problem = Problem(2, 2, 1, 8, 20, 1)
    *arrays, _ = problem.operands()
    problem.check(*arrays)
    for place, name in ((3, "lengths"), (4, "table")):
        wrong = [*arrays[:place], arrays[place].astype(np.int64), *arrays[place + 1 :]]
        with pytest.raises(TypeError, match=f"{name} holds int64, but this step takes int32: convert it"):
            problem.check(*wrong)
