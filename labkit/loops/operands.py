"""Check of the loops' operands before the first access, since compiled loops check nothing."""

import numpy as np


def check_operands(A, B, C) -> None:
    """Raise TypeError or ValueError, in a sentence, unless C = A @ B fits the three float32 matrices."""
    for name, X in (("A", A), ("B", B), ("C", C)):
        if not isinstance(X, np.ndarray):
            raise TypeError(f"{name} is a {type(X).__name__}, not a NumPy array: make it one with np.array")
        if X.dtype != np.float32 or X.ndim != 2 or X.size == 0:
            raise ValueError(
                f"{name} holds {X.dtype} in the shape {X.shape}, but these loops multiply "
                f"float32 matrices that are not empty: use {name}.astype(np.float32) and reshape it"
            )
    if A.shape[1] != B.shape[0]:
        raise ValueError(f"A is {A.shape} and B is {B.shape}: the columns of A must be as many as the rows of B")
    if C.shape != (A.shape[0], B.shape[1]):
        raise ValueError(f"C is {C.shape}, but A @ B is {(A.shape[0], B.shape[1])}: make C of that shape")
