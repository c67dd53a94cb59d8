"""Twenty kernels as programs for numba_cuda_mlir write them; those named `wrong_...` have a fault each."""

import math

import numpy as np
from numba_cuda_mlir import cuda, types

N = 64
TILE = 8
PADDED = TILE + 1
WEIGHTS = np.array([0.25, 0.5, 0.25], np.float32)


@cuda.jit
def vector_add(a, b, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i] = a[i] + b[i]


@cuda.jit
def wrong_vector_add(a, b, out):
    i = cuda.grid(1)
    out[i] = a[i] + b[i]


@cuda.jit
def stencil(x, out):
    weights = cuda.const.array_like(WEIGHTS)
    for i in range(cuda.grid(1) + 1, x.size - 1, cuda.gridsize(1)):
        out[i] = weights[0] * x[i - 1] + weights[1] * x[i] + weights[2] * x[i + 1]


@cuda.jit
def matmul(A, B, C):
    a = cuda.shared.array((TILE, TILE), types.float32)
    b = cuda.shared.array(shape=(TILE, TILE), dtype=types.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = types.float32(0)
    for k in range(0, A.shape[1], TILE):
        a[y, x] = A[row, k + x]
        b[y, x] = B[k + y, col]
        cuda.syncthreads()
        for j in range(TILE):
            total += a[y, j] * b[j, x]
        cuda.syncthreads()
    C[row, col] = total


@cuda.jit
def wrong_matmul(A, B, C):
    a = cuda.shared.array((TILE, TILE), types.float32)
    b = cuda.shared.array((TILE, TILE), types.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = types.float32(0)
    for k in range(0, A.shape[1], TILE):
        a[y, x] = A[row, k + x]
        b[y, x] = B[k + y, col]
        cuda.syncthreads()
        for j in range(TILE):
            total += a[y, j] * b[j, x]
    C[row, col] = total


@cuda.jit
def block_sum(x, out):
    s = cuda.shared.array(N, types.float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = N // 2
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, s[0])


@cuda.jit
def wrong_block_sum(x, out):
    s = cuda.shared.array(N, types.float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    if t < N // 2:
        cuda.syncthreads()
        s[t] += s[t + N // 2]
    if t == 0:
        out[0] = s[0]


@cuda.jit(device=True)
def warp_sum(value):
    offset = 16
    while offset > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
        offset //= 2
    return value


@cuda.jit
def warp_sums(x, out):
    total = warp_sum(x[cuda.grid(1)])
    if cuda.laneid == 0:
        out[cuda.grid(1) // cuda.warpsize] = total


@cuda.jit
def histogram(x, bins):
    local = cuda.shared.array(16, types.int32)
    t = cuda.threadIdx.x
    if t < 16:
        local[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(local, x[cuda.grid(1)], 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(bins, t, local[t])


@cuda.jit
def wrong_histogram(x, bins):
    bins[x[cuda.grid(1)]] += 1


@cuda.jit
def scan(x, out):
    s = cuda.shared.array(N, types.int32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    step = 1
    while step < N:
        cuda.syncthreads()
        value = s[t - step] if t >= step else 0
        cuda.syncthreads()
        s[t] += value
        step *= 2
    out[t] = s[t]


@cuda.jit
def transpose(x, out):
    tile = cuda.shared.array((TILE, PADDED), types.float32)
    bx, by = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile[ty, tx] = x[by + ty, bx + tx]
    cuda.syncthreads()
    out[bx + ty, by + tx] = tile[tx, ty]


@cuda.jit
def wrong_transpose(x, out):
    tile = cuda.shared.array((TILE, TILE), types.float32)
    bx, by = cuda.blockIdx.x * TILE, cuda.blockIdx.y * TILE
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile[ty, tx] = x[by + ty, bx + tx]
    out[bx + ty, by + tx] = tile[tx, ty]


@cuda.jit
def whole_grid(x):
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    for _ in range(2):
        value = x[(i + 1) % x.size]
        grid.sync()
        x[i] = value
        grid.sync()


@cuda.jit
def vectors(x, out):
    i = cuda.grid(1)
    v = cuda.float4(x[i], 1, 2, 3)
    w = cuda.float32x2(v.x, v.w)
    out[i] = w.x * w.y + v.z


@cuda.jit
def private(x, out):
    powers = cuda.local.array(4, types.float32)
    i = cuda.grid(1)
    powers[0] = 1
    for k in range(1, 4):
        powers[k] = powers[k - 1] * x[i]
    out[i] = powers[3]


@cuda.jit("void(float32, float32[:], float32[:])")
def declared(factor, x, out):
    i = cuda.grid(1)
    out[i] = cuda.libdevice.sqrtf(x[i]) * factor + math.exp(-x[i])


@cuda.jit
def votes(x, out):
    i = cuda.grid(1)
    ballot = cuda.ballot_sync(0xFFFFFFFF, x[i] > 3)
    out[i] = cuda.popc(ballot) + cuda.syncthreads_count(types.int32(x[i] > 3))


@cuda.jit
def find_max(x, best):
    cuda.atomic.max(best, 0, x[cuda.grid(1)])


@cuda.jit
def dynamic(x, out):
    s = cuda.shared.array(0, types.float32)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    out[t] = s[t ^ 1]


x = np.linspace(0, 9, 4 * N).astype(np.float32)
matrix = x.reshape(16, 16).copy()
bins = np.arange(4 * N) % 16


def show(name, *results):
    print(name, *(np.round(np.asarray(result, np.float64).sum(), 3) for result in results))


def launch(kernel, *arguments, grid=4, block=N, **options):
    kernel[grid, block, *options.values()](*arguments)
    show(kernel.__name__, *(a.copy_to_host() if isinstance(a, type(device)) else a for a in arguments[-1:]))


device = cuda.to_device(x)
for add in vector_add, wrong_vector_add:
    launch(add, device, device, cuda.device_array_like(device), grid=5)
launch(stencil, x, np.zeros_like(x))
for multiply in matmul, wrong_matmul:
    launch(multiply, matrix, matrix, np.zeros_like(matrix), grid=(2, 2), block=(TILE, TILE))
for reduction in block_sum, wrong_block_sum:
    launch(reduction, x, np.zeros(1, np.float32))
launch(warp_sums, x, np.zeros(8, np.float32))
for count in histogram, wrong_histogram:
    launch(count, bins, np.zeros(16, np.int32))
launch(scan, bins[:N].astype(np.int32), np.zeros(N, np.int32), grid=1)
for turn in transpose, wrong_transpose:
    launch(turn, matrix, np.zeros_like(matrix), grid=(2, 2), block=(TILE, TILE))
launch(whole_grid, x.copy())
for elementwise in vectors, private, votes:
    launch(elementwise, x, np.zeros_like(x))
launch(declared, 2, x, np.zeros_like(x))
launch(find_max, x, np.zeros(1, np.float32))
launch(dynamic, x[:N].copy(), np.zeros(N, np.float32), grid=1, stream=0, shared=4 * N)
