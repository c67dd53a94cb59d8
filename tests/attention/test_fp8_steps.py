"""Attention in e4m3: what the step counts, blocks that take several tiles, wrong kernels, and the machine code."""

import re
from pathlib import Path

import numpy as np
import pytest
from cells import run_cell
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import attention, sass
from labkit.attention.fp8.problem import ORDER
from labkit.formats import BF16, E4M3
from labkit.simulator.in_place import simulate_in_place

Problem = attention.AttentionFP8
(STEP,) = attention.ladder("fp8")
O, LSE = Problem.ARRAYS.index("O"), Problem.ARRAYS.index("lse")
D, BM, BN = 128, 128, 128


def ran(problem, operands=None, blocks=None, launches=STEP.module.launches):
    """The trace of the step, on fewer blocks if so many are given, and its operands afterwards."""
    after = tuple(X.copy() if isinstance(X, np.ndarray) else X for X in operands or problem.operands())
    (launch,) = launches(*after, E4M3)
    shared = {"shared_bytes": launch.shared_bytes}
    trace = simulate_in_place(launch.kernel, blocks or launch.grid, launch.block, *launch.arguments, **shared)
    return trace, after


@pytest.mark.parametrize("problem", STEP.examples, ids=str)
def test_examples_are_right(problem):
    trace, after = ran(problem)
    assert trace.errors == () and problem.is_right(problem.operands(), after, E4M3)


@pytest.mark.parametrize("problem", [Problem(1, 2, 300, 64, causal=True), Problem(1, 3, 140, 128, 260, 1)], ids=str)
def test_a_block_that_stays_is_right_tile_after_tile(problem):
    trace, after = ran(problem, blocks=2)
    assert trace.errors == () and problem.is_right(problem.operands(), after, E4M3)


@pytest.mark.long
@settings(max_examples=40 if WHOLE else 4, deadline=None, phases=[Phase.generate])
@given(data=st.data())
def test_random_problems_are_right(data):
    kv_heads = data.draw(st.integers(1, 2))
    problem = Problem(
        data.draw(st.integers(1, 2)),
        kv_heads * data.draw(st.integers(1, 2)),
        data.draw(st.integers(1, 300)),
        16 * data.draw(st.integers(1, 8)),
        data.draw(st.integers(1, 300)),
        kv_heads,
        data.draw(st.booleans()),
        data.draw(st.none() | st.integers(1, 200)),
        data.draw(st.none() | st.sampled_from((0.5, -0.3, 0.0))),
    )
    before = problem.operands(seed=data.draw(st.integers(0, 9)))
    trace, after = ran(problem, before)
    assert trace.errors == () and problem.is_right(before, after, E4M3)


def test_blocks_of_any_size_of_numbers_come_out_right():
    """Of which the last have values 10**4 times as large as the first, and keys a tenth."""
    problem = Problem(1, 1, 130, 64, 500)
    rng = np.random.default_rng(1)
    Q, K, V = (rng.standard_normal((1, 1, length, 64)) for length in (130, 500, 500))
    K[:, :, 256:] /= 10
    for sizes in (10.0 ** np.array([0, 2, 4, 1]), 10.0 ** -np.array([0, 3, 0, 4]), np.zeros(4)):
        scaled = V * sizes.repeat(128)[None, None, :500, None]
        before = (*attention.fp8.problem.quantised(Q, K, scaled), *problem.operands()[6:])
        trace, after = ran(problem, before)
        assert trace.errors == () and problem.is_right(before, after, E4M3)


def test_queries_that_see_no_key_have_no_sums():
    _, after = ran(Problem(1, 1, 300, 64, 100, 1, True))
    assert not after[O][:, :, :200].any() and (after[LSE][..., :200] == -np.inf).all()
    assert after[O][:, :, 200:].any(-1).all() and np.isfinite(after[LSE][..., 200:]).all()


def test_no_weight_is_so_small_that_a_block_of_them_is_lost():
    """Thousands of keys of a 2000th of the greatest weight, of whose sum each query is most."""
    problem = Problem(1, 1, 4, 64, 2048, scale=1.0)
    Q, K, V = np.zeros((1, 1, 4, 64)), np.zeros((1, 1, 2048, 64)), np.zeros((1, 1, 2048, 64))
    Q[..., 0], K[:, :, 0, 0], V[:, :, 1:] = 1, np.log(2000), 1
    before = (*attention.fp8.problem.quantised(Q, K, V), *problem.operands()[6:])
    _, after = ran(problem, before)
    assert np.allclose(BF16.decode(after[O]), problem.expected(before)[O].value, rtol=0.05)


CHANGES = [
    ("scale * q_scale[plane, np.uint32(row)]", "scale * q_scale[plane, 0]"),
    ("k_scale[of_keys, np.uint32(tile)]", "k_scale[of_keys, 0]"),
    ("new_unit = v_scale[of_keys, np.uint32(tile)]", "new_unit = unit"),
    ("np.uint32(plane // group)", "np.uint32(0)"),
    ("shrink(O, r, shrinks[r] * into)", "shrink(O, r, shrinks[r])"),
    ("shrink(O, r, shrinks[r] * into)", "shrink(O, r, into)"),
    ("shrink(O, r, unit)", "pass"),
    ("v = stage, 0, n // 4 * STEP", "v = stage, 0, 0"),
    ("V_tiles, before)", "V_tiles, stage)"),
    ("tile * BOX), full_v", "0), full_v"),
]


