"""Times the ways to compute a product on this GPU, and keeps the fastest for `gemm.multiply`."""

from math import ceil

import numpy as np
from tqdm.auto import tqdm

from labkit import cuda, device, tuning
from labkit.arrays.workspace import Workspace
from labkit.formats import format_named
from labkit.gemm.interface import product
from labkit.gemm.interface.candidates import Candidate, Shape, candidates, question

MOST_SETS = 128  # of operands; so many of a product so small that they all fit in L2 may well be found there
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
        There is no such format, or a size is not positive.
    RuntimeError
        There is no GPU, or none that multiplies such operands.
    """
    format = format_named(format)
    if min(M, N, K, batches, most) < 1:
        raise ValueError(f"sizes and numbers must be at least 1, and these are {M}, {N}, {K}, {batches} and {most}")
    if device.current().kind != "gpu":
        raise RuntimeError("tuning times kernels on a GPU, and none is in use here; see `python -m labkit doctor`")
    batch = (batches,) if batches > 1 else ()
    of_A, of_B = (K, M) if transpose_a else (M, K), (N, K) if transpose_b else (K, N)
    operands = _operands(format, [(*batch, *sides) for sides in (of_A, of_B, (M, N))])
    arranged = product.arrangement(*operands[0], transpose_a, transpose_b)
    shape = Shape.of(*arranged)
    stream, workspace, launches = cuda.stream(), Workspace(), {}
    for candidate in tqdm(candidates(format, shape)[:most], desc=f"{format} {shape}", unit="kernel"):
        options = {"transpose_a": transpose_a, "transpose_b": transpose_b, "format": format, "candidate": candidate}
        plans = [product.planned(*arrays, **options, stream=stream, workspace=workspace) for arrays in operands]
        launches[candidate] = [_launch(plan) for plan in plans]
        launches[candidate][0](stream)
        stream.synchronize()
    ranked = tuning.tune("gemm", question(format, shape, *arranged), launches)
    product.forget()
    return ranked


def _launch(plan):
    return lambda stream: plan(stream=stream)


def _operands(format, shapes) -> list[tuple]:
    """Sets of A, B and C, A and B of all sets together larger than L2."""
    rng = np.random.default_rng(0)
    values = format.encode(rng.standard_normal(RANDOM_VALUES))
    A, B = (np.resize(values, shape) for shape in shapes[:2])
    l2_bytes = cuda.get_current_device().L2_CACHE_SIZE
    sets = min(MOST_SETS, max(1, ceil(2 * l2_bytes / (A.nbytes + B.nbytes))))
    return [
        (cuda.to_device(A), cuda.to_device(B), cuda.device_array(shapes[2], format.result.dtype)) for _ in range(sets)
    ]
