"""The bench of the loops, at a size that takes seconds."""

import pytest

from labkit import results
from labkit.bench import _record, loops


@pytest.fixture
def small(monkeypatch):
    sizes = {
        "SIZE": 64,
        "TIMED_ROWS": {"python": 1, "compiled": 4, "rows": 8, "blocked": 16},
        "ORDER_SIZE": 16,
        "TILES": (8, 16),
        "TILE_ROWS": 16,
        "WORKING_SETS_KB": (16, 32),
        "CHASED_LOADS": 1000,
        "TRACED_ACCESSES": 10_000,
    }
    for name, value in sizes.items():
        monkeypatch.setattr(loops, name, value)


def test_what_is_recorded(small, tmp_path, capsys):
    loops.main(out=tmp_path)
    assert "timing python\n" in capsys.readouterr().err
    found = results.load("loops", results.slug(_record.cpu_name()), tmp_path)
    steps = [row["step"] for row in found.select(baseline="NumPy")]
    assert steps == ["python", "compiled", "rows", "blocked", "python with lists"]
    assert all(row["problem"] == "64x64x64" and row["time_ms"] > 0 for row in found.select(baseline="NumPy"))
    assert all(row["error"] < 1e-5 for row in found.rows if "error" in row)
    assert [row["tile"] for row in found.rows if "tile" in row] == [8, 16]
    assert {row["array"] for row in found.select(step="compiled", problem="64x65x64")} == {"A", "B", "C"}


def test_a_time_stands_for_the_whole_product(small, monkeypatch):
    monkeypatch.setattr(loops.timing, "host_time_ms", lambda call, repeats: (call(), 1.0)[1])
    rows = {row["step"]: row for row in loops.time_steps()}
    assert rows["blocked"]["time_ms"] == 64 / 16
    assert rows["python"]["time_ms"] == 64 * 16
