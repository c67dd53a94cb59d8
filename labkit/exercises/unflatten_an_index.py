"""The lowered matrix of images whose channels come last."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import expect, grid_for, one_thread_per_element, with_zeros

BLOCK = 32, 4
SPLIT_ROWS = (
    "In the line that sets r, s and c, take c first: it is the remainder by C. Split what is left into r and s."
)
SPLIT_COLUMNS = (
    "In the line that sets n, p and q, take q first: it is the remainder by Q. Split what is left into n and p."
)


def make_launch(rng, N, C, P, Q, R, S, stride):
    H, W = (P - 1) * stride + R, (Q - 1) * stride + S
    x = with_zeros(rng.standard_normal((N, H, W, C), np.float32))
    all_windows = np.lib.stride_tricks.sliding_window_view(x, (R, S), (1, 2))
    windows = all_windows[:, ::stride, ::stride]  # N P Q C R S

    def lower(windows, rows=(4, 5, 3), columns=(0, 1, 2)):
        return windows.transpose(*rows, *columns).reshape(R * S * C, N * P * Q)

    def mistake(cause, cure, *order):
        return Mistake(cause, lambda: {1: expect(lower(*order).astype(float))}, cure)

    lowered = lower(windows)
    return Launch(
        label=f"{N} image{'s' * (N > 1)} of {H} x {W} pixels and {C} channel{'s' * (C > 1)}, "
        f"windows of {R} x {S}, stride {stride}",
        args=(x, unwritten_array(lowered.shape), S, P, Q, stride),
        outputs={1: expect(lowered.astype(float))},
        grid=grid_for(lowered.shape[::-1], BLOCK),
        block=BLOCK,
        budgets=(
            Budget("global loads", lowered.size, "one pixel per element"),
            Budget("global stores", lowered.size, "each element once"),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element(lowered.shape[::-1], BLOCK),),
        mistakes=(
            mistake("rows were counted over R, C and S", SPLIT_ROWS, windows, (4, 3, 5)),
            mistake("columns were counted over N, Q and P", SPLIT_COLUMNS, windows, (4, 5, 3), (0, 2, 1)),
            mistake("columns were counted over P, Q and N", SPLIT_COLUMNS, windows, (4, 5, 3), (1, 2, 0)),
            mistake("the stride were 1", "Multiply p and q by `stride` where x is loaded.", all_windows[:, :P, :Q]),
        ),
    )


EXERCISE = Exercise(
    title="Unflatten an index",
    task="The channels come last here: x is N x H x W x C. Rows of the matrix are counted over R, S and C, the last "
    "one fastest, and columns over N, P and Q. Split each row number into r, s and c, and each column number into "
    "n, p and q.",
    points=2,
    function="lower",
    make_launch=make_launch,
    sizes=(
        (2, 3, 4, 6, 3, 2, 1),
        (3, 5, 3, 2, 1, 4, 2),
        (1, 1, 2, 7, 5, 3, 3),
        (2, 2, 5, 11, 2, 1, 1),  # 55 times the float32 nearest to 1/55 is less than 1
        (1, 328, 1, 2, 2, 1, 1),  # so with 328 and 41; and more than a byte counts
        (1, 1, 2, 41, 2, 41, 1),
    ),  # N, C, P, Q, R, S, stride
    random_sizes=(
        ((2, 3), range(3, 7), range(3, 8), range(4, 9), (2, 3), (3, 4, 5), (1, 2)),
        (Above(4), (2, 3), (1, 2, 3), Above(7), (1, 2), Above(4), (1,)),
        ((1, 2), Above(6), Above(5), (2, 3), Above(5), (1, 2), Above(4)),
        ((2,), (2,), (1,), Above(41), (1,), (1, 2), (1,)),  # long rows of little work
    ),
)
