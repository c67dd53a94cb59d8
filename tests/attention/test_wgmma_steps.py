"""The steps of attention by `wgmma`: what they count, blocks that take several tiles, and what the compiler made."""

import dataclasses
import re
from types import SimpleNamespace

import numpy as np
import pytest

from labkit import attention, cuda, simulate
from labkit.attention import AttentionForward
from labkit.attention.problem import as_bhsd
from labkit.forecast import sass
from labkit.formats import BF16, FP32
from labkit.simulator.in_place import simulate_in_place

STEPS = attention.ladder("forward")
SLUGS = "wgmma", "overlap", "ping_pong", "persistent"
D, BM, BN = 128, 128, 128


def simulated(slug, problem, blocks=None):
    """The trace of a step, on fewer blocks if so many are given, and whether its results are right."""
    operands = problem.operands(BF16)
    after = tuple(X.copy() if isinstance(X, np.ndarray) else X for X in operands)
    (launch,) = STEPS.step(slug).launches(*after, format=BF16)
    trace = simulate_in_place(
        launch.kernel, blocks or launch.grid, launch.block, *launch.arguments, shared_bytes=launch.shared_bytes
    )
    return trace, problem.is_right(operands, after, BF16)


@pytest.mark.parametrize(
    "sizes",
    [
        (1, 2, 300, 64, 300, 1, True),  # an odd number of tiles
        (1, 3, 140, 128, 260, 1, False, None, None, "BSHD"),
        (1, 2, 400, 64, 100, 2, True),  # the first tiles of queries see nothing
        (1, 1, 260, 64, 700, 1, True, 20),
    ],
    ids=str,
)
def test_a_block_that_stays_is_right_tile_after_tile(sizes):
    trace, is_right = simulated("persistent", AttentionForward(*sizes), blocks=2)
    assert trace.errors == ()
    assert is_right


@pytest.mark.parametrize("head_dim", [136, 256])
def test_wide_heads_take_smaller_tiles(head_dim):
    trace, is_right = simulated("ping_pong", AttentionForward(1, 1, 70, head_dim, 250, 1, True))
    assert trace.errors == ()
    assert is_right and trace.shared_bytes <= 227 * 1024


def test_queries_that_see_no_key_have_no_sums():
    problem = AttentionForward(1, 1, 300, 64, 100, 1, True)
    operands = problem.operands(BF16)
    for slug in SLUGS:
        *_, O, lse, _ = STEPS.step(slug).simulate(*operands, format=BF16).operands
        assert not O[..., :200, :].any() and (lse[..., :200] == -np.inf).all()
        assert O[..., 200:, :].any(-1).all() and np.isfinite(lse[..., 200:]).all()


@pytest.mark.parametrize("slug", SLUGS)
def test_rows_that_lie_apart_are_found(slug):
    """Q, K and V as parts of one array of the device, and with their axes turned."""
    problem = AttentionForward(2, 2, 40, 64, causal=True, layout="BSHD")
    before = problem.operands(BF16)
    packed = cuda.to_device(np.stack(before[:3], axis=2))  # B S 3 H D
    parts = [packed[:, :, n] for n in range(3)]
    for turns in (False, True):
        O, lse = cuda.to_device(before[3]), cuda.to_device(before[4])
        asked = dataclasses.replace(problem, layout="BHSD" if turns else "BSHD")
        arrays = [as_bhsd(X, "BSHD") if turns else X for X in (*parts, O)]
        STEPS.step(slug).launch(*arrays, lse, asked, format=BF16)
        after = O.copy_to_host(), lse.copy_to_host(), problem
        assert problem.is_right(before, (*before[:3], *after), BF16)


def counts(trace):
    """Copies of boxes, and products of a warpgroup."""
    copies = sum(s.requests for s in trace.sites if s.site.space == "global" and s.site.kind == "load")
    names = "K_tiles", "V_tiles"  # each product reads one of them
    products = sum(s.requests for s in trace.sites if s.site.array in names and s.site.kind == "load")
    return copies, products


