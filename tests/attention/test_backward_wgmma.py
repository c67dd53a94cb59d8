"""The step of attention backward by `wgmma`: what it counts, and what the compiler made of its order."""

import re

import pytest

from labkit import attention
from labkit.arrays.workspace import Workspace
from labkit.attention import AttentionBackward
from labkit.forecast import sass
from labkit.formats import BF16
from labkit.ladder import TooLarge
from labkit.simulator import host

STEP = attention.ladder("backward").step("wgmma")
D, BM, BQ, BK = 128, STEP.BM, STEP.BQ, STEP.BK


def traces_of(problem):
    operands = problem.operands(BF16)
    found = STEP.simulate(*operands, format=BF16)
    assert found.errors == () and problem.is_right(operands, found.operands, BF16)
    return found.traces[1:]


def counts(trace):
    """Copies of boxes, and products of a warpgroup."""
    copies = sum(s.requests for s in trace.sites if s.site.array.endswith("_map") and s.site.kind == "load")
    passing = "Q_tiles", "dO_tiles", "K_tiles", "V_tiles"  # each product reads one of them
    return copies, sum(s.requests for s in trace.sites if s.site.array in passing and s.site.kind == "load")


def test_a_step_costs_what_its_docstring_says():
    queries, keys = 384, 256
    of_keys, of_queries = traces_of(AttentionBackward(1, 1, queries, D, keys))
    stated = re.findall(r"^    (\S.*?)  +(\S.*)$", STEP.module.__doc__, re.MULTILINE)
    costs = {what: eval(cost, {"queries": queries, "keys": keys}, vars(STEP.module)) for cost, what in stated}
    found = {}
    for what, trace, tiles in (("keys", of_keys, keys // BM), ("queries", of_queries, queries // BM)):
        copies, products = (count / tiles for count in counts(trace))
        found |= {f"copies per tile of {what}": copies, f"`wgmma` per tile of {what}": products}
    shared = max(of_keys.shared_bytes, of_queries.shared_bytes)
    assert 0 <= shared - costs.pop("bytes of shared memory per block") <= 1024  # for the barriers
    assert costs == found
    assert of_keys.counters.bank_conflicts == of_queries.counters.bank_conflicts == 0


@pytest.mark.parametrize("window", [None, 100])
@pytest.mark.sample(1)
def test_no_tile_is_touched_that_no_query_sees(window):
    of_keys, of_queries = traces_of(AttentionBackward(1, 1, 512, D, causal=True, window=window))
    by_keys, by_queries = (8 + 6 + 4 + 2, 1 + 2 + 3 + 4) if window is None else (4 + 4 + 4 + 2, 1 + 2 + 2 + 2)
    boxes = D // 64
    assert counts(of_keys) == (boxes * (4 * 2 + 2 * by_keys) + by_keys, 2 * by_keys * 2 * (D + BQ) // 16)
    assert counts(of_queries) == (boxes * (4 * 2 + 2 * by_queries), 2 * by_queries * (2 * D + BK) // 16)


def test_wide_heads_are_left_to_other_steps():
    with pytest.raises(TooLarge, match="head_dim is 136, and this step takes up to 128"):
        STEP.simulate(*AttentionBackward(1, 1, 8, 136).operands(BF16), format=BF16)


@pytest.mark.needs("numba-cuda", "toolkit", "nvdisasm")
def test_the_compiler_leaves_exponentials_and_slopes_under_products():
    """Between the wait for the scores and the one for dP, and before the one for the sums."""
    operands = AttentionBackward(1, 1, 256, D).operands(BF16)
    names = {"WARPGROUP.DEPBAR": "W", "MUFU.EX2": "e", "HGMMA": "g"}
    for launch, wanted in zip(
        STEP.launches(*operands, format=BF16, workspace=Workspace(memory=host))[1:],
        (r"g{16}We{32}g{4}Wg{4}W", r"g{8}Wg{8}We{64}Wg{8}"),
        strict=True,
    ):
        arguments = [X.copy_to_host() if hasattr(X, "copy_to_host") else X for X in launch.arguments]
        code = sass.compiled(launch.kernel, *arguments, compute_capability=(9, 0, "a"))
        letters = (names[start] for i in code.instructions for start in names if i.name.startswith(start))
        assert code.spill_bytes == 0 and re.search(wanted, "".join(letters))
