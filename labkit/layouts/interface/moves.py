"""Choice of the kernel that copies elements between arrays of any strides.

Axes that are contiguous in both arrays become one. What remains are batches of matrices. Their columns are the fastest
axis of the target; their rows are the fastest axis of the source, if that is another. Rows of both move vector by
vector (`runs`). Transposes use one of the ladder's fastest kernels, if rows of one side are whole vectors. All else
moves element by element (`strided`).
"""

from contextlib import suppress
from itertools import product
from operator import mul
from typing import NamedTuple

from labkit.arrays.addresses import has_c_order
from labkit.arrays.views import as_bits, as_strided, reshape
from labkit.ladder import Launch, Step, TooLarge, ladder
from labkit.layouts.interface.runs import make_vector_copy
from labkit.layouts.interface.strided import make_strided_copy
from labkit.parts.vector_widths import can_load_vectors

ITEMSIZES = 2, 4  # bytes of an element that kernels of the ladder move
MIN_ROW = 32  # elements, below which a row is short

swizzled, one_sided, pieces = map(ladder("layouts", "transpose").step, ("swizzled", "one_sided", "pieces"))


class Axis(NamedTuple):
    """An axis of the target, the part of its length that the source has, and both strides in bytes."""

    length: int
    source_length: int
    source_stride: int
    target_stride: int

    @property
    def is_full(self) -> bool:
        return self.length == self.source_length


def make_copies(source, target) -> list[Launch]:
    """Return the launches of target = source, for device arrays of any strides and of the same shape.

    The source may be shorter along one axis, the last: then the rest of the target becomes zero.
    """
    lengths, source_lengths, source_strides, target_strides = zip(*order_axes(merge_axes(source, target)))
    arrays = (source, source_lengths, source_strides), (target, lengths, target_strides)
    launches = []
    for indices in product(*map(range, lengths[:-4])):  # of the outer axes
        views = (
            as_strided(as_bits(X), shape[-4:], strides[-4:], begin_byte=sum(map(mul, indices, strides)))
            for X, shape, strides in arrays
        )
        launches.append(make_matrix_copy(*views))
    return launches


def merge_axes(source, target) -> list[Axis]:
    """Return the axes of the target by decreasing stride; axes that are contiguous in both arrays become one."""
    axes = []
    all_axes = map(Axis, target.shape, source.shape, source.strides, target.strides)
    for axis in sorted(all_axes, key=lambda axis: -abs(axis.target_stride)):
        if axis.length == axis.source_length == 1:
            continue
        next_strides = axis.length * axis.source_stride, axis.length * axis.target_stride
        if axes and axis.is_full and axes[-1].is_full and axes[-1][2:] == next_strides:
            length = axes.pop().length * axis.length
            axis = Axis(length, length, axis.source_stride, axis.target_stride)
        axes.append(axis)
    return axes


def order_axes(axes: list[Axis]) -> list[Axis]:
    """Return at least four axes: batches, then the rows and columns of the matrices."""
    axes = [Axis(1, 1, 0, 0)] * (4 - len(axes)) + axes
    cols = next((axis for axis in axes if not axis.is_full), axes[-1])
    axes.remove(cols)
    fastest = min((axis for axis in axes if axis.length > 1), key=lambda axis: abs(axis.source_stride), default=cols)
    if abs(fastest.source_stride) < abs(cols.source_stride):
        axes.remove(fastest)
        axes.append(fastest)
    return [*axes, cols]


def make_matrix_copy(source, target) -> Launch:
    """Return the launch for matrices in batches along two axes."""
    outer, batch, rows, cols = target.shape
    if source.shape == target.shape and (launch := make_vector_copy(source, target)) is not None:
        return launch
    if outer == 1 and target.dtype.itemsize in ITEMSIZES and abs(source.strides[2]) < abs(source.strides[3]):
        x = as_strided(source, (batch, source.shape[3], rows), tuple(source.strides[axis] for axis in (1, 3, 2)))
        y = as_strided(target, (batch, rows, cols), target.strides[1:])
        with suppress(TooLarge):
            if (step := choose_step(x, y)) is not None:
                return step.transpose(x, y)
    return make_strided_copy(source, target)


def choose_step(x, y) -> Step | None:
    """Return the step of the ladder that writes transposes y of x, or None; y may be longer than x."""
    batch, rows, cols = y.shape
    is_complete = x.shape[1] == cols
    candidates = [
        (short, long) for short, long in ((x, y), (y, x)) if short.shape[-1] < MIN_ROW and (is_complete or short is y)
    ]
    for short, long in candidates:
        if has_c_order(short) and can_load_vectors(long) and can_load_vectors(reshape(short, batch, rows * cols)):
            return pieces
    vector_sides = can_load_vectors(x) + can_load_vectors(y) if is_complete else 0
    return {2: swizzled, 1: one_sided}.get(vector_sides)
