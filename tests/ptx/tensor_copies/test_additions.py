"""Additions to memory by TMA: what is added, what is counted, and what must be waited for."""

import numpy as np
import pytest
from cells import kernel_in
from numba import float32, int32

import labkit
from labkit import cuda, ptx
from labkit.simulator import host
from labkit.simulator.errors import KernelError

ADD = """
@cuda.jit
def add(sums, x):
    tile = cuda.shared.array((2, COUNT), float32, alignment=16)
    t, block = cuda.threadIdx.x, cuda.blockIdx.x
    for i in range(t, COUNT, 32):
        tile[1, i] = x[block, i]
    ptx.fence_async()
    cuda.syncthreads()
    if t == 0:
        ptx.tma_add(sums, (1, 4), tile, (1, 0), COUNT)
        ptx.tma_store_commit()
        ptx.tma_store_wait(0)
        pass
    cuda.syncthreads()
    for i in range(t, COUNT, 32):
        tile[1, i] = 0
"""
COUNT = 40
INSTRUCTION = "ptx.tma_add(sums, (1, 4), tile, (1, 0), COUNT)"


def run(text=ADD, blocks=3, sums=None, **names):
    made = kernel_in(text, ptx=ptx, float32=float32, int32=int32, **{"COUNT": COUNT} | names)
    sums = np.ones((2, 64), np.float32) if sums is None else sums
    return labkit.simulate(made, blocks, 32, sums, numbers(blocks))


def numbers(blocks):
    return np.random.default_rng(5).standard_normal((blocks, COUNT)).astype(np.float32)


def changed(before, after="", text=ADD):
    assert text.count(before) == 1, before
    return text.replace(before, after)


def test_blocks_add_to_the_same_place_without_a_race():
    trace = run()
    expected = np.ones((2, 64))
    expected[1, 4 : 4 + COUNT] += numbers(3).sum(0)
    assert not trace.errors and np.allclose(trace.outputs[0], expected, atol=1e-5)


def test_additions_count_as_atomics_of_the_sectors_that_they_touch():
    trace = run()
    (site,) = (s for s in trace.sites if s.site.array == "sums")
    assert (site.site.kind, site.accesses, site.requests) == ("atomic", 3 * COUNT, 3)
    assert site.bytes == 3 * COUNT * 4 and site.sectors == 3 * 6  # 160 bytes from byte 272 on
    assert trace.counters.global_atomics == 3 * COUNT
    (of,) = (s for s in trace.sites if s.site.array == "tile" and s.site.kind == "load")
    assert of.wavefronts == 3 * 2 and of.bank_conflicts == 0


@pytest.mark.parametrize(
    ("before", "kind", "part"),
    [
        ("    ptx.fence_async()\n", "proxy", "ptx.fence_async()"),
        ("        ptx.tma_store_wait(0)\n", "in-flight", "has read it"),
        ("        ptx.tma_store_commit()\n", "in-flight", "has read it"),
        ("    ptx.fence_async()\n    cuda.syncthreads()\n", "race", "syncthreads"),
        ("        ptx.tma_store_wait(0)\n        pass\n    cuda.syncthreads()\n    for i in range(t, COUNT, 32):\n"
         "        tile[1, i] = 0\n", "in-flight", "ends before"),
    ],
)  # fmt: skip
def test_a_broken_addition_is_found_out(before, kind, part):
    trace = run(changed(before, "        pass\n" if "pass" in before else ""))
    assert any(f.kind == kind and part in f.message for f in trace.errors), trace.errors


@pytest.mark.parametrize("does", ["sums[1, 5] = 0", "x[0, 0] = sums[1, 5]"])
def test_nobody_uses_sums_of_the_same_launch(does):
    (finding,) = run(changed("        pass\n", f"        {does}\n"), blocks=1).errors
    assert finding.kind == "in-flight" and "before the addition that thread 0" in finding.message
    assert "let a later launch use them" in finding.remedy


@pytest.mark.parametrize("does", ["sums[1, 5] = 0", "x[1, 0] = sums[1, 5]"])
def test_an_ordinary_access_of_another_block_is_a_race(does):
    other = changed("    t, block =", f"    if cuda.blockIdx.x == 1:\n        {does}\n        return\n    t, block =")
    found = run(other, blocks=2).errors
    assert [(one.kind, one.array) for one in found] == [("race", "sums")]


@pytest.mark.parametrize("does", ["cuda.atomic.add(sums, (1, 5), 1)", "sums[1, 3] = sums[1, 44] + sums[0, 5]"])
def test_atomics_and_what_lies_beside_do_no_harm(does):
    assert not run(changed("        pass\n", f"        {does}\n"), blocks=1).errors


def test_a_thread_adds_twice_to_the_same_place():
    twice = changed(INSTRUCTION, f"{INSTRUCTION}\n        {INSTRUCTION}")
    trace = run(twice, blocks=1)
    assert not trace.errors
    assert np.allclose(trace.outputs[0][1, 4 : 4 + COUNT], 1 + 2 * numbers(1)[0], atol=1e-5)


def test_sums_begin_somewhere():
    found = run(sums=host.device_array((2, 64), np.float32)).errors
    assert any(one.kind == "uninitialised" and one.array == "sums" for one in found)


@pytest.mark.parametrize(
    ("after", "kind"),
    [
        ("ptx.tma_add(sums, (1, 28), tile, (1, 0), COUNT)", "bounds"),
        ("ptx.tma_add(sums, (1, 4), tile, (1, 4), COUNT)", "bounds"),
        ("ptx.tma_add(sums, (1, 6), tile, (1, 0), COUNT)", "misaligned"),
        ("ptx.tma_add(sums, (1, 4), tile, (1, 2), 8)", "misaligned"),
    ],
)
def test_places_that_tma_does_not_take_are_found_out(after, kind):
    assert kind in {one.kind for one in run(changed(INSTRUCTION, after)).errors}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("(1, 0), COUNT)", "(1, 0), 6)", "a multiple of 4 numbers is added, not 6"),
        ("(1, 0), COUNT)", "(1, 0), t)", "fixed when a kernel is compiled"),
        ("(2, COUNT), float32", "(2, COUNT), int32", "float32 is added to float32 here"),
        ("sums, (1, 4), tile, (1, 0)", "tile, (1, 4), tile, (1, 0)", "reaches global arrays"),
    ],
)
def test_what_is_not_added_is_refused_in_a_sentence(before, after, words):
    with pytest.raises(KernelError, match=words):
        run(changed(before, after))


@pytest.mark.needs("gpu")
def test_a_gpu_adds_the_same():
    made = kernel_in(ADD, ptx=ptx, float32=float32, COUNT=COUNT)
    sums = cuda.to_device(np.ones((2, 64), np.float32))
    made[3, 32](sums, cuda.to_device(numbers(3)))
    assert np.allclose(sums.copy_to_host(), run().outputs[0], atol=1e-5)
