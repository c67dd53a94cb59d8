"""Batched products by one launch: plane z of the grid multiplies matrices z by a ladder's kernel."""

from functools import cache

from labkit import cuda, specialise


@cuda.jit(device=True)
def multiply(A, B, C):
    """Placeholder for a step's kernel."""
    C[0, 0] = A[0, 0] * B[0, 0]


@cuda.jit
def multiply_batches(A, B, C):
    z = cuda.blockIdx.z
    multiply(A[z], B[z], C[z])


@cuda.jit
def multiply_A_by_batches(A, B, C):
    z = cuda.blockIdx.z
    multiply(A, B[z], C[z])


@cache
def batched_kernel(kernel, is_A_shared: bool = False):
    """Return a step's kernel for batches in C order: C[z] = A[z] @ B[z], or A @ B[z] where all share one matrix A."""
    return specialise(
        multiply_A_by_batches if is_A_shared else multiply_batches, multiply=cuda.jit(device=True)(kernel.py_func)
    )
