"""Products of spectra, held against a correlation by hand."""

import numpy as np
import pytest

from labkit import conv
from labkit.views import spectral_product
from labkit.views.base import unpack

T = 16


@pytest.fixture(scope="module")
def run():
    rng = np.random.default_rng(3)
    w = np.zeros((2, 3, 3), np.float32)
    w[0, 0, 0] = 2
    w[1] = rng.uniform(0.5, 1, (3, 3))
    return conv.spectra(rng.uniform(0, 1, (T, T)).astype(np.float32), w)


def test_the_spectra_are_those_of_the_definition_and_their_product(run):
    X, W = np.fft.fft2(run.x), np.fft.fft2(run.w, (T, T)).conj()
    for computed, true in ((run.X, X), (run.W, W), (run.Y, X * W)):
        assert np.abs(computed - true).max() < 1e-5 * np.abs(true).max()
    rolled = sum(run.w[1, r, s] * np.roll(run.x, (-r, -s), (0, 1)) for r in range(3) for s in range(3))
    assert np.abs(run.y[1] - rolled).max() < 1e-5 and np.abs(run.y[0] - 2 * run.x).max() < 1e-5


def test_what_is_written_out_is_a_product(run):
    numbers = spectral_product(run).data["numbers"]
    X, W, Y = ((lambda re, im: re + 1j * im)(*map(unpack, numbers[name])) for name in "XWY")
    assert X.shape == (1, T, T // 2 + 1) and W.shape == Y.shape == (2, T, T // 2 + 1)
    assert np.abs(X * W - Y).max() < 1e-4


def test_sentences_count_products_of_both_ways(run):
    one, nine = spectral_product(run).data["say"]
    assert one.startswith("A filter of **1 x 1** taps: sliding takes **1** product per output.")
    assert nine == (
        "A filter of **3 x 3** taps: sliding takes **9** products per output. "
        "The spectra take **one** per frequency, 130 in all, for any filter."
    )
    rows = spectral_product(run).data["table"]["rows"]
    assert [row[:3] for row in rows] == [["1 x 1", 1, 130], ["3 x 3", 9, 130]]
    assert rows[0][3:] == ["2 + 0i", "2 + 0i"]  # one tap has the same number at every frequency


def test_a_still_picture(run, tmp_path):
    spectral_product(run).save_png(tmp_path / "product.png", step=1)
    assert (tmp_path / "product.png").stat().st_size > 5000


def test_an_image_that_is_no_tile_is_refused():
    with pytest.raises(ValueError, match="16 x 16, 32 x 32 or 64 x 64"):
        conv.spectra(np.ones((20, 20), np.float32), np.ones((1, 3, 3), np.float32))
