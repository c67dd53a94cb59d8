"""Tensor cores of one warp: `ldmatrix`, `stmatrix` and `mma.sync`.

All lanes of the warp make the call together. The *fragment* of an instruction says which lane holds which element of
A, B and the accumulators. With g = lane // 4 and t = lane % 4, for 16-bit formats (m16n8k16):

    a[0], a[1]   rows g and g + 8, columns 2 t and 2 t + 1 of A; a[2] and a[3] the same, 8 columns on
    b[0], b[1]   rows 2 t and 2 t + 1, and the same 8 rows on, in column g of B
    acc[0..3]    row g, columns 2 t and 2 t + 1; then row g + 8

An 8-bit format (m16n8k32) has four elements where a 16-bit one has two, TF32 (m16n8k8) has one. (PTX ISA, "Warp Level
Matrix Multiply-Accumulate Instructions".) `mma` needs compute capability 8.0, of 8-bit floats 8.9; `ldmatrix` 7.5;
`stmatrix` 9.0.
"""

from labkit.formats import BF16, E4M3, FP16, INT8, TF32
from labkit.ptx.formats import ON_LANES
from labkit.ptx.instruction import instruction
from labkit.ptx.matrices.on_lanes import LoadMatrices, Multiply, StoreMatrices
from labkit.simulator import numba_types

__all__ = [
    "ldmatrix2",
    "ldmatrix2_transposed",
    "ldmatrix4",
    "ldmatrix4_transposed",
    "mma",
    "stmatrix4",
    "stmatrix4_transposed",
]

MULTIPLIED = BF16, FP16, TF32, E4M3, INT8
FORMATS = {format.number: ON_LANES[format.number] for format in MULTIPLIED}
SUMS = {format.number: numba_types.type_of(format.accumulator_dtype) for format in MULTIPLIED}
MMA_NEEDS = {format.number: (8, 9) if format.arithmetic == "float8 tensor" else (8, 0) for format in MULTIPLIED}


@instruction(LoadMatrices(2), needs=(7, 5))
def ldmatrix2(tile, index):
    """Load two 8 x 8 matrices of 16-bit elements from shared memory into fragments: two uint32.

    Lanes 0 to 7 each name where a row of the first matrix begins, lanes 8 to 15 those of the second; a row is 16
    bytes and begins at a multiple of 16. Each lane gets, of each matrix, the elements 2 t and 2 t + 1 of row g.
    """


@instruction(LoadMatrices(4), needs=(7, 5))
def ldmatrix4(tile, index):
    """Load four 8 x 8 matrices; lanes 16 to 23 and 24 to 31 name the rows of the third and fourth; see `ldmatrix2`."""


@instruction(LoadMatrices(2, transposed=True), needs=(7, 5))
def ldmatrix2_transposed(tile, index):
    """Load two matrices transposed: each lane gets the elements of rows 2 t and 2 t + 1 in column g of each matrix."""


@instruction(LoadMatrices(4, transposed=True), needs=(7, 5))
def ldmatrix4_transposed(tile, index):
    """Load four matrices transposed; see `ldmatrix4` and `ldmatrix2_transposed`."""


@instruction(StoreMatrices(4), needs=(9, 0))
def stmatrix4(tile, index, a, b, c, d):
    """Store four 8 x 8 matrices of 16-bit elements to shared memory; the inverse of `ldmatrix4`."""


@instruction(StoreMatrices(4, transposed=True), needs=(9, 0))
def stmatrix4_transposed(tile, index, a, b, c, d):
    """Store four matrices transposed, a lane's two elements to rows 2 t and 2 t + 1 of column g."""


@instruction(Multiply(FORMATS, SUMS), needs=MMA_NEEDS)
def mma(acc, index, a, b, FORMAT):
    """Compute acc += A @ B by one warp: 16 rows, 8 columns; k is 16 for BF16 and FP16, 8 for TF32, 32 for 8 bits.

    Parameters
    ----------
    acc, index
        Local array (float32; int32 for INT8) and index of the first of four accumulators, along the last axis.
    a, b
        Fragments of A and B: four and two uint32.
    FORMAT
        `ptx.BF16`, `FP16`, `TF32`, `E4M3` or `INT8`, in a constant of the module.
    """
