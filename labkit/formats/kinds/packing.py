"""Numbers of 4 bits, of which a byte holds two: along the last axis, the first in the low half.

That is how torch's `float4_e2m1fn_x2` and PTX's `e2m1x2` lie.
"""

import numpy as np
from jaxtyping import Shaped, UInt8

HALF_BITS = 4
LOW = np.uint8(0x0F)


def pack(codes: Shaped[np.ndarray, "..."], bits: int) -> Shaped[np.ndarray, "..."]:
    """Return codes of some bits as memory holds them: codes of 4 bits in pairs.

    Raises
    ------
    ValueError
        The last axis has an odd length, so that a byte would be half empty.
    """
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
    """Return the codes that an array holds; the reverse of `pack`."""
    if bits != HALF_BITS:
        return array
    halves: UInt8[np.ndarray, "... 2"] = np.stack([array & LOW, array >> np.uint8(HALF_BITS)], axis=-1)
    return halves.reshape(*array.shape[:-1], -1)
