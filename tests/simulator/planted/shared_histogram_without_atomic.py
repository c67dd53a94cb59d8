"""A histogram whose threads add to one bin without an atomic.

Two threads read the same count, add one, and store the same sum: a vote is lost.
"""

import numpy as np
from numba import int32

from labkit import cuda

FINDING = "race"
ARRAY = "bins"
WHO = ((0, 0), (0, 60))
SANITIZER = "racecheck"
GRID, BLOCK = 1, 64


@cuda.jit
def wrong(votes, counts):
    bins = cuda.shared.array(4, int32)
    t = cuda.threadIdx.x
    if t < 4:
        bins[t] = 0
    cuda.syncthreads()
    bins[votes[t]] += 1  # <- here # <- and here
    cuda.syncthreads()
    if t < 4:
        counts[t] = bins[t]


@cuda.jit
def right(votes, counts):
    bins = cuda.shared.array(4, int32)
    t = cuda.threadIdx.x
    if t < 4:
        bins[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(bins, votes[t], 1)
    cuda.syncthreads()
    if t < 4:
        counts[t] = bins[t]


def arguments():
    return np.arange(64, dtype=np.int32) % 4, np.zeros(4, np.int32)