@pytest.mark.parametrize(("right", "wrong"), CHANGES, ids=[wrong for _, wrong in CHANGES])
def test_a_wrong_kernel_is_told(right, wrong):
    text = Path(STEP.module.__file__).read_text(encoding="utf-8")
    assert right in text
    problem = Problem(1, 2, 140, 64, 500, 2)
    rng = np.random.default_rng(1)
    shapes = problem.unquantised.shapes
    sizes = {name: 2.0 ** rng.uniform(-1, 1, (1, 2, 4)).repeat(128, 2)[:, :, : shapes[name][2], None] for name in "QKV"}
    numbers = [rng.standard_normal(shapes[name]) * sizes[name] for name in "QKV"]
    before = (*attention.fp8.problem.quantised(*numbers), *problem.operands()[6:])
    assert problem.is_right(before, ran(problem, before)[1], E4M3)
    trace, after = ran(problem, before, launches=run_cell(text.replace(right, wrong))["launches"])
    assert trace.errors or not problem.is_right(before, after, E4M3)


def test_keys_of_v_in_their_own_order_are_wrong():
    problem = Problem(1, 1, 70, 64, 256)
    before = problem.operands()
    natural = before[2].reshape(1, 1, 64, -1, 16)[..., np.argsort(ORDER)].reshape(before[2].shape)
    _, after = ran(problem, (*before[:2], natural, *before[3:]))
    assert not problem.is_right(before, after, E4M3)


def test_a_step_costs_what_its_docstring_says():
    keys, tiles = 384, 2
    trace, _ = ran(Problem(1, 1, BM * tiles, D, keys))
    copies = sum(
        s.requests for s in trace.sites if (s.site.space, s.site.kind) == ("global", "load") and "_map" in s.site.array
    )
    products = sum(s.requests for s in trace.sites if s.site.array in ("K_tiles", "V_tiles") and s.site.kind == "load")
    stated = dict(re.findall(r"^    (\S.*?)  +(\S.*)$", STEP.module.__doc__, re.MULTILINE))
    wanted = [eval(expression, {"keys": keys}, vars(STEP.module)) for expression in stated]
    assert [copies, products, STEP.shared_bytes] == [wanted[0] * tiles, wanted[1] * tiles, wanted[2]]
    assert 0 <= trace.shared_bytes - STEP.shared_bytes <= 1024  # for the barriers
    assert trace.counters.bank_conflicts == 0


def test_no_tile_is_touched_that_no_query_sees():
    trace, _ = ran(Problem(1, 1, 512, D, causal=True))
    copies = {
        name: sum(s.requests for s in trace.sites if s.site.array == name and s.site.space == "global")
        for name in ("Q_map", "K_map", "V_map")
    }
    assert copies == {"Q_map": 4, "K_map": 1 + 2 + 3 + 4, "V_map": 1 + 2 + 3 + 4}


def test_operands_that_do_not_fit_are_refused_in_a_sentence():
    def refused(*sizes, **more):
        problem = Problem(*sizes, **more)
        return STEP.launches(*problem.operands())

    with pytest.raises(ValueError, match="this step takes layout = BHSD, and the attention has layout = BSHD"):
        refused(1, 1, 8, 64, layout="BSHD")
    with pytest.raises(ValueError, match="head_dim is 192, and this step takes up to 128"):
        refused(1, 1, 8, 192)
    with pytest.raises(
        ValueError, match="head_dim is 24, but copies take 16 bytes at a time: make it a multiple of 16"
    ):
        refused(1, 1, 8, 24)
    *arrays, problem = Problem(1, 1, 8, 64).operands()
    with pytest.raises(TypeError, match="q_scale holds float64, but this step takes float32"):
        STEP.launches(*arrays[:3], arrays[3].astype(np.float64), *arrays[4:], problem)
    with pytest.raises(TypeError, match="O holds float32, but this step takes uint16"):
        STEP.launches(*arrays[:6], arrays[6].astype(np.float32), arrays[7], problem)
    with pytest.raises(ValueError, match="V is 1 x 1 x 8 x 64, but BHDS of this attention is 1 x 1 x 64 x 16"):
        STEP.launches(*arrays[:2], np.zeros((1, 1, 8, 64), np.uint8), *arrays[3:], problem)


@pytest.mark.needs("numba-cuda", "toolkit", "nvdisasm")
@pytest.mark.parametrize("head_dim", [64, 128])
def test_the_compiler_leaves_the_exponentials_under_the_sums(head_dim):
    """Between the wait for the scores and the one for the sums before; and spills nothing."""
    (launch,) = STEP.launches(*Problem(1, 1, 256, head_dim).operands())
    code = sass.compiled(launch.kernel, *launch.arguments, compute_capability=(9, 0, "a"))
    assert code.spill_bytes == 0
    letters = {"WARPGROUP.DEPBAR": "W", "MUFU.EX2": "e", "QGMMA": "g"}
    names = [i.name for i in code.instructions]
    found = "".join(letter for name in names for start, letter in letters.items() if name.startswith(start))
    products = (head_dim + BN) // 32
    assert re.search(f"g{{{products}}}We{{66}}W", found), found  # 64 scores, and by how much two rows shrink
