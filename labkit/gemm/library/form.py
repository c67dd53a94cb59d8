"""Form of the kernel, everything it is compiled for: a format, a tiling and the operands' memory order."""

from functools import cache
from math import prod
from typing import NamedTuple

from labkit import specialise
from labkit.formats import FP32, Format
from labkit.gemm.library.constants import BK, BOX, K_MAJOR, MN_DEPTH, MN_MAJOR, MN_ROWS, WM
from labkit.gemm.library.kernel import general
from labkit.gemm.library.tilings import Tiling, max_stages


class Form(NamedTuple):
    """Key of a compiled kernel: formats, the tiling, and whether operands are K-major or MN-major.

    The result holds float32 where it is a part of a sum.
    """

    format: Format
    result: Format
    tiling: Tiling
    left_major: int
    right_major: int

    @classmethod
    def of(cls, A, B, C, format, tiling) -> "Form":
        """Return the form for arrays; it has fewer stages than the tiling where boxes are wider than a tile."""
        result = FP32 if C.dtype == FP32.dtype else format.result
        left, right = (B, A) if tiling.swapped else (A, B)
        form = cls(format, result, tiling, left_major=_major(left), right_major=_major(right))
        _, boxes, rows, _ = form.right_shape
        stages = min(tiling.stages, max_stages(tiling.rows, boxes * rows))
        return form._replace(tiling=tiling._replace(stages=stages))

    @property
    def left_shape(self) -> tuple[int, int, int, int]:
        return _shared_shape(self.tiling, self.tiling.rows, self.left_major)

    @property
    def right_shape(self) -> tuple[int, int, int, int]:
        return _shared_shape(self.tiling, self.tiling.cols, self.right_major)

    @property
    def tile_bytes(self) -> tuple[int, int]:
        """Bytes of all stages of the left and the right operand."""
        return prod(self.left_shape) * 4, prod(self.right_shape) * 4

    @property
    def shared_bytes(self) -> int:
        return sum(self.tile_bytes) + 2 * self.tiling.rows * BOX * 4

    @property
    def constants(self) -> dict:
        """Values for `labkit.gemm.library.constants`."""
        tiling, groups, pack = self.tiling, self.tiling.rows // WM, 4 // self.result.itemsize
        left_bytes, right_bytes = self.tile_bytes
        return {
            "FORMAT": self.format.number,
            "RESULT": self.result.number,
            "BM": tiling.rows,
            "BN": tiling.cols,
            "STAGES": tiling.stages,
            "SPLITS": tiling.splits,
            "SWAPPED": tiling.swapped,
            "LEFT_MAJOR": self.left_major,
            "RIGHT_MAJOR": self.right_major,
            "LEFT_SHAPE": self.left_shape,
            "RIGHT_SHAPE": self.right_shape,
            "NUM_ACC": WM * tiling.cols // 128,
            "WARPGROUPS": groups,
            "MMA_THREADS": 128 * groups,
            "PACK": pack,
            "BOX_ACC": BOX * pack // 2,
            "RIGHT_BYTE": left_bytes,
            "C_BYTE": left_bytes + right_bytes,
            "STAGE_BYTES": (left_bytes + right_bytes) // tiling.stages,
        }


def _major(X) -> int:
    """Return whether an operand is contiguous along k or along its rows."""
    return K_MAJOR if X.strides[-1] == X.dtype.itemsize else MN_MAJOR


def _shared_shape(tiling, rows, major):
    """Return the shape of an operand's tiles in shared memory."""
    if major == K_MAJOR:
        return tiling.stages, 1, rows, BK
    return tiling.stages, -(-rows // MN_ROWS), MN_DEPTH, BK


@cache
def specialise_kernel(form: Form):
    """Return the kernel compiled for a form."""
    return specialise(general, **form.constants)
