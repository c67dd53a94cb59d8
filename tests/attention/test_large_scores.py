"""Scores of which float32 has no fraction: what still can be told of O, log-sum-exp and the gradients is right."""

import numpy as np
import pytest

from labkit import attention
from labkit.attention.problem import EPS
from labkit.formats import BF16, FP16, FP32

SIZES = [1e3, 1e6, 1e20, 1e36]
FORWARD, DECODE = attention.ladder("forward"), attention.ladder("decode")
RECOMPUTED = attention.ladder("backward").step("recomputed")
SMALL = 1, 2, 40, 32, 44, 1, True
GRADIENTS = "dQ", "dK", "dV"


def with_scores(problem, size, format=FP32, in_pairs=False):
    """Random Q, K and V of the problem whose largest score is so large; in pairs, two neighbouring keys are alike."""
    rng = np.random.default_rng(0)
    Q, K, V = (rng.standard_normal(problem.shapes[name]) for name in "QKV")
    if in_pairs:
        K[:, :, 1::2] = K[:, :, ::2]
    scores = problem.factor * np.einsum("bhqd,bgkd->bhgqk", Q, K)
    factor = np.sqrt(size / np.abs(scores).max())
    return tuple(map(format.encode, (Q * factor, K * factor, V)))


def backward_operands(size, in_pairs=False, format=FP32, sizes=SMALL):
    """Operands of a backward step, of which O and log-sum-exp are those of float64."""
    problem, forward = attention.AttentionBackward(*sizes), attention.AttentionForward(*sizes)
    *_, dO, dQ, dK, dV, _ = problem.operands(format)
    given = with_scores(problem, size, format, in_pairs)
    O, lse = (one.value for one in forward.expected((*given, None, None, forward), format).values())
    return *given, format.result.encode(O), lse.astype(np.float32), dO, dQ, dK, dV, problem


def gradients(operands):
    """Those of the step in float32, by name."""
    found = RECOMPUTED.simulate(*operands)
    assert found.errors == ()
    return {name: found.operands[operands[-1].ARRAYS.index(name)].astype(float) for name in GRADIENTS}


def exact(operands):
    """The gradients in float64, and the sizes of what is added up for each number of them."""
    Q, K, V, _, _, dO, *_, problem = (X.astype(float) if isinstance(X, np.ndarray) else X for X in operands)
    K, V = (np.repeat(X, problem.heads_per_kv, 1) for X in (K, V))
    scores = np.where(problem.allowed(), problem.factor * Q @ K.swapaxes(2, 3), -np.inf)
    P = np.exp(scores - scores.max(-1, keepdims=True))
    P /= P.sum(-1, keepdims=True)
    found = []
    for of in (lambda X: X, np.abs):
        dP, factor = of(dO) @ of(V).swapaxes(2, 3), of(problem.factor)
        delta = (P * dP).sum(-1, keepdims=True)
        dS = P * (dP + delta if of is np.abs else dP - delta)
        dK, dV = factor * dS.swapaxes(2, 3) @ of(Q), P.swapaxes(2, 3) @ of(dO)
        found.append((factor * dS @ of(K), *(X.sum(1, keepdims=True) for X in (dK, dV))))
    return [dict(zip(GRADIENTS, each, strict=True)) for each in found]


@pytest.mark.parametrize("size", SIZES)
def test_gradients_in_float32_are_right_for_any_scores(size):
    operands = backward_operands(size)
    problem, found = operands[-1], RECOMPUTED.simulate(*operands)
    assert found.errors == () and problem.is_right(operands, found.operands)


@pytest.mark.parametrize("size", SIZES[1:])
def test_keys_that_are_alike_have_equal_shares(size):
    """The logarithm of 2 is nothing beside a score of 1e9, and so is lost in log-sum-exp."""
    operands = backward_operands(size, in_pairs=True)
    found, (value, sizes) = gradients(operands), exact(operands)
    for name in GRADIENTS:
        assert (np.abs(found[name] - value[name]) <= 8 * EPS * sizes[name]).all(), name


