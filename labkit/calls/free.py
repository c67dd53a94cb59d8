"""Gives back what calls keep."""

from labkit import cuda
from labkit.arrays import pool
from labkit.calls.call import forget


def free() -> None:
    """Gives the driver back all memory that is kept for later calls; waits for the GPU before.

    What plans of yours hold stays, and so does what captured graphs use. Compiled kernels stay, too. torch's cache is
    torch's: `torch.cuda.empty_cache()`.

    Examples
    --------
    >>> labkit.free()
    """
    forget()
    if cuda.on_gpu():
        pool.trim()
        cuda.current_context().deallocations.clear()
