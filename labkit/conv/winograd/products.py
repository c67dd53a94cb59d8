"""The products between the transforms: a matrix product for each place in a tile, all by one launch.

They are the last step of gemm/fp32, whose blocks of 128 x 256 outputs an SM takes one by one; or the same with blocks
of half the rows or half the columns, of which it takes two, where the larger ones would lie outside of the matrices or
leave SMs idle at the end.
"""

from typing import Any, NamedTuple

from labkit import cuda, gemm, specialise
from labkit.gemm.interface.planes import batched_kernel
from labkit.ladder import Launch

tuned = gemm.step("fp32", "tuned")


class Blocks(NamedTuple):
    """One way to cut up a product: its kernel, the rows and columns of a block, and how many an SM takes at once.

    `speed` is that of the multiply-adds, beside the other ways.
    """

    kernel: Any
    rows: int
    cols: int
    at_once: int
    speed: float

    @property
    def warps(self) -> int:
        return self.rows // tuned.WM * (self.cols // tuned.WN)

    @property
    def shared_bytes(self) -> int:
        return 2 * (self.rows + self.cols) * tuned.BK * 4

    def grid(self, count: int, rows: int, cols: int) -> tuple[int, int, int]:
        """For so many matrices of rows x cols."""
        return -(-cols // self.cols), -(-rows // self.rows), count

    def time(self, count: int, rows: int, cols: int, sms: int) -> float:
        """For so many matrices: how often the GPU is filled with blocks, as all SMs wait for the last of them."""
        across, down, _ = self.grid(count, rows, cols)
        return -(-across * down * count // (self.at_once * sms)) * self.rows * self.cols * self.at_once / self.speed


def halved(rows: int, cols: int) -> Blocks:
    """With blocks of so many outputs, half as many as the step has, by half the threads."""
    threads = tuned.THREADS // 2
    kernel = specialise(
        tuned.tuned,
        BM=rows,
        BN=cols,
        WARPS_X=cols // tuned.WN,
        THREADS=threads,
        A_STEP=threads * 4 // tuned.BK,
        B_STEP=threads * 4 // cols,
        B_BYTE=2 * rows * tuned.BK * 4,
    )
    return Blocks(kernel, rows, cols, at_once=2, speed=0.93)


WAYS = Blocks(tuned.tuned, tuned.BM, tuned.BN, 1, 1.0), halved(64, 256), halved(128, 128)


def products(U, V, M) -> Launch:
    """The launch of M[i] = U[i] @ V[i] for all i."""
    sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    way = min(WAYS, key=lambda way: way.time(*M.shape, sms))
    return Launch(batched_kernel(way.kernel), way.grid(*M.shape), (32, way.warps), (U, V, M), way.shared_bytes)