@pytest.mark.parametrize("size", SIZES[1:])
def test_a_key_of_all_weight_has_no_slope(size):
    """A rounding that were left would be multiplied by keys of up to 1e18."""
    found = gradients(backward_operands(size))
    assert not found["dQ"].any() and not found["dK"].any() and found["dV"].any()


@pytest.mark.parametrize("in_pairs", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.sample(3)
def test_gradients_are_as_near_as_those_of_torch(size, in_pairs):
    """torch keeps the weights of forward, in float32."""
    torch = pytest.importorskip("torch")
    operands = backward_operands(size, in_pairs)
    problem, (value, sizes) = operands[-1], exact(operands)
    Q, K, V, _, _, dO = map(torch.from_numpy, operands[:6])
    given = [X.requires_grad_() for X in (Q, K, V)]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        mask, options = torch.from_numpy(problem.allowed()), {"scale": problem.factor, "enable_gqa": True}
        torch.nn.functional.scaled_dot_product_attention(*given, mask, **options).backward(dO)
    for (name, ours), X in zip(gradients(operands).items(), given, strict=True):
        off, of_torch = (np.linalg.norm((one - value[name]) / sizes[name].max()) for one in (ours, X.grad.numpy()))
        assert off <= 2 * of_torch + 8 * EPS * np.linalg.norm(sizes[name] / sizes[name].max()), name


@pytest.mark.parametrize("in_pairs", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("step", [step for step in FORWARD if FP32 in step.formats], ids=lambda step: step.slug)
@pytest.mark.sample(8)
def test_forward_in_float32_is_right_for_any_scores(step, size, in_pairs):
    problem = attention.AttentionForward(*SMALL)
    before = (*with_scores(problem, size, in_pairs=in_pairs), *problem.operands()[3:])
    found = step.simulate(*before)
    O, lse = (one.value for one in problem.expected(before).values())
    off = EPS * (16 + (4 * size if size < 1e4 else 0))
    assert found.errors == () and (np.abs(found.operands[3] - O) <= off * np.abs(before[2]).max()).all()
    assert np.allclose(found.operands[4], lse, rtol=0, atol=8 * EPS * size)


@pytest.mark.parametrize("in_pairs", [False, True])
@pytest.mark.parametrize(("format", "size"), [(BF16, 1e3), (BF16, 1e6), (BF16, 1e9), (FP16, 1e3), (FP16, 1e7)], ids=str)
@pytest.mark.parametrize("step", [*FORWARD.steps[3:], *DECODE], ids=lambda step: step.path)
@pytest.mark.sample(12)
def test_forward_of_16_bits_is_right_for_large_scores(step, format, size, in_pairs):
    problem = step.problem(1, 2, 10, 64, 44, 1, True)
    given, (*others, _) = with_scores(problem, size, format, in_pairs), problem.operands(format)[3:]
    before = (*given, *others, problem)
    found = step.simulate(*before, format=format)
    O, lse = (one.value for one in problem.expected(before, format).values())
    places = problem.ARRAYS.index("O"), problem.ARRAYS.index("lse")
    off = 2 * format.rounding + 4 * EPS * min(size, 1e4)
    assert found.errors == ()
    assert (np.abs(format.result.decode(found.operands[places[0]]) - O) <= off * 4).all()
    assert np.allclose(found.operands[places[1]], lse, rtol=0, atol=8 * EPS * size)


@pytest.mark.parametrize("size", [1e3, 1e4])
@pytest.mark.parametrize("step", attention.ladder("backward")[1:], ids=lambda step: step.slug)
def test_gradients_of_16_bits_are_right_for_scores_of_some_thousands(step, size):
    operands = backward_operands(size, format=BF16, sizes=(1, 2, 40, 64, 44, 1, True))
    found = step.simulate(*operands, format=BF16)
    assert found.errors == () and operands[-1].is_right(operands, found.operands, BF16)
