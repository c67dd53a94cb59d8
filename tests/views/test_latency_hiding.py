"""The model of latency hiding, held against Little's law."""

import pytest

from labkit import results
from labkit.views import latency_hiding
from labkit.views.base import unpack
from labkit.views.latency_hiding import WORK_NS, run_model


@pytest.fixture(scope="module")
def recorded():
    return results.load("latency", "nvidia-h100-80gb-hbm3")


@pytest.mark.parametrize("warps", [1, 8, 32, 64])
@pytest.mark.parametrize("loads", [1, 2, 4])
def test_memory_is_as_busy_as_the_loads_in_flight_allow(warps, loads):
    latency_ns, service_ns = 347.0, 5.0
    share = run_model(warps, loads, latency_ns, service_ns)[2]
    waited_ns = latency_ns + (loads - 1) * service_ns + WORK_NS
    assert share == pytest.approx(min(1, warps * loads * service_ns / waited_ns), rel=0.03)


def test_one_load_each_leaves_memory_idle_and_two_do_not(recorded):
    kept = latency_hiding(recorded).data["kept"]
    at_64 = [run["shares"][-1] for run in kept]
    assert 0.85 < at_64[0] < 0.95 and at_64[1] == at_64[2] == pytest.approx(1, abs=0.005)
    assert all(before <= after for run in kept for before, after in zip(run["shares"], run["shares"][1:], strict=False))


def test_the_sentence_says_how_busy_memory_is(recorded):
    view = latency_hiding(recorded)
    assert view.sentence == "8 warps: memory is busy 11% of the time. The rest of the time, nothing has arrived yet."
    assert view.data["kept"][1]["say"][-1].endswith("More warps would only wait longer.")
    assert "A model, not a run: one SM of an H100 SXM. Latency 347 ns" in view.data["caption"]


def test_the_picture_holds_every_warp_and_no_two_answers_at_once(recorded, tmp_path):
    view = latency_hiding(recorded)
    first, end = view.data["wait_offsets"][-2:]
    assert set(unpack(view.data["waits"])[first:end, 0].tolist()) == set(range(64))
    first, end = view.data["served_offsets"][-2:]
    answers = unpack(view.data["served"])[first:end].astype(int)
    assert (answers[1:] - answers[:-1] >= int(view.data["service_ns"])).all()
    view.save_png(tmp_path / "hiding.png", step=5)
    assert (tmp_path / "hiding.png").stat().st_size > 5000


def test_an_sm_holds_so_many_warps_and_no_more(recorded):
    with pytest.raises(ValueError, match="holds at most 64 warps, not 65"):
        latency_hiding(recorded, warps=[65])
