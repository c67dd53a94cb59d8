"""The machine code of `wgmma` and `setmaxnreg`."""

from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError

from labkit.ptx import formats, warpgroups
from labkit.ptx.on_gpu.definitions import (
    F32,
    I64,
    VOID,
    assembly,
    fixed,
    index_kinds,
    intrinsic,
    literal,
    plain,
    shared_address,
    unpacked,
)  # fmt: skip
from labkit.ptx.on_gpu.formats import PTX_NAMES
from labkit.ptx.on_gpu.matrices import DEPTH, accumulators, check_accumulators

# A descriptor of a tile whose rows are 128 swizzled bytes: the leading offset is not used, eight rows lie 1024 bytes
# apart, and the mode stands in the top bits (PTX ISA, "Matrix Descriptor Format").
SWIZZLED_128 = 1 << 16 | (1024 >> 4) << 32 | 1 << 62
TRANSPOSES = {formats.BF16: ", 0, 0", formats.FP16: ", 0, 0"}  # only 16-bit formats have these operands


def descriptor(context, builder, array_type, index_type, array, index):
    """What `wgmma` takes for a tile in shared memory."""
    address = shared_address(context, builder, array_type, index_type, array, index)
    start = builder.lshr(builder.and_(address, fixed(0x3FFFF)), fixed(4))
    return builder.or_(builder.zext(start, I64), fixed(SWIZZLED_128, I64))


def _wgmma(acc, index, N, a_parts, B, b_index, FORMAT):
    """Signature-independent part: checks, and the code that issues it on the fragments or descriptor of A."""
    number, columns = check_accumulators(acc, index, FORMAT), literal(N, "N")
    index_kinds(B, b_index)
    if number == formats.INT8:
        raise TypingError("wgmma takes BF16, FP16, TF32 or E4M3 here; use mma for INT8")
    if columns % 8 or not 8 <= columns <= 256:
        raise TypingError(f"N is 8 to 256 in steps of 8, not {columns}")
    name, depth, count = PTX_NAMES[number], DEPTH[number], columns // 2
    transposes = TRANSPOSES.get(number, "")
    if a_parts == 4 and transposes:
        transposes = ", 0"  # A in registers has none

    def issue(context, builder, acc_value, acc_index, a_operands, b_descriptor):
        places = accumulators(context, builder, acc, index, acc_value, acc_index, count)
        held = [builder.load(place) for place in places]
        sums = ", ".join(f"${i}" for i in range(count))
        a = ", ".join(f"${count + i}" for i in range(len(a_operands)))
        a = f"{{{a}}}" if len(a_operands) > 1 else a
        b = f"${count + len(a_operands)}"
        text = (
            f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.f32.{name}.{name} "
            f"{{{sums}}}, {a}, {b}, 1, 1, 1{transposes};"
        )
        begun = assembly(builder, text, (F32,) * count, [*a_operands, b_descriptor], ties=held)
        for place, value in zip(places, unpacked(builder, begun, count), strict=True):
            builder.store(value, place)
        return context.get_dummy_value()

    return issue


@intrinsic(warpgroups.wgmma)
def _from_shared(typing, acc, index, N, A, a_index, B, b_index, FORMAT):
    index_kinds(A, a_index)
    issue = _wgmma(acc, index, N, 1, B, b_index, FORMAT)

    def code(context, builder, signature, arguments):
        a = descriptor(context, builder, A, a_index, *arguments[3:5])
        b = descriptor(context, builder, B, b_index, *arguments[5:7])
        return issue(context, builder, *arguments[:2], [a], b)

    return types.void(acc, index, N, A, a_index, B, b_index, FORMAT), code


@intrinsic(warpgroups.wgmma_registers)
def _from_registers(typing, acc, index, N, a, B, b_index, FORMAT):
    issue = _wgmma(acc, index, N, 4, B, b_index, FORMAT)

    def code(context, builder, signature, arguments):
        b = descriptor(context, builder, B, b_index, *arguments[4:6])
        return issue(context, builder, *arguments[:2], cgutils.unpack_tuple(builder, arguments[3]), b)

    return types.void(acc, index, N, types.UniTuple(types.uint32, 4), B, b_index, FORMAT), code


def _numbered(text, what):
    """The definition of an instruction whose one operand is fixed at compile time."""

    def definition(typing, count):
        number = literal(count, what)

        def code(context, builder, signature, arguments):
            assembly(builder, text.format(number), VOID, [])
            return context.get_dummy_value()

        return types.void(count), code

    return definition


intrinsic(warpgroups.wgmma_fence)(plain("wgmma.fence.sync.aligned;"))
intrinsic(warpgroups.wgmma_commit)(plain("wgmma.commit_group.sync.aligned;"))
intrinsic(warpgroups.wgmma_wait)(_numbered("wgmma.wait_group.sync.aligned {};", "how many groups may be under way"))
intrinsic(warpgroups.setmaxnreg_inc)(_numbered("setmaxnreg.inc.sync.aligned.u32 {};", "a number of registers"))
intrinsic(warpgroups.setmaxnreg_dec)(_numbered("setmaxnreg.dec.sync.aligned.u32 {};", "a number of registers"))
