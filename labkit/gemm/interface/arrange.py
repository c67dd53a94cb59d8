"""Copies of operands whose layout a kernel cannot read, or only slowly.

A kernel needs rows of whole 16-byte pieces, padded with zeros. If these begin at odd multiples of 16 bytes, each
second piece of 128 bytes touches five sectors in two cache lines, and L2 takes twice as long.
"""

from labkit.arrays.addresses import has_aligned_rows, has_vector_rows
from labkit.arrays.views import as_batch, as_strided, transpose
from labkit.arrays.workspace import Workspace
from labkit.ladder import Launch
from labkit.layouts.interface.runs import make_vector_copy
from labkit.layouts.interface.strided import make_strided_copy, with_two_batch_axes

SECTOR_BYTES = 32


def arrange_operand(
    X, shape: tuple[int, int], role: str, workspace: Workspace, launch_list: list[Launch], allow_gaps: bool = True
):
    """Return a matrix or batch with 16-byte-aligned rows, padded with zeros to `shape`.

    Returns X itself if it is so already; unless `allow_gaps`, its rows must also be contiguous. Otherwise the launch
    of a copy to the workspace's array `role` is appended to `launch_list`, and that array returned.
    """
    if has_vector_rows(X, shape, allow_gaps):
        return X
    target = workspace.array(role, (*X.shape[:-2], *shape), X.dtype)
    launch_list.append(make_strided_copy(X, target))
    return target


def straddles_sectors(X) -> bool:
    """Return whether lines of X, rows or columns of whole 16-byte pieces, begin at odd multiples of 16 bytes."""
    lines = _as_lines(X)
    return lines is not None and lines.strides[-2] % SECTOR_BYTES != 0


def align_lines(X, role: str, workspace: Workspace, launch_list: list[Launch]):
    """Append the launch of a copy of X whose lines begin at multiples of 32 bytes to `launch_list`; return the copy."""
    lines = _as_lines(X)
    assert lines is not None, "`straddles_sectors` is asked first"
    *outer, length = lines.shape
    per_sector = SECTOR_BYTES // X.dtype.itemsize
    buffer = workspace.array(f"aligned {role}", (*outer, -(-length // per_sector) * per_sector), X.dtype)
    target = as_strided(buffer, lines.shape, buffer.strides)
    copy = make_vector_copy(*(with_two_batch_axes(as_batch(Y)) for Y in (lines, target)))
    launch_list += [copy] if copy else []
    return target if lines is X else transpose(target)


def _as_lines(X):
    """View X with its lines as rows; None if they are not whole pieces of 16 bytes."""
    for lines in (X, transpose(X)):
        if has_aligned_rows(lines) and has_vector_rows(lines, (lines.shape[-2], lines.shape[-1])):
            return lines
    return None
