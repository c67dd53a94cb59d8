"""Resident blocks by the rules of NVIDIA's calculator: cases worked out by hand, each at the edge of a rule."""

import pytest

from labkit.machine.gpus import GPUS, gpu
from labkit.machine.occupancy import occupancy
from labkit.simulator.caches import l1_bytes, resident_blocks

KIB = 1024


@pytest.mark.parametrize(
    ("name", "threads", "shared_bytes", "registers", "blocks", "limiter"),
    [
        ("H100 SXM", 256, 0, 32, 8, "threads and registers"),  # 2048 threads x 32 registers fill the SM
        ("H100 SXM", 256, 0, 33, 6, "registers"),  # 40 x 32 a warp: 12 warps in each of 4 parts, 48 in all
        ("H100 SXM", 256, 0, 40, 6, "registers"),
        ("H100 SXM", 32, 0, 16, 32, "blocks"),
        ("T4", 32, 0, 16, 16, "blocks"),
        ("T4", 256, 0, 64, 4, "threads and registers"),
        ("RTX 3090", 1024, 0, 32, 1, "threads"),  # 1,536 threads an SM
        ("H100 SXM", 65, 0, 32, 21, "threads and registers"),  # three warps each, and one is left over
        ("H100 SXM", 128, 227 * KIB, 32, 1, "shared memory"),
        ("H100 SXM", 128, 227 * KIB + 1, 32, 0, "shared memory"),
        ("H100 SXM", 128, 75 * KIB, 32, 3, "shared memory"),  # 76 KB each with the system's own
        ("H100 SXM", 128, 75 * KIB + 1, 32, 2, "shared memory"),
        ("V100", 128, 32 * KIB, 32, 3, "shared memory"),  # nothing for the system before Ampere
        ("V100", 128, 32 * KIB + 1, 32, 2, "shared memory"),
        ("A100 SXM", 1024, 0, 65, 0, "registers"),  # 72 x 32 x 32 are more than 65,536
        ("A100 SXM", 96, 0, 255, 2, "registers"),  # 2 warps in each part, 8 in all, make two blocks of 3
    ],
)
def test_by_hand(name, threads, shared_bytes, registers, blocks, limiter):
    found = occupancy(name, threads, shared_bytes, registers)
    assert (found.blocks, found.limiter) == (blocks, limiter)
    assert found.warps == blocks * -(-threads // 32)
    assert found.share == found.warps / gpu(name).warps_per_sm


def test_a_sentence_says_what_limits():
    assert str(occupancy("H100 SXM", 256, registers=64)) == (
        "an SM of H100 SXM holds 4 blocks at a time, 32 of 64 warps (50%), limited by registers"
    )
    assert "holds 1 block at a time" in str(occupancy("T4", 1024))
    assert "cannot hold such a block: registers would not suffice" in str(occupancy("T4", 1024, registers=100))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0,), "a block of 0 threads does not exist: give it 1 to 1024"),
        ((1025,), "a block of 1025 threads"),
        ((32, -1), "-1 bytes of shared memory"),
        ((32, 0, 256), "256 registers"),
    ],
)
def test_an_impossible_block_gets_one_sentence(arguments, words):
    with pytest.raises(ValueError, match=words):
        occupancy("T4", *arguments)


@pytest.mark.parametrize("device", GPUS.values(), ids=GPUS)
def test_more_of_anything_never_leaves_room_for_more_blocks(device):
    more_threads = [(threads, 0, 32) for threads in range(1, 1025)]
    more_shared = [(64, size, 32) for size in range(0, device.shared_bytes_per_block, 512)]
    more_registers = [(64, 0, registers) for registers in range(256)]
    for asked in (more_threads, more_shared, more_registers):
        blocks = [occupancy(device, *a).blocks for a in asked]
        assert blocks == sorted(blocks, reverse=True)
        assert all(occupancy(device, *a).warps <= device.warps_per_sm for a in asked)


def test_l1_is_what_the_choice_of_shared_memory_leaves():
    """Eight blocks of 2 KB, each with 1 KB for the system, need 24 KB: 32 is the least choice."""
    h100 = gpu("H100 SXM")
    assert resident_blocks(h100, 256, 2 * KIB) == 8
    assert l1_bytes(h100, 256, 2 * KIB) == (256 - 32) * KIB
    assert l1_bytes(h100, 1024, 0) == (256 - 8) * KIB
    assert l1_bytes(h100, 128, 200 * KIB) == (256 - 228) * KIB
    assert l1_bytes(gpu("T4"), 32, 0) == (96 - 32) * KIB
