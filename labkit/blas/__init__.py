"""BLAS level 1 and 2 in float32: a module an operation, with its kernel, and what results are held against."""

from labkit.blas import axpy, copy, dot, gemv, gemv_t, nrm2, sums
from labkit.blas.problem import dot_bound, dot_oracle, gemv_bound, gemv_oracle

__all__ = [
    "axpy",
    "copy",
    "dot",
    "dot_bound",
    "dot_oracle",
    "gemv",
    "gemv_bound",
    "gemv_oracle",
    "gemv_t",
    "nrm2",
    "sums",
]
