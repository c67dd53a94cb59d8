"""Attention's problem: its formula, which keys a query sees, what its bounds let through, and what is refused."""

import numpy as np
import pytest

from labkit import attention
from labkit.attention import problem as problem_of_attention
from labkit.attention import traffic
from labkit.attention.problem import SAMPLED, as_bhsd
from labkit.formats import BF16, FP16, FP32
from labkit.ladder import relative_error

Problem = attention.AttentionForward
O, LSE = 3, 4  # their places among the operands
FORMATS = FP32, FP16, BF16


def rounded(problem, operands, values, format):
    """The operands after a step that gave these."""
    after = list(operands)
    after[O], after[LSE] = format.result.encode(values[O]), values[LSE].astype(np.float32)
    return tuple(after)


def computed(problem, operands, format, tile=16, wrong="") -> dict:
    """What a kernel gives that takes tiles of keys with a running maximum; or one that gets something wrong."""
    *arrays, _ = operands
    Q, K, V = (as_bhsd(format.decode(X), problem.layout) for X in arrays[:3])
    allowed, factor, group = problem.allowed(), problem.factor, problem.heads_per_kv
    keys = problem.keys
    if wrong == "scale is forgotten":
        factor = 1.0
    if wrong in ("one key too many", "one key too few"):
        behind = (np.diff(allowed.astype(int), axis=1, append=0) == -1).argmax(1) + (1 if "many" in wrong else 0)
        moved = allowed.copy()
        for row, place in enumerate(behind):
            if allowed[row].any() and place < keys:
                moved[row, place] = "many" in wrong
        allowed = moved
    if wrong == "the last tile is not masked":
        more = -keys % tile
        K, V = (np.concatenate([X, np.zeros((*X.shape[:2], more, X.shape[3]))], 2) for X in (K, V))
        allowed = np.concatenate([allowed, np.repeat(allowed[:, -1:], more, 1)], 1)
    value, lse = np.zeros(Q.shape), np.full(Q.shape[:3], -np.inf)
    for b, h in np.ndindex(Q.shape[:2]):
        kv = h % problem.kv_heads if wrong == "another head of K and V" else h // group
        most, total = np.full(Q.shape[2], -np.inf), np.zeros(Q.shape[2])
        for start in range(0, K.shape[2], tile):
            own = slice(start, start + tile)
            scores = np.where(allowed[:, own], factor * (Q[b, h] @ K[b, kv, own].T), -np.inf)
            new = np.maximum(most, scores.max(1))
            safe = np.where(np.isinf(new), 0, new)[:, None]
            weights, moved = np.exp(scores - safe), np.exp(most - safe[:, 0])
            total = (total if wrong == "the sum is not rescaled" else total * moved) + weights.sum(1)
            kept = value[b, h] if wrong == "O is not rescaled" else value[b, h] * moved[:, None]
            value[b, h] = kept + format.decode(format.encode(weights)) @ V[b, kv, own]
            most = new
        some = total > 0
        value[b, h, some] /= total[some, None]
        lse[b, h, some] = most[some] + np.log(total[some])
    if wrong == "log-sum-exp in base 2":
        lse /= np.log(2)
    if wrong == "log-sum-exp without the maximum":
        lse = np.where(np.isinf(lse), lse, np.log(np.exp(lse - lse.max())))
    return {O: value if problem.layout == "BHSD" else value.swapaxes(1, 2), LSE: lse}


