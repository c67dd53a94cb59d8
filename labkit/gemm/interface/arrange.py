"""Copies of operands whose layout a kernel cannot read: rows of whole 16-byte pieces, padded with zeros."""

from labkit.arrays.addresses import has_vector_rows
from labkit.arrays.workspace import Workspace
from labkit.ladder import Launch
from labkit.layouts.interface.strided import make_strided_copy


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
