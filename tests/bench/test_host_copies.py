"""The bench of copies moves as many bytes as it says, in both directions, from both kinds of host memory."""

import numpy as np
import pytest

from labkit import cuda
from labkit.bench import copies


@pytest.mark.parametrize("memory", copies.MEMORIES)
def test_a_row_is_of_a_copy_of_its_size_in_its_direction(memory, monkeypatch):
    moved = []

    def timed(copy, repeats):
        copy()
        moved.append(copy.__name__)
        return 0.5

    monkeypatch.setattr(copies.timing, "host_time_ms", timed)
    rows = copies.measure(memory, 4096)
    assert moved == ["to_gpu", "from_gpu"]
    assert [row["direction"] for row in rows] == ["to the GPU", "from the GPU"]
    assert {row["gb_s"] for row in rows} == {4096 / 0.5 / 1e6}
    assert isinstance(copies.MEMORIES[memory](3, np.uint8), np.ndarray) and cuda.device_array(3, np.uint8).size == 3
