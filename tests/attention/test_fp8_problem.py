"""The problem of attention in e4m3: what its operands stand for, what is right, and what is not."""

from dataclasses import replace

import numpy as np
import pytest

from labkit import attention
from labkit.attention import problem as problem_of_attention
from labkit.attention.fp8 import problem as fp8
from labkit.formats import BF16, E4M3, FP32
from labkit.ladder import relative_error

Problem = attention.AttentionFP8
O, LSE = Problem.ARRAYS.index("O"), Problem.ARRAYS.index("lse")
PROBLEMS = [Problem(2, 4, 40, 32, 300, 2, True), Problem(1, 2, 300, 16, 140, 2, False, 50, -0.3)]


def numbers(problem, seed=0):
    """Q, K and V in float32, whose blocks differ in size."""
    rng = np.random.default_rng(seed)
    shapes = problem.unquantised.shapes
    return [
        (rng.standard_normal(shapes[name]) * 4 ** rng.uniform(-1, 1, (*shapes[name][:3], 1))).astype(np.float32)
        for name in "QKV"
    ]


def found_with(problem, codes, before):
    """`before`, with the results of attention of these codes and scales in place of its own."""
    after = list(before)
    for place, one in problem.expected((*codes, None, None, problem)).items():
        after[place] = BF16.encode(one.value) if place == O else one.value.astype(np.float32)
    return tuple(after)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_shapes_are_those_of_the_operands(problem):
    before = problem.operands()
    assert {name: X.shape for name, X in zip(problem.ARRAYS, before)} == problem.shapes
    problem.check(*before[:-1], dtype=np.uint8)


def test_codes_and_scales_stand_for_the_numbers():
    problem = PROBLEMS[0]
    Q, K, V = numbers(problem)
    K[0, 1, 128:256] = 0
    made = fp8.quantise_blocks(Q, K, V)
    back = fp8.dequantise_blocks(*made, rows=problem.rows, keys=problem.keys)
    for given, found in zip((Q, K, V), back):
        off = np.abs(found - given)
        largest = np.repeat(np.maximum.reduceat(np.abs(given).max(-1), [*range(0, given.shape[2], 128)], 2), 128, 2)
        assert (off <= np.maximum(np.abs(given) / 16, largest[:, :, : given.shape[2], None] * 2.0**-18)).all()
    q_scale, k_scale, _ = made[3:]
    assert np.allclose(q_scale[..., 0], np.abs(Q).max((2, 3)) / 448) and (made[0] & 0x7F == 0x7E).any()
    assert k_scale[0, 1, 1] == 1 and not made[1][0, 1, 128:256].any()


