"""A wait that never ends, or for the wrong copies, is told with what the kernel should count."""

import pytest
from exercise_cells import cell, function

from labkit.checking.check import judge
from labkit.exercises import exercise

RING, WINDOW = "the-ring-goes-on", "a-window-in-the-ring"
JOBS = "for tile in range(begins[job], begins[job + 1]):\n"
ARRIVE = "                if lane == 0:\n                    ptx.mbarrier_arrive(empty, stage)\n"
COMMIT = "        ptx.cp_async_commit()\n        if row >= 2"
CASES = [
    (RING, "CONSUMERS * 8 * 128", "8 * 128", "bring 2,048 bytes, and 1,024 are announced"),
    (RING, ARRIVE, "", "No line arrives at empty"),
    (RING, JOBS, JOBS + "                    used = tile\n", "Line 27 begins the count of phases anew"),
    (RING, "                used += 1\n            largest", "            largest", "line 37 changes `used`"),
    (RING, "(phase + 1) % 2", "phase % 2", "let those that must act first wait for parity 1"),
    (RING, "full, stage, phase % 2", "full, stage, (phase + 1) % 2", "a stage was given back before it was full"),
    (WINDOW, "AHEAD + 3, AHEAD - 1", "AHEAD + 3, AHEAD", "In line 15, `ptx.cp_async_wait` leaves 2 groups"),
    (WINDOW, "AHEAD + 3, AHEAD - 1", "AHEAD + 2, AHEAD - 1", "began after its thread's last wait"),
    (WINDOW, COMMIT, "    " + COMMIT, "Close a group in every iteration"),
]


@pytest.mark.parametrize(("id", "old", "new", "told"), CASES)
def test_the_fix_of_a_wait_is_told(id, old, new, told):
    source = cell(id)
    assert source.count(old) == 1
    assert told in judge(exercise(id), function(id, source.replace(old, new), f"<{id} {told}>"), seed=1).message
