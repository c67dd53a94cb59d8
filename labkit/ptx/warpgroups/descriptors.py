"""Descriptors of tiles in shared memory: the 64 bits that `wgmma` takes in place of an address.

(NVIDIA, *PTX ISA*, "Matrix Descriptor Format", and "Strides" of the canonical layouts.)
"""

from dataclasses import dataclass

UNIT_BYTES = 16  # in which a descriptor counts its address and its offsets
ADDRESS_MASK = 0x3FFFF  # of a byte in shared memory
GROUP_ROWS = 8  # after which the swizzle begins again
ROW_BYTES = 128


@dataclass(frozen=True)
class Field:
    """Some bits of a descriptor, from the `first` on."""

    name: str
    first: int
    bits: int

    def place(self, value: int) -> int:
        """Return a descriptor that has only this field."""
        return value << self.first

    def read(self, descriptor: int) -> int:
        """Return the field's value."""
        return descriptor >> self.first & (1 << self.bits) - 1


START = Field("start address", 0, 14)
LEADING = Field("leading offset", 16, 14)  # between tiles of an MN-major operand
STRIDE = Field("stride offset", 32, 14)  # between groups of eight rows
BASE = Field("base offset", 49, 3)  # of a tile that does not begin at a multiple of 1024 bytes
SWIZZLE = Field("swizzle", 62, 2)
FIELDS = START, LEADING, STRIDE, BASE, SWIZZLE
SWIZZLED_BYTES = {1: 128, 2: 64, 3: 32}  # of a row, by the value of SWIZZLE; 0 is no swizzle


def encode(byte: int) -> int:
    """Return an address or offset in the units of a descriptor."""
    return (byte & ADDRESS_MASK) // UNIT_BYTES


# What is the same in all descriptors of tiles with rows of 128 swizzled bytes.
SWIZZLED_128 = STRIDE.place(encode(GROUP_ROWS * ROW_BYTES)) | SWIZZLE.place(1)
LEADING_NOT_USED = LEADING.place(1)  # by K-major operands


def k_major_descriptor(address: int) -> int:
    """Return the descriptor of a tile with rows of 128 swizzled bytes along k, from this byte of shared memory on."""
    return START.place(encode(address)) | LEADING_NOT_USED | SWIZZLED_128
