"""What a tile takes and brings, against the steps of the ladder, the formula of traffic and the limits of the GPU."""

import numpy as np
import pytest

from labkit import attention, formats
from labkit.attention import traffic
from labkit.machine.gpus import gpu
from labkit.views import tile_sizes
from labkit.views.base import unpack
from labkit.views.tile_sizes import STAGES

PROBLEM = attention.AttentionForward(1, 1, 4096, 128)
H100 = gpu("H100 SXM")


@pytest.fixture(scope="module")
def view():
    return tile_sizes(PROBLEM)


def of(view, rows, keys, width, form="bfloat16"):
    """What the view has for a tile."""
    sides = view.data["sides"]
    at = view.data["formats"].index(form), *(sides[name].index(size) for name, size in
                                             (("head_dim", width), ("keys", keys), ("queries", rows)))  # fmt: skip
    place = np.ravel_multi_index(at, (len(view.data["formats"]), *map(len, reversed(sides.values()))))
    numbers = {name: unpack(view.data[name])[place] for name in ("shared", "registers", "threads", "flops")}
    return numbers | {"say": view.data["says"][place], "row": view.data["table"]["rows"][place]}


def test_shared_memory_is_that_of_the_steps_with_the_same_tile(view):
    for slug in ("wgmma", "overlap", "ping_pong"):
        module = attention.ladder("forward").step(slug).module
        assert module.STAGES == STAGES
        assert of(view, module.BM, module.BN, module.D)["shared"].sum() == module.SHARED_BYTES


def test_registers_are_those_that_a_thread_of_the_steps_has_for_scores_and_sums(view):
    module = attention.ladder("forward").step("wgmma").module
    tile = of(view, module.BM, module.BN, module.D)
    assert tile["threads"] == module.SCORES + module.ACCUMULATORS + 32
    assert tile["registers"].tolist() == [128 * 128 * 4, 128 * 128 * 4, 256 * 32 * 4]


@pytest.mark.parametrize("form", ["float32", "bfloat16"])
def test_flops_of_a_byte_are_those_of_the_formula(view, form):
    for rows, keys in ((16, 256), (128, 64), (256, 128)):
        moved = sum(
            traffic.q_outer(PROBLEM, rows, keys, getattr(formats, {"float32": "FP32"}.get(form, "BF16"))).values()
        )
        assert of(view, rows, keys, 128, form)["flops"] == pytest.approx(PROBLEM.flops / moved)
    assert of(view, 128, 64, 128)["flops"] == of(view, 128, 256, 128)["flops"], "keys of a tile do not matter"


def test_ridges_are_peak_over_what_dram_and_l2_deliver(view):
    single, half = view.data["ridges"]
    assert half == pytest.approx([989.4e3 / (5120 * 1.98), 989.4e3 / 3350])
    assert single == pytest.approx([66.9e3 / (5120 * 1.98), 66.9e3 / 3350])


@pytest.mark.parametrize(
    ("tile", "says"),
    [
        ((128, 128, 128), "It **fits**: 160 KB of shared memory, 160 KB of registers"),
        ((128, 256, 256), "take **576 KB** of shared memory, and a block has 227; a thread would need **288"),
        ((256, 128, 128), "O, scores and the rest take **320 KB** of registers, and an SM has 256"),
        ((64, 256, 256), "a thread would need **288 registers**, and has 255 at most"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_said(view, tile, says):
    found = of(view, *tile)
    assert says in found["say"]
    assert found["row"][-1] == ("yes" if "**fits**" in says else "no")


def test_what_limits_is_said_by_the_ridges(view):
    assert "98 would keep the arithmetic busy: L2 is the limit" in of(view, 64, 64, 128)["say"]
    assert "enough for what L2 delivers (98), not if all of it came from DRAM (295)" in of(view, 128, 64, 128)["say"]
    assert "enough even if all of it came from DRAM (20)" in of(view, 64, 32, 64, "float32")["say"]


def test_the_first_sentence_and_the_still_picture_are_of_what_is_shown_first(tmp_path):
    view = tile_sizes(PROBLEM, rows=(64, 128), keys=(32,), head_dims=(64,), numbers=(formats.FP16,), start=(64, 32, 64))
    assert view.sentence.startswith("64 queries x 32 keys, head_dim 64, float16. It fits")
    view.save_png(tmp_path / "tile.png")
    assert (tmp_path / "tile.png").stat().st_size > 5000


def test_what_is_no_tile_is_refused():
    with pytest.raises(TypeError, match="takes an AttentionForward, not None"):
        tile_sizes(None)
    with pytest.raises(ValueError, match="queries of a tile are whole numbers above 0"):
        tile_sizes(PROBLEM, rows=(0, 16))
    with pytest.raises(ValueError, match="start has 24 keys, which the slider does not have"):
        tile_sizes(PROBLEM, start=(128, 24, 128))
