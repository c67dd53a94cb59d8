"""Who adds up dQ: orders are those of a run's tiles, sums are float32 sums in these orders, GEMMs are counted."""

from dataclasses import replace

import numpy as np
import pytest

from labkit import attention, formats
from labkit.views import dq_sums
from labkit.views.base import unpack
from labkit.views.dq_sums import DONE, LABELS, NOW, TO_COME, WAITS, _shares

PROBLEM = attention.AttentionBackward(1, 1, 384, 64, keys=384)
WAYS = ["atomic adds", "turns", "a copy per block", "a second kernel"]
BLOCKS, TILES = 3, 4  # of 128 keys, of 96 queries


def simulate(slug, problem, blocks=1):
    operands = problem.operands(formats.BF16)
    step = attention.ladder("backward").step(slug)
    found = step.simulate(*operands, format=formats.BF16, record=[(n, 0, 0) for n in range(blocks)])
    return operands, found


@pytest.fixture(scope="module")
def runs():
    operands, found = simulate("bulk_reduction", PROBLEM, BLOCKS)
    return operands, found, simulate("wgmma", PROBLEM)[1].traces


@pytest.fixture(scope="module")
def view(runs):
    operands, found, owners = runs
    return dq_sums(PROBLEM, operands, found.traces[1], owners)


def way(view, name):
    return next(choice for choice in view.data["kept"] if choice["name"] == name)


def test_there_are_four_ways_and_their_numbers_are_counted(view):
    assert [choice["name"] for choice in view.data["kept"]] == WAYS
    numbers = {name: dict(zip(LABELS, way(view, name)["stats"]["values"][-1])) for name in WAYS}
    assert [numbers[name][LABELS[0]] for name in WAYS] == [5, 5, 5, 7]
    assert [numbers[name][LABELS[1]] for name in WAYS] == [0, 3, 0, 0], "block 1 once, block 2 twice"
    assert [numbers[name][LABELS[2]] for name in WAYS] == [1, 1, BLOCKS, 1]
    assert [numbers[name][LABELS[3]] for name in WAYS] == ["no", "yes", "yes", "yes"]


def test_blocks_visit_the_tiles_of_the_run_in_its_order(view):
    states = unpack(way(view, "atomic adds")["states"])
    assert states[1].tolist() == [[DONE] * 3, [NOW] * 3, [TO_COME] * 3, [TO_COME] * 3] and len(states) == TILES
    states = unpack(way(view, "turns")["states"])
    assert states[0].tolist() == [[NOW, WAITS, WAITS], *[[TO_COME] * 3] * 3]
    assert states[1].tolist() == [[DONE, NOW, WAITS], [NOW, TO_COME, TO_COME], *[[TO_COME] * 3] * 2]
    assert len(states) == TILES + BLOCKS - 1 and states[-1].tolist() == [*[[DONE] * 3] * 3, [DONE, DONE, NOW]]
    second = unpack(way(view, "a second kernel")["states"])[TILES:]
    assert second[0].tolist() == [[NOW, TO_COME, TO_COME]] * TILES, "each row has a block of its own"


def test_sums_are_float32_sums_in_the_orders_shown_and_the_shares_are_those_of_dq(view, runs):
    operands, found, _ = runs
    shares = _shares(PROBLEM, operands, BLOCKS, TILES)
    dQ = formats.BF16.decode(found.operands[6])[0, 0]
    assert np.allclose(PROBLEM.factor * shares.sum(0).reshape(dQ.shape), dQ, atol=0.02)
    for name in WAYS:
        last = way(view, name)["steps"][-1]
        for run in range(2):
            for tile in range(TILES):
                order, text = last["arrivals"][run][tile], last["sums"][run][tile]
                assert sorted(order) == list(range(BLOCKS))
                assert np.isclose(shares[order, tile].sum(0) - float(text), 0, atol=2e-6).any()


def test_only_atomic_adds_arrive_in_another_order_in_another_run(view):
    for name in WAYS:
        first, second = way(view, name)["steps"][-1]["sums"]
        assert (first != second) == (name == "atomic adds")
        assert all(float(a) == pytest.approx(float(b), rel=1e-5) for a, b in zip(first, second, strict=True))


def test_sentences_and_table_say_who_adds(view):
    says = way(view, "turns")["say"]
    assert says[0] == "Step 1 of 6. Added now: block 0 to rows 0 to 95. **Blocks 1 and 2 wait for their turn.**"
    assert "All add at once: blocks 0, 1 and 2 to rows 0 to 95" in view.data["say"][0]
    assert "in a fixed order" in way(view, "a copy per block")["say"][-1]
    assert way(view, "turns")["table"]["rows"][0][:3] == [1, "0; 0", "-; -"]


def test_causal_blocks_begin_at_the_queries_that_see_them():
    causal = replace(PROBLEM, causal=True)
    operands, found = simulate("bulk_reduction", causal, BLOCKS)
    states = unpack(way(dq_sums(causal, operands, found.traces[1], []), "atomic adds")["states"])
    assert (states == NOW).any(0).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 1]]


def test_the_still_picture_and_what_is_refused(view, runs, tmp_path):
    operands, found, owners = runs
    view.save_png(tmp_path / "dq.png", step=1)
    assert (tmp_path / "dq.png").stat().st_size > 5000
    with pytest.raises(TypeError, match="takes a trace"):
        dq_sums(PROBLEM, operands, "bulk_reduction", owners)
    with pytest.raises(ValueError, match="run `bulk_reduction`"):
        dq_sums(PROBLEM, operands, owners[0], owners)
    with pytest.raises(ValueError, match="needs all 3 blocks recorded"):
        dq_sums(PROBLEM, operands, simulate("bulk_reduction", PROBLEM)[1].traces[1], owners)
    with pytest.raises(ValueError, match="give the operands that it had"):
        dq_sums(PROBLEM, PROBLEM.operands(formats.BF16, seed=1), found.traces[1], owners)
