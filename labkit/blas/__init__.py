"""BLAS level 1 and 2 in float32: a step each, in the ladders "level1" and "level2".

>>> from labkit.blas import dot
>>> dot.launch(x, y, out)
"""

from labkit.ladder import ladder

copy, axpy, dot, nrm2 = ladder("blas", "level1")
gemv, gemv_t = ladder("blas", "level2")
