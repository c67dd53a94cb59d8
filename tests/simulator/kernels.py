"""Kernels of every kind that the simulator must run, each with its launch and what it must compute."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import float32, float64, int32, int64, uint8, uint32

from labkit import cuda

THREADS = 64
TILE = 8
PADDED = TILE + 1
BINS = 16


@dataclass(frozen=True)
class Case:
    """A launch, and the expected value of some of its arguments after it."""

    kernel: Any
    grid: Any
    block: Any
    arguments: tuple
    expected: dict[int, np.ndarray]
    shared_bytes: int = 0
    tolerance: float = 1e-5

    @property
    def name(self):
        return self.kernel.py_func.__name__


@cuda.jit
def block_sums(x, sums):
    s = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    k = THREADS // 2
    while k > 0:
        if t < k:
            s[t] += s[t + k]
        cuda.syncthreads()
        k //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = s[0]


@cuda.jit
def grid_stride_sum(x, total):
    acc = float64(0)
    i = cuda.grid(1)
    while i < x.size:
        acc += x[i]
        i += cuda.gridsize(1)
    cuda.atomic.add(total, 0, acc)


@cuda.jit
def transpose(a, b):
    tile = cuda.shared.array((TILE, PADDED), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col = cuda.blockIdx.x * TILE + x
    row = cuda.blockIdx.y * TILE + y
    if row < a.shape[0] and col < a.shape[1]:
        tile[y, x] = a[row, col]
    cuda.syncthreads()
    col = cuda.blockIdx.y * TILE + x
    row = cuda.blockIdx.x * TILE + y
    if row < b.shape[0] and col < b.shape[1]:
        b[row, col] = tile[x, y]


@cuda.jit
def histogram(x, counts):
    bins = cuda.shared.array(BINS, int32)
    t = cuda.threadIdx.x
    for b in range(t, BINS, cuda.blockDim.x):
        bins[b] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(bins, x[i], 1)
    cuda.syncthreads()
    for b in range(t, BINS, cuda.blockDim.x):
        cuda.atomic.add(counts, b, bins[b])


@cuda.jit
def stencil(x, y):
    i = cuda.grid(1)
    if i < x.size:
        left = x[i - 1] if i > 0 else float32(0)
        right = x[i + 1] if i + 1 < x.size else float32(0)
        y[i] = float32(0.25) * left + float32(0.5) * x[i] + float32(0.25) * right


@cuda.jit
def early_return(x, y):
    i = cuda.grid(1)
    if i >= x.size:
        return
    if x[i] < 0:
        y[i] = -x[i]
        return
    y[i] = math.sqrt(x[i])


@cuda.jit
def collatz(n, steps):
    i = cuda.grid(1)
    if i < n.size:
        value = n[i]
        count = 0
        while value != 1:
            if value % 2 == 0:
                value //= 2
            else:
                value = 3 * value + 1
            count += 1
            if count >= 50:
                break
        steps[i] = count


@cuda.jit
def skipping(x, y):
    i = cuda.grid(1)
    total = 0
    for k in range(x.shape[1]):
        if x[i, k] < 0:
            continue
        if x[i, k] > 90:
            break
        total += x[i, k]
    y[i] = total


@cuda.jit
def lane_dependent_loops(y):
    i = cuda.grid(1)
    total = 0
    for a in range(i % 5):
        for b in range(a, i % 7):
            total += a * b + 1
    y[i] = total


@cuda.jit(device=True)
def clamp(value, low, high):
    if value < low:
        return low
    if value > high:
        return high
    return value


@cuda.jit(device=True)
def both_ways(a, b):
    return min(a, b), max(a, b)


@cuda.jit
def with_device_functions(x, y):
    i = cuda.grid(1)
    low, high = both_ways(x[i], float32(1))
    y[i] = clamp(low * high, float32(-0.5), float32(0.5))


def closure(scale):
    @cuda.jit
    def scaled(x, y):
        i = cuda.grid(1)
        y[i] = x[i] * scale

    return scaled


@cuda.jit
def three_dimensions(y):
    x, r, z = cuda.grid(3)
    if z < y.shape[0] and r < y.shape[1] and x < y.shape[2]:
        y[z, r, x] = 100 * z + 10 * r + x


@cuda.jit
def dynamic_shared(x, y):
    s = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    y[cuda.grid(1)] = s[cuda.blockDim.x - 1 - t]


@cuda.jit
def local_polynomial(x, y):
    powers = cuda.local.array(4, float64)
    i = cuda.grid(1)
    powers[0] = 1.0
    for k in range(1, 4):
        powers[k] = powers[k - 1] * x[i]
    total = 0.0
    for k in range(4):
        total += (k + 1) * powers[k]
    y[i] = total


@cuda.jit
def integers(a, b, out):
    i = cuda.grid(1)
    out[i, 0] = a[i] // b[i]
    out[i, 1] = a[i] % b[i]
    out[i, 2] = (a[i] << 3) ^ (b[i] >> 1)
    out[i, 3] = (a[i] & b[i]) | 5
    out[i, 4] = ~a[i]
    out[i, 5] = abs(a[i]) + int32(a[i] > b[i])


@cuda.jit
def narrow_types(x, out):
    i = cuda.grid(1)
    small = uint8(x[i])
    wide = uint32(x[i]) * uint32(2654435761)
    out[i] = small + int64(wide % 1000)


@cuda.jit
def type_changes(x, y):
    i = cuda.grid(1)
    value = 1
    if x[i] > 0:
        value = 2.5
    y[i] = value / 2


@cuda.jit
def swap(x, y):
    i = cuda.grid(1)
    a, b = x[i, 0], x[i, 1]
    if a > b:
        a, b = b, a
    y[i, 0] = a
    y[i, 1] = b
    first = second = a
    y[i, 1] += first - second


@cuda.jit
def short_circuit(x, y):
    i = cuda.grid(1)
    if i < x.size and x[i] > 0 or i == 3:
        y[i] = 1
    elif not (i < x.size and x[i] > -1) and i < y.size:
        y[i] = 2


@cuda.jit
def handshake(x, y):
    flag = cuda.shared.array(1, int32)
    box = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    if t == 0:
        flag[0] = 0
    cuda.syncthreads()
    if t < 32:
        box[t] = x[t] * x[t]
        cuda.syncwarp()
        cuda.threadfence_block()
        if t == 0:
            cuda.atomic.exch(flag, 0, 1)
    else:
        while cuda.atomic.add(flag, 0, 0) == 0:
            pass
        y[t - 32] = box[t - 32]


@cuda.jit
def last_block(x, partial, counter, total):
    s = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        partial[cuda.blockIdx.x] = x[cuda.blockIdx.x] * 2
        cuda.threadfence()
        s[0] = cuda.atomic.add(counter, 0, 1)
    cuda.syncthreads()
    if s[0] == cuda.gridDim.x - 1 and t == 0:
        acc = 0
        for b in range(cuda.gridDim.x):
            acc += partial[b]
        total[0] = acc


@cuda.jit
def halves_by_role(x, y):
    s = cuda.shared.array(THREADS, float32)
    t = cuda.threadIdx.x
    for step in range(3):
        if t < 32:
            s[t] = x[t] + step
        cuda.syncthreads()
        if t >= 32:
            y[t - 32] += s[t - 32]
        cuda.syncthreads()


def cases():
    """Every case, on inputs of its own."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal(300).astype(np.float32)
    padded = np.zeros(320, np.float32)
    padded[:300] = x
    a = rng.standard_normal((21, 35)).astype(np.float32)
    numbers = rng.integers(0, BINS, 250).astype(np.int32)
    n = rng.integers(1, 200, 100)
    table = rng.integers(-10, 100, (64, 9))
    i64 = rng.integers(-50, 50, 64)
    j64 = rng.integers(1, 20, 64)
    pairs = rng.standard_normal((64, 2)).astype(np.float32)
    stencilled = np.convolve(np.pad(x, 1), [0.25, 0.5, 0.25], "valid")
    shapes = np.indices((3, 5, 7))

    def steps_of(value):
        count = 0
        while value != 1 and count < 50:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            count += 1
        return count

    def skipped(row):
        total = 0
        for value in row:
            if value > 90:
                break
            total += max(value, 0)
        return total

    flags = np.array(
        [1 if (i < 300 and x[i] > 0) or i == 3 else 2 if not (i < 300 and x[i] > -1) else 0 for i in range(320)]
    )
    lanes = [sum(p * q + 1 for p in range(i % 5) for q in range(p, i % 7)) for i in range(96)]
    f = np.float32
    return [
        Case(block_sums, 5, THREADS, (x, np.zeros(5, f)), {1: padded.reshape(5, 64).sum(1)}, tolerance=1e-4),
        Case(grid_stride_sum, 2, 32, (x, np.zeros(1)), {1: np.array([x.sum(dtype=np.float64)])}),
        Case(transpose, (5, 3), (TILE, TILE), (a, np.zeros((35, 21), f)), {1: a.T}),
        Case(histogram, 4, 64, (numbers, np.zeros(BINS, np.int32)), {1: np.bincount(numbers, minlength=BINS)}),
        Case(stencil, 10, 32, (x, np.zeros(300, f)), {1: stencilled}),
        Case(early_return, 10, 32, (x, np.zeros(300, f)), {1: np.where(x < 0, -x, np.sqrt(np.abs(x)))}),
        Case(collatz, 4, 32, (n, np.zeros(100, np.int64)), {1: np.array([steps_of(v) for v in n])}),
        Case(skipping, 2, 32, (table, np.zeros(64, np.int64)), {1: np.array([skipped(r) for r in table])}),
        Case(lane_dependent_loops, 3, 32, (np.zeros(96, np.int64),), {0: np.array(lanes)}),
        Case(with_device_functions, 2, 32, (x[:64].copy(), np.zeros(64, f)), {1: np.clip(x[:64], -0.5, 0.5)}),
        Case(closure(3), 2, 32, (i64, np.zeros(64, np.int64)), {1: i64 * 3}),
        Case(
            three_dimensions, (2, 3, 2), (4, 2, 2), (np.zeros((3, 5, 7)),),
            {0: shapes[0] * 100 + shapes[1] * 10 + shapes[2]},
        ),
        Case(dynamic_shared, 2, 32, (x[:64].copy(), np.zeros(64, f)), {1: x[:64].reshape(2, 32)[:, ::-1].ravel()}, 128),
        Case(
            local_polynomial, 2, 32, (x[:64].astype(np.float64), np.zeros(64)),
            {1: np.polyval([4, 3, 2, 1], x[:64].astype(np.float64))},
        ),
        Case(
            integers, 2, 32, (i64, j64, np.zeros((64, 6), np.int64)),
            {2: np.stack(
                [i64 // j64, i64 % j64, (i64 << 3) ^ (j64 >> 1), (i64 & j64) | 5, ~i64, abs(i64) + (i64 > j64)], 1
            )},
        ),
        Case(narrow_types, 2, 32, (n[:64], np.zeros(64, np.int64)), {1: n[:64] + (n[:64] * 2654435761) % 1000}),
        Case(type_changes, 2, 32, (x[:64].copy(), np.zeros(64)), {1: np.where(x[:64] > 0, 1.25, 0.5)}),
        Case(swap, 2, 32, (pairs, np.zeros((64, 2), f)), {1: np.sort(pairs, axis=1)}),
        Case(short_circuit, 10, 32, (x, np.zeros(320, np.int64)), {1: flags}),
        Case(handshake, 1, 64, (x[:32].copy(), np.zeros(32, f)), {1: x[:32] ** 2}),
        Case(
            last_block, 6, 64,
            (i64[:6].copy(), np.zeros(6, np.int64), np.zeros(1, np.int32), np.zeros(1, np.int64)),
            {3: np.array([2 * i64[:6].sum()])},
        ),
        Case(halves_by_role, 1, THREADS, (x[:32].copy(), np.zeros(32, f)), {1: 3 * x[:32] + 3}),
    ]  # fmt: skip
