"""A dilated, grouped convolution of images whose channels come last."""

from dataclasses import replace
from functools import partial

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.conv import Forward
from labkit.exercises.problems import grid_for, one_thread_per_element
from labkit.ladder import Expected
from labkit.table import count_text

BLOCK = 16, 4, 2
# Sizes: groups, channels and filters of each, P, Q, R, S, dilation
TURN = "Turn the filter in both directions: tap R - 1 - r meets row r of a window, and S - 1 - s column s."
HOLES = "The taps of a filter are `dilation` rows and columns apart: multiply r and s by it in the index of x."
GROUPS = "Each group has K / groups filters next to one another; x's channels of group n begin at n times w.shape[2]."


def make_launch(rng, groups, channels, filters, P, Q, R, S, dilation):
    H, W = P + dilation * (R - 1), Q + dilation * (S - 1)
    C, K = groups * channels, groups * filters
    problem = Forward(1, C, H, W, K, R, S, dilation_h=dilation, dilation_w=dilation, groups=groups, flipped=True)
    x, w, y, _ = problem.operands(seed=int(rng.integers(2**31)))
    if K > 2:
        w[-1] = 0  # an output of 0 is to be stored, too

    def expect_outputs(x, w, problem=problem):
        (expected,) = problem.expected((x, w, y, problem)).values()
        return {2: Expected(*(array[0].transpose(1, 2, 0) for array in (expected.value, expected.bound)))}

    rows = P + R - 1  # without dilation
    columns = Q + S - 1
    is_last_tap = np.arange(R * S).reshape(R, S) == R * S - 1  # which the first pixel meets, since filters are turned

    def expect_channels(first):
        """Expect the outputs of filters that read the channels from `first` on, one number per filter."""
        x_of = np.concatenate([x[:, begin : begin + channels] for begin in first], 1)
        return expect_outputs(x_of, w, replace(problem, C=K * channels, groups=K))

    dense = replace(problem, H=rows, dilation_h=1)
    first_group = np.tile(x[:, :channels], (1, groups, 1, 1))
    return Launch(
        label=f"{H} x {W} pixels of {count_text(C, 'channel')}, {count_text(K, 'filter')} of {R} x {S}, "
        f"dilation {dilation}, {count_text(groups, 'group')}",
        args=(
            x[0].transpose(1, 2, 0).copy(),
            w.transpose(2, 3, 1, 0).copy(),
            unwritten_array((P, Q, K)),
            dilation,
            groups,
        ),
        outputs=expect_outputs(x, w),
        grid=grid_for((K, Q, P), BLOCK),
        block=BLOCK,
        budgets=(Budget("global loads", problem.flops, "one pixel and one tap per product"), NO_FLOAT64),
        duties=(one_thread_per_element((K, Q, P), BLOCK),),
        mistakes=(
            Mistake("the filter were not turned", lambda: expect_outputs(x, w[..., ::-1, ::-1]), TURN),
            Mistake("only the rows of the filter were turned", lambda: expect_outputs(x, w[..., ::-1]), TURN),
            Mistake("only the columns of the filter were turned", lambda: expect_outputs(x, w[..., ::-1, :]), TURN),
            Mistake("the rows of a filter had no dilation", lambda: expect_outputs(x[:, :, :rows], w, dense), HOLES),
            Mistake(
                "the columns of a filter had no dilation",
                lambda: expect_outputs(x[..., :columns], w, replace(problem, W=columns, dilation_w=1)),
                HOLES,
            ),
            Mistake(
                "there were no dilation",
                lambda: expect_outputs(x[:, :, :rows, :columns], w, replace(dense, W=columns, dilation_w=1)),
                HOLES,
            ),
            Mistake("all groups read the channels of the first", lambda: expect_outputs(first_group, w), GROUPS),
            Mistake(
                "the channels of each group began one after those of the group before",
                lambda: expect_channels(np.arange(K) // filters),
                GROUPS,
            ),
            Mistake(
                "neighbouring filters were in different groups",
                lambda: expect_channels(np.arange(K) % groups * channels),
                GROUPS,
            ),
            Mistake(
                "only the last row of each window were counted",
                lambda: expect_outputs(x, np.where(np.arange(R)[:, None] == 0, w, 0).astype(w.dtype)),
                "Set the sum to 0 once, before all loops.",
            ),
            Mistake(
                "only the first pixel of each window were counted",
                lambda: expect_outputs(x, np.where(is_last_tap, w, 0).astype(w.dtype)),
                "Store the sum after all loops have ended: a `return` inside of a loop ends the thread there.",
            ),
            *count_filters_along_z(expect_outputs(x, w)[2]),
        ),
    )


def count_filters_along_z(y):
    """Make the mistake by which the grid's axes are taken in another order; none if they cover y so, too."""
    rows, columns, filters = np.ogrid[tuple(map(slice, y.value.shape))]
    along_x, along_y, along_z = (
        blocks * threads for blocks, threads in zip(grid_for(y.value.shape[::-1], BLOCK), BLOCK, strict=True)
    )
    cure = "`cuda.grid(3)` gives x, y and z in this order; here x counts filters, y columns and z rows."
    for one, other in ((rows, columns), (columns, rows)):
        is_covered = (one < along_x) & (other < along_y) & (filters < along_z)
        if not is_covered.all():
            value = np.where(is_covered, y.value, np.nan)
            yield Mistake("the grid's z counted filters", partial(dict, {2: Expected(value, y.bound)}), cure)


EXERCISE = Exercise(
    title="Holes and groups",
    task="Write the convolution y of x with filters w, with a dilation and with groups. The filter is rotated "
    "by half a turn, as in mathematics. There is no padding, and the stride is 1. Channels come last: x is H x W x C, "
    "w is R x S x (C / groups) x K, and y is P x Q x K.",
    points=4,
    function="holes_and_groups",
    make_launch=make_launch,
    sizes=(
        (1, 3, 16, 5, 8, 3, 2, 1),
        (2, 3, 8, 6, 5, 2, 3, 2),
        (6, 1, 1, 3, 7, 3, 3, 3),
        (3, 2, 5, 1, 2, 1, 4, 2),
        (2, 1, 3, 4, 5, 2, 3, 6),
    ),
    random_sizes=(
        ((1, 2), (2, 3), (16, 32), range(3, 8), range(4, 10), Above(5), (1, 2, 4), (2, 3)),
        ((3, 5), Above(4), (1, 2), (1,), Above(12), (1, 3), (2, 5), Above(5)),
        ((2, 4), (2, 3), (3, 7), Above(12), (1, 2), (2, 4), Above(5), (1, 5)),
    ),
)
