"""GPU code of conversions: LLVM IR and inline PTX."""

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.errors import TypingError

from labkit.ptx import formats
from labkit.ptx.intrinsics import F32, I32, constant, intrinsic, literal_value, pure_instruction

PTX_NAMES = {format.number: format.ptx_name for format in formats.KNOWN.values()}


def list_names(numbers, last: str) -> str:
    """Return formats by their names in a sentence: "BF16, FP16 or TF32"."""
    *others, end = (formats.NAMES[number] for number in numbers)
    return f"{', '.join(others)} {last} {end}" if others else end


def _half(kind):
    number = literal_value(kind, "the format")
    if number not in formats.HALVES:
        raise TypingError(f"a uint32 has two halves of {list_names(formats.HALVES, 'or')}; choose one of these formats")
    return PTX_NAMES[number]


@intrinsic(formats.pack2)
def _pack2(typing, low, high, FORMAT):
    text = f"cvt.rn.{_half(FORMAT)}x2.f32 $0, $2, $1;"
    return pure_instruction(text, types.uint32, types.float32, types.float32, FORMAT)(typing)


PACK4 = """{{
.reg .b16 low, high;
cvt.rn.satfinite.{0}x2.f32 low, $2, $1;
cvt.rn.satfinite.{0}x2.f32 high, $4, $3;
mov.b32 $0, {{low, high}};
}}"""


@intrinsic(formats.pack4)
def _pack4(typing, a, b, c, d, FORMAT):
    number = literal_value(FORMAT, "the format")
    if number not in formats.QUARTERS:
        raise TypingError(f"a uint32 has four bytes of {list_names(formats.QUARTERS, 'or')}; choose that format")
    return pure_instruction(PACK4.format(PTX_NAMES[number]), types.uint32, *[types.float32] * 4, FORMAT)(typing)


@intrinsic(formats.unpack2)
def _unpack2(typing, bits, FORMAT):
    name = _half(FORMAT)

    def code(context, builder, signature, arguments):
        bits = arguments[0]
        halves = [builder.trunc(bits, ir.IntType(16)), builder.trunc(builder.lshr(bits, constant(16)), ir.IntType(16))]
        if name == "f16":
            values = [builder.fpext(builder.bitcast(half, ir.HalfType()), F32) for half in halves]
        else:
            values = [builder.bitcast(builder.shl(builder.zext(half, I32), constant(16)), F32) for half in halves]
        return cgutils.pack_array(builder, values)

    return types.UniTuple(types.float32, 2)(types.uint32, FORMAT), code


intrinsic(formats.to_tf32)(pure_instruction("cvt.rna.tf32.f32 $0, $1;", types.uint32, types.float32))
