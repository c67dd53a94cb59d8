"""The bench of bandwidth reads each element once in every pass."""

import numpy as np

import labkit
from labkit.bench.bandwidth import THREADS, read_again


def test_each_pass_reads_every_element():
    blocks, passes = 3, 2
    words = np.arange(4 * 5 * THREADS, dtype=np.uint32)  # five rounds of a block, on three
    sums = np.zeros(blocks * THREADS, np.uint32)
    trace = labkit.simulate(read_again, blocks, THREADS, words, passes, sums)
    vectors = words.reshape(-1, 4)
    read = passes * np.bitwise_xor.reduce(vectors, axis=1).sum(dtype=np.uint32)
    assert trace.outputs[2].sum(dtype=np.uint32) == read
    assert sum(site.accesses for site in trace.sites if site.site.array == "words") == passes * len(vectors)
