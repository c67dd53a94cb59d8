"""Release of the memory that calls cache."""

from labkit import cuda
from labkit.arrays import pool
from labkit.calls.call import forget


def free() -> None:
    """Return all memory that is cached for later calls to the driver, after waiting for the GPU.

    Memory of your plans and of captured graphs stays, as do compiled kernels. For torch's own cache, call
    `torch.cuda.empty_cache()`.

    Examples
    --------
    >>> labkit.free()
    """
    forget()
    if cuda.on_gpu():
        pool.trim()
        cuda.current_context().deallocations.clear()
