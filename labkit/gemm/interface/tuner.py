"""Times the ways to compute a product on this GPU, and keeps the fastest for `gemm.multiply`."""

import warnings
from functools import partial
from math import ceil

import numpy as np
from tqdm.auto import tqdm

from labkit import cuda, device, timing
from labkit.arrays.views import turned
from labkit.formats import FORMATS
from labkit.gemm.interface import choices
from labkit.gemm.interface.candidates import Candidate, Shape, candidates
from labkit.gemm.interface.carry_out import carry_out
from labkit.gemm.interface.precisions import PRECISIONS, Precision

MOST_SETS = 128  # of operands; so many of a product so small that they all fit in L2 may well be found there
RANDOM_VALUES = 2**20  # which repeat in larger operands


def tune(
    M: int, N: int, K: int, dtype: str = "bfloat16", *, batches: int = 1, most: int = 16
) -> dict[Candidate, float]:
    """Times the candidates for C = A @ B on this GPU, and keeps the fastest for `multiply`, in this process and later.

    Operands are random normal, and there are so many sets of them that none is found in L2. Each candidate is compiled
    before, which takes seconds; a progress bar shows how far that is.

    Parameters
    ----------
    M, N, K
        Rows and columns of C, and the sum's length.
    dtype
        What is multiplied: float32, tf32, bfloat16, float16 or float8_e4m3.
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
        There is no such precision, or a size is not positive.
    RuntimeError
        There is no GPU, or none that multiplies such operands.
    """
    if dtype not in PRECISIONS:
        raise ValueError(f"there is no precision {dtype!r}; there are {', '.join(PRECISIONS)}")
    if min(M, N, K, batches, most) < 1:
        raise ValueError(f"sizes and numbers must be at least 1, and these are {M}, {N}, {K}, {batches} and {most}")
    if device.current().kind != "gpu":
        raise RuntimeError("tuning times kernels on a GPU, and kernels run in the simulator here; see `labkit doctor`")
    precision, shape = PRECISIONS[dtype], Shape(M, N, K, batches)
    operands = _operands(precision, shape)
    stream = cuda.stream()
    launches = {}
    for candidate in tqdm(candidates(precision, shape)[:most], desc=f"{dtype} {shape}", unit="kernel"):
        launches[candidate] = [partial(_launch, candidate, precision, arrays) for arrays in operands]
        launches[candidate][0](stream)
        stream.synchronize()
    times_ms = timing.gpu_times_ms(launches)
    ranked = dict(sorted(times_ms.items(), key=lambda entry: entry[1]))
    try:
        choices.remember(precision, shape, next(iter(ranked)))
    except OSError as error:
        warnings.warn(
            f"the choice holds for this process alone, since its file cannot be written: {error}", stacklevel=2
        )
    return ranked


def _launch(candidate, precision, arrays, stream):
    carry_out(candidate, precision, *arrays, 1.0, 0.0, stream)


def _operands(precision: Precision, shape: Shape) -> list[tuple]:
    """Sets of left, right and C, together larger than L2; each lies as the ladder's kernels take it."""
    M, N, K, batches = shape
    batch = (batches,) if batches > 1 else ()
    rng = np.random.default_rng(0)
    values = FORMATS[precision.name].encode(rng.standard_normal(RANDOM_VALUES))
    along_k = precision.ladder == "tensor"
    left, right = np.resize(values, (*batch, M, K)), np.resize(values, (*batch, N, K) if along_k else (*batch, K, N))
    l2_bytes = cuda.get_current_device().L2_CACHE_SIZE
    sets = min(MOST_SETS, max(1, ceil(2 * l2_bytes / (left.nbytes + right.nbytes))))

    def one():
        on_gpu = cuda.to_device(right)
        C = cuda.device_array((*batch, M, N), precision.result)
        return cuda.to_device(left), on_gpu if along_k else turned(on_gpu), C

    return [one() for _ in range(sets)]
