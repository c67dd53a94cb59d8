"""L2 against what Nsight Compute counts on GPUs: pairs of sectors, partitions, and what stays dirty."""

import numpy as np
import pytest

from labkit import cuda, simulate
from labkit.machine.gpus import GPUS
from labkit.simulator.counters import COUNTS, L2_HITS
from labkit.simulator.l2 import L2

H100, T4 = GPUS["H100 SXM"], GPUS["T4"]
FIRST, LAST = 0, H100.sms - 1  # SMs next to different partitions
LINES = np.arange(64)


class Asked:
    """An L2, and the hits of each instruction that it is sent."""

    def __init__(self, gpu):
        self.totals = np.zeros((1, COUNTS), np.int64)
        self.l2 = L2(gpu, self.totals)
        self.clock = 0

    def send(self, sectors, warp=0, sm=0, writes=False):
        rows = [(self.clock, warp, sector, sm) for sector in np.atleast_1d(sectors)]
        self.l2.send(np.array(rows, np.int64), 0, writes)

    def hits(self, sectors, **how):
        """Sends one warp's instruction; how many of its sectors were there."""
        before = self.totals[0, L2_HITS]
        self.send(sectors, **how)
        self.l2.flush()
        self.clock += 1
        return self.totals[0, L2_HITS] - before


@pytest.mark.parametrize("gpu", [H100, T4], ids=lambda gpu: gpu.name)
def test_dram_gives_both_sectors_of_a_pair(gpu):
    asked = Asked(gpu)
    assert asked.hits(5) == 0 and asked.l2.bytes_read == 64
    assert asked.hits(4) == 1 and asked.l2.bytes_read == 64
    assert asked.hits(6) == 0 and asked.l2.bytes_read == 128


def test_what_one_instruction_asks_for_is_missed_together():
    asked = Asked(H100)
    assert asked.hits([0, 1, 2, 3]) == 0
    assert asked.l2.bytes_read == 128


def test_a_warp_finds_what_the_warp_before_it_brought_in():
    asked = Asked(H100)
    asked.send(1, warp=1)
    assert asked.hits(0, warp=0) == 1


def test_a_pair_that_was_half_stored_is_read_for_its_other_half():
    asked = Asked(H100)
    asked.hits(0, writes=True)
    assert asked.l2.bytes_read == 0
    assert asked.hits(1) == 0 and asked.l2.bytes_read == 32


def test_each_partition_keeps_what_its_sms_ask_for():
    asked = Asked(H100)
    assert asked.hits(4 * LINES, sm=FIRST) == 0
    assert asked.hits(4 * LINES, sm=LAST) == 32, "the partition next to it is home to half of the lines"
    assert asked.hits(4 * LINES, sm=FIRST) == asked.hits(4 * LINES, sm=LAST) == 64
    assert asked.l2.bytes_read == 64 * 64, "DRAM is read once"


def test_an_undivided_l2_serves_all_sms_alike():
    asked = Asked(T4)
    asked.hits(4 * LINES, sm=0)
    assert asked.hits(4 * LINES, sm=T4.sms - 1) == 64


@pytest.mark.parametrize("sm", [FIRST, LAST])
def test_a_stored_sector_is_dirty_in_one_place(sm):
    asked = Asked(H100)
    asked.hits(4 * LINES, sm=sm, writes=True)
    assert asked.l2.dirty_bytes == asked.l2.bytes_written == 32 * len(LINES)


@pytest.mark.parametrize("stride, moved", [(1, 1), (2, 2), (8, 8), (16, 16), (32, 16), (33, 16)])
def test_a_stride_reads_no_more_than_64_bytes_an_element(stride, moved):
    @cuda.jit
    def strided(x, out, stride):
        i = cuda.grid(1)
        out[i] = x[i * stride]

    x, out = np.ones(1024 * stride, np.float32), np.zeros(1024, np.float32)
    trace = simulate(strided, 4, 256, x, out, stride)
    assert trace.counters.dram_read_bytes == 4 * 1024 * moved


def test_what_stays_in_l2_is_told_apart_from_what_is_written():
    @cuda.jit
    def fill(out):
        out[cuda.grid(1)] = 1

    small = simulate(fill, 64, 256, np.zeros(64 * 256, np.float32), gpu="T4").counters
    assert small.l2_dirty_bytes == small.dram_write_bytes == 4 * 64 * 256
    large = simulate(fill, 2**13, 256, np.zeros(2**21, np.float32), gpu="T4", record=[]).counters
    assert large.dram_write_bytes == 4 * 2**21
    assert large.l2_dirty_bytes == T4.l2_bytes
