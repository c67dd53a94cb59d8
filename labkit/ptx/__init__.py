"""PTX instructions that numba.cuda has no name for, as functions of the kernel language.

A kernel calls them as it calls `cuda`'s functions, and they run on both machines: on a GPU each is an intrinsic of
numba-cuda (`ptx.on_gpu`), and what each does to the lanes of a warp is registered with the simulator.

>>> from labkit import cuda, ptx
>>> @cuda.jit
... def copy(x, out):
...     i = 4 * cuda.grid(1)
...     if i < x.size:
...         a, b, c, d = ptx.load4(x, i)
...         ptx.store4(out, i, a, b, c, d)

One file a family: accesses of several elements (`vectors`), asynchronous copies (`copies`), tensor cores of a warp
(`matrices`) and of a warpgroup (`warpgroups`), barriers (`barriers`), tiles moved by the copy engine (`tensor_copies`),
and launches that overlap (`launches`).
"""

from labkit.ptx.barriers import (
    barrier_sync,
    cluster_rank,
    cluster_sync,
    fence_async,
    mbarrier_arrive,
    mbarrier_arrive_at,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_init_fence,
    mbarrier_wait,
)
from labkit.ptx.copies import cp_async, cp_async_commit, cp_async_wait
from labkit.ptx.formats import BF16, E4M3, FP16, INT8, TF32, pack2, to_tf32, unpack2
from labkit.ptx.launches import launch_release, launch_wait
from labkit.ptx.matrices import (
    ldmatrix2,
    ldmatrix2_transposed,
    ldmatrix4,
    ldmatrix4_transposed,
    mma,
    stmatrix4,
)
from labkit.ptx.shared_memory import shared_array
from labkit.ptx.tensor_copies import (
    TensorMap,
    tma_load,
    tma_load_multicast,
    tma_prefetch,
    tma_store,
    tma_store_commit,
    tma_store_wait,
)
from labkit.ptx.vectors import load2, load4, store2, store4
from labkit.ptx.warpgroups import (
    K_MAJOR,
    MN_MAJOR,
    setmaxnreg_dec,
    setmaxnreg_inc,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_major,
    wgmma_registers,
    wgmma_registers_major,
    wgmma_wait,
)

__all__ = [
    "BF16",
    "E4M3",
    "FP16",
    "INT8",
    "K_MAJOR",
    "MN_MAJOR",
    "TF32",
    "TensorMap",
    "barrier_sync",
    "cluster_rank",
    "cluster_sync",
    "cp_async",
    "cp_async_commit",
    "cp_async_wait",
    "fence_async",
    "launch_release",
    "launch_wait",
    "ldmatrix2",
    "ldmatrix2_transposed",
    "ldmatrix4",
    "ldmatrix4_transposed",
    "load2",
    "load4",
    "mbarrier_arrive",
    "mbarrier_arrive_at",
    "mbarrier_expect",
    "mbarrier_init",
    "mbarrier_init_fence",
    "mbarrier_wait",
    "mma",
    "pack2",
    "setmaxnreg_dec",
    "setmaxnreg_inc",
    "shared_array",
    "stmatrix4",
    "store2",
    "store4",
    "tma_load",
    "tma_load_multicast",
    "tma_prefetch",
    "tma_store",
    "tma_store_commit",
    "tma_store_wait",
    "to_tf32",
    "unpack2",
    "wgmma",
    "wgmma_commit",
    "wgmma_fence",
    "wgmma_major",
    "wgmma_registers",
    "wgmma_registers_major",
    "wgmma_wait",
]
