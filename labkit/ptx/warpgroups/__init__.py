"""Tensor cores of a warpgroup, four warps together: `wgmma`; and its registers: `setmaxnreg`.

`wgmma` is asynchronous to the warps that issue it. `wgmma_fence` comes before the first of a group, `wgmma_commit`
closes the group, and `wgmma_wait(n)` waits until at most the n newest groups are in flight. Until then no thread may
access the accumulators or overwrite the tiles. (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate
Instructions"; compute capability 9.0.)

A thread of the warpgroup holds N / 2 accumulators. With w = its warp in the group, g = lane // 4 and t = lane % 4,
acc[4 j + 0] and [4 j + 1] are row 16 w + g, columns 8 j + 2 t and the next; acc[4 j + 2] and [4 j + 3] the same of
row 16 w + g + 8.

An operand's tile is *K-major*: it has one row along k per row of A or B. In 16-bit formats it may also be *MN-major*:
one row of 64 elements per k, with one element per row of A or B; N above 64 takes several tiles.
"""

from labkit.formats import BF16, E4M3, FP16, TF32
from labkit.ptx.formats import ON_LANES
from labkit.ptx.instruction import instruction
from labkit.ptx.warpgroups import on_lanes
from labkit.ptx.warpgroups.on_lanes import WARPGROUPS, Multiply
from labkit.simulator.instruction import Plain

__all__ = [
    "K_MAJOR",
    "MN_MAJOR",
    "setmaxnreg_dec",
    "setmaxnreg_inc",
    "wgmma",
    "wgmma_commit",
    "wgmma_fence",
    "wgmma_major",
    "wgmma_registers",
    "wgmma_registers_major",
    "wgmma_registers_scaled",
    "wgmma_scaled",
    "wgmma_wait",
]

K_MAJOR, MN_MAJOR = range(2)
HOPPER_ALONE = (9, 0, "a")
FORMATS = {format.number: ON_LANES[format.number] for format in (BF16, FP16, TF32, E4M3)}


@instruction(Multiply(FORMATS), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma(acc, index, N, A, a_index, B, b_index, FORMAT):
    """Begin acc += A @ B.T: 64 rows of A by N rows of B, over 32 bytes of k, of tiles in the layout of `tma_load`.

    Parameters
    ----------
    acc, index
        Local float32 array, and index of the first of N / 2 accumulators, along the last axis.
    N
        8 to 256, in steps of 8; a compile-time constant.
    A, a_index
        Shared array whose last axis is 128 bytes of k, and index of the first element of the 64 rows.
    B, b_index
        The same for N rows of B.
    FORMAT
        `ptx.BF16`, `FP16`, `TF32` or `E4M3`, in a constant of the module. Sums of E4M3 lose bits below 2**-13 of the
        largest summand: add few products in one accumulator.
    """


@instruction(Multiply(FORMATS, has_fragment=True), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_registers(acc, index, N, a, B, b_index, FORMAT):
    """Begin a `wgmma` with A in registers: `a`, four uint32, is the fragment of `mma`, 16 rows per warp."""


@instruction(Multiply(FORMATS, has_majors=True), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_major(acc, index, N, A, a_index, A_MAJOR, B, b_index, B_MAJOR, FORMAT):
    """Begin a `wgmma` with operands that may be MN-major, in formats of 16 bits.

    Parameters
    ----------
    A_MAJOR, B_MAJOR
        `ptx.K_MAJOR` or `MN_MAJOR`, in a constant of the module. An MN-major operand has 128 bytes of M or N along the
        last axis of its array, and k along the one before, of which 16 are read from the index on. The axis before that
        has the tiles of further 64 columns of N.
    """


@instruction(Multiply(FORMATS, has_fragment=True, has_majors=True), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_registers_major(acc, index, N, a, B, b_index, B_MAJOR, FORMAT):
    """Begin a `wgmma_registers` with a B that may be MN-major."""


@instruction(Multiply(FORMATS, has_majors=True, is_scaled=True), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_scaled(acc, index, N, A, a_index, A_MAJOR, B, b_index, B_MAJOR, FORMAT, keeps, SIGN):
    """Begin acc = acc * keeps + A @ B.T * SIGN, otherwise like `wgmma_major`.

    Parameters
    ----------
    keeps
        Whether the product is added to the accumulators or replaces them, which need not be initialised then. All
        threads of the warpgroup give the same value.
    SIGN
        1 or -1, in a constant of the module.
    """


@instruction(
    Multiply(FORMATS, has_fragment=True, has_majors=True, is_scaled=True), needs=HOPPER_ALONE, family=WARPGROUPS
)
def wgmma_registers_scaled(acc, index, N, a, B, b_index, B_MAJOR, FORMAT, keeps, SIGN):
    """Begin a `wgmma_scaled` with A in registers, as in `wgmma_registers`."""


@instruction(Plain(on_lanes.fence), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_fence():
    """Order this warp's accesses to accumulators and fragments before later `wgmma`."""


@instruction(Plain(on_lanes.commit), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_commit():
    """Close the group of all `wgmma` since the last commit."""


@instruction(on_lanes.Wait(), waits=True, needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_wait(pending):
    """Wait until at most the `pending` newest groups are in flight; a compile-time constant.

    The products of the others are then done, for all four warps: their tiles may be overwritten. It is not a barrier:
    it does not order the other warps' own reads and writes.
    """


@instruction(on_lanes.SetRegisters(increases=True), needs=HOPPER_ALONE, family=WARPGROUPS)
def setmaxnreg_inc(count):
    """Raise the registers per thread of the warpgroup to `count`, and wait until they are free.

    The kernel must have a limit, `launch_bounds=(threads, blocks)` or `max_registers`; count is 24 to 256, a multiple
    of 8, a compile-time constant.
    """


@instruction(on_lanes.SetRegisters(increases=False), needs=HOPPER_ALONE, family=WARPGROUPS)
def setmaxnreg_dec(count):
    """Lower the registers per thread of the warpgroup to `count`, and release the others."""
