"""A depthwise convolution, channels last: a run of outputs per thread, whose windows share pixels in registers."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import EPS, grid_for, one_thread_per_element
from labkit.ladder import Expected

LANES, RUNS = 32, 4  # threads of a block along the channels, and along the runs of a row
RUN, TAPS = 4, 3  # outputs of a thread, and rows and columns of a filter


def make_launch(rng, H, W, C):
    x, w = rng.standard_normal((H, W, C), np.float32), rng.standard_normal((TAPS, TAPS, C), np.float32)

    def convolve(w, before=1, is_left_out=None):
        """Expect y for taps that begin `before` the pixel; `is_left_out` marks columns of y and taps of a row."""
        padded = np.pad(x, ((before, 2 - before), (before, 2 - before), (0, 0))).astype(float)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (TAPS, TAPS), (0, 1))
        if is_left_out is not None:
            windows = np.where(is_left_out[:, None, None, :], 0, windows)
        value, size = np.einsum("hwcrs,rsc->hwc", windows, w), np.einsum("hwcrs,rsc->hwc", abs(windows), abs(w))
        return {2: Expected(value, TAPS * TAPS * EPS * size)}

    def is_tap(place, tap):
        """Mark a tap of the outputs at one place of each run."""
        return (np.arange(W)[:, None] % RUN == place) & (np.arange(TAPS) == tap)

    grid = *grid_for((C, W), (LANES, RUNS * RUN)), H
    runs = [range(first - 1, first + RUN + 1) for first in range(0, grid[1] * RUNS * RUN, RUN)]
    pixels = sum(col in range(W) for run in runs for col in run)  # of a row, by all its runs
    x_loads = C * pixels * (3 * H - 2)  # each row of outputs sees three rows of pixels, but for the first and last
    w_loads = C * TAPS * TAPS * grid[1] * RUNS * H
    return Launch(
        label=f"an image of {H} x {W} pixels and {C} channel{'s' * (C > 1)}",
        args=(x, w, unwritten_array((H, W, C))),
        outputs=convolve(w),
        grid=grid,
        block=(LANES, RUNS),
        budgets=(
            Budget(
                "global loads",
                x_loads + w_loads,
                "per thread, the pixels under its run once: 3 rows of RUN + 2, and its 9 taps once",
                {"x": x_loads, "w": w_loads},
            ),
            Budget("global stores", H * W * C, "each output once"),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element((C, -(-W // RUN)), (LANES, RUNS)),),
        mistakes=(
            Mistake(
                "there were no padding above and on the left",
                lambda: convolve(w, 0),
                "The window begins one pixel above and left of its output: subtract 1 from row and column.",
            ),
            Mistake(
                "the filter were turned",
                lambda: convolve(w[::-1, ::-1]),
                "Take the taps in the order of the pixels: row r of `w` for row r of the window.",
            ),
            Mistake(
                "the left and the right tap were exchanged",
                lambda: convolve(w[:, ::-1]),
                "Look at the lines that add a pixel: output i has pixel i under its left tap.",
            ),
            Mistake(
                "the pixel after a run were left out",
                lambda: convolve(w, 1, is_tap(RUN - 1, 2)),
                "RUN windows of 3 columns cover RUN + 2 pixels: let the loop over them end there.",
            ),
            Mistake(
                "the first output of a run had no middle tap",
                lambda: convolve(w, 1, is_tap(0, 1)),
                "Look at the condition of the middle tap: the first output's is under pixel 1.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="A filter per channel",
    task="Write a depthwise convolution of 3 x 3, channels last, with a row or column of zeros on each side. A thread "
    "computes RUN neighbours of a row, in one channel. Their windows overlap: load each pixel under them once.",
    points=4,
    function="depthwise",
    make_launch=make_launch,
    sizes=((5, 9, 40), (2, 16, 32), (3, 7, 5)),  # H, W, C
    random_sizes=(
        (range(3, 7), range(17, 27), (33, 35, 61)),
        ((1, 2), Above(26), (1, 3)),
        (Above(7), (1, 2, 5), Above(61)),
    ),
)
