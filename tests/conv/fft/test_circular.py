"""Whole circular planes, held against sums around the circle."""

import numpy as np
import pytest

from labkit import conv


def around_the_circle(tile, w):
    """The circular correlation of a tile with a filter, by its definition."""
    return sum(w[r, s] * np.roll(tile, (-r, -s), (0, 1)) for r, s in np.ndindex(w.shape))


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(1)
    w = rng.standard_normal((2, 5, 4), np.float32)
    w[1, 3:], w[1, :, 2:] = 0, 0
    return conv.circular(rng.standard_normal((28, 21), np.float32), w)


def test_each_plane_is_the_circular_correlation_of_its_tile(run):
    assert (run.step, run.planes.shape) == ((12, 13), (2, 2, 2, 16, 16))
    padded = np.zeros((28, 29))
    padded[:28, :21] = run.x
    for k, i, j in np.ndindex(2, 2, 2):
        tile = padded[12 * i : 12 * i + 16, 13 * j : 13 * j + 16]
        np.testing.assert_allclose(run.planes[k, i, j], around_the_circle(tile, run.w[k]), atol=1e-4)


def test_just_the_last_rows_and_columns_are_stained(run):
    clean = ~run.stained()
    for k, (R, S) in ((0, (5, 4)), (1, (3, 2))):
        assert run.taps(k) == (R, S)
        inside = np.zeros((16, 16), bool)
        inside[: 16 - R + 1, : 16 - S + 1] = True
        assert (clean[k, 0, 0] == inside).all()
    assert clean[..., :12, :13].all()


def test_what_is_kept_of_the_planes_is_the_result(run):
    for i, j in np.ndindex(2, 2):
        y = run.y[:, 12 * i : 12 * i + 12, 13 * j : 13 * j + 13]
        np.testing.assert_array_equal(y, run.planes[:, i, j, : y.shape[1], : y.shape[2]])


def test_arrays_with_gaps_are_taken():
    image = np.random.default_rng(2).standard_normal((16, 20), np.float32)
    found = conv.circular(image[:, :16], np.ones((3, 3, 3), np.float32)[1:2])
    assert found.stained().sum() == 256 - 14**2


def test_a_pixel_that_is_nan_stains_its_own_tiles_only():
    x = np.random.default_rng(4).uniform(0, 1, (28, 40)).astype(np.float32)
    x[9, 13] = np.nan  # where two tiles overlap
    run = conv.circular(x, np.ones((1, 5, 5), np.float32))
    stains = run.stained()[0, :, :, :12, :12]
    assert [[int(tile.sum()) for tile in row] for row in stains] == [[129, 134, 0], [0, 0, 0]]


def test_the_spectrum_of_an_image_alone_is_that_of_a_whole_run():
    x = np.random.default_rng(3).uniform(0, 1, (16, 16)).astype(np.float32)
    X = conv.spectrum(x)
    np.testing.assert_array_equal(X, conv.spectra(x, np.ones((2, 3, 3), np.float32)).X)
    np.testing.assert_allclose(X, np.fft.fft2(x), atol=1e-4)
    with pytest.raises(ValueError, match="16 x 20"):
        conv.spectrum(np.ones((16, 20), np.float32))
