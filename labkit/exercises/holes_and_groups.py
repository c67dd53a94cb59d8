"""A dilated, grouped convolution of images whose channels come last."""

from dataclasses import replace

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.conv import Forward
from labkit.exercises.problems import grid_for, one_thread_per_element
from labkit.ladder import Expected
from labkit.table import count_text

BLOCK = 16, 4, 2
# Sizes: groups, channels and filters of each, P, Q, R, S, dilation


def make_launch(rng, groups, channels, filters, P, Q, R, S, dilation):
    H, W = P + dilation * (R - 1), Q + dilation * (S - 1)
    C, K = groups * channels, groups * filters
    problem = Forward(1, C, H, W, K, R, S, dilation_h=dilation, dilation_w=dilation, groups=groups, flipped=True)
    x, w, y, _ = problem.operands(seed=int(rng.integers(2**31)))

    def expect_outputs(x, w, problem=problem):
        (expected,) = problem.expected((x, w, y, problem)).values()
        return {2: Expected(*(array[0].transpose(1, 2, 0) for array in (expected.value, expected.bound)))}

    rows = P + R - 1  # without dilation
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
            Mistake("the filter were not turned", lambda: expect_outputs(x, w[..., ::-1, ::-1])),
            Mistake("only the rows of the filter were turned", lambda: expect_outputs(x, w[..., ::-1])),
            Mistake("the rows of a filter had no dilation", lambda: expect_outputs(x[:, :, :rows], w, dense)),
            Mistake("all groups read the channels of the first", lambda: expect_outputs(first_group, w)),
        ),
    )


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
