"""The pipeline view tells who fills and who uses the stages of a ring, in the order of the run."""

import numpy as np
import pytest

import labkit
from labkit import cuda, gemm, ptx
from labkit.views import pipeline
from labkit.views.base import unpack

STAGES = 3
AHEAD = 2


@cuda.jit
def ring(x, out):
    tiles = cuda.shared.array((STAGES, 1, 32), np.float32, alignment=16)
    lane = cuda.threadIdx.x
    steps = x.size // 32
    for step in range(AHEAD + steps):
        if step < steps:
            ptx.cp_async(tiles, (step % STAGES, 0, lane), x, step * 32 + lane, 4, 4)
        ptx.cp_async_commit()
        if step >= AHEAD:
            ptx.cp_async_wait(AHEAD)
            out[(step - AHEAD) * 32 + lane] = tiles[(step - AHEAD) % STAGES, 0, lane]


@pytest.fixture(scope="module")
def view():
    x = np.arange(4 * 32, dtype=np.float32)
    trace = labkit.simulate(ring, 1, 32, x, x * 0)
    assert (trace.outputs[1] == x).all() and not trace.errors
    return pipeline(trace)


def column(view, name):
    return [row[view.data["table"]["columns"].index(name)] for row in view.data["table"]["rows"]]


def test_steps_are_fills_and_uses_in_the_order_of_the_run(view):
    assert column(view, "does") == ["fill"] * 3 + ["use", "fill"] + ["use"] * 3
    assert column(view, "stage") == [0, 1, 2, 0, 0, 1, 2, 0]
    assert column(view, "tile") == [0, 1, 2, 0, 3, 1, 2, 3]


@cuda.jit
def every_second_warp(x, out):
    tiles = cuda.shared.array((1, 1, 128), np.float32)
    t = cuda.threadIdx.x
    if t // 32 % 2 == 0:
        tiles[0, 0, t] = x[t]
    cuda.syncthreads()
    out[t] = tiles[0, 0, t // 64 * 64]


def test_warps_that_are_not_neighbours_are_named_one_by_one():
    trace = labkit.simulate(every_second_warp, 1, 128, np.ones(128, np.float32), np.zeros(128, np.float32))
    assert column(pipeline(trace), "warps") == ["warps 0 and 2", "warps 0 to 3"]


def test_a_stage_is_free_filled_or_used(view):
    free, filled, used = range(3)
    assert unpack(view.data["states"]).tolist() == [
        [filled, free, free],
        [filled, filled, free],
        [filled, filled, filled],
        [used, filled, filled],
        [filled, filled, filled],
        [filled, used, filled],
        [filled, free, used],
        [used, free, free],
    ]


def test_the_sentence_says_who_does_what(view):
    assert "the 3 stages of" in view.title
    assert "warp 0 begins to fill tile 0, in stage 0" in view.sentence
    assert "Free: stages 1 and 2" in view.sentence
    assert "**warp 0 uses tile 1**, in stage 1. In flight or waiting: tiles 2 and 3" in view.data["say"][5]


def test_a_ring_that_is_too_short_shows_which_tile_is_used_and_which_copy_comes_over_it():
    x = np.arange(4 * 32, dtype=np.float32)
    shown = pipeline(labkit.simulate(labkit.specialise(ring, STAGES=2), 1, 32, x, x * 0))
    steps = list(zip(column(shown, "does"), column(shown, "stage"), column(shown, "tile"), strict=True))
    assert steps[:6] == [
        *(("fill", 0, 0), ("fill", 1, 1), ("fill", 0, 2)),
        *(("use", 0, 0), ("fill", 1, 3), ("use", 1, 1)),
    ]
    assert steps[6:] == [("use", 0, 2), ("use", 1, 3)]
    assert shown.data["early"] == [False, False, True, False, True, False, False, False]
    assert "tile 2**, in stage 0, where tile 0 is still to be used." in shown.data["say"][2]
    _, filled, used = range(3)
    assert unpack(shown.data["states"])[3:5].tolist() == [[used, filled], [filled, filled]]  # tile 2 is in flight still


@pytest.mark.parametrize("slug, fills", [("copy_engine", "warp 0"), ("wgmma", "warp 0"), ("pipelined", "warps 0 to 7")])
def test_the_steps_of_the_ladder_show_who_fills(slug, fills):
    step = gemm.step("tensor", slug)
    (trace,) = step.simulate(*step.problem(128, 256, 384).operands(step.formats[0])).traces
    shown = pipeline(trace)
    does = list(zip(column(shown, "does"), column(shown, "warps"), strict=True))
    assert {who for what, who in does if what == "fill"} == {fills}
    assert column(shown, "does").count("fill") == column(shown, "does").count("use") == 6
    assert shown.data["loading"] == []


def test_loads_into_registers_are_in_flight_while_a_stage_is_used(tmp_path):
    (trace,) = gemm.step("fp32", "double_buffering").simulate(*gemm.Problem(128, 128, 24).operands()).traces
    shown = pipeline(trace)
    assert column(shown, "does") == ["fill", "use"] * 3
    assert shown.data["loading"] == [-1, 1, -1, 2, -1, -1]
    assert shown.data["say"][1].endswith("Loads of tile 1 are in flight to registers.")
    shown.save_png(tmp_path / "loads.png", step=1)


def test_a_kernel_without_a_ring_is_refused():
    trace = labkit.simulate(ring, 1, 32, np.zeros(32, np.float32), np.zeros(32, np.float32))
    with pytest.raises(ValueError, match="fills no ring 'nothing'"):
        pipeline(trace, "nothing")


def test_a_still_picture_is_drawn(view, tmp_path):
    view.save_png(tmp_path / "pipeline.png", step=3)
    assert (tmp_path / "pipeline.png").stat().st_size > 5_000
