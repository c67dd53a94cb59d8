"""Many products by one launch: in each plane of the grid along z, a step's kernel takes the matrices of that number."""

from functools import cache

from labkit import cuda, specialise


@cuda.jit(device=True)
def of_matrices(A, B, C):
    """Stands for the kernel of a step."""
    C[0, 0] = A[0, 0] * B[0, 0]


@cuda.jit
def of_batches(A, B, C):
    z = cuda.blockIdx.z
    of_matrices(A[z], B[z], C[z])


@cuda.jit
def beside_batches(A, B, C):
    z = cuda.blockIdx.z
    of_matrices(A, B[z], C[z])


@cache
def in_planes(kernel, beside: bool = False):
    """The kernel for batches in C order: C[z] = A[z] @ B[z], z being a block's place along the grid's third axis.

    Where A is one matrix `beside` the batches, C[z] = A @ B[z].
    """
    return specialise(beside_batches if beside else of_batches, of_matrices=cuda.jit(device=True)(kernel.py_func))
