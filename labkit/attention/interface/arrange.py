"""Arrays that steps of attention take as they lie; others are copied into C order, and results back from there."""

from labkit.arrays.addresses import PIECE_BYTES, address_of
from labkit.arrays.workspace import Workspace
from labkit.attention.problem import Layout, as_heads
from labkit.ladder import Launch
from labkit.layouts.interface.moves import make_moves


def lies_in_rows(X, layout: Layout) -> bool:
    """Whether the rows of an array lie at multiples of a row, and in 16 bits begin at multiples of 16 bytes."""
    *sides, width = as_heads(X, layout).shape
    *strides, step = as_heads(X, layout).strides
    size = X.dtype.itemsize
    if (width > 1 and step != size) or (size == 2 and address_of(X) % PIECE_BYTES):
        return False
    return all(length == 1 or (stride >= 0 and stride % (width * size) == 0) for length, stride in zip(sides, strides))


def in_rows(
    arrays: dict[str, object], outputs: tuple[str, ...], layout: Layout, workspace: Workspace
) -> tuple[dict[str, object], list[Launch], list[Launch]]:
    """The arrays as steps take them, what copies some of them before, and what copies outputs back."""
    found, before, after = {}, [], []
    for name, X in arrays.items():
        found[name] = X
        if not lies_in_rows(X, layout):
            found[name] = workspace.array(f"{name} in order", X.shape, X.dtype)
            if name in outputs:
                after += make_moves(found[name], X)
            else:
                before += make_moves(X, found[name])
    return found, before, after
