"""The product of two spectra of real lines, from their stored halves to all bins."""

from functools import partial
from typing import Any

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import EPS, grid_for, one_thread_per_element
from labkit.ladder import Expected
from labkit.table import count_text

BLOCK = 32, 4
CONJUGATE = (
    "A correlation takes the conjugate of W, a convolution does not: change the sign of W's imaginary part alone."
)
UPPER = "Store bin T - f, too: real part as in bin f, imaginary part with the opposite sign."


def make_launch(rng, lines, points, turned):
    X, W = (_half_spectrum(rng.standard_normal((lines, points))) for _ in range(2))
    X[0, points // 3], W[-1, points // 2] = 0, 0  # waves that a line does not have
    x, w = (spectrum[..., 0] + 1j * spectrum[..., 1].astype(np.float64) for spectrum in (X, W))
    half = x * (w if turned else w.conj())

    def expect_spectrum(half: Any, mirror: Any = np.conj):
        """Expect all bins if `mirror` makes the upper ones of the lower ones."""
        upper = slice(points - points // 2 - 1, 0, -1)
        spectrum: Any = np.concatenate((half, mirror(half[:, upper])), 1)
        assert spectrum.shape == (lines, points)
        sizes = np.abs(x) * np.abs(w)
        bound = 16 * EPS * np.concatenate((sizes, sizes[:, upper]), 1)
        return {2: Expected(np.stack((spectrum.real, spectrum.imag), 2), np.stack((bound, bound), 2))}

    conjugates = {
        "W never had a conjugate": x * w,
        "W always had a conjugate": x * w.conj(),
        "the conjugate were that of X": x * w if turned else x.conj() * w,
    }
    added = half + 2 * x.imag * (w if turned else w.conj()).imag
    return Launch(
        label=f"{count_text(lines, 'line')} of {count_text(points, 'point')}, "
        f"{'convolution' if turned else 'correlation'}",
        args=(X, W, unwritten_array((lines, points, 2)), turned),
        outputs=expect_spectrum(half),
        grid=grid_for((points // 2 + 1, lines), BLOCK),
        block=BLOCK,
        budgets=(
            Budget("global loads", 2 * X.size, "each number of both spectra once", {"X": X.size, "W": W.size}),
            Budget("global stores", 2 * lines * points + 2 * lines, "each number once, or twice where two bins meet"),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element((points // 2 + 1, lines), BLOCK),),
        mistakes=(
            *(Mistake(cause, partial(expect_spectrum, wrong), CONJUGATE) for cause, wrong in conjugates.items()),
            Mistake("the upper half had no conjugate", lambda: expect_spectrum(half, np.array), UPPER),
            Mistake(
                "the upper half were not stored", lambda: expect_spectrum(half, lambda upper: upper * np.nan), UPPER
            ),
            Mistake(
                "the product of imaginary parts were added",
                lambda: expect_spectrum(added),
                "Subtract it: i times i is -1.",
            ),
        ),
    )


def _half_spectrum(lines):
    """Return the stored half of the spectra of real lines, real and imaginary parts side by side."""
    spectrum = np.fft.rfft(lines)
    return np.stack((spectrum.real, spectrum.imag), 2).astype(np.float32)


EXERCISE = Exercise(
    title="The conjugate",
    task="`X` and `W` hold the spectra of real lines, bins 0 to T // 2 of T. Write all T bins of the spectrum of their "
    "circular correlation, or, where `turned` is 1, of their circular convolution. Load each number once.",
    points=3,
    function="whole_spectrum",
    make_launch=make_launch,
    sizes=((5, 16, 0), (9, 5, 1), (2, 70, 1), (4, 2, 0)),  # lines, their points, turned or not
    random_sizes=(((1, 3, 6), (8, 32, 100), (0, 1)), ((2, 5), (1, 3, 15, 33), (1,)), (Above(9), Above(70), (0,))),
)
