"""Kernels of numba_cuda_mlir's own functions, as programs for it write them."""

import numpy as np
from numba_cuda_mlir import cuda, types
from numba_cuda_mlir.cuda import experimental, vector

N = 64


@cuda.jit
def hand_over(x, out):
    t, warp = cuda.threadIdx.x, cuda.intrin.warp_idx()
    s = cuda.shared_array(N, cuda.float32)
    barriers = cuda.shared_array(1, cuda.uint64)
    full = types.ptr(barriers)
    if warp == 0:
        if cuda.intrin.elect_sync():
            cuda.intrin.mbarrier_init(full, 32)
        cuda.intrin.fence_mbarrier_init()
    cuda.intrin.barrier()
    if warp == 0:
        s[t], s[t + 32] = x[t], x[t + 32]
        cuda.intrin.mbarrier_arrive_expect_tx(full, 0)
    else:
        cuda.intrin.mbarrier_try_wait(full, 0)
        out[t - 32] = s[t - 32] + s[t]


@cuda.jit
def leaders(out):
    if cuda.intrin.elect_sync_mask(-1):
        out[cuda.threadIdx.x] += 1
    if cuda.laneid > 4:
        is_leader = cuda.intrin.elect_sync_mask(0xFFFFFFE0)
        if is_leader:
            out[cuda.threadIdx.x] += 2


@cuda.jit
def in_vectors(x, out):
    i = 4 * cuda.grid(1)
    v = cuda.vector.load(x, i, 4, 16)
    w = vector.load(x, i + 2, 2, 8)
    v = cuda.float32x4(v.w, v.z, v.y + w.x, v.x)
    vector.store(out, i, v, 16)


@cuda.jit
def texts(x, out):
    s = cuda.shared.array(32, types.float32)
    b = cuda.shared.array(1, types.uint64)
    t = cuda.threadIdx.x
    s[t] = experimental.inline_ptx("ex2.approx.ftz.f32  %0, %1;", "=f", x[t], "f", x[t])
    if t == 0:
        experimental.inline_ptx("mbarrier.init.b64 [%0], %1;", "C", types.ptr(b), "r", 32)
        experimental.inline_ptx("fence.mbarrier_init.release.cluster;")
    experimental.inline_ptx("bar.sync 3, 32;")
    experimental.inline_ptx("mbarrier.arrive.b64 _, [%0];", "C", types.ptr(b))
    experimental.intrin.mbarrier_try_wait(types.ptr(b), 0)
    experimental.inline_ptx("bar.sync %0, %1;", "r", 4, "r", 32)
    out[t] = s[31 - t]


@cuda.jit
def statements(out):
    t = cuda.threadIdx.x
    b = cuda.shared.array(1, types.uint64)
    experimental.inline_ptx("griddepcontrol.wait;")
    experimental.inline_ptx("cp.async.commit_group;")
    experimental.inline_ptx("cp.async.wait_group 0;")
    experimental.inline_ptx("fence.proxy.async.shared::cta;")
    experimental.inline_ptx("cp.async.bulk.commit_group;")
    experimental.inline_ptx("cp.async.bulk.wait_group.read 0;")
    if t == 0:
        experimental.inline_ptx("mbarrier.init.b64 [%0], %1;", "C", types.ptr(b), "r", 2 * 32)
    experimental.inline_ptx("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;")
    experimental.inline_ptx("mbarrier.arrive.expect_tx.b64 _, [%0], %1;", "C", types.ptr(b), "r", 0)
    cuda.intrin.mbarrier_try_wait(types.ptr(b), 0)
    if cuda.intrin.warp_idx() == 0:
        out[t] = 1
        experimental.inline_ptx("bar.arrive 5, 64;")
        experimental.inline_ptx("bar.arrive %0, %1;", "r", 6, "r", 64)
    else:
        experimental.inline_ptx("bar.sync 5, 64;")
        experimental.inline_ptx("bar.sync %0, %1;", "r", 6, "r", 64)
        out[t] = out[t - 32]
    experimental.inline_ptx("griddepcontrol.launch_dependents;")


x = np.arange(N, dtype=np.float32)
out = np.zeros(32, np.float32)
hand_over[1, N](x, out)
print(out[:3])
out[:] = 0
leaders[1, 32](out)
print(out.nonzero()[0], out[[0, 5]])
y = np.zeros_like(x)
in_vectors[1, N // 4](x, y)
print(y[:8])
texts[1, 32](x % 8, out)
print(out[:4])
y[:] = 0
statements[1, N](y)
print(y[30:34])
