"""GPU code of `wgmma` and `setmaxnreg`: LLVM IR and inline PTX."""

from inspect import signature

from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError

from labkit.ptx import formats, matrices, warpgroups
from labkit.ptx.formats.on_gpu import PTX_NAMES, list_names
from labkit.ptx.intrinsics import (
    F32,
    I32,
    I64,
    bare_instruction,
    constant,
    emit_assembly,
    index_types,
    intrinsic,
    literal_value,
    shared_address,
    unpack,
    with_literal,
)
from labkit.ptx.matrices.on_gpu import DEPTH, accumulators, check_accumulators
from labkit.ptx.warpgroups import K_MAJOR, MN_MAJOR
from labkit.ptx.warpgroups.descriptors import (
    ADDRESS_MASK,
    LEADING,
    LEADING_NOT_USED,
    SWIZZLED_128,
    UNIT_BYTES,
)

UNIT_SHIFT = UNIT_BYTES.bit_length() - 1
MN_COLUMNS = 64  # of a tile of an MN-major operand


def descriptor(context, builder, array_type, index_type, array, index, major):
    """Return the descriptor of a tile in shared memory, which `wgmma` takes."""
    address = shared_address(context, builder, array_type, index_type, array, index)
    start = builder.lshr(builder.and_(address, constant(ADDRESS_MASK)), constant(UNIT_SHIFT))  # from bit 0 on
    tile_stride = constant(LEADING_NOT_USED)
    if major == MN_MAJOR and array_type.ndim > 2:
        strides = cgutils.unpack_tuple(builder, context.make_array(array_type)(context, builder, array).strides)
        tile_units = builder.lshr(builder.trunc(strides[-3], I32), constant(UNIT_SHIFT))
        tile_stride = builder.shl(tile_units, constant(LEADING.first))
    low = builder.zext(builder.or_(start, tile_stride), I64)
    return builder.or_(low, constant(SWIZZLED_128, I64))


def check_tile(array, index, major, columns=MN_COLUMNS):
    """Raise TypingError for a tile that has no `descriptor`."""
    index_types(array, index)
    if major == MN_MAJOR and columns > MN_COLUMNS and array.ndim < 3:
        raise TypingError(f"an MN-major B of {columns} columns needs an axis for its tiles of {MN_COLUMNS}")


def _major(kind, FORMAT) -> int:
    """Return whether an operand is K-major or MN-major; raise TypingError where its format does not allow it."""
    major = literal_value(kind, "how an operand lies")
    if major not in (K_MAJOR, MN_MAJOR):
        raise TypingError(f"an operand lies ptx.K_MAJOR or ptx.MN_MAJOR, and {major} is neither")
    if major == MN_MAJOR and formats.ON_LANES[literal_value(FORMAT, "the format")].bits != 16:
        raise TypingError("operands of BF16 or FP16 may lie MN-major: copy others into rows along k")
    return major


# scale-d is a predicate, which assembly here has no operands for.
SCALED = "{{\n.reg .pred keeps;\nsetp.ne.u32 keeps, ${}, 0;\n{}\n}}"


