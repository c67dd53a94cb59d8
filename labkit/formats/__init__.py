"""Number formats: their array types, rounding to them, and the values of their bits, in NumPy.

A file of this folder is a format: `bfloat16.py` defines `BF16`, whose name is "bfloat16", with all its properties.
Every table of formats (here, and of types, tensors, kernels and instructions) is derived from these files. `kinds` has
the classes that they share.

NumPy has no bfloat16 and no 8-bit or 4-bit floats: arrays of uint16 and uint8 hold their bits, which are numbers only
together with the name of a format. (Micikevicius and others, FP8 Formats for Deep Learning, 2022; Open Compute
Project, Microscaling Formats Specification, 2023; PTX ISA, "Alternate Floating-Point Data Formats".)

>>> from labkit.formats import BF16
>>> A = BF16.encode(rng.standard_normal((64, 64)))
"""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from labkit.formats.bfloat16 import BF16_NAN
from labkit.formats.float8_e4m3 import E4M3_LOSS, E4M3_MAX, E4M3_NAN
from labkit.formats.kinds.format import Format


def _formats() -> Iterator[tuple[str, Format]]:
    """Yield the symbol and the format that each file of this folder defines."""
    for file in iter_modules(__path__):
        if not file.ispkg:
            for symbol, value in vars(import_module(f"{__name__}.{file.name}")).items():
                if isinstance(value, Format) and value.name == file.name:
                    yield symbol, value


SYMBOLS: dict[str, Format] = dict(sorted(_formats(), key=lambda pair: pair[1].sort_key))  # by symbol: "BF16"
FORMATS: dict[str, Format] = {format.name: format for format in SYMBOLS.values()}  # by name: "bfloat16"
# by torch's name of the type, such as "float8_e4m3fn"
TYPES = {format.type_name: format for format in SYMBOLS.values() if format.type_name}
globals().update(SYMBOLS)

__all__ = ["BF16_NAN", "E4M3_LOSS", "E4M3_MAX", "E4M3_NAN", "FORMATS", "SYMBOLS", "TYPES", "Format", "format_named"]
__all__ += list(SYMBOLS)

if TYPE_CHECKING:

    def __getattr__(symbol: str) -> Format: ...


def format_named(name: str | Format) -> Format:
    """Return a format by its name, or itself; a ValueError lists the existing names."""
    if isinstance(name, Format):
        return name
    if not isinstance(name, str) or name not in FORMATS:
        raise ValueError(f"there is no format {name!r}; there are {', '.join(FORMATS)}")
    return FORMATS[name]
