"""numba-cuda 0.30 beside NumPy 2.5, which removed a name that numba-cuda reads when it is loaded.

`numpy.row_stack` was another name of `numpy.vstack` (NumPy 2.5 release notes, "Expired deprecations"). It is there
while numba-cuda's table of NumPy functions is loaded, and gone afterwards.
"""

import numpy as np

if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack
    try:
        import numba.cuda.np.arrayobj  # noqa: F401
    finally:
        del np.row_stack
