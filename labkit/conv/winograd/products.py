"""The products between the transforms: a matrix product for each place in a tile, all by one launch.

They are the last step of gemm/fp32, with blocks of 128 x 256 outputs; or of 64 x 256, of which an SM holds two, where
there are few filters, or where the last blocks would otherwise leave SMs idle.
"""

from labkit import cuda, specialise
from labkit.gemm.fp32 import s10_tuned as tuned
from labkit.gemm.interface.planes import in_planes
from labkit.ladder import Launch

LOW = 64  # rows of the smaller block
OF_HALF_THE_ROWS = {
    "BM": LOW,
    "THREADS": tuned.THREADS // 2,
    "A_STEP": tuned.A_STEP // 2,
    "B_STEP": tuned.B_STEP // 2,
    "B_BYTE": tuned.B_BYTE // 2,
}
low = specialise(tuned.tuned, **OF_HALF_THE_ROWS)
LOW_SHARED_BYTES = tuned.SHARED_BYTES - tuned.B_BYTE // 2


def products(U, V, M) -> Launch:
    """The launch of M[i] = U[i] @ V[i] for all i."""
    count, rows, cols = M.shape
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    across, down, down_low = -(-cols // tuned.BN), -(-rows // tuned.BM), -(-rows // LOW)
    if waves(across * down_low * count, 2 * sms) < waves(across * down * count, sms):
        grid, block = (across, down_low, count), (32, tuned.WARPS_X)
        return Launch(in_planes(low), grid, block, (U, V, M), LOW_SHARED_BYTES)
    grid, block = (across, down, count), (32, tuned.WARPS_X * tuned.WARPS_Y)
    return Launch(in_planes(tuned.tuned), grid, block, (U, V, M), tuned.SHARED_BYTES)


def waves(blocks: int, at_once: int) -> int:
    """How often a GPU that runs so many blocks at once is filled."""
    return -(-blocks // at_once)
