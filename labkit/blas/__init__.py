"""BLAS levels 1 and 2 in float32: one step per operation, in the ladders "level1" and "level2".

>>> from labkit.blas import dot
>>> dot.launch(x, y, out)
"""

from labkit.blas.problem import dot_bound, dot_oracle, gemv_bound, gemv_oracle
from labkit.ladder import ladder
from labkit.parts import sums

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

copy, axpy, dot, nrm2 = ladder("blas", "level1")
gemv, gemv_t = ladder("blas", "level2")
