"""Operands that cannot be taken as they lie: copied into rows that are whole 16-byte pieces, with zeros at the end."""

from labkit.arrays.addresses import has_vector_rows
from labkit.arrays.workspace import Workspace
from labkit.ladder import Launch
from labkit.layouts.interface.strided import rearrange


def arranged(X, shape: tuple[int, int], role: str, workspace: Workspace, made: list[Launch], gaps: bool = True):
    """The matrix, or the batch, with rows that vector copies take, padded with zeros to this shape.

    It is X itself if that is so already; where `gaps` is false rows must also follow one another at once. Otherwise it
    is a copy in the workspace's piece of that role, whose launch comes to those that were `made`.
    """
    if has_vector_rows(X, shape, gaps):
        return X
    target = workspace.array(role, (*X.shape[:-2], *shape), X.dtype)
    made.append(rearrange(X, target))
    return target
