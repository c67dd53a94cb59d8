"""Number formats of the tensor cores on lanes: decoding, and conversions to them.

(PTX ISA, "Alternate Floating-Point Data Formats" and `cvt`; Micikevicius and others, FP8 Formats for Deep Learning,
2022.)
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from labkit import formats
from labkit.simulator.functions import half
from labkit.simulator.operands import check_argument_count, constant_argument
from labkit.simulator.seam import types
from labkit.simulator.values import Tuple

REGISTER_BITS = 32


@dataclass(frozen=True)
class Format:
    """A number format in registers.

    `flops` names the counter of operations on it, "bfloat16 tensor"; `decode` takes registers, an array of uint32, and
    returns their numbers along one more axis; `encode` rounds float32 to it.
    """

    name: str
    bits: int
    flops: str
    decode: Callable[[np.ndarray], np.ndarray]
    encode: Callable[[np.ndarray], np.ndarray]

    @property
    def per_register(self) -> int:
        """Numbers per register."""
        return REGISTER_BITS // self.bits


def _splitter(dtype):
    """Return a function that splits registers into numbers of a narrower dtype, the lowest bits first."""
    return lambda bits: np.asarray(bits, order="C")[..., None].view(dtype)


def _half_encoder(to_bits):
    half_nan = np.uint32(0x7FFF)  # result of a conversion of NaN
    return lambda value: np.where(np.isnan(value), half_nan, to_bits(value).astype(np.uint32))


def _to_tf32(value):
    bits = np.asarray(value).view(np.uint32)
    rounded = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)  # half a unit of the 10 bits of fraction that stay
    truncated = bits & np.uint32(0xFFFFE000)  # for infinities and NaNs, as on an H100
    return np.where(np.isfinite(value), rounded, truncated)[()]


# How conversions round float32, where that differs from the format's own `encode`.
_ENCODERS = {
    formats.BF16: _half_encoder(lambda value: half.to_bits(half.to_bfloat16(value))),
    formats.FP16: _half_encoder(lambda value: np.asarray(half.to_float16(value)).view(np.uint16)),
    formats.TF32: _to_tf32,
}


def register_format(name: str, format: formats.Format) -> Format:
    """Return a format in registers, by its name in the kernel language."""
    split = _splitter(format.dtype)

    def decode(bits):
        return format.multiplied_values(split(bits))

    def encode(value):
        return format.encode(value).astype(np.uint32)

    return Format(name, format.bits, format.arithmetic, decode, _ENCODERS.get(format, encode))


def find_format(translator, node, argument, formats: dict[int, Format]) -> Format:
    """Return the format that an argument names, one of `formats` by their numbers in the kernel language."""
    written = translator.dotted(argument)
    if written in {f"ptx.{form.name}" for form in formats.values()}:
        translator.fail(
            argument,
            f"numba wants a name of yours for the format: write `FORMAT = {written}` above, and use FORMAT here",
        )
    number = constant_argument(translator, node, argument, "the format")
    if number not in formats:
        *others, last = (f"`ptx.{f.name}`" for f in formats.values())
        known = f"{', '.join(others)} or {last}" if others else last
        translator.fail(node, f"the format of `{translator.written(node.func)}` is {known}, not {number}")
    return formats[number]


@dataclass(frozen=True)
class Pack:
    """Call `(*values, FORMAT)` that rounds `count` float32 to the parts of a uint32, the first in the lowest bits."""

    formats: dict[int, Format]
    count: int

    def translate(self, translator, node):
        check_argument_count(translator, node, self.count + 1)
        what = f"`{translator.written(node.func)}`"
        values = [translator.converted(translator.scalar(a, what), types.float32) for a in node.args[:-1]]
        encode = translator.constant(find_format(translator, node, node.args[-1], self.formats).encode)
        bits = REGISTER_BITS // self.count
        parts = " | ".join(f"{encode}({value}) << np.uint32({bits * n})" for n, value in enumerate(values))
        return translator.temp(f"({parts})", types.uint32)


@dataclass(frozen=True)
class Unpack:
    """Call `(bits, FORMAT)` that converts the halves of a uint32 to two float32."""

    formats: dict[int, Format]

    def translate(self, translator, node):
        check_argument_count(translator, node, 2)
        value = translator.scalar(node.args[0], f"`{translator.written(node.func)}`")
        format = find_format(translator, node, node.args[1], self.formats)
        halves = translator.constant(lambda bits: tuple(np.moveaxis(format.decode(bits), -1, 0)))
        return translator.temp(f"{halves}({translator.converted(value, types.uint32)})", Tuple((types.float32,) * 2))


@dataclass(frozen=True)
class Round:
    """Call that rounds a float32 to a format of 32 bits."""

    format: Format

    def translate(self, translator, node):
        check_argument_count(translator, node, 1)
        value = translator.scalar(node.args[0], f"`{translator.written(node.func)}`")
        encode = translator.constant(self.format.encode)
        return translator.temp(f"{encode}({translator.converted(value, types.float32)})", types.uint32)
