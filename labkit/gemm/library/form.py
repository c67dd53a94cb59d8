"""What the kernel is compiled for: a format, a tiling, and how operands lie in memory."""

from functools import cache
from math import prod
from typing import NamedTuple

from labkit import specialise
from labkit.formats import Format
from labkit.gemm.library.constants import BK, BOX, K_MAJOR, MN_DEPTH, MN_MAJOR, MN_ROWS, WM
from labkit.gemm.library.kernel import general
from labkit.gemm.library.tilings import Tiling, most_stages


class Form(NamedTuple):
    """What a kernel is compiled for; `format` is the operands'."""

    format: Format
    tiling: Tiling
    left_major: int
    right_major: int

    @classmethod
    def of(cls, A, B, format, tiling) -> "Form":
        """Of a product of arrays; with fewer stages than the tiling has where boxes are wider than a tile."""
        left, right = (B, A) if tiling.swapped else (A, B)
        form = cls(format, tiling, _major(left), _major(right))
        _, boxes, rows, _ = form.right_shape
        stages = min(tiling.stages, most_stages(tiling.rows, boxes * rows))
        return form._replace(tiling=tiling._replace(stages=stages))

    @property
    def left_shape(self) -> tuple[int, int, int, int]:
        return _in_shared(self.tiling, self.tiling.rows, self.left_major)

    @property
    def right_shape(self) -> tuple[int, int, int, int]:
        return _in_shared(self.tiling, self.tiling.cols, self.right_major)

    @property
    def tile_bytes(self) -> tuple[int, int]:
        """Of all stages: of the left operand, and of the right one."""
        return prod(self.left_shape) * 4, prod(self.right_shape) * 4

    @property
    def shared_bytes(self) -> int:
        return sum(self.tile_bytes) + 2 * self.tiling.rows * BOX * 4

    @property
    def constants(self) -> dict:
        """The values of `labkit.gemm.library.constants` in this form."""
        tiling, groups, each = self.tiling, self.tiling.rows // WM, 4 // self.format.result.itemsize
        left_bytes, right_bytes = self.tile_bytes
        return {
            "FORMAT": self.format.number,
            "RESULT": self.format.result.number,
            "BM": tiling.rows,
            "BN": tiling.cols,
            "STAGES": tiling.stages,
            "SPLITS": tiling.splits,
            "SWAPPED": tiling.swapped,
            "LEFT_MAJOR": self.left_major,
            "RIGHT_MAJOR": self.right_major,
            "LEFT_SHAPE": self.left_shape,
            "RIGHT_SHAPE": self.right_shape,
            "SUMS": WM * tiling.cols // 128,
            "WARPGROUPS": groups,
            "MULTIPLYING": 128 * groups,
            "EACH": each,
            "BOX_SUMS": BOX * each // 2,
            "RIGHT_BYTE": left_bytes,
            "C_BYTE": left_bytes + right_bytes,
            "STAGE_BYTES": (left_bytes + right_bytes) // tiling.stages,
        }


def _major(X) -> int:
    """How an operand's memory runs, along k or along its rows."""
    return K_MAJOR if X.strides[-1] == X.dtype.itemsize else MN_MAJOR


def _in_shared(tiling, rows, major):
    """The shape of an operand's tiles in shared memory."""
    if major == K_MAJOR:
        return tiling.stages, 1, rows, BK
    return tiling.stages, -(-rows // MN_ROWS), MN_DEPTH, BK


@cache
def compiled_for(form: Form):
    """The kernel in a form."""
    return specialise(general, **form.constants)