@pytest.mark.parametrize("slug", SLUGS)
def test_a_step_costs_what_its_docstring_says(slug):
    step, keys, tiles = STEPS.step(slug), 384, 2
    trace, _ = simulated(slug, AttentionForward(1, 1, BM * tiles, D, keys))
    stated = dict(re.findall(r"^    (\S.*?)  +(\S.*)$", step.module.__doc__, re.MULTILINE))
    copies, products, shared = (eval(expression, {"keys": keys}, vars(step.module)) for expression in stated)
    assert counts(trace) == (copies * tiles, products * tiles)
    assert shared == step.shared_bytes and 0 <= trace.shared_bytes - shared <= 1024  # for the barriers


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.sample(1)
def test_no_tile_is_touched_that_no_query_sees(slug):
    problem = AttentionForward(1, 1, 512, D, 512, 1, True)
    copies, products = counts(simulated(slug, problem)[0])
    boxes, tiles = D // 64, 1 + 2 + 3 + 4
    assert (copies, products) == (boxes * (4 + 2 * tiles), 2 * tiles * (D + BN) // 16)
    windowed = AttentionForward(1, 1, 512, D, 512, 1, True, 100)
    assert counts(simulated(slug, windowed)[0])[0] == boxes * (4 + 2 * (1 + 2 + 2 + 2))


def test_blocks_that_stay_get_equal_shares_of_causal_work(monkeypatch):
    """Of six tiles of queries, which see one to six tiles of keys, each of three blocks has two that see seven."""
    gpu = SimpleNamespace(MULTIPROCESSOR_COUNT=3)
    monkeypatch.setattr(cuda, "get_current_device", lambda: gpu)
    operands = AttentionForward(1, 1, 768, D, causal=True).operands(BF16)
    (launch,) = STEPS.step("persistent").launches(*operands, format=BF16)
    blocks = [(block, 0, 0) for block in range(3)]
    shared = {"shared_bytes": launch.shared_bytes}
    trace = simulate(launch.kernel, launch.grid, launch.block, *launch.arguments, record=blocks, **shared)
    of_keys = [n for n, s in enumerate(trace.sites) if (s.site.array, s.site.kind) == ("K_tiles", "store")]
    copies = np.isin(trace.samples.site, of_keys)
    assert np.bincount(trace.samples.block[copies]).tolist() == [7 * D // 64] * 3


@pytest.mark.parametrize("slug", SLUGS)
def test_scores_meet_no_bank_twice(slug):
    trace, _ = simulated(slug, AttentionForward(1, 1, 128, D))
    assert trace.counters.bank_conflicts == 0


def test_operands_that_do_not_fit_are_refused_in_a_sentence():
    step = STEPS.step("wgmma")
    with pytest.raises(ValueError, match="head_dim is 192, and this step takes up to 128"):
        STEPS.step("persistent").launches(*AttentionForward(1, 1, 8, 192).operands(BF16), format=BF16)
    with pytest.raises(ValueError, match="head_dim is 12, but copies take 16 bytes at a time: make it a multiple of 8"):
        step.launches(*AttentionForward(1, 1, 8, 12).operands(BF16), format=BF16)
    with pytest.raises(TypeError, match="Q holds float32, but this step takes uint16"):
        step.launches(*AttentionForward(1, 1, 8, 64).operands(FP32), format=BF16)


def order(slug):
    """The machine code of a step, and its waits for the tensor cores and exponentials, as they follow one another."""
    (launch,) = STEPS.step(slug).launches(*AttentionForward(1, 1, 256, D).operands(BF16), format=BF16)
    code = sass.compiled(launch.kernel, *launch.arguments, compute_capability=(9, 0, "a"))
    names = [i.name for i in code.instructions]
    letters = {"WARPGROUP.DEPBAR": "W", "MUFU.EX2": "e", "HGMMA": "g"}
    return code, "".join(letter for name in names for start, letter in letters.items() if name.startswith(start))


@pytest.mark.needs("numba-cuda", "toolkit", "nvdisasm")
@pytest.mark.parametrize("slug", ["overlap", "persistent"])
@pytest.mark.sample(1)
def test_the_compiler_leaves_the_exponentials_under_the_sums(slug):
    """Between the wait for the scores and the one for the sums before."""
    code, found = order(slug)
    assert code.spill_bytes == 0
    products = (D + BN) // 16
    assert re.search(f"g{{{products}}}We{{66}}W", found), found  # 64 scores, and by how much two rows shrink