WRONG = (
    "scale is forgotten",
    "one key too many",
    "one key too few",
    "the last tile is not masked",
    "another head of K and V",
    "the sum is not rescaled",
    "O is not rescaled",
    "log-sum-exp in base 2",
    "log-sum-exp without the maximum",
)
PROBLEMS = [
    Problem(1, 2, 70, 64),
    Problem(2, 4, 50, 32, keys=90, kv_heads=2, causal=True, layout="BSHD"),
    Problem(1, 2, 90, 16, keys=50, causal=True),
    Problem(1, 4, 77, 64, kv_heads=2, window=20, scale=0.3),
    Problem(1, 2, 70, 64, hard="huge"),
    Problem(1, 2, 70, 128, causal=True, hard="rising"),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_an_honest_kernel_is_right(problem, format):
    before = problem.operands(format)
    after = rounded(problem, before, computed(problem, before, format), format)
    assert problem.is_right(before, after, format)
    assert not problem.is_right(before, before, format)  # nothing was written


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_a_subtly_wrong_kernel_is_not(wrong, format):
    problem = {
        "one key too many": Problem(1, 2, 130, 64, causal=True),
        "one key too few": Problem(1, 2, 130, 64, causal=True),
        "the last tile is not masked": Problem(1, 2, 30, 64, keys=250),
        "another head of K and V": Problem(1, 4, 40, 64, kv_heads=2),
    }.get(wrong, Problem(1, 2, 130, 64))
    before = problem.operands(format)
    after = rounded(problem, before, computed(problem, before, format, wrong=wrong), format)
    assert not problem.is_right(before, after, format)


@pytest.mark.parametrize("format", FORMATS, ids=str)
def test_with_rising_scores_each_rescale_shows_in_o_alone(format):
    problem = Problem(1, 1, 64, 64, keys=256, hard="rising")
    before = problem.operands(format)
    (place, right), _ = problem.expected(before, format).items()
    for wrong, holds in (("", True), ("O is not rescaled", False), ("the sum is not rescaled", False)):
        found = computed(problem, before, format, wrong=wrong)[place]
        assert right.holds(format.decode(format.encode(found))) == holds, wrong


def test_the_formula_is_that_of_the_paper():
    problem = Problem(1, 1, 2, 1, keys=3, causal=True, scale=2.0)
    Q, K, V = (np.float32([x]).reshape(1, 1, -1, 1) for x in ([1, 0.5], [1, 2, 3], [1, 10, 100]))
    of_o, of_lse = problem.expected((Q, K, V, None, None, problem)).values()
    first, last = np.exp([2.0, 4.0]), np.exp([1.0, 2.0, 3.0])  # the first query stands at position 1
    assert of_lse.value[0, 0] == pytest.approx(np.log([first.sum(), last.sum()]))
    wanted = [first @ [1, 10] / first.sum(), last @ [1, 10, 100] / last.sum()]
    assert of_o.value[0, 0, :, 0] == pytest.approx(wanted)


def test_a_query_sees_what_is_allowed():
    def seen(**options):
        return Problem(1, 1, 4, 8, **options).allowed().astype(int).tolist()

    assert seen(keys=6, causal=True) == [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0], [1] * 6]
    assert seen(keys=2, causal=True) == [[0, 0], [0, 0], [1, 0], [1, 1]]
    assert seen(window=2) == [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]
    assert seen(window=2, causal=True) == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    assert Problem(1, 1, 4, 8, keys=6, window=2, causal=True).pairs == 8


def test_a_query_that_sees_no_key_gives_zeros():
    problem = Problem(1, 1, 5, 8, keys=2, causal=True)
    of_o, of_lse = problem.expected(problem.operands()).values()
    assert (of_o.value[0, 0, :3] == 0).all() and (of_o.bound[0, 0, :3] == 0).all()
    assert (of_lse.value[0, 0, :3] == -np.inf).all() and np.isfinite(of_lse.value[0, 0, 3:]).all()


def test_a_part_has_the_results_of_the_whole(monkeypatch):
    monkeypatch.setattr(problem_of_attention, "LARGE", 100)
    problem = Problem(3, 2, 200, 8, keys=220, causal=True, layout="BSHD")
    before = problem.operands()
    whole, part = problem.expected(before), problem.checked_part(before)
    some = problem.expected(part)
    rows = part[-1].rows
    assert len(rows) == SAMPLED and rows[-1] == 199
    assert np.allclose(some[O].value, whole[O].value[[0, 2]][:, rows])
    assert np.allclose(some[LSE].value, whole[LSE].value[[0, 2]][..., rows])
    after = rounded(problem, before, {place: one.value for place, one in whole.items()}, FP32)
    assert relative_error(problem, some, after, FP32) < 1e-7


def test_sizes_are_those_of_the_paper():
    """A product and a sum for each score and number, twice; half of them count where it is causal, and the diagonal."""
    assert Problem(2, 3, 100, 64).flops == 4 * 2 * 3 * 100 * 100 * 64
    assert Problem(2, 3, 100, 64, causal=True).flops == 4 * 2 * 3 * 5050 * 64
    assert Problem(2, 4, 100, 64, keys=50, kv_heads=2).min_bytes(BF16) == 2 * (2 * (8 * 100 + 4 * 50) * 64 + 4 * 400)


