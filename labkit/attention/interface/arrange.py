"""Copies of arrays whose strides the kernels of attention do not take: to C order, and results back."""

from labkit.arrays.addresses import VECTOR_BYTES, address_of
from labkit.arrays.workspace import Workspace
from labkit.attention.problem import Layout, as_bhsd
from labkit.ladder import Launch
from labkit.layouts.interface.moves import make_copies


def has_rows(X, layout: Layout) -> bool:
    """Whether all strides are multiples of a row, and a 16-bit array begins at a multiple of 16 bytes."""
    *lengths, width = as_bhsd(X, layout).shape
    *strides, element_stride = as_bhsd(X, layout).strides
    size = X.dtype.itemsize
    if (width > 1 and element_stride != size) or (size == 2 and address_of(X) % VECTOR_BYTES):
        return False
    return all(
        length == 1 or (stride >= 0 and stride % (width * size) == 0) for length, stride in zip(lengths, strides)
    )


def arrange_rows(
    arrays: dict[str, object], outputs: tuple[str, ...], layout: Layout, workspace: Workspace
) -> tuple[dict[str, object], list[Launch], list[Launch]]:
    """Return the arrays as steps take them, the launches that copy inputs before, and those that copy outputs back."""
    arranged, copies_in, copies_out = {}, [], []
    for name, X in arrays.items():
        arranged[name] = X
        if not has_rows(X, layout):
            arranged[name] = workspace.array(f"{name} in C order", X.shape, X.dtype)
            if name in outputs:
                copies_out += make_copies(arranged[name], X)
            else:
                copies_in += make_copies(X, arranged[name])
    return arranged, copies_in, copies_out
