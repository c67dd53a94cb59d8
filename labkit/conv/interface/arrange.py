"""Arrays that kernels of convolutions take as they lie; others are copied into C order, and results from there."""

from labkit.arrays.addresses import PIECE_BYTES, address_of, lies_in_order


def lies_well(X) -> bool:
    """Whether kernels, which read neighbours 16 bytes at once, take an array of the device as it lies."""
    return lies_in_order(X) and address_of(X) % PIECE_BYTES == 0
