"""The map of winners, held against the rankings and records that it is made of."""

import numpy as np
import pytest

from labkit import conv
from labkit.conv import records
from labkit.views import winners
from labkit.views.base import unpack
from labkit.views.winners import MB, SIDE_FACTOR, TIE, ladder_style, limit_name

SIDES, TAPS, CHANNELS, BATCHES, LIMITS = (10, 20), (1, 3, 5), (64, 8), (1, 8), (0, 1, None)
SMALL = {"sides": (10,), "taps": (3,), "channels": (8,), "batches": (1,), "limits_mb": (None,)}


@pytest.fixture(scope="module")
def made():
    view = winners(sides=SIDES, filters=8, taps=TAPS, channels=CHANNELS, batches=BATCHES, limits_mb=LIMITS)
    return view, [unpack(view.data[name]) for name in ("order", "times_ms", "workspace_mb")]


@pytest.mark.parametrize("format", ["float32", "bfloat16"])
@pytest.mark.parametrize("images", BATCHES)
@pytest.mark.parametrize("limit_mb", LIMITS)
def test_every_cell_is_what_the_heuristic_ranks(made, images, limit_mb, format):
    view, (order, times_ms, workspace_mb) = made
    layout = "NCHW" if format == "float32" else "NHWC"
    for h, c, t in np.ndindex(len(SIDES), len(CHANNELS), len(TAPS)):
        sizes = images, CHANNELS[c], SIDES[h], SIDES[h], 8, TAPS[t], TAPS[t], 1, 1, *[TAPS[t] // 2] * 4
        limit = None if limit_mb is None else limit_mb * MB
        ranking = conv.heuristic(conv.Forward(*sizes, layout=layout), format, limit)
        rows = [row for row in ranking if not row.reason]
        place = view.data["formats"].index(format), h, BATCHES.index(images), LIMITS.index(limit_mb), c, t
        shown = order[place][order[place] >= 0]
        assert [view.data["names"][number] for number in shown] == [str(row.algorithm) for row in rows[: len(shown)]]
        assert len(shown) == min(len(rows), order.shape[-1])
        np.testing.assert_allclose(times_ms[place][: len(shown)], [row.time_ms for row in rows[: len(shown)]], 1e-6)
        needed = np.array([row.workspace_bytes for row in rows[: len(shown)]]) / MB
        np.testing.assert_allclose(workspace_mb[place][: len(shown)], needed, 1e-5)
        if limit_mb is not None:
            assert (needed <= limit_mb).all()


def test_the_limit_changes_who_wins():
    view = winners(sides=(32,), taps=(9,), channels=(128,), batches=(64,), limits_mb=(0, None))
    names = [view.data["names"][number] for number in unpack(view.data["order"])[0, 0, 0, :, 0, 0, 0]]
    assert names[0].startswith("implicit_gemm") and names[0] != names[1]


def test_with_64_images_16_bits_beat_every_algorithm_of_float32():
    view = winners(batches=(64,), limits_mb=(None,))
    times_ms = unpack(view.data["times_ms"])[:, :, 0, 0, :, :, 0]
    gain = times_ms[0] / times_ms[1]
    assert (gain[view.data["sides"].index(28)] > 1).all() and gain.max() > 5


def test_the_side_changes_who_wins_3_x_3():
    view = winners(taps=(3,), channels=(512,), batches=(64,), limits_mb=(None,), formats=("float32",))
    order, families = unpack(view.data["order"])[0, :, 0, 0, 0, 0, 0], view.data["families"]
    winners_by_side = [families[number] for number in order]
    assert winners_by_side == ["implicit_gemm", "winograd", "fft", "fft"], "from 7 x 7 to 56 x 56"


def test_the_table_has_every_cell_at_every_position(made):
    columns, rows = (made[0].data["table"][name] for name in ("columns", "rows"))
    assert len(rows) == 2 * len(SIDES) * len(BATCHES) * len(LIMITS) * len(CHANNELS)
    assert columns[-len(TAPS) :] == ["1 x 1", "3 x 3", "5 x 5"]
    assert {row[3] for row in rows} == {"no workspace", "up to 1 MB", "any workspace"}
    assert limit_name(0) == "no workspace" and ladder_style("unknown")[1] == "U"


def test_cells_are_marked_where_layers_were_timed():
    axes = {"sides": (14, 56), "taps": (1, 3, 9), "channels": (512, 64), "batches": (16, 64)}
    view = winners(**axes, limits_mb=(None,))
    machine = view.data["machine"]
    shown = set()
    for record in view.data["records"]:
        side, batch, channel, tap = record["cell"]
        shown.add((axes["sides"][side], axes["batches"][batch], axes["channels"][channel], axes["taps"][tap]))
        timed = records.measured(machine, record["format"])
        (one,) = (one for one in timed if one.ours[one.fastest].time_ms == record["time_ms"])
        assert (axes["batches"][batch], axes["channels"][channel]) == (one.problem.N, one.problem.C)
        assert axes["taps"][tap] == one.problem.R and one.problem.H / axes["sides"][side] <= SIDE_FACTOR
        best = str(conv.heuristic(one.problem, record["format"]).best)
        assert (record["predicted"], record["fastest"]) == (best, one.fastest)
        assert record["estimate_ms"] == conv.heuristic(one.problem, record["format"])[0].time_ms
        if best in one.ours:
            loss = one.ours[best].time_ms / record["time_ms"] - 1
            assert record["loss"] == pytest.approx(loss if loss >= TIE else 0)
        else:
            assert record["predicted_ms"] is record["loss"] is None
    assert {(56, 16, 64, 9), (14, 64, 512, 3), (56, 64, 64, 3)} <= shown


def test_a_layer_for_which_another_family_is_predicted_does_not_confirm_its_cell(tmp_path):
    axes = {"sides": (14,), "taps": (3,), "channels": (256,), "batches": (64,), "limits_mb": (None,)}

    def mark(filters):
        view = winners(**axes, filters=filters, formats=("float32",))
        view.save_png(tmp_path / "winners.svg")
        (record,) = view.data["records"]
        return record["is_alike"], [sign for sign in "●○" if sign in (tmp_path / "winners.svg").read_text()]

    assert mark(256) == (True, ["●"]), "the layer that was timed: an FFT won, as predicted"
    assert mark(128) == (False, ["○"]), "Winograd is predicted for half the filters"


def test_layers_in_tf32_are_shown_with_our_best_of_float32(monkeypatch):
    machine = records.machines()[0]
    layer = conv.Forward(16, 64, 64, 64, 128, 9, 9)
    monkeypatch.setattr(records, "timed_in_tf32", lambda machine: {layer: ("torch, TF32", 0.5)})
    axes = {"sides": (14,), "taps": (9,), "channels": (64,), "batches": (16,), "limits_mb": (None,)}
    (record,) = winners(**axes, machine=machine).data["tf32"]
    assert (record["cell"], record["library"], record["time_ms"]) == ([0, 0, 0, 0], "torch, TF32", 0.5)
    one = next(one for one in records.measured(machine) if one.problem == layer)
    assert (record["fastest"], record["fastest_ms"]) == (one.fastest, one.ours[one.fastest].time_ms)


def test_a_still_picture_has_no_marks_where_workspace_is_limited(tmp_path):
    def picture(limit_mb):
        view = winners(sides=(56,), taps=(9,), channels=(64,), batches=(16,), limits_mb=(limit_mb,))
        view.save_png(tmp_path / "winners.svg")
        return (tmp_path / "winners.svg").read_text()

    assert "●" in picture(None)
    assert "●" not in picture(128)


def test_without_records_nothing_is_marked(monkeypatch):
    monkeypatch.setattr(records, "machines", list)
    data = winners(**SMALL).data
    assert data["records"] == data["tf32"] == []


def test_a_still_picture_names_the_algorithms(made, tmp_path):
    made[0].save_png(tmp_path / "winners.svg")
    assert (tmp_path / "winners.svg").stat().st_size > 5000
