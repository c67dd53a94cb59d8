"""A picture as a sum of waves, held against waves that are known and against NumPy."""

import numpy as np
import pytest

from labkit import conv
from labkit.views import spectrum
from labkit.views.base import unpack

T = 16
ROW, COLUMN = np.mgrid[:T, :T]
WAVES = 0.5 + 0.25 * np.cos(2 * np.pi * 3 * COLUMN / T) + 0.125 * np.sin(2 * np.pi * (ROW - 2 * COLUMN) / T)


def of(x):
    """Return the view of an image whose spectrum the kernels computed."""
    return spectrum(x, conv.spectra(x.astype(np.float32), np.ones((1, 1, 1), np.float32)).X)


def test_waves_come_by_strength_and_add_up():
    view = of(WAVES)
    assert view.data["counts"] == [1, 2, 4, 8, 16, 32, 64, T * T // 2 + 2]
    assert view.data["last"][:2] == [[0, 0], [0, 3]]
    assert (
        view.data["say"][0]
        == "The strongest wave: the mean, the same everywhere. The sum is off by 100% of the contrast."
    )
    assert "**2 of 130 waves**: the last has 0 periods down and 3 across" in view.data["say"][1]
    assert view.data["say"][-1] == "All **130 waves** give the picture back, up to rounding."
    share = 0.125 / np.hypot(0.25, 0.125)  # of the contrast, which the third wave has
    assert view.data["stats"][1] == [2, f"{share:.0%}"] and view.data["stats"][2][1] == "0%"


def test_a_frequency_and_its_mirror_are_one_wave():
    used = unpack(of(WAVES).data["used"])
    assert used[0, 0] == 0 and used[0, 3] == used[0, T - 3] == 1 and used[1, T - 2] == used[T - 1, 2] == 2
    assert sorted(set(used.ravel())) == list(range(T * T // 2 + 2))


def test_the_picture_adds_the_waves_that_it_marks():
    rng = np.random.default_rng(5)
    x = rng.uniform(0.3, 0.7, (T, T))
    view = of(x)
    X, used = np.fft.fft2(x), unpack(view.data["used"])
    for step, count in enumerate(view.data["counts"]):
        partial = np.fft.ifft2(np.where(used < count, X, 0)).real
        assert np.abs(unpack(view.data["sums"])[step] / 127 - np.clip(partial, 0, 1)).max() <= 0.5 / 127 + 1e-6
    assert (unpack(view.data["sums"])[-1] == unpack(view.data["x"])).all()
    errors = [row[-1] for row in view.data["table"]["rows"]]
    assert errors[0] == "100%" and errors[-1] == "0%"


def test_a_still_picture(tmp_path):
    of(WAVES).save_png(tmp_path / "waves.png", step=1)
    assert (tmp_path / "waves.png").stat().st_size > 5000


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="a square image and its spectrum"):
        spectrum(np.ones((4, 8)), np.ones((4, 8)))
