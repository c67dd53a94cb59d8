"""`gemm.tune`: times the candidates for a product on this GPU and keeps the fastest for `gemm.multiply`."""

import numpy as np

from labkit import cuda
from labkit.calls.tuner import MAX_SETS, check_gpu, make_operand_sets, tune_sets
from labkit.gemm.interface.candidates import Candidate, find_format
from labkit.gemm.interface.product import Product

RANDOM_VALUES = 2**20  # larger operands repeat them


def tune(
    M: int,
    N: int,
    K: int,
    format: str = "bfloat16",
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    batches: int = 1,
    most: int = 16,
) -> dict[Candidate, float]:
    """Time the candidates for C = op(A) @ op(B) on this GPU, and keep the fastest for `multiply` and `plan`.

    Operands are random normal and row-major, in enough sets that none stays in L2. Compiling a candidate takes seconds.

    Parameters
    ----------
    M, N, K
        Rows and columns of C, and length of the sums.
    format
        Operands' format, such as float32, tf32, bfloat16 or float8_e4m3.
    transpose_a, transpose_b
        Options of `multiply`: kernels depend on the operands' memory order.
    batches
        Products per call, batches of both operands.
    most
        Greatest number of candidates to time, the most promising first.

    Returns
    -------
    Median time in ms of each candidate, the fastest first.

    Raises
    ------
    ValueError
        The format is unknown or not supported, or a size is not positive.
    RuntimeError
        There is no GPU, or none that multiplies such operands.
    """
    format = find_format(format)
    if min(M, N, K, batches, most) < 1:
        raise ValueError(f"sizes and numbers must be at least 1, and these are {M}, {N}, {K}, {batches} and {most}")
    check_gpu()
    batch = (batches,) if batches > 1 else ()
    shape_A, shape_B = (K, M) if transpose_a else (M, K), (N, K) if transpose_b else (K, N)
    operands = _operands(format, [(*batch, *sides) for sides in (shape_A, shape_B, (M, N))])
    return tune_sets(Product(transpose_a=transpose_a, transpose_b=transpose_b, format=format), operands, most)


def _operands(format, shapes) -> list[dict]:
    """Return sets of A, B and C, whose A and B together exceed L2."""
    rng = np.random.default_rng(0)
    values = format.encode(rng.standard_normal(RANDOM_VALUES))
    A, B = (np.resize(values, shape) for shape in shapes[:2])

    def make_set():
        C = cuda.device_array(shapes[2], format.result.dtype)
        return {"A": cuda.to_device(A), "B": cuda.to_device(B), "C": C}

    return make_operand_sets(A.nbytes + B.nbytes, make_set, MAX_SETS)
