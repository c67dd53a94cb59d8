"""Arrays that kernels cannot take as they lie: copied into C order, and results from there.

Kernels of convolutions read neighbours 16 bytes at once, so that an array must lie in C order and begin at a multiple
of 16 bytes. Channels last under the name of NCHW, and parts of larger arrays, do not.
"""

from labkit.arrays.addresses import PIECE_BYTES, address_of, lies_in_order
from labkit.arrays.views import viewed
from labkit.gemm.interface.arrange import rearrange
from labkit.ladder import Launch


def lies_well(X) -> bool:
    """Whether kernels take an array of the device as it lies."""
    return lies_in_order(X) and address_of(X) % PIECE_BYTES == 0


def copies(source, target) -> list[Launch]:
    """The launches of target = source, for arrays of the same shape and any strides."""
    axes = collapsed(source.shape, source.strides, target.strides)
    parts, lengths = [(0, 0)], [length for length, *_ in axes[-3:]]
    for length, *steps in axes[:-3]:  # of a fourth axis each part by itself
        parts = [tuple(at + n * step for at, step in zip(part, steps)) for part in parts for n in range(length)]
    strides = [tuple(axis[which] for axis in axes[-3:]) for which in (1, 2)]
    return [
        rearrange(*(viewed(X, lengths, of, begin_byte=at) for X, of, at in zip((source, target), strides, part)))
        for part in parts
    ]


def collapsed(shape, *strides) -> list[tuple[int, ...]]:
    """Length and strides of each axis, at least three, after neighbours that follow on in all arrays became one."""
    axes = []
    for length, *steps in zip(shape, *strides):
        if length == 1:
            continue
        if axes and all(outer == length * inner for outer, inner in zip(axes[-1][1:], steps)):
            length *= axes.pop()[0]
        axes.append((length, *steps))
    axes = axes or [(1, *(0 for _ in strides))]
    while len(axes) < 3:
        length, *steps = axes[0]
        axes.insert(0, (1, *(length * step for step in steps)))
    return axes
