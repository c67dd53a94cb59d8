"""Tile shapes of the images' gradient, and their predicted times."""

from functools import lru_cache
from math import ceil

from labkit.conv.tensor.tilings import TILINGS as CONVOLUTION_TILINGS
from labkit.conv.tensor.tilings import WM, Product, Tiling
from labkit.conv.tensor_gradients.tile_times import kernel_cycles, load_cycles, step_cycles

TILINGS = (
    *(tiling for tiling in CONVOLUTION_TILINGS if tiling.filters % 64 == 0),  # whole boxes of filters
    *(Tiling(2, 1, filters, teams=2) for filters in (64, 128, 192, 256)),
    *(Tiling(2, 2, filters, teams=2) for filters in (64, 128)),
)


@lru_cache(1024)  # products
def best_tiling(product: Product, sms: int) -> Tiling:
    """Return the tiling with the least predicted time on a GPU with this number of SMs."""
    return min(TILINGS, key=lambda tiling: estimate_cycles(tiling, product, sms))


def estimate_cycles(tiling: Tiling, product: Product, sms: int) -> float:
    """Return the predicted cycles of the gradient of 16-bit numbers; its channels are the filters of the product."""
    rows, cols = tiling.pixels, tiling.filters
    row_tiles, col_tiles = ceil(product.pixels / rows), ceil(product.filters / cols)
    loads = load_cycles(rows, product.pixels, col_tiles) + load_cycles(cols, product.filters, row_tiles)
    read_rows = tiling.warpgroups // tiling.teams * tiling.m_blocks * (WM + cols)
    main_cycles = product.steps * step_cycles(rows, cols, read_rows, loads)
    waves = ceil(row_tiles * col_tiles / sms)
    return kernel_cycles(waves, main_cycles, rows * cols, tiling.teams, product.bytes)
