"""Scales of blocks: neighbours along the last axis share a scale.

A number is stored as a code, its bits in a format. Its value is that of the code times the block's scale.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Shaped

from labkit.formats.kinds.format import Format


def scales_to_largest(amax: Float64[np.ndarray, "..."], format: Format) -> Float64[np.ndarray, "..."]:
    """Return scales that map the largest number of each block to the format's largest."""
    return amax / format.largest


def power_of_two_scales(amax: Float64[np.ndarray, "..."], format: Format) -> Float64[np.ndarray, "..."]:
    """Return powers of two that give the largest number of each block the exponent of the format's largest.

    (Open Compute Project, Microscaling Formats Specification, 2023, section 6.3.)
    """
    with np.errstate(divide="ignore"):
        return 2.0 ** (np.floor(np.log2(amax)) - np.floor(np.log2(format.largest)))


@dataclass(frozen=True)
class BlockScales:
    """Rule that gives each block of numbers a scale.

    Attributes
    ----------
    block
        How many numbers a block has.
    format
        Format of the scales.
    rule
        Function `(amax, format)` that returns the scales of blocks in a format, from their largest absolute values.
    """

    block: int
    format: Format
    rule: Callable[[np.ndarray, Format], np.ndarray] = scales_to_largest

    def encode(
        self, values: Float[np.ndarray, "*rows columns"], format: Format
    ) -> tuple[Shaped[np.ndarray, "..."], Shaped[np.ndarray, "..."]]:
        """Return the codes of values in a format and of their scales; raise ValueError for incomplete blocks."""
        values = np.asarray(values, np.float64)
        if values.ndim == 0 or values.shape[-1] % self.block:
            raise ValueError(
                f"values are of shape {values.shape}, and {self.block} neighbours in a row share a scale: make rows a "
                f"multiple of {self.block} long, with zeros at the end"
            )
        blocks = values.reshape(*values.shape[:-1], -1, self.block)
        amax = np.abs(blocks).max(axis=-1)
        scales = self.format.encode(np.where(amax == 0, 1.0, self.rule(amax, format)))
        factors = self.format.decode(scales)[..., None]
        with np.errstate(divide="ignore", invalid="ignore"):  # a scale may be too small for its format
            scaled = np.where(factors == 0, 0.0, blocks / factors)
        return format.encode(scaled.reshape(values.shape)), scales

    def decode(
        self, codes: Shaped[np.ndarray, "..."], scales: Shaped[np.ndarray, "..."], format: Format
    ) -> Float64[np.ndarray, "*rows columns"]:
        """Return the values of codes with their scales; the reverse of `encode`."""
        values = format.decode(codes)
        return values * np.repeat(self.format.decode(scales), self.block, axis=-1)
