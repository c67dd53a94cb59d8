"""The tensor cores of a warpgroup, four warps in step: `wgmma`; and its registers: `setmaxnreg`.

`wgmma` runs beside the warps that asked for it. `wgmma_fence` comes before the first of a group, `wgmma_commit` closes
the group, and `wgmma_wait(n)` waits until at most the n newest groups are under way. Until then nobody touches the
accumulators, nor overwrites the tiles. (PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate
Instructions"; compute capability 9.0.)

A thread of the warpgroup holds N / 2 accumulators. With w = its warp in the group, g = lane // 4 and t = lane % 4,
acc[4 j + 0] and [4 j + 1] are row 16 w + g, columns 8 j + 2 t and the next; acc[4 j + 2] and [4 j + 3] the same of
row 16 w + g + 8.

An operand's tile has a row along k for each row of A or of B: it is *K-major*. In 16-bit formats it may also lie the
other way, *MN-major*: a row for each k, of 64 elements, one for each row of A or B; N above 64 takes several of them.
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
    """Begins acc += A @ B.T: 64 rows of A by N rows of B, over 32 bytes of k, tiles as `tma_load` lays them.

    Parameters
    ----------
    acc, index
        A local float32 array, and where in it the N / 2 accumulators begin, along the last axis.
    N
        8 to 256, in steps of 8; fixed when the kernel is compiled.
    A, a_index
        A shared array whose last axis is 128 bytes of k, and the first element of the 64 rows' piece of k.
    B, b_index
        The same for N rows of B.
    FORMAT
        `ptx.BF16`, `FP16`, `TF32` or `E4M3`, in a constant of the module. Sums of E4M3 lose what is smaller than the
        2**-13th part of the largest summand: add few of them in one accumulator.
    """


@instruction(Multiply(FORMATS, has_fragment=True), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_registers(acc, index, N, a, B, b_index, FORMAT):
    """As `wgmma`, with A from registers: `a`, four uint32, is the fragment of `mma`, of 16 rows for each warp."""


@instruction(Multiply(FORMATS, has_majors=True), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_major(acc, index, N, A, a_index, A_MAJOR, B, b_index, B_MAJOR, FORMAT):
    """As `wgmma`, with operands of which each may lie MN-major, in the formats of 16 bits.

    Parameters
    ----------
    A_MAJOR, B_MAJOR
        `ptx.K_MAJOR` or `MN_MAJOR`, in a constant of the module. An MN-major operand has 128 bytes of M or N along the
        last axis of its array, and k along the one before, of which 16 are read from the index on; one axis further
        out the tile of the next 64 columns of N follows.
    """


@instruction(Multiply(FORMATS, has_fragment=True, has_majors=True), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_registers_major(acc, index, N, a, B, b_index, B_MAJOR, FORMAT):
    """As `wgmma_registers`, with a B that may lie MN-major."""


@instruction(Multiply(FORMATS, has_majors=True, is_scaled=True), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_scaled(acc, index, N, A, a_index, A_MAJOR, B, b_index, B_MAJOR, FORMAT, keeps, SIGN):
    """As `wgmma_major`, of the form acc = acc * keeps + A @ B.T * SIGN.

    Parameters
    ----------
    keeps
        Whether the product is added to what the accumulators hold, and not put in its place; they may hold nothing
        yet then. All threads of the warpgroup say the same.
    SIGN
        1 or -1, in a constant of the module.
    """


@instruction(
    Multiply(FORMATS, has_fragment=True, has_majors=True, is_scaled=True), needs=HOPPER_ALONE, family=WARPGROUPS
)
def wgmma_registers_scaled(acc, index, N, a, B, b_index, B_MAJOR, FORMAT, keeps, SIGN):
    """As `wgmma_scaled`, with A from registers, as in `wgmma_registers`."""


@instruction(Plain(on_lanes.fence), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_fence():
    """Orders what this warp did to accumulators and fragments before the `wgmma` that follow."""


@instruction(Plain(on_lanes.commit), needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_commit():
    """Makes a group of the `wgmma` since the last commit."""


@instruction(on_lanes.Wait(), waits=True, needs=HOPPER_ALONE, family=WARPGROUPS)
def wgmma_wait(pending):
    """Waits until at most `pending` groups, the newest ones, are under way; fixed when the kernel is compiled.

    The products of the others are done then, those of all four warps: their tiles may be overwritten. It is no barrier:
    what the other warps read or write themselves stands beside this one's as before.
    """


@instruction(on_lanes.SetRegisters(takes=True), needs=HOPPER_ALONE, family=WARPGROUPS)
def setmaxnreg_inc(count):
    """The warpgroup's threads get `count` registers each, more than before; it waits until they are free.

    The kernel is compiled with a limit, `launch_bounds=(threads, blocks)` or `max_registers`; count is 24 to 256, a
    multiple of 8, fixed when the kernel is compiled.
    """


@instruction(on_lanes.SetRegisters(takes=False), needs=HOPPER_ALONE, family=WARPGROUPS)
def setmaxnreg_dec(count):
    """The warpgroup's threads keep `count` registers each, and give the others back."""
