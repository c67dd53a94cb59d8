"""The transforms against NumPy's, for each number of points."""

import numpy as np
import pytest

import labkit
from labkit import cuda, ptx
from labkit.arrays.workspace import Workspace
from labkit.conv.fft import lines, s01_whole, s02_tiled
from labkit.conv.fft.lines import F, T, load_points, load_roots, store_points, transform

SIDES = s02_tiled.SIDES
LINES = 16
PITCH = 80
PLANE = LINES * PITCH


@cuda.jit
def of_lines(X, Y):
    """Y is X transformed along its rows; both hold real parts and then imaginary ones."""
    planes = ptx.shared_array(0, (2, PLANE), np.float32)
    re, im = cuda.local.array(8, np.float32), cuda.local.array(8, np.float32)
    root_re, root_im = cuda.local.array(8, np.float32), cuda.local.array(8, np.float32)
    j, line = cuda.threadIdx.x % F, cuda.threadIdx.x // F
    for k in range(j, T, F):
        planes[0, line * PITCH + lines.slot(k)], planes[1, line * PITCH + lines.slot(k)] = (
            X[0, line, k],
            X[1, line, k],
        )
    cuda.syncwarp()
    load_roots(root_re, root_im, j)
    load_points(re, im, planes, 0, 1, line * PITCH, j)
    transform(re, im, root_re, root_im, planes, 0, 1, line * PITCH, j)
    store_points(re, im, planes, 0, 1, line * PITCH, j)
    cuda.syncwarp()
    for k in range(j, T, F):
        Y[0, line, k], Y[1, line, k] = (
            planes[0, line * PITCH + lines.slot(k)],
            planes[1, line * PITCH + lines.slot(k)],
        )


@pytest.mark.parametrize("points", SIDES)
def test_a_line_is_transformed(points):
    rng = np.random.default_rng(points)
    X = rng.standard_normal((2, LINES, points)).astype(np.float32)
    kernel = labkit.specialise(of_lines, T=points, F=points // 8)
    run = labkit.simulate(kernel, 1, LINES * points // 8, X, np.zeros_like(X), shared_bytes=2 * PLANE * 4)
    assert run.errors == ()
    expected = np.fft.fft(X[0].astype(np.float64) + 1j * X[1])
    off = np.linalg.norm(run.outputs[1][0] + 1j * run.outputs[1][1] - expected, axis=1)
    assert (off <= np.log2(points) * 7 * 2.0**-24 * np.linalg.norm(expected, axis=1)).all()


def spectrum_of(side, found):
    """All T x (T / 2 + 1) frequencies of the bins that are kept."""
    half = side // 2
    full = np.empty((side, half + 1, *found.shape[1:]), found.dtype)
    for column, kept in ((0, found[: half + 1]), (half, found[half + 1 : side + 2])):
        full[: half + 1, column] = kept
        full[half + 1 :, column] = kept[1:half][::-1].conj()
    full[:, 1:half] = found[side + 2 :].reshape(half - 1, side, *found.shape[1:]).swapaxes(0, 1)
    return full


def run(launch):
    trace = labkit.simulate(
        launch.kernel, launch.grid, launch.block, *launch.arguments, shared_bytes=launch.shared_bytes
    )
    assert trace.errors == ()
    return trace.outputs


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_tiles_have_the_spectra_that_numpy_finds_and_come_back(side, swapped):
    rng = np.random.default_rng(side)
    X = rng.standard_normal((2, 3, side - 4, side + 9)).astype(np.float32)
    top, left, step = 2, 1, (side - 3, side - 5)
    tiles = 2, 2
    padded = np.zeros((2, 3, 3 * side, 3 * side))
    padded[:, :, top : top + X.shape[2], left : left + X.shape[3]] = X
    cut = np.stack(
        [
            padded[:, :, h * step[0] : h * step[0] + side, w * step[1] : w * step[1] + side]
            for h in range(tiles[0])
            for w in range(tiles[1])
        ]
    )  # tile, image, channel
    rows, columns = (8, 3) if swapped else (3, 8)
    to = s02_tiled.allocate_spectra(Workspace(), "x", side, rows, columns)
    to = np.full(to.shape, np.nan, np.float32)
    tiling = {"step": step, "tiles": tiles, "tiles_as_rows": swapped}
    forth = s02_tiled.make_transform(X, to, side, sizes=(side, side), corner=(top, left), conjugated=True, **tiling)
    found = run(forth)[3]
    kept = found.view(np.complex64)[..., :columns]
    of_tiles = cut.transpose(1, 0, 2, 3, 4) if swapped else cut.transpose(2, 1, 0, 3, 4)
    expected = np.fft.rfft2(of_tiles.reshape(rows, columns, side, side)).conj().transpose(2, 3, 0, 1)
    assert np.abs(spectrum_of(side, kept) - expected).max() <= 1e-6 * np.linalg.norm(expected, axis=(0, 1)).max()

    sides = tiles[0] * step[0] - 2, tiles[1] * step[1] - 1
    Y = np.full((2, 3, *sides), np.nan, np.float32)
    back = s02_tiled.make_inverse(found, Y, side, first_output=(1, 2), **tiling)
    turned = np.roll(cut[..., ::-1, ::-1], 1, (-1, -2))  # a conjugate spectrum is that of the tile turned about (0, 0)
    picture = np.block([[turned[2 * h + w][..., 1 : 1 + step[0], 2 : 2 + step[1]] for w in range(2)] for h in range(2)])
    np.testing.assert_allclose(run(back)[1].reshape(2, 3, *sides), picture[..., : sides[0], : sides[1]], atol=2e-5)


@pytest.mark.parametrize("side", [2, 16, 64])
def test_a_whole_image_has_the_spectrum_that_numpy_finds(side):
    X = np.random.default_rng(side).standard_normal((1, 2, side, side - 1)).astype(np.float32)
    spectra = np.full((side, side // 2 + 1, 2, 1, 2), np.nan, np.float32)
    kernel = s01_whole._specialise(s01_whole.whole, side)
    shared_bytes = 2 * 4 * side * (side + 1)
    trace = labkit.simulate(kernel, (1, 2), 256, X, spectra, 0, 1, np.float32(1), shared_bytes=shared_bytes)
    assert trace.errors == ()
    expected = np.fft.rfft2(np.pad(X[0].astype(np.float64), ((0, 0), (0, 0), (1, 0))))
    found = trace.outputs[1][..., 0, 0] + 1j * trace.outputs[1][..., 0, 1]
    assert np.abs(found.transpose(2, 0, 1) - expected).max() <= 1e-6 * np.linalg.norm(expected)
