"""Arrays that kernels of convolutions take as they lie; others are copied into C order, and results from there."""

from labkit.arrays.addresses import VECTOR_BYTES, address_of, has_c_order


def lies_well(X) -> bool:
    """Whether kernels, which read neighbours 16 bytes at once, take an array of the device as it lies."""
    return has_c_order(X) and address_of(X) % VECTOR_BYTES == 0
