"""The ring that the latency bench walks: one load a line, and back at the start after all of them."""

import numpy as np

import labkit
from labkit.bench.latency import LINE_BYTES, pointer_chase, random_ring


def test_a_walk_meets_every_line_once_and_comes_back():
    lines, words = 64, LINE_BYTES // 4
    ring = random_ring(lines)
    assert ring.nbytes == lines * LINE_BYTES
    trace = labkit.simulate(pointer_chase, 1, 1, ring, lines, np.zeros(1, np.uint32))
    assert trace.outputs[2][0] == 0
    met = trace.samples.index[[trace.sites[site].site.array == "ring" for site in trace.samples.site], 0]
    assert sorted(met // words) == list(range(lines))
