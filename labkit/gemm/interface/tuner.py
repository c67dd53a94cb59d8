"""`gemm.tune`: times the candidates for a product on this GPU and keeps the fastest for `gemm.multiply`."""

from functools import partial

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
    if most < 1:
        raise ValueError(f"the number of candidates must be at least 1, and it is {most}")
    operation, operands = bind_product(
        M, N, K, format, transpose_a=transpose_a, transpose_b=transpose_b, batches=batches
    )
    check_gpu()
    read_bytes = operands["A"].nbytes + operands["B"].nbytes
    make_set = partial(_to_device, operands)
    return tune_sets(operation, make_operand_sets(read_bytes, make_set, MAX_SETS), most)


def bind_product(
    M: int, N: int, K: int, format: str, *, transpose_a: bool, transpose_b: bool, batches: int
) -> tuple[Product, dict[str, np.ndarray]]:
    """Return the operation of a product and operands for it; parameters and errors are those of `tune`."""
    number_format = find_format(format)
    if min(M, N, K, batches) < 1:
        raise ValueError(f"sizes and numbers must be at least 1, and these are {M}, {N}, {K} and {batches}")
    batch = (batches,) if batches > 1 else ()
    shape_A, shape_B = (K, M) if transpose_a else (M, K), (N, K) if transpose_b else (K, N)
    values = number_format.encode(np.random.default_rng(0).standard_normal(RANDOM_VALUES))
    operands = {name: np.resize(values, (*batch, *sides)) for name, sides in (("A", shape_A), ("B", shape_B))}
    operands["C"] = np.empty((*batch, M, N), number_format.result.dtype)
    return Product(transpose_a=transpose_a, transpose_b=transpose_b, format=number_format), operands


def _to_device(operands):
    return {name: cuda.to_device(X) for name, X in operands.items()}
