"""Launch of the library's kernel, C = alpha * A @ B.T + beta * C."""

import numpy as np

from labkit import cuda, formats, ptx
from labkit.arrays.views import as_batch, as_bits, as_words, select_matrix, transpose
from labkit.arrays.workspace import Workspace
from labkit.gemm.library.constants import BK, BOX, MN_DEPTH, MN_MAJOR, WM
from labkit.gemm.library.epilogue import Output
from labkit.gemm.library.form import Form, specialise_kernel
from labkit.gemm.library.load import Operand
from labkit.gemm.library.scheduler import Tiles
from labkit.gemm.library.split import Parts
from labkit.gemm.library.tilings import Tiling, check_tiling
from labkit.gemm.tensor.operands import check_operands
from labkit.ladder import Launch
from labkit.ptx import warpgroups

FORMATS = tuple(format for format in formats.FORMATS.values() if format.number in warpgroups.FORMATS)


def launches(
    A,
    B,
    C,
    tiling: Tiling,
    alpha: float = 1.0,
    beta: float = 0.0,
    *,
    workspace: Workspace | None = None,
    added=None,
    format: formats.Format | None = None,
) -> list[Launch]:
    """Return the launch of C = alpha * A @ B.T + beta * added, for three matrices or three batches of equal length.

    16-bit A and B may also be MN-major: contiguous along M or N instead of k. C may also be of float32.

    Parameters
    ----------
    workspace
        Memory for the sums of split k; by default host memory, for the simulator.
    added
        Array of C's shape that beta multiplies; C by default. 16-bit elements are read as 32-bit words, two
        neighbours of a row each, unless operands are swapped.
    format
        Format of A and B; by default the first of the tensor cores' formats that fits the arrays' type. Arrays of
        float32 are multiplied as TF32.

    Raises
    ------
    TypeError
        The tensor cores have no format for such arrays.
    ValueError
        The shapes do not fit, rows do not begin at multiples of 16 bytes, or the tiling is invalid.
    """
    if len({tuple(X.shape[:-2]) for X in (A, B, C)}) != 1 or len(C.shape) > 3 or 0 in C.shape:
        raise ValueError("A, B and C are three matrices, or batches of as many each: repeat what is there once")
    check_tiling(tiling)
    format = format or next((known for known in FORMATS if known.dtype == A.dtype), None)
    if format is None:
        dtypes = ", ".join(dict.fromkeys(str(known.dtype) for known in FORMATS))
        raise TypeError(f"A holds {A.dtype}, but tensor cores multiply arrays of {dtypes}")
    check_operands(*(select_matrix(X, 0) for X in (A, B, C)), format, by_library=True)
    form = Form.of(A, B, C, format, tiling)
    added = C if added is None else added
    A, B, C, added = map(as_batch, (A, B, C, added))
    left, right = (B, A) if tiling.swapped else (A, B)
    rows, cols = left.shape[1], right.shape[1]
    row_tiles, col_tiles = -(-rows // tiling.rows), -(-cols // tiling.cols)
    num_tiles = row_tiles * col_tiles * C.shape[0]
    items = num_tiles * tiling.splits
    steps = -(-max(left.shape[2], right.shape[2]) * A.dtype.itemsize // (BK * 4))
    left = Operand(_tensor_map(left, tiling.rows, form.left_major))
    right = Operand(_tensor_map(right, tiling.cols, form.right_major))
    if C.dtype != np.float32:
        C, added = map(as_bits if tiling.swapped else as_words, (C, added))
    C_map = left.map if tiling.swapped else ptx.TensorMap(C, (1, WM, BOX))  # a swapped C is stored without boxes
    tiles = Tiles(rows=row_tiles, cols=col_tiles, steps=steps, items=items)
    output = Output(C_map, C, rows, cols, np.float32(alpha), np.float32(beta), added)
    arguments = left, right, tiles, output, _parts(tiling, num_tiles, workspace or Workspace())
    grid = min(items, cuda.get_current_device().MULTIPROCESSOR_COUNT)
    return [Launch(specialise_kernel(form), grid, (32, 4 * (1 + tiling.rows // WM)), arguments, form.shared_bytes)]


def _parts(tiling, tiles, workspace):
    """Return memory for the partial sums of all tiles, if k is split."""
    if tiling.splits == 1:
        return Parts(workspace.unused_array((1, 1, 1, 1), np.float32), workspace.unused_array((1,), np.uint32))
    sums = tiles, tiling.splits, WM * tiling.cols // 128, 2 * tiling.rows
    return Parts(workspace.array("parts", sums, np.float32), workspace.counters(tiles))


def _tensor_map(X, rows, major):
    """Return the tensor map of an operand, with tiles of `rows` rows."""
    if major == MN_MAJOR:
        return ptx.TensorMap(as_words(transpose(X)), (1, MN_DEPTH, BK))
    return ptx.TensorMap(as_words(X), (1, rows, BK), to_tf32=X.dtype == np.float32)
