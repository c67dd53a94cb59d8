"""Stream-ordered memory of the GPU: the driver allocates and releases it as the stream's work reaches that point.

Memory released on a stream serves the next request on it; the driver passes it to other streams when that is safe.
During a capture, memory belongs to the graph, which allocates and releases it in each replay: no two graphs share any.
The driver distinguishes streams by more than their handles. It never confuses the per-thread default streams of two
threads, or a new stream with the handle of a destroyed one.
(CUDA driver API, "Stream Ordered Memory Allocator", cuMemAllocFromPoolAsync.)
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from threading import Lock
from types import SimpleNamespace
from typing import Any

import numpy as np

from labkit.arrays.driver import bindings, current_device
from labkit.arrays.views import View, byte_strides
from labkit.cuda.driver_calls import error_class

_lock = Lock()
_pools: dict = {}  # by the number of the GPU
_limit_bytes = 2**30


def allocate(size_bytes: int, stream: int) -> int:
    """Allocate memory for work on a stream, by the driver's handle of it, and return the address.

    Raise MemoryError if the GPU has too little memory left.
    """
    binding, _ = bindings()
    success, full = binding.CUresult.CUDA_SUCCESS, binding.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    status, address = binding.cuMemAllocFromPoolAsync(size_bytes, _pool(), binding.CUstream(stream))
    if status == full and empty_caches_of_others():
        status, address = binding.cuMemAllocFromPoolAsync(size_bytes, _pool(), binding.CUstream(stream))
    if status == success:
        return int(address)
    if status == full:
        raise MemoryError(f"the GPU has no {size_bytes:,} bytes left for a workspace: free arrays, or use smaller ones")
    raise RuntimeError(f"the driver refuses {size_bytes:,} bytes of workspace: {status.name}")


def release(address: int, stream: int) -> None:
    """Release memory after the current work of the stream."""
    binding, _ = bindings()
    binding.cuMemFreeAsync(address, binding.CUstream(stream))


def clear(address: int, size_bytes: int, stream: int) -> None:
    """Set bytes to 0 after the current work of the stream."""
    binding, _ = bindings()
    (status,) = binding.cuMemsetD8Async(address, 0, size_bytes, binding.CUstream(stream))
    if status:
        raise RuntimeError(f"the driver refuses to clear memory: {status.name}")


class PoolBlock:
    """Memory at `address` for work on a stream."""

    def __init__(self, size_bytes: int, stream: int):
        self.address, self._stream = allocate(size_bytes, stream), stream

    def release(self) -> None:
        """Release the memory after the current work of the stream."""
        release(self.address, self._stream)


@contextmanager
def on_stream(stream: int) -> Iterator[SimpleNamespace]:
    """Yield memory for a `Workspace` whose launches run on the stream within the context; release it after them."""
    addresses = []

    def device_array(shape, dtype):
        shape, dtype = shape if isinstance(shape, tuple) else (shape,), np.dtype(dtype)
        addresses.append(allocate(max(1, prod(shape) * dtype.itemsize), stream))
        return View(None, shape, byte_strides(shape, dtype), dtype, addresses[-1])

    def to_device(zeros):
        array = device_array(zeros.shape, zeros.dtype)
        clear(array.address, zeros.nbytes, stream)
        return array

    try:
        yield SimpleNamespace(device_array=device_array, to_device=to_device)
    finally:
        for address in addresses:
            release(address, stream)


# --- cached memory ---------------------------------------------------------------------------------


def workspace_limit(size_bytes: int | None = None) -> int:
    """Return the limit of workspace, in bytes, that each GPU keeps between calls; `size_bytes` sets it.

    A call that needs more gets it; the driver gets the excess back at the next synchronisation. Workspace for torch
    tensors comes from torch's allocator, which has rules of its own. The default is 1 GiB.

    Raises
    ------
    ValueError
        `size_bytes` is no integer from 0 on.
    """
    global _limit_bytes
    if size_bytes is not None:
        if isinstance(size_bytes, bool) or not isinstance(size_bytes, int | np.integer) or size_bytes < 0:
            raise ValueError(f"size_bytes is {size_bytes!r}: give a whole number of bytes, 0 or more")
        with _lock:
            _limit_bytes = int(size_bytes)
            for pool in _pools.values():
                _set_limit(pool)
    return _limit_bytes


def reserved_bytes() -> int:
    """Return the bytes that the pools of all GPUs hold, in use or not; 0 in the simulator."""
    if not _pools:
        return 0
    binding, driver = bindings()
    name = binding.CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
    return sum(int(driver.cuMemPoolGetAttribute(pool, name)) for pool in _pools.values())


def trim() -> None:
    """Wait for the GPU, and return unused memory to the driver."""
    if not _pools:
        return
    _, driver = bindings()
    driver.cuCtxSynchronize()
    for pool in _pools.values():
        driver.cuMemPoolTrimTo(pool, 0)


def empty_caches_of_others() -> bool:
    """Let torch and CuPy, if loaded, return cached memory to the driver; return whether one of them is loaded."""
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if cupy is not None:
        cupy.get_default_memory_pool().free_all_blocks()
    return torch is not None or cupy is not None


def retry_when_full(allocate: Callable[[], Any]) -> Any:
    """Return the result of `allocate`; if the GPU is full, empty the caches of torch and CuPy and try again."""
    try:
        return allocate()
    except (MemoryError, error_class()):
        if not empty_caches_of_others():
            raise
    return allocate()


def _pool():
    device = current_device()
    if device not in _pools:
        with _lock:
            if device not in _pools:
                _pools[device] = _make_pool(device)
    return _pools[device]


def _make_pool(device):
    binding, driver = bindings()
    properties = binding.CUmemPoolProps()
    properties.allocType = binding.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = binding.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = device
    pool = driver.cuMemPoolCreate(properties)
    _set_limit(pool)
    return pool


def _set_limit(pool):
    binding, driver = bindings()
    name = binding.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    driver.cuMemPoolSetAttribute(pool, name, binding.cuuint64_t(_limit_bytes))
