"""Batched matrix products between the Winograd transforms: one per element of a tile, all in one launch.

The kernel is the last step of gemm/fp32. Its blocks of 128 x 256 outputs run one per SM. Blocks of half the rows or
columns run two per SM; they are chosen if large blocks would exceed the matrices or leave SMs idle at the end.
"""

from typing import Any, NamedTuple

from labkit import cuda, gemm, specialise
from labkit.gemm.interface.planes import batched_kernel
from labkit.ladder import Launch

tuned = gemm.step("fp32", "tuned")  # with its module's kernel `tuned` and constants as attributes


class Blocking(NamedTuple):
    """A block size: its kernel, a block's rows and columns, blocks per SM, and the relative speed of multiply-adds."""

    kernel: Any
    rows: int
    cols: int
    resident: int
    speed: float

    @property
    def warps(self) -> int:
        return self.rows // tuned.WM * (self.cols // tuned.WN)

    @property
    def shared_bytes(self) -> int:
        return 2 * (self.rows + self.cols) * tuned.BK * 4

    def grid(self, count: int, rows: int, cols: int) -> tuple[int, int, int]:
        """Return the grid for `count` matrices of rows x cols."""
        return -(-cols // self.cols), -(-rows // self.rows), count

    def cost(self, count: int, rows: int, cols: int, sms: int) -> float:
        """Return the relative time for `count` matrices: the GPU computes blocks in whole waves."""
        across, down, _ = self.grid(count, rows, cols)
        return -(-across * down * count // (self.resident * sms)) * self.rows * self.cols * self.resident / self.speed


BLOCKINGS = (
    Blocking(tuned.tuned, tuned.BM, tuned.BN, resident=1, speed=1.0),
    Blocking(specialise(tuned.tuned, BM=64, BN=256), 64, 256, resident=2, speed=0.93),
    Blocking(specialise(tuned.tuned, BM=128, BN=128), 128, 128, resident=2, speed=0.93),
)


def make_products(U, V, M) -> Launch:
    """Return the launch of M[i] = U[i] @ V[i] for all i."""
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    best = min(BLOCKINGS, key=lambda blocking: blocking.cost(*M.shape, sms))
    return Launch(batched_kernel(best.kernel), best.grid(*M.shape), (32, best.warps), (U, V, M), best.shared_bytes)
