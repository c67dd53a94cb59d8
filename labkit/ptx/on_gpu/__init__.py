"""The machine code of `labkit.ptx`: intrinsics of numba-cuda, registered by importing this package."""

from labkit.ptx.on_gpu import (
    barriers,
    copies,
    early,
    formats,
    matrices,
    shared_memory,
    tensor_copies,
    vectors,
    warpgroups,
)

__all__ = [
    "barriers",
    "copies",
    "early",
    "formats",
    "matrices",
    "shared_memory",
    "tensor_copies",
    "vectors",
    "warpgroups",
]
