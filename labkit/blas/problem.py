"""What the operations compute, in float64; how far a result may be off; and what their arguments must be."""
import numpy as np


def check_vectors(length=None, **vectors):
    return next(iter(vectors.values())).shape[0]


def check_gemv(A, x, y):
    return A.shape
