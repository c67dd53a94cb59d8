"""The problem of attention backward: its gradients against differences, what its bounds let through, and its parts."""

import numpy as np
import pytest

from labkit import attention
from labkit.attention import backward
from labkit.attention.problem import as_bhsd, from_bhsd
from labkit.formats import BF16, FP16, FP32

Problem = attention.AttentionBackward
PLACES = {name: Problem.ARRAYS.index(name) for name in ("dQ", "dK", "dV")}
PROBLEMS = [
    Problem(1, 2, 19, 16, 23, 1, True),
    Problem(1, 4, 30, 24, 17, 2, True),  # some queries see no key
    Problem(2, 2, 21, 32, 40, 2, False, 9, 0.3, "BSHD"),
    Problem(1, 1, 25, 40, scale=-0.4),
]


def heads_of(problem, operands, format=FP32):
    """Q, K, V and dO by batch and head, in float64."""
    arrays = dict(zip(problem.ARRAYS, operands))
    return [
        format.decode(as_bhsd(np.asarray(arrays[name]), problem.layout)).astype(float) for name in "Q K V dO".split()
    ]


def output(problem, Q, K, V):
    """O in float64."""
    O = np.zeros(Q.shape)
    for b, h in np.ndindex(Q.shape[:2]):
        scores = np.where(problem.allowed(), problem.factor * (Q[b, h] @ K[b, h // problem.heads_per_kv].T), -np.inf)
        most = np.where(problem.allowed().any(1), scores.max(1), 0)[:, None]
        weights = np.exp(scores - most)
        total = weights.sum(1, keepdims=True)
        O[b, h] = weights / np.where(total, total, 1) @ V[b, h // problem.heads_per_kv]
    return O


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_gradients_are_slopes_of_the_output(problem):
    """In a random direction, by the difference of two outputs."""
    operands = problem.operands(seed=3)
    expected, rng, step = problem.expected(operands), np.random.default_rng(1), 1e-5
    *given, dO = heads_of(problem, operands)
    for n, place in enumerate(PLACES.values()):
        towards = rng.standard_normal(given[n].shape)
        moved = [[*given[:n], given[n] + side * step * towards, *given[n + 1 :]] for side in (1, -1)]
        ahead, behind = (output(problem, *arrays) for arrays in moved)
        slope = ((ahead - behind) * dO).sum() / (2 * step)
        told = (as_bhsd(expected[place].value, problem.layout) * towards).sum()
        assert told == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_operands_hold_what_attention_makes_of_them():
    problem = PROBLEMS[2]
    operands = problem.operands()
    Q, K, V, _ = heads_of(problem, operands)
    assert np.allclose(operands[3], from_bhsd(output(problem, Q, K, V), problem.layout), atol=1e-6)
    assert all(np.isnan(operands[place]).all() for place in PLACES.values())
    assert [np.shape(X) for X in operands[:-1]] == list(problem.shapes.values())


def computed(problem, operands, format, wrong=""):
    """Gradients as a kernel computes them from log-sum-exp, with roundings of a format; or with something wrong."""
    Q, K, V, dO = heads_of(problem, operands, format)
    lse, O = operands[4].astype(float), format.decode(as_bhsd(np.asarray(operands[3]), problem.layout)).astype(float)
    allowed = problem.allowed()
    if wrong == "one key too many":
        behind = (np.diff(allowed.astype(int), axis=1, append=0) == -1).argmax(1) + 1
        allowed = allowed.copy()
        allowed[np.arange(len(allowed)), np.minimum(behind, problem.keys - 1)] = allowed.any(1)
    dQ, dK, dV = (np.zeros(X.shape) for X in (Q, K, V))
    for b, h in np.ndindex(Q.shape[:2]):
        of = b, h % problem.kv_heads if wrong == "another head of K and V" else h // problem.heads_per_kv
        scores = problem.factor * (Q[b, h] @ K[of].T)
        with np.errstate(invalid="ignore"):
            weights = np.where(allowed, np.exp(scores - lse[b, h][:, None]), 0)
        delta = (O[b, h] * dO[b, h]).sum(1, keepdims=True)
        if wrong == "delta is forgotten":
            delta = 0
        if wrong == "delta of another query":
            delta = np.roll(delta, 1, 0)
        dS = weights * (dO[b, h] @ V[of].T - delta)
        weights, dS = (format.decode(format.encode(X)) for X in (weights, dS))
        scale = {"no scale in dQ": 1.0}.get(wrong, problem.factor)
        dQ[b, h] = scale * (dS @ K[of])
        shared = 0 if wrong == "heads are not summed" else 1
        dK[of] = shared * dK[of] + (1.0 if wrong == "no scale in dK" else problem.factor) * (dS.T @ Q[b, h])
        dV[of] = shared * dV[of] + (dS if wrong == "slopes for weights" else weights).T @ dO[b, h]
    after = list(operands)
    for place, X in zip(PLACES.values(), (dQ, dK, dV)):
        after[place] = format.result.encode(from_bhsd(X, problem.layout))
    return tuple(after)


@pytest.mark.parametrize("format", [FP32, FP16, BF16], ids=str)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_bounds_let_roundings_through(problem, format):
    operands = problem.operands(format, seed=5)
    assert problem.is_right(operands, computed(problem, operands, format), format)


@pytest.mark.parametrize(
    ("wrong", "number"),
    [
        ("one key too many", 0),
        ("another head of K and V", 1),
        ("delta is forgotten", 2),
        ("delta of another query", 2),
        ("no scale in dQ", 2),
        ("no scale in dK", 3),
        ("heads are not summed", 1),
        ("slopes for weights", 0),
    ],
)
@pytest.mark.parametrize("format", [FP32, FP16, BF16], ids=str)
def test_bounds_let_no_mistake_through(wrong, number, format):
    problem = PROBLEMS[number]
    operands = problem.operands(format, seed=5)
    assert not problem.is_right(operands, computed(problem, operands, format, wrong), format)


@pytest.mark.parametrize("layout", ["BHSD", "BSHD"])
def test_a_part_is_the_first_head_of_keys_and_those_that_share_it(layout, monkeypatch):
    monkeypatch.setattr(backward.problem, "LARGE", 16)
    problem = Problem(2, 6, 40, 16, 30, 2, True, layout=layout)
    operands = problem.operands()
    part = problem.checked_part(operands)
    assert (part[-1].batch, part[-1].heads, part[-1].kv_heads) == (1, 3, 1)
    whole, few = problem.expected(operands), problem.expected(part)
    for place in PLACES.values():
        first = as_bhsd(few[place].value, layout)
        assert np.array_equal(first, as_bhsd(whole[place].value, layout)[:1, : first.shape[1]])


def test_heads_of_a_large_problem_are_as_the_first_ones(monkeypatch):
    problem = Problem(2, 4, 40, 16, 30, 2, True, layout="BSHD")
    monkeypatch.setattr(backward.problem, "LARGE", 16)
    *arrays, same = problem.operands(seed=3)
    assert same == problem and [X.shape for X in arrays] == list(problem.shapes.values())
    heads = [as_bhsd(X, "BSHD") if X.ndim == 4 else X for X in arrays[:6]]
    for X in heads:
        first = X[:1, : X.shape[1] // problem.kv_heads]
        assert np.array_equal(X, np.tile(first, np.floor_divide(X.shape, first.shape)))
    Q, K, V, O = (X.astype(float) for X in heads[:4])
    assert np.allclose(O, output(problem, Q, K, V), atol=1e-6)


def test_what_it_costs_at_least():
    problem = Problem(2, 4, 100, 64, 50, 2)
    assert problem.flops == 10 * 2 * 4 * 100 * 50 * 64
    assert problem.min_bytes(BF16) == 2 * (2 * 64 * (4 * 4 * 100 + 4 * 2 * 50) + 4 * 4 * 100)
