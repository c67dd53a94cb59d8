"""The order of a TMA copy and the reads of its tile: the cure of a race, and of a read before the copy."""

import numpy as np
import pytest
from cells import kernel_in, line_of
from numba import uint16, uint64

import labkit
from labkit import ptx

WARP = 32

# Two warps read each copy; thread 0 begins the next one when all threads have arrived at `empty`.
RING = """
@cuda.jit
def ring(source, out):
    tile = cuda.shared.array((8, 64), uint16, alignment=1024)
    full = cuda.shared.array(1, uint64)
    empty = cuda.shared.array(1, uint64)
    t, warp = cuda.threadIdx.x, cuda.threadIdx.y
    if t == 0 and warp == 0:
        ptx.mbarrier_init(full, 0, 1)
        ptx.mbarrier_init(empty, 0, 64)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    for i in range(3):
        if t == 0 and warp == 0:
            if i > 0:
                ptx.mbarrier_wait(empty, 0, (i + 1) % 2)
            ptx.mbarrier_expect(full, 0, 1024)
            ptx.tma_load(tile, (0, 0), source, (8 * i, 0), full, 0)
        ptx.mbarrier_wait(full, 0, i % 2)
        for r in range(4):
            out[8 * i + 4 * warp + r, t] = tile[4 * warp + r, t]
        ptx.mbarrier_arrive(empty, 0)
"""
WAIT_FOR_READERS = "            if i > 0:\n                ptx.mbarrier_wait(empty, 0, (i + 1) % 2)\n"
WAIT_FOR_COPY = "        ptx.mbarrier_wait(full, 0, i % 2)\n"
GIVE_BACK = "        ptx.mbarrier_arrive(empty, 0)\n"

# A warp waits for the copy, and the other one for an arrival before the copy.
ANOTHER_WAITS = """
@cuda.jit
def another_waits(source, out):
    tile = cuda.shared.array((8, 64), uint16, alignment=1024)
    bars = cuda.shared.array(2, uint64)
    t, warp = cuda.threadIdx.x, cuda.threadIdx.y
    if t == 0 and warp == 0:
        ptx.mbarrier_init(bars, 0, 1)
        ptx.mbarrier_init(bars, 1, 1)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    if t == 0 and warp == 0:
        ptx.mbarrier_arrive(bars, 1)
        ptx.mbarrier_expect(bars, 0, 1024)
        ptx.tma_load(tile, (0, 0), source, (0, 0), bars, 0)
        ptx.mbarrier_wait(bars, 0, 0)
    if warp == 1:
        ptx.mbarrier_wait(bars, 1, 0)
        for r in range(8):
            out[r, t] = tile[r, t]
"""


def kernel(text):
    return kernel_in(text, ptx=ptx, uint16=uint16, uint64=uint64)


def without(text, part, instead=""):
    assert text.count(part) == 1, part
    return text.replace(part, instead)


def errors(made, warps=2):
    tensor_map = ptx.TensorMap(np.zeros((24, 64), np.uint16), (8, 64))
    return labkit.simulate(made, 1, (WARP, warps), tensor_map, np.zeros((24, 64), np.uint16)).errors


def wait_for_copy(made):
    copy, read = line_of(made, "tma_load"), line_of(made, "= tile")
    waits = f"wait for the copy of line {copy} with `ptx.mbarrier_wait`"
    return f"Let each thread {waits} before it reads the tile at line {read}"


def test_a_ring_whose_readers_give_its_tile_back_is_right():
    assert errors(kernel(RING)) == ()


@pytest.mark.parametrize("is_early", [False, True], ids=["no wait", "arrival before the reads"])
def test_the_next_copy_into_a_tile_waits_at_an_mbarrier_for_all_that_read_it(is_early):
    text = without(RING, WAIT_FOR_READERS)
    if is_early:
        text = without(RING, GIVE_BACK)
        text = without(text, WAIT_FOR_COPY, WAIT_FOR_COPY + GIVE_BACK)
    made = kernel(text)
    (race,) = errors(made)
    assert (race.kind, race.line, race.other_line) == ("race", line_of(made, "tma_load"), line_of(made, "= tile"))
    assert race.remedy == (
        f"Let the threads that read the tile at line {race.other_line} arrive at an mbarrier after their reads, and "
        f"let the copying thread wait for that mbarrier before line {race.line} begins the next copy."
    )


def test_a_read_before_the_first_copy_waits_for_it():
    made = kernel(without(RING, WAIT_FOR_COPY, "        if warp == 0:\n    " + WAIT_FOR_COPY))
    (found,) = (f for f in errors(made) if f.kind == "uninitialised")
    assert found.remedy == f"{wait_for_copy(made)}, and let the copy fill all that is read."


def test_a_race_of_a_copy_with_a_read_before_it_is_told_as_the_missing_wait():
    text = without(RING, WAIT_FOR_READERS).replace("range(3)", "range(1)")
    made = kernel(without(text, WAIT_FOR_COPY, "        if warp == 0:\n    " + WAIT_FOR_COPY))
    (race,) = (f for f in errors(made) if f.kind == "race")
    assert (race.line, race.remedy) == (line_of(made, "tma_load"), f"{wait_for_copy(made)}.")


def test_a_read_after_a_copy_for_which_another_warp_has_waited_needs_a_wait_of_its_own():
    made = kernel(ANOTHER_WAITS)
    (race,) = errors(made)
    assert (race.kind, race.line, race.remedy) == ("race", line_of(made, "= tile"), f"{wait_for_copy(made)}.")


def test_lanes_of_one_warp_meet_at_its_own_barrier():
    text = without(RING, WAIT_FOR_READERS).replace("empty, 0, 64", "empty, 0, 32")
    (race,) = errors(kernel(text), warps=1)
    assert race.remedy.startswith("Put `cuda.syncwarp()`")
