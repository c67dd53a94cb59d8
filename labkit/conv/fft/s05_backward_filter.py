"""The gradient of the filters uses the same launches: it correlates images with outputs, and sums over all tiles.

The outputs of a tile, padded with zeros, are the filter now; they are correlated with the tile of the image that they
came from. The result needs only R x S points, so all T - R + 1 rows of outputs fit. Its spectrum is a product
K x (N tiles) times (N tiles) x C. So tiles, not channels, are the rows of the spectra.

The gradient of a flipped filter is flipped too. Conjugates of the other operand rotate it about the point 0. So it
begins R - 1 rows and S - 1 columns before that point, which is at the end of the tile.

Costs are those of `s02_tiled`. Limited by the product, whose sums are long and whose results are few.
"""

from labkit.conv.fft.problem import SpectralFilter
from labkit.conv.fft.product import make_product
from labkit.conv.fft.s02_tiled import allocate_spectra, choose_tiles, make_inverse, make_transform, tiled
from labkit.conv.problem import PLAIN_NCHW

PROBLEM = SpectralFilter
SUPPORTED = PLAIN_NCHW | {"result": ("w",)}  # fields that it takes; w: gradient of filters
QUICK_TO_SIMULATE = True  # its loops are short: calls without a GPU prefer it
backward_filter = tiled


def launches(x, w, y, problem, workspace):
    """w = the gradient of the filters, from images x and the gradient y of the outputs."""
    problem.check(x, w, y, supported=SUPPORTED)
    C, K, R, S = problem.C, problem.K, problem.R, problem.S
    side, step, tiles = choose_tiles(problem)
    count = problem.N * tiles[0] * tiles[1]
    outputs = allocate_spectra(workspace, "outputs", side, count, K)
    images = allocate_spectra(workspace, "images", side, count, C)
    filters = allocate_spectra(workspace, "filters", side, K, C)
    first_output, corner = step if problem.flipped else (0, 0), (problem.top, problem.left)
    tiling = {"step": step, "tiles": tiles, "tiles_as_rows": True}
    return [
        make_transform(y, outputs, side, sizes=step, conjugated=not problem.flipped, **tiling),
        make_transform(x, images, side, sizes=(side, side), corner=corner, conjugated=problem.flipped, **tiling),
        make_product(outputs, images, filters, K, C, count),
        make_inverse(filters, w, side, step=(R, S), first_output=first_output, tiles_as_rows=True),
    ]
