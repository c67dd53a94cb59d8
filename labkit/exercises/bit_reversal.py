"""The order of points in which a radix-4 Fourier transform starts."""

import numpy as np

from labkit.checking import NO_FLOAT64, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import LOADING_THREADS
from labkit.checking.placed_cure import PlacedCure, calls_of
from labkit.exercises.problems import EPS, shared_among_threads
from labkit.ladder import Expected
from labkit.table import count_text

THREADS = 64
STEPS = (
    "Take the digits off one by one, `digits` times: `rest % 4` goes behind the digits that `place` has, "
    "`4 * place + rest % 4`, and `rest // 4` is left."
)
OF_DIGITS = f"Store point n where the digits of n, in base 4, stand in reverse order. {STEPS}"
OPERATIONS = 12  # error bound of a pass, in eps of the norm


def roots_of_unity(count: int) -> np.ndarray:
    """Return the powers of the root of unity, real and imaginary parts side by side."""
    roots = np.exp(-2j * np.pi * np.arange(count) / count)
    return np.stack((np.real(roots), np.imag(roots)), 1).astype(np.float32)


def make_launch(rng, lines, max_points):
    digits = max(1, (max_points.bit_length() - 1) // 2)
    points = 4**digits
    x = rng.standard_normal((lines, points, 2), np.float32)
    norm = np.sqrt(points * (x.astype(np.float64) ** 2).sum((1, 2), keepdims=True))
    bound = np.broadcast_to(OPERATIONS * digits * EPS * norm, x.shape)

    def expect_spectra(x):
        spectra = np.fft.fft(x[..., 0] + 1j * x[..., 1].astype(np.float64))
        return {2: Expected(np.stack((spectra.real, spectra.imag), 2), bound)}

    n = np.arange(points)
    right_place = reverse(n, 4, digits)

    def put(cause, place, cure):
        """Make the mistake that puts point n in another place."""
        return Mistake(cause, lambda: expect_spectra(x[:, np.argsort(place)[right_place]]), cure)

    butterflies = points // 4 * digits
    return Launch(
        label=f"{count_text(lines, 'line')} of {points} points",
        args=(x, roots_of_unity(points), unwritten_array(x.shape), digits),
        outputs=expect_spectra(x),
        grid=(lines,),
        block=(THREADS,),
        budgets=(
            Budget(
                "global loads", lines * 2 * (points + 3 * butterflies), "each point once, and three roots a butterfly"
            ),
            Budget("shared loads", lines * (16 * butterflies + 4 * points), "16 for a butterfly, and 4 for a point"),
            Budget("global stores", lines * 2 * points, "each point once"),
            NO_FLOAT64,
        ),
        duties=(shared_among_threads(min(points, THREADS), most_per_thread=4, counter=LOADING_THREADS),),
        mistakes=(
            put("the points stayed in the order in which they came", n, OF_DIGITS),
            put("the last point came first", n[::-1], OF_DIGITS),
            put(
                "bits were reversed, not digits of base 4",
                reverse(n, 2, 2 * digits),
                PlacedCure(f"The two bits of each digit stay in order. {STEPS}", calls_of("brev")),
            ),
            put(
                "only the last digit of each place were moved",
                n % 4 * (points // 4) + n // 4,
                f"Move all of them. {STEPS}",
            ),
        ),
    )


def reverse(n, base, digits):
    """Return numbers with their digits in reverse order."""
    places = base ** np.arange(digits)
    return (n[:, None] // places % base * places[::-1]).sum(1)


EXERCISE = Exercise(
    title="Bit reversal, in base 4",
    task="These butterflies combine four points at a time; a line has 4^digits points. Put each point of `x` where the "
    "first pass expects it.",
    points=3,
    function="transform_lines",
    make_launch=make_launch,
    sizes=((3, 16), (2, 256), (5, 4)),  # lines, upper limit of their points, which are a power of 4
    random_sizes=(((1, 2), (64,)), ((2, 3, 4), (4, 16)), ((1,), (1024,))),
)
