"""Packing of 4-bit numbers: neighbours along the last axis share a byte, the first in the low half.

This is the layout of torch's `float4_e2m1fn_x2` and of PTX's `e2m1x2`.
"""

import numpy as np
from jaxtyping import Shaped, UInt8

HALF_BITS = 4
LOW = np.uint8(0x0F)


def pack(codes: Shaped[np.ndarray, "..."], bits: int) -> Shaped[np.ndarray, "..."]:
    """Pack codes as in memory: 4-bit codes in pairs, others unchanged; raise ValueError for an odd last axis."""
    if bits != HALF_BITS:
        return codes
    codes = np.asarray(codes)
    if codes.ndim == 0 or codes.shape[-1] % 2:
        raise ValueError(
            f"there are {codes.shape[-1] if codes.ndim else 1} numbers of 4 bits in a row, and a byte holds two: "
            "make rows even, with zeros at the end"
        )
    return codes[..., 0::2] & LOW | codes[..., 1::2] << np.uint8(HALF_BITS)


def unpack(array: Shaped[np.ndarray, "..."], bits: int) -> Shaped[np.ndarray, "..."]:
    """Return the codes in an array; the reverse of `pack`."""
    if bits != HALF_BITS:
        return array
    halves: UInt8[np.ndarray, "... 2"] = np.stack([array & LOW, array >> np.uint8(HALF_BITS)], axis=-1)
    return halves.reshape(*array.shape[:-1], -1)
