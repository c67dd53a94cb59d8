"""Which kernel moves the elements of one array to where those of another lie.

Neighbouring axes that follow on in both arrays are one axis. What is left are matrices, with a batch of them along one
axis or more: columns are the neighbours of the target, and if they are not those of the source too, rows are. Rows of
both go vector by vector (`runs`); what is turned goes by one of the last steps of the ladder, if one side at least has
rows that are whole vectors; all else goes element by element (`strided`), whatever the strides.
"""

from contextlib import suppress
from itertools import product
from typing import NamedTuple

from labkit.arrays.addresses import lies_in_order
from labkit.arrays.views import as_bits, reshaped, viewed
from labkit.ladder import Launch, Step, TooLarge, ladder
from labkit.layouts.interface.runs import copy_runs
from labkit.layouts.interface.strided import rearrange
from labkit.parts.vector_widths import can_load_vectors

WORDS = 2, 4  # bytes of elements that kernels of the ladder take
NARROW = 32  # elements, below which a row is short

swizzled, one_sided, pieces = map(ladder("layouts", "transpose").step, ("swizzled", "one_sided", "pieces"))


class Axis(NamedTuple):
    """An axis of the target, how many of its places the source has, and both strides in bytes."""

    length: int
    held: int
    source: int
    target: int


def moves(source, target) -> list[Launch]:
    """The launches of target = source, for arrays of the device of any strides, and of the same shape.

    Along one axis, the last, the source may be shorter: what the target has beyond is zero.
    """
    *outer, first, second, rows, cols = arranged(collapsed(source, target))
    lengths, held = ([getattr(axis, name) for axis in (first, second, rows, cols)] for name in ("length", "held"))
    launches = []
    for place in product(*(range(axis.length) for axis in outer)):  # each part by itself
        parts = []
        for X, name, shape in ((source, "source", held), (target, "target", lengths)):
            begin = sum(n * getattr(axis, name) for n, axis in zip(place, outer))
            strides = [getattr(axis, name) for axis in (first, second, rows, cols)]
            parts.append(viewed(as_bits(X), tuple(shape), tuple(strides), begin_byte=begin))
        launches.append(move(*parts))
    return launches


def collapsed(source, target) -> list[Axis]:
    """The axes of the target from the largest stride to the smallest; those that follow on in both arrays are one."""
    axes = []
    of_both = map(Axis, target.shape, source.shape, source.strides, target.strides)
    for axis in sorted(of_both, key=lambda axis: -abs(axis.target)):
        if axis.length == axis.held == 1:
            continue
        whole = axis.length == axis.held
        if axes and whole and axes[-1].length == axes[-1].held and axes[-1][2:] == _next(axis):
            before = axes.pop()
            length = before.length * axis.length
            axis = Axis(length, length, axis.source, axis.target)
        axes.append(axis)
    return axes


def _next(axis):
    return axis.length * axis.source, axis.length * axis.target


def arranged(axes: list[Axis]) -> list[Axis]:
    """At least four: batches, then the rows and the columns of the matrices that are moved."""
    axes = [Axis(1, 1, 0, 0)] * (4 - len(axes)) + axes
    filled = [axis for axis in axes if axis.held < axis.length]
    cols = filled[0] if filled else axes[-1]
    axes.remove(cols)
    nearest = min((axis for axis in axes if axis.length > 1), key=lambda axis: abs(axis.source), default=cols)
    if abs(nearest.source) < abs(cols.source):
        axes.remove(nearest)
        axes.append(nearest)
    return [*axes, cols]


def move(source, target) -> Launch:
    """The launch for matrices in batches along two axes."""
    outer, batch, rows, cols = target.shape
    if source.shape == target.shape and (launch := copy_runs(source, target)) is not None:
        return launch
    if outer == 1 and target.dtype.itemsize in WORDS and abs(source.strides[2]) < abs(source.strides[3]):
        x = viewed(source, (batch, source.shape[3], rows), tuple(source.strides[axis] for axis in (1, 3, 2)))
        y = viewed(target, (batch, rows, cols), target.strides[1:])
        with suppress(TooLarge):
            if (step := suited(x, y)) is not None:
                return step.transpose(x, y)
    return rearrange(source, target)


def suited(x, y) -> Step | None:
    """The step of the ladder for such batches of matrices: the second are the transposes of the first, or of more."""
    batch, rows, cols = y.shape
    all_there = x.shape[1] == cols
    as_runs = [
        (short, long) for short, long in ((x, y), (y, x)) if short.shape[-1] < NARROW and (all_there or short is y)
    ]
    for short, long in as_runs:
        if lies_in_order(short) and can_load_vectors(long) and can_load_vectors(reshaped(short, batch, rows * cols)):
            return pieces
    whole = can_load_vectors(x) + can_load_vectors(y) if all_there else 0
    return {2: swizzled, 1: one_sided}.get(whole)
