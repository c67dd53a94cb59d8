"""The map of winners, held against the rankings and records that it is made of."""

import numpy as np
import pytest

from labkit import conv
from labkit.conv import records
from labkit.views import winners
from labkit.views.base import unpack
from labkit.views.winners import MB, ladder_style, limit_name

TAPS, CHANNELS, BATCHES, LIMITS = (1, 3, 5), (64, 4), (1, 8), (0, 1, None)


@pytest.fixture(scope="module")
def made():
    view = winners(size=10, filters=8, taps=TAPS, channels=CHANNELS, batches=BATCHES, limits_mb=LIMITS)
    return view, [unpack(view.data[name]) for name in ("order", "times_ms", "workspace_mb")]


@pytest.mark.parametrize("images", BATCHES)
@pytest.mark.parametrize("limit_mb", LIMITS)
def test_every_cell_is_what_the_heuristic_ranks(made, images, limit_mb):
    view, (order, times_ms, workspace_mb) = made
    for c, channels in enumerate(CHANNELS):
        for t, taps in enumerate(TAPS):
            pads = [taps // 2] * 4
            problem = conv.Forward(images, channels, 10, 10, 8, taps, taps, 1, 1, *pads)
            limit = None if limit_mb is None else limit_mb * MB
            rows = [row for row in conv.heuristic(problem, workspace_limit_bytes=limit) if not row.reason]
            place = BATCHES.index(images), LIMITS.index(limit_mb), c, t
            shown = order[place][order[place] >= 0]
            assert [view.data["names"][number] for number in shown] == [
                str(row.algorithm) for row in rows[: len(shown)]
            ]
            assert len(shown) == min(len(rows), order.shape[-1])
            np.testing.assert_allclose(times_ms[place][: len(shown)], [row.time_ms for row in rows[: len(shown)]], 1e-6)
            needed = np.array([row.workspace_bytes for row in rows[: len(shown)]]) / MB
            np.testing.assert_allclose(workspace_mb[place][: len(shown)], needed, 1e-5)
            if limit_mb is not None:
                assert (needed <= limit_mb).all()


def test_the_limit_changes_who_wins():
    view = winners(size=32, taps=(9,), channels=(128,), batches=(64,), limits_mb=(0, None))
    names = [view.data["names"][number] for number in unpack(view.data["order"])[0, :, 0, 0, 0]]
    assert names[0].startswith("implicit_gemm") and names[0] != names[1]


def test_the_table_has_every_cell_at_every_position(made):
    rows = made[0].data["table"]["rows"]
    assert len(rows) == len(TAPS) * len(CHANNELS) * len(BATCHES) * len(LIMITS)
    assert {row[1] for row in rows} == {"no workspace", "up to 1 MB", "any workspace"}
    assert limit_name(0) == "no workspace" and ladder_style("unknown")[1] == "U"


def test_cells_are_marked_where_layers_were_timed():
    view = winners(taps=(1, 3, 9), channels=(512, 64), batches=(16, 64), limits_mb=(None,))
    machine = view.data["machine"]
    timed = [one for one in records.measured(machine) if one.problem.C in (512, 64) and one.problem.N in (16, 64)]
    wanted = {(16, 64, 9), (64, 512, 3), (64, 64, 3)}
    cells = {
        ((16, 64)[b], (512, 64)[c], (1, 3, 9)[t]) for b, c, t in (record["cell"] for record in view.data["records"])
    }
    assert wanted <= cells
    for record in view.data["records"]:
        one = next(one for one in timed if one.ours[one.fastest].time_ms == record["time_ms"])
        assert record["fastest"] == one.fastest
        assert record["predicted"] == str(conv.heuristic(one.problem).best)
        known = one.ours.get(record["predicted"])
        assert record["predicted_ms"] == (known.time_ms if known else None)


def test_a_still_picture_has_no_marks_where_workspace_is_limited(tmp_path):
    def picture(limit_mb):
        view = winners(taps=(9,), channels=(64,), batches=(16,), limits_mb=(limit_mb,))
        view.save_png(tmp_path / "winners.svg")
        return (tmp_path / "winners.svg").read_text()

    assert "●" in picture(None) or "○" in picture(None)
    assert "●" not in picture(128) and "○" not in picture(128)


def test_without_records_nothing_is_marked(monkeypatch):
    monkeypatch.setattr(records, "machines", list)
    assert winners(taps=(3,), channels=(8,), batches=(1,), limits_mb=(None,)).data["records"] == []


def test_a_still_picture_names_the_algorithms(made, tmp_path):
    made[0].save_png(tmp_path / "winners.svg")
    assert (tmp_path / "winners.svg").stat().st_size > 5000