def counted(problem, rows, columns):
    """Tiles of scores of which some query sees a part, by looking at each score."""
    allowed = problem.allowed()
    return sum(
        allowed[i : i + rows, j : j + columns].any()
        for i in range(0, problem.queries, rows)
        for j in range(0, problem.keys, columns)
    )


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("tile", [(16, 32), (64, 64), (128, 16)], ids=str)
def test_no_tile_is_touched_that_is_all_masked(problem, tile):
    assert traffic.tiles(problem, *tile) == counted(problem, *tile)
    first, behind = traffic.query_tiles(problem, *tile)
    assert (behind - first).sum() == counted(problem, *tile)


def test_traffic_of_the_loop_orders():
    """A row of 64 float16 has 128 bytes: 128 x 128 scores are four tiles of 64 x 64."""
    problem, all_rows = Problem(1, 1, 128, 64), 128 * 128
    once, twice, five_times = all_rows, 2 * all_rows, 5 * all_rows
    inside = {"Q": twice, "K": once, "V": once, "O": five_times}
    lse = {"lse": 512}
    assert traffic.q_outer(problem, 64, 64, FP16) == {"Q": once, "K": twice, "V": twice, "O": once} | lse
    assert traffic.kv_outer(problem, 64, 64, FP16) == inside | lse | {"sums": 3 * 4 * 512}
    of_scores = 6 * 128 * 128 * 4
    assert traffic.standard(problem, 64, FP16) == {"Q": twice, "K": twice, "V": twice, "O": once} | lse | {
        "S": of_scores
    }


def test_tiles_of_keys_that_no_query_sees_are_not_loaded():
    """The 64 queries see the last 64 of 256 keys, one each."""
    problem, tile = Problem(1, 1, 64, 64, keys=256, window=1), 64 * 64 * 2
    for order in (traffic.q_outer, traffic.kv_outer):
        found = order(problem, 64, 64, FP16)
        assert found["K"] == found["V"] == tile, order.__name__


@pytest.mark.parametrize(
    ("sizes", "options", "kind", "why"),
    [
        ((1, 2, 0, 64), {}, ValueError, "queries is 0, but it must be at least 1"),
        ((1, 2.5, 3, 64), {}, TypeError, r"heads is 2\.5, but it must be a whole number"),
        ((1, 2, 3, 257), {}, ValueError, "head_dim is 257, but steps take up to 256: use more heads"),
        ((1, 4, 3, 64), {"kv_heads": 3}, ValueError, "Q has 4 heads and K has 3"),
        ((1, 2, 3, 64), {"window": 0}, ValueError, "window is 0, but a query sees its own position at least"),
        ((1, 2, 3, 64), {"window": 1.5}, TypeError, r"window is 1\.5: give how many positions a query sees"),
        ((1, 2, 2**30 + 1, 8), {"keys": 5}, ValueError, "queries is 1073741825, but it must be at least 1 and at most"),
        ((1, 2, 3, 64), {"scale": float("nan")}, ValueError, "scale is nan: give a number of at most"),
        ((1, 2, 3, 64), {"scale": -1e39}, ValueError, r"scale is -1e\+39: give a number of at most 1e\+38 either way"),
        ((1, 2, 3, 64), {"scale": 10**400}, ValueError, "scale is 10000.*: give a number of at most"),
        ((1, 2, 3, 64), {"scale": True}, TypeError, "scale is True: give a number"),
        ((1, 2, 3, 64), {"layout": "SBHD"}, ValueError, "there is no layout 'SBHD': say BHSD or BSHD"),
        ((1, 2, 3, 64), {"causal": "yes"}, TypeError, "causal is 'yes': say True or False"),
        ((1, 2, 3, 64), {"hard": "very"}, ValueError, "there are no operands 'very': say huge or rising"),
    ],
)
def test_what_is_no_attention_is_refused(sizes, options, kind, why):
    with pytest.raises(kind, match=why):
        Problem(*sizes, **options)


def test_arrays_that_do_not_fit_are_refused_in_a_sentence():
    problem = Problem(1, 2, 5, 8, layout="BSHD")
    *arrays, _ = problem.operands()
    problem.check(*arrays)
    for place, wrong, kind, why in (
        (0, arrays[0].astype(np.float64), TypeError, "Q holds float64, but this step takes float32: convert it"),
        (1, None, TypeError, "K is a NoneType, not an array"),
        (3, arrays[3][:, :2], ValueError, "O is 1 x 2 x 2 x 8, but BSHD of this attention is 1 x 5 x 2 x 8"),
    ):
        with pytest.raises(kind, match=why):
            problem.check(*arrays[:place], wrong, *arrays[place + 1 :])
