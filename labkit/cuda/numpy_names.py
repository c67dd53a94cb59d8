"""A name that numba-cuda 0.30 reads while it is loaded, and that NumPy 2.5 removed.

`numpy.row_stack` was another name of `numpy.vstack` (NumPy 2.5 release notes, "Expired deprecations"). This module
defines it while numba-cuda's table of NumPy functions is loaded, and deletes it afterwards.
"""

import numpy as np

if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack
    try:
        import numba.cuda.np.arrayobj  # noqa: F401
    finally:
        del np.row_stack
