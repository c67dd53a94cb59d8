"""Padding "same" for any filter and stride."""

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, unwritten_array
from labkit.conv import Forward, pads
from labkit.exercises.problems import grid_for, one_thread_per_element
from labkit.ladder import Expected
from labkit.table import count_text

BLOCK = 16, 16
SIZES = (  # C, H, W, K, R, S, stride
    (2, 12, 9, 3, 3, 5, 1),
    (3, 7, 9, 2, 3, 5, 2),
    (1, 10, 11, 2, 6, 7, 4),
    (2, 11, 7, 2, 3, 4, 5),
    (1, 8, 5, 2, 1, 1, 3),
)


def make_launch(rng, C, H, W, K, R, S, stride):
    top, bottom = pads("same", H, R, stride)
    left, right = pads("same", W, S, stride)
    problem = Forward(1, C, H, W, K, R, S, stride, stride, top, bottom, left, right)
    x, w, y, _ = problem.operands(seed=int(rng.integers(2**31)))
    (expected,) = problem.expected((x, w, y, problem)).values()
    return Launch(
        label=f"{count_text(C, 'channel')} of {H} x {W}, {count_text(K, 'filter')} of {R} x {S}, stride {stride}",
        args=(x[0], w, unwritten_array((y.size,)), stride),
        outputs={2: Expected(expected.value.ravel(), expected.bound.ravel())},
        grid=grid_for((problem.Q, problem.P, K), (*BLOCK, 1)),
        block=BLOCK,
        budgets=(
            Budget("global loads", problem.flops, "one pixel and one tap per product"),
            Budget("global stores", y.size, "each output once"),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element((problem.Q, problem.P, K), (*BLOCK, 1)),),
    )


EXERCISE = Exercise(
    title="Same size",
    task="With padding `same`, y has ceil(H / stride) rows and ceil(W / stride) columns. The zeros that this needs are "
    "split between both ends; if their number is odd, the extra zero is below or to the right. Correct the kernel's P, "
    "Q, `top` and `left`.",
    points=3,
    function="same_size",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=(
        ((1, 3), (6, 9, 14), (11, 17, 20), (2, 4), (2, 4, 6), (3, 5), (1,)),
        ((2,), (5, 8, 11), (7, 10, 13), (1, 3), (3, 5, 7), (4, 6, 7), (3, 4, 5)),
        ((1, 2), Above(20), (1, 2, 3), (1,), (3, 5, 7), (2, 4), (2,)),
        ((1,), (1, 2, 3), Above(20), (2,), (2, 4), (5, 6, 7), (1, 2)),
    ),
)
