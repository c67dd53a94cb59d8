"""The machine code of `wgmma` and `setmaxnreg`."""

from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError

from labkit.ptx import formats, matrices, warpgroups
from labkit.ptx.formats.on_gpu import PTX_NAMES, listed
from labkit.ptx.intrinsics import (
    F32,
    I32,
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
from labkit.ptx.matrices.on_gpu import DEPTH, accumulators, check_accumulators
from labkit.ptx.warpgroups import K_MAJOR, MN_MAJOR

# A descriptor of a tile whose rows are 128 swizzled bytes: eight rows lie 1024 bytes apart, and the mode stands in the
# top bits. Bits 16 to 29 say how far apart the tiles of an MN-major operand lie; K-major ones have no use for it. (PTX
# ISA, "Matrix Descriptor Format", and "Strides" of the canonical layouts.)
SWIZZLED_128 = (1024 >> 4) << 32 | 1 << 62
NOT_USED = 1 << 16
MN_COLUMNS = 64  # of a tile of an MN-major operand


def descriptor(context, builder, array_type, index_type, array, index, major):
    """What `wgmma` takes for a tile in shared memory."""
    address = shared_address(context, builder, array_type, index_type, array, index)
    start = builder.lshr(builder.and_(address, fixed(0x3FFFF)), fixed(4))
    apart = fixed(NOT_USED)
    if major == MN_MAJOR and array_type.ndim > 2:
        strides = cgutils.unpack_tuple(builder, context.make_array(array_type)(context, builder, array).strides)
        apart = builder.shl(builder.lshr(builder.trunc(strides[-3], I32), fixed(4)), fixed(16))
    low = builder.zext(builder.or_(start, apart), I64)
    return builder.or_(low, fixed(SWIZZLED_128, I64))


def check_tile(array, index, major, columns=MN_COLUMNS):
    """Refuses what `descriptor` cannot describe."""
    index_kinds(array, index)
    if major == MN_MAJOR and columns > MN_COLUMNS and array.ndim < 3:
        raise TypingError(f"an MN-major B of {columns} columns needs an axis for its tiles of {MN_COLUMNS}")


def _major(kind, FORMAT) -> int:
    """How an operand lies, which its format must allow."""
    major = literal(kind, "how an operand lies")
    if major not in (K_MAJOR, MN_MAJOR):
        raise TypingError(f"an operand lies ptx.K_MAJOR or ptx.MN_MAJOR, and {major} is neither")
    if major == MN_MAJOR and formats.ON_LANES[literal(FORMAT, "the format")].bits != 16:
        raise TypingError("operands of BF16 or FP16 may lie MN-major: copy others into rows along k")
    return major


# scale-d is a predicate, which assembly here has no operands for.
SCALED = "{{\n.reg .pred keeps;\nsetp.ne.u32 keeps, ${}, 0;\n{}\n}}"


def _wgmma(acc, index, N, FORMAT, majors, scale=None):
    """Checks, and the code that issues it; `majors` says how the operands in shared memory lie, B's last.

    `scale` has the types of `keeps` and `SIGN`, where there are these; the code takes the value of `keeps` last.
    """
    number, columns = check_accumulators(acc, index, FORMAT), literal(N, "N")
    if number not in warpgroups.FORMATS:
        of_mma = listed(matrices.FORMATS.keys() - warpgroups.FORMATS.keys(), "or")
        raise TypingError(f"wgmma takes {listed(warpgroups.FORMATS, 'or')} here; use mma for {of_mma}")
    if columns % 8 or not 8 <= columns <= 256:
        raise TypingError(f"N is 8 to 256 in steps of 8, not {columns}")
    name, depth, count = PTX_NAMES[number], DEPTH[number], columns // 2
    transposes = "".join(f", {major}" for major in majors) if formats.ON_LANES[number].bits == 16 else ""
    keeps, sign = scale or (None, None)
    a_sign = _sign(sign) if scale else 1

    def issue(context, builder, acc_value, acc_index, a_operands, b_descriptor, keeps_value=None):
        places = accumulators(context, builder, acc, index, acc_value, acc_index, count)
        begins = isinstance(keeps, types.Literal) and not keeps.literal_value
        held = [] if begins else [builder.load(place) for place in places]
        adds, more = "0" if begins else "1", []
        if keeps is not None and not isinstance(keeps, types.Literal):
            adds, more = "keeps", [builder.zext(context.cast(builder, keeps_value, keeps, types.boolean), I32)]
        sums = ", ".join(f"${i}" for i in range(count))
        a = ", ".join(f"${count + i}" for i in range(len(a_operands)))
        a = f"{{{a}}}" if len(a_operands) > 1 else a
        b = f"${count + len(a_operands)}"
        text = (
            f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.f32.{name}.{name} "
            f"{{{sums}}}, {a}, {b}, {adds}, {a_sign}, 1{transposes};"
        )
        if more:
            text = SCALED.format(count + len(a_operands) + 1, text)
        begun = assembly(builder, text, (F32,) * count, [*a_operands, b_descriptor, *more], ties=held)
        for place, value in zip(places, unpacked(builder, begun, count), strict=True):
            builder.store(value, place)
        return context.get_dummy_value()

    return issue


def _sign(kind) -> int:
    sign = literal(kind, "the sign of a product")
    if sign not in (1, -1):
        raise TypingError(f"the sign of a product is 1 or -1, not {sign}")
    return sign


def _of_tiles(acc, index, N, FORMAT, a, b, scale=None):
    """The code of a product of two tiles; a tile is its array and index, how it lies, and its argument's number."""
    check_tile(*a[:3])
    check_tile(*b[:3], literal(N, "N"))
    issue = _wgmma(acc, index, N, FORMAT, (a[2], b[2]), scale)

    def code(context, builder, signature, arguments):
        a_descriptor, b_descriptor = (
            descriptor(context, builder, array, place, *arguments[number : number + 2], major)
            for array, place, major, number in (a, b)
        )
        keeps = [arguments[-2]] if scale else []
        return issue(context, builder, *arguments[:2], [a_descriptor], b_descriptor, *keeps)

    return code


def _of_a_fragment(acc, index, N, FORMAT, B, b_index, major, scale=None):
    """The code of a product of a fragment and a tile."""
    check_tile(B, b_index, major, literal(N, "N"))
    issue = _wgmma(acc, index, N, FORMAT, (major,), scale)

    def code(context, builder, signature, arguments):
        b = descriptor(context, builder, B, b_index, *arguments[4:6], major)
        keeps = [arguments[-2]] if scale else []
        return issue(context, builder, *arguments[:2], cgutils.unpack_tuple(builder, arguments[3]), b, *keeps)

    return code


@intrinsic(warpgroups.wgmma)
def _from_shared(typing, acc, index, N, A, a_index, B, b_index, FORMAT):
    code = _of_tiles(acc, index, N, FORMAT, (A, a_index, K_MAJOR, 3), (B, b_index, K_MAJOR, 5))
    return types.void(acc, index, N, A, a_index, B, b_index, FORMAT), code


@intrinsic(warpgroups.wgmma_major)
def _from_shared_major(typing, acc, index, N, A, a_index, A_MAJOR, B, b_index, B_MAJOR, FORMAT):
    a, b = (A, a_index, _major(A_MAJOR, FORMAT), 3), (B, b_index, _major(B_MAJOR, FORMAT), 6)
    code = _of_tiles(acc, index, N, FORMAT, a, b)
    return types.void(acc, index, N, A, a_index, A_MAJOR, B, b_index, B_MAJOR, FORMAT), code


@intrinsic(warpgroups.wgmma_registers)
def _from_registers(typing, acc, index, N, a, B, b_index, FORMAT):
    code = _of_a_fragment(acc, index, N, FORMAT, B, b_index, K_MAJOR)
    return types.void(acc, index, N, types.UniTuple(types.uint32, 4), B, b_index, FORMAT), code


@intrinsic(warpgroups.wgmma_registers_major)
def _from_registers_major(typing, acc, index, N, a, B, b_index, B_MAJOR, FORMAT):
    code = _of_a_fragment(acc, index, N, FORMAT, B, b_index, _major(B_MAJOR, FORMAT))
    return types.void(acc, index, N, types.UniTuple(types.uint32, 4), B, b_index, B_MAJOR, FORMAT), code


@intrinsic(warpgroups.wgmma_scaled)
def _from_shared_scaled(typing, acc, index, N, A, a_index, A_MAJOR, B, b_index, B_MAJOR, FORMAT, keeps, SIGN):
    a, b = (A, a_index, _major(A_MAJOR, FORMAT), 3), (B, b_index, _major(B_MAJOR, FORMAT), 6)
    code = _of_tiles(acc, index, N, FORMAT, a, b, (keeps, SIGN))
    return types.void(acc, index, N, A, a_index, A_MAJOR, B, b_index, B_MAJOR, FORMAT, keeps, SIGN), code


@intrinsic(warpgroups.wgmma_registers_scaled)
def _from_registers_scaled(typing, acc, index, N, a, B, b_index, B_MAJOR, FORMAT, keeps, SIGN):
    code = _of_a_fragment(acc, index, N, FORMAT, B, b_index, _major(B_MAJOR, FORMAT), (keeps, SIGN))
    fragment = types.UniTuple(types.uint32, 4)
    return types.void(acc, index, N, fragment, B, b_index, B_MAJOR, FORMAT, keeps, SIGN), code


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
