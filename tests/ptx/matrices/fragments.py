"""The fragments of the tensor cores as the PTX ISA draws them, element by element; written down once more for tests.

Each function gives (row, column) of element i of a lane's fragment; the first elements are in the first register,
and in a register the lowest bits come first. (PTX ISA, "Matrix Fragments for mma.m16n8k8", "... m16n8k16", "...
m16n8k32".)
"""

import numpy as np


def a_of_8(lane, i):
    group, thread = lane >> 2, lane % 4
    return group + 8 * (i in (1, 3)), thread + 4 * (i in (2, 3))


def a_of_16(lane, i):
    group, thread = lane >> 2, lane % 4
    return group if i in (0, 1, 4, 5) else group + 8, thread * 2 + (i & 1) + (8 if i >= 4 else 0)


def a_of_32(lane, i):
    group, thread = lane >> 2, lane % 4
    first_rows = i < 4 or 8 <= i < 12
    return group if first_rows else group + 8, thread * 4 + (i & 3) + (16 if i >= 8 else 0)


def b_of_8(lane, i):
    return lane % 4 + 4 * i, lane >> 2


def b_of_16(lane, i):
    return lane % 4 * 2 + (i & 1) + (8 if i >= 2 else 0), lane >> 2


def b_of_32(lane, i):
    return lane % 4 * 4 + (i & 3) + (16 if i >= 4 else 0), lane >> 2


def c(lane, i):
    return (lane >> 2) + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)


A = {8: a_of_8, 16: a_of_16, 32: a_of_32}
B = {8: b_of_8, 16: b_of_16, 32: b_of_32}


def registers(matrix, place, count):
    """Each lane's registers of a matrix of codes (uint8, uint16 or uint32): an array of 32 x `count` uint32."""
    each = 4 // matrix.itemsize
    codes = [[matrix[place(lane, i)] for i in range(count * each)] for lane in range(32)]
    return np.array(codes, matrix.dtype).view(np.uint32)
