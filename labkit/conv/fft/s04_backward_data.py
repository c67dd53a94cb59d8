"""The gradient of the images uses the same launches, with images and outputs, and channels and filters, exchanged.

A pixel contributed to every output whose window covers it. So its gradient is a convolution of the outputs' gradient,
padded to the size of the image. A forward correlation becomes a backward convolution: there is no conjugate, and the
first valid result follows R - 1 rows and S - 1 columns of wrap-around. With a flipped forward filter it is the other
way round.

Costs are those of `s02_tiled`, with C and K, and images and outputs, exchanged.
"""

from labkit.conv.fft.problem import SpectralData, SpectralForward
from labkit.conv.fft.product import make_product
from labkit.conv.fft.s02_tiled import allocate_spectra, choose_tiles, make_inverse, make_transform, tiled
from labkit.conv.problem import PLAIN_NCHW

PROBLEM = SpectralData
SUPPORTED = PLAIN_NCHW | {"result": ("x",)}  # fields that it takes; x: gradient of images
QUICK_TO_SIMULATE = True  # its loops are short: calls without a GPU prefer it
backward_data = tiled


def launches(x, w, y, problem, workspace):
    """x = the gradient of the images, from filters w and the gradient y of the outputs."""
    problem.check(x, w, y, supported=SUPPORTED)
    N, C, K, R, S = problem.N, problem.C, problem.K, problem.R, problem.S
    top, left = R - 1 - problem.top, S - 1 - problem.left
    pads = top, R - 1 - problem.bottom, left, S - 1 - problem.right
    side, step, tiles = choose_tiles(SpectralForward(N, K, problem.P, problem.Q, C, R, S, 1, 1, *pads))
    count = N * tiles[0] * tiles[1]
    filters = allocate_spectra(workspace, "filters", side, K, C)
    outputs = allocate_spectra(workspace, "outputs", side, K, count)
    images = allocate_spectra(workspace, "images", side, C, count)
    first_output = (0, 0) if problem.flipped else (R - 1, S - 1)
    return [
        make_transform(w, filters, side, sizes=(R, S), tiles_as_rows=True, conjugated=problem.flipped),
        make_transform(y, outputs, side, sizes=(side, side), step=step, tiles=tiles, corner=(top, left)),
        make_product(filters, outputs, images, C, count, K),
        make_inverse(images, x, side, step=step, tiles=tiles, first_output=first_output),
    ]
