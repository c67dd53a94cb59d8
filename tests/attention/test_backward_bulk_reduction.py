"""The step of attention backward by bulk reductions: what it counts, and what the compiler made of its order."""

import re

import numpy as np
import pytest

from labkit import attention
from labkit.arrays.workspace import Workspace
from labkit.attention import AttentionBackward, AttentionForward
from labkit.forecast import sass
from labkit.formats import BF16
from labkit.ladder import TooLarge
from labkit.simulator import host

STEP = attention.ladder("backward").step("bulk_reduction")
D, BM, BN = 128, STEP.BM, STEP.BN


def traces_of(problem, operands=None):
    operands = operands or problem.operands(BF16)
    found = STEP.simulate(*operands, format=BF16)
    assert found.errors == () and problem.is_right(operands, found.operands, BF16)
    return found.traces


def counts(trace):
    """Copies of boxes, products of a warpgroup, and numbers added to dQ."""
    copies = sum(s.requests for s in trace.sites if s.site.array.endswith("_map") and s.site.kind == "load")
    passing = "Q_tiles", "dO_tiles", "dS_tiles"  # each product reads one of them
    products = sum(s.requests for s in trace.sites if s.site.array in passing and s.site.kind == "load")
    return (
        copies,
        products,
        sum(s.accesses for s in trace.sites if s.site.kind == "atomic" and s.site.array == "dQ_sums"),
    )


def test_a_step_costs_what_its_docstring_says():
    queries, keys = 384, 256
    _, of_keys, rounded = traces_of(AttentionBackward(1, 1, queries, D, keys))
    stated = re.findall(r"^    (\S.*?)  +(\S.*)$", STEP.module.__doc__, re.MULTILINE)
    costs = {what: eval(cost, {"queries": queries, "keys": keys}, vars(STEP.module)) for cost, what in stated}
    assert 0 <= of_keys.shared_bytes - costs.pop("bytes of shared memory per block") <= 1024  # for the barriers
    names = "copies per tile of keys", "`wgmma` per tile of keys", "numbers added to memory per tile of keys"
    assert costs == {name: count / (keys // BM) for name, count in zip(names, counts(of_keys), strict=True)}
    assert of_keys.counters.bank_conflicts == rounded.counters.bank_conflicts == 0


@pytest.mark.parametrize("window", [None, 100])
@pytest.mark.sample(1)
def test_no_tile_is_touched_that_no_query_sees(window):
    _, of_keys, _ = traces_of(AttentionBackward(1, 1, 512, D, causal=True, window=window))
    tiles = 8 + 6 + 4 + 2 if window is None else 4 + 4 + 4 + 2
    copies = D // 64 * (4 * 2 + 2 * tiles) + tiles
    assert counts(of_keys) == (copies, 2 * tiles * (2 * (D + BN) + BM) // 16, tiles * BN * D)


@pytest.mark.parametrize("keys", [70, 63])
def test_rows_behind_the_last_key_add_nothing_where_log_sum_exp_is_far_below_zero(keys):
    """Their scores are 0, and exp(0 - lse) is endless."""
    problem = AttentionBackward(1, 1, 100, 64, keys=keys)
    Q, K, V, _, _, dO, *gradients, _ = problem.operands(BF16)
    Q[:], K[..., 1:] = BF16.encode(16.0), BF16.encode(-16.0)
    forward = AttentionForward(1, 1, 100, 64, keys=keys)
    O, lse = (one.value for one in forward.expected((Q, K, V, None, None, forward), BF16).values())
    assert lse.max() < -1000
    traces_of(problem, (Q, K, V, BF16.result.encode(O), lse.astype(np.float32), dO, *gradients, problem))


def test_wide_heads_are_left_to_other_steps():
    with pytest.raises(TooLarge, match="head_dim is 136, and this step takes up to 128"):
        STEP.simulate(*AttentionBackward(1, 1, 8, 136).operands(BF16), format=BF16)


@pytest.mark.needs("numba-cuda", "toolkit", "nvdisasm")
def test_the_compiler_leaves_exponentials_and_the_share_of_dq_under_products():
    """One after the wait for the scores, the other after the wait for dQ, while products are in flight."""
    launches = STEP.launches(
        *AttentionBackward(1, 1, 256, D).operands(BF16), format=BF16, workspace=Workspace(memory=host)
    )
    arguments = [X.copy_to_host() if hasattr(X, "copy_to_host") else X for X in launches[1].arguments]
    code = sass.compiled(launches[1].kernel, *arguments, compute_capability=(9, 0, "a"))
    names = {"WARPGROUP.DEPBAR": "W", "MUFU.EX2": "e", "HGMMA": "g", "STS.128": "s", "UBLKRED": "R"}
    letters = (names[start] for i in code.instructions for start in names if i.name.startswith(start))
    assert code.spill_bytes == 0 and re.search(r"g{16}We{32}g{4}Wg{12}Ws{8}RW", "".join(letters))
