"""Times the ways to compute a product on this GPU, and keeps the fastest for `gemm.multiply`."""

import numpy as np

from labkit import cuda
from labkit.calls.tuner import MAX_SETS, check_gpu, make_operand_sets, tune_sets
from labkit.gemm.interface.candidates import Candidate, multiplied_format
from labkit.gemm.interface.product import Product

RANDOM_VALUES = 2**20  # which repeat in larger operands


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
    """Times the candidates for C = op(A) @ op(B) on this GPU, and keeps the fastest for `multiply` and `plan`.

    Operands are random normal and lie by rows, and there are so many sets of them that none is found in L2. Each
    candidate is compiled before, which takes seconds; a progress bar shows how far that is.

    Parameters
    ----------
    M, N, K
        Rows and columns of C, and the sum's length.
    format
        What is multiplied: float32, tf32, bfloat16, float16 or float8_e4m3.
    transpose_a, transpose_b
        As for `multiply`: how the memory of operands runs matters to the kernels.
    batches
        How many such products `multiply` gets at once, in batches of both operands.
    most
        How many candidates are timed, the most promising ones.

    Returns
    -------
    The median time in ms of each candidate, the fastest first.

    Raises
    ------
    ValueError
        There is no such format, it is not multiplied, or a size is not positive.
    RuntimeError
        There is no GPU, or none that multiplies such operands.
    """
    format = multiplied_format(format)
    if min(M, N, K, batches, most) < 1:
        raise ValueError(f"sizes and numbers must be at least 1, and these are {M}, {N}, {K}, {batches} and {most}")
    check_gpu()
    batch = (batches,) if batches > 1 else ()
    of_A, of_B = (K, M) if transpose_a else (M, K), (N, K) if transpose_b else (K, N)
    operands = _operands(format, [(*batch, *sides) for sides in (of_A, of_B, (M, N))])
    return tune_sets(Product(transpose_a=transpose_a, transpose_b=transpose_b, format=format), operands, most)


def _operands(format, shapes) -> list[dict]:
    """Sets of A, B and C, A and B of all sets together larger than L2."""
    rng = np.random.default_rng(0)
    values = format.encode(rng.standard_normal(RANDOM_VALUES))
    A, B = (np.resize(values, shape) for shape in shapes[:2])
    C = shapes[2], format.result.dtype
    return make_operand_sets(
        A.nbytes + B.nbytes,
        lambda: {"A": cuda.to_device(A), "B": cuda.to_device(B), "C": cuda.device_array(*C)},
        MAX_SETS,
    )