def _wgmma(acc, index, N, FORMAT, majors, scale=None):
    """Check a product and return the code that issues it.

    `majors` are those of the operands in shared memory, B's last. `scale` has the types of `keeps` and `SIGN`, if the
    instruction has them; the code takes the value of `keeps` last.
    """
    number, columns = check_accumulators(acc, index, FORMAT), literal_value(N, "N")
    if number not in warpgroups.FORMATS:
        others = list_names(matrices.FORMATS.keys() - warpgroups.FORMATS.keys(), "or")
        raise TypingError(f"wgmma takes {list_names(warpgroups.FORMATS, 'or')} here; use mma for {others}")
    if columns % 8 or not 8 <= columns <= 256:
        raise TypingError(f"N is 8 to 256 in steps of 8, not {columns}")
    name, depth, count = PTX_NAMES[number], DEPTH[number], columns // 2
    transposes = "".join(f", {major}" for major in majors) if formats.ON_LANES[number].bits == 16 else ""
    keeps, sign = scale or (None, None)
    a_sign = _sign(sign) if scale else 1

    def issue(context, builder, acc_value, acc_index, a_operands, b_descriptor, keeps_value=None):
        pointers = accumulators(context, builder, acc, index, acc_value, acc_index, count)
        overwrites = isinstance(keeps, types.Literal) and not keeps.literal_value
        held = [] if overwrites else [builder.load(pointer) for pointer in pointers]
        scale_d, scale_operand = "0" if overwrites else "1", []
        if keeps is not None and not isinstance(keeps, types.Literal):
            scale_d = "keeps"
            scale_operand = [builder.zext(context.cast(builder, keeps_value, keeps, types.boolean), I32)]
        sums = ", ".join(f"${i}" for i in range(count))
        a = ", ".join(f"${count + i}" for i in range(len(a_operands)))
        a = f"{{{a}}}" if len(a_operands) > 1 else a
        b = f"${count + len(a_operands)}"
        text = (
            f"wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.f32.{name}.{name} "
            f"{{{sums}}}, {a}, {b}, {scale_d}, {a_sign}, 1{transposes};"
        )
        if scale_operand:
            text = SCALED.format(count + len(a_operands) + 1, text)
        operands = [*a_operands, b_descriptor, *scale_operand]
        results = emit_assembly(builder, text, (F32,) * count, operands, ties=held)
        for pointer, value in zip(pointers, unpack(builder, results, count), strict=True):
            builder.store(value, pointer)
        return context.get_dummy_value()

    return issue


def _sign(kind) -> int:
    sign = literal_value(kind, "the sign of a product")
    if sign not in (1, -1):
        raise TypingError(f"the sign of a product is 1 or -1, not {sign}")
    return sign


def _multiply(function):
    """Return the definition of a `wgmma`, whose parameters tell what it takes; see `labkit.ptx.warpgroups`."""
    names = list(signature(function).parameters)

    def definition(typing, *kinds):
        argument_types = dict(zip(names, kinds, strict=True))
        N, FORMAT = argument_types["N"], argument_types["FORMAT"]
        tiles = {}  # operands in shared memory: their major, by the number of the array's argument
        for name in ("A", "B") if "A" in argument_types else ("B",):
            major = _major(argument_types[f"{name}_MAJOR"], FORMAT) if f"{name}_MAJOR" in argument_types else K_MAJOR
            tiles[names.index(name)] = major
            columns = [literal_value(N, "N")] if name == "B" else []
            check_tile(argument_types[name], argument_types[f"{name.lower()}_index"], major, *columns)
        scale = (argument_types["keeps"], argument_types["SIGN"]) if "keeps" in argument_types else None
        issue = _wgmma(argument_types["acc"], argument_types["index"], N, FORMAT, [*tiles.values()], scale)

        def code(context, builder, signature, arguments):
            *a, b = (
                descriptor(context, builder, *kinds[n : n + 2], *arguments[n : n + 2], major)
                for n, major in tiles.items()
            )
            a = a or cgutils.unpack_tuple(builder, arguments[3])
            return issue(context, builder, *arguments[:2], a, b, *([arguments[-2]] if scale else []))

        fragment = types.UniTuple(types.uint32, 4)
        return types.void(*(fragment if name == "a" else kind for name, kind in argument_types.items())), code

    return definition


for _function in (
    warpgroups.wgmma, warpgroups.wgmma_major, warpgroups.wgmma_scaled,
    warpgroups.wgmma_registers, warpgroups.wgmma_registers_major, warpgroups.wgmma_registers_scaled,
):  # fmt: skip
    intrinsic(_function)(_multiply(_function))
intrinsic(warpgroups.wgmma_fence)(bare_instruction("wgmma.fence.sync.aligned;"))
intrinsic(warpgroups.wgmma_commit)(bare_instruction("wgmma.commit_group.sync.aligned;"))
intrinsic(warpgroups.wgmma_wait)(with_literal("wgmma.wait_group.sync.aligned {};", "how many groups may be in flight"))
intrinsic(warpgroups.setmaxnreg_inc)(with_literal("setmaxnreg.inc.sync.aligned.u32 {};", "a number of registers"))
intrinsic(warpgroups.setmaxnreg_dec)(with_literal("setmaxnreg.dec.sync.aligned.u32 {};", "a number of registers"))