def test_keys_stand_where_a_thread_of_wgmma_has_their_scores():
    """Thread t of four has columns 2 t and 2 t + 1 of each 8 scores, and wants 4 neighbouring bytes of 16."""
    V = np.arange(1, 41, dtype=np.float32).reshape(1, 1, 40, 1).repeat(16, 3)
    _, _, codes, *_, scale = fp8.quantise_blocks(V, V, V)
    assert codes.shape == (1, 1, 16, 48)
    keys = np.arange(48).reshape(3, 2, 4, 2)  # of 16: which 8, thread, neighbour
    wanted = keys.swapaxes(1, 2).ravel()
    there = np.append(V[0, 0, :, 0], np.zeros(8))[wanted]
    assert np.allclose(E4M3.decode(codes[0, 0, 5]) * scale[0, 0, 0], there, rtol=1 / 16)


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_it_is_attention_of_what_the_operands_stand_for(problem):
    made = fp8.quantise_blocks(*numbers(problem))
    back = fp8.dequantise_blocks(*made, rows=problem.rows, keys=problem.keys)
    plain = problem.unquantised
    wanted = plain.expected((*back, None, None, plain), FP32)
    found = problem.expected((*made, None, None, problem))
    for one, other in zip(wanted.values(), found.values()):
        assert np.array_equal(one.value, other.value)
        assert (other.bound >= one.bound).all()


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_weights_in_e4m3_are_right(problem):
    """Of which the greatest is 2**8, with the sum of those that are not rounded."""
    before = (*fp8.quantise_blocks(*numbers(problem)), None, None, problem)
    Q, K, V = fp8.dequantise_blocks(*before[:6], rows=problem.rows, keys=problem.keys)
    K, V = (X.repeat(problem.heads_per_kv, 1) for X in (K, V))
    scores = np.where(problem.allowed(), problem.factor * Q @ K.swapaxes(2, 3), -np.inf)
    most = scores.max(-1, keepdims=True)
    weights = 256 * np.exp(scores - np.where(np.isinf(most), 0, most))
    total = weights.sum(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(total > 0, E4M3.decode(E4M3.encode(weights)) @ V / total, 0)
        lse = (most + np.log(total / 256))[..., 0]
    assert problem.is_right(before, (*before[:6], BF16.encode(found), lse.astype(np.float32), problem), E4M3)


def wrong_operands():
    """Codes and scales that are not those of the problem, by what is wrong."""
    problem = PROBLEMS[0]
    made = list(fp8.quantise_blocks(*numbers(problem)))
    for place, name in ((3, "q_scale"), (4, "k_scale"), (5, "v_scale")):
        scale = made[place].copy()
        scale[1, -1, -1] *= 2
        yield pytest.param(problem, made, [*made[:place], scale, *made[place + 1 :]], id=name)
    natural = made[2].reshape(*made[2].shape[:3], -1, 16)[..., np.argsort(fp8.ORDER)].reshape(made[2].shape)
    yield pytest.param(problem, made, [*made[:2], natural, *made[3:]], id="keys in their own order")
    of_first = [np.broadcast_to(scale[..., :1], scale.shape) for scale in made[3:]]
    yield pytest.param(problem, made, [*made[:3], *of_first], id="a scale for all blocks")


@pytest.mark.parametrize(("problem", "right", "wrong"), list(wrong_operands()))
def test_results_of_other_operands_are_wrong(problem, right, wrong):
    before = (*right, None, None, problem)
    assert problem.is_right(before, found_with(problem, right, before), E4M3)
    assert not problem.is_right(before, found_with(problem, wrong, before), E4M3)


def test_one_key_too_few_and_zeros_are_wrong():
    problem = PROBLEMS[0]
    made = fp8.quantise_blocks(*numbers(problem))
    before = (*made, None, None, problem)
    after = found_with(problem, made, before)
    fewer = [made[0], made[1].copy(), made[2], *made[3:]]
    fewer[1][:, :, 0] = 0x7E  # another key
    assert not problem.is_right(before, found_with(problem, fewer, before), E4M3)
    assert not problem.is_right(before, (*after[:O], np.zeros_like(after[O]), after[LSE], problem), E4M3)


def test_a_part_has_the_results_of_the_whole(monkeypatch):
    problem = Problem(3, 2, 300, 16, 200, 1, True)
    before = problem.operands()
    whole = problem.expected(before)
    monkeypatch.setattr(problem_of_attention, "LARGE", 0)
    part = problem.checked_part(before)
    some, rows = problem.expected(part), np.unique(np.linspace(0, 299, problem_of_attention.SAMPLED).astype(int))
    assert np.array_equal(some[O].value, whole[O].value[::2, :, rows])
    assert np.array_equal(some[LSE].value, whole[LSE].value[::2, :, rows])
    after = list(before)
    after[O], after[LSE] = (whole[place].value.astype(np.float32) for place in (O, LSE))
    assert relative_error(problem, some, tuple(after), E4M3) < 1e-6


def test_bytes_and_operations_are_those_of_the_arrays():
    problem = Problem(2, 8, 256, 128, 1000, 4)
    of_codes = 2 * 8 * 256 * 128 + 2 * 4 * 128 * (1000 + 1008)
    of_scales = 4 * (2 * 8 * 2 + 2 * 2 * 4 * 8)
    assert problem.min_bytes() == of_codes + of_scales + 2 * 8 * 256 * (2 * 128 + 4)
    assert problem.flops == problem.unquantised.flops
    assert replace(problem, causal=True).flops < problem.flops
