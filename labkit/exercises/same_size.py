"""Padding "same" for any filter and stride."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.conv import Forward, pads
from labkit.exercises.problems import convolve, grid_for, one_thread_per_element
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


FRONT = (
    "Count by how many rows the windows span more than the image; half of that, rounded down, is `top`. So is `left`."
)


def make_launch(rng, C, H, W, K, R, S, stride):
    top, bottom = pads("same", H, R, stride)
    left, right = pads("same", W, S, stride)
    problem = Forward(1, C, H, W, K, R, S, stride, stride, top, bottom, left, right)
    x, w, y, _ = problem.operands(seed=int(rng.integers(2**31)))
    if K > 1:
        w[-1] = 0  # an output of 0 is to be stored, too
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
        mistakes=tuple(make_mistakes(x[0], w, stride)),
    )


def make_mistakes(x, w, stride):
    """Make usual mistakes in the size of y, in the zeros before a row or column, and in the stride."""
    (_, H, W), (K, _, R, S) = x.shape, w.shape
    P, Q = -(-H // stride), -(-W // stride)
    rows, columns = (P - 1) * stride + R - H, (Q - 1) * stride + S - W  # of zeros, if not negative
    top, left = max(0, rows) // 2, max(0, columns) // 2

    def mistake(cause, top, left, cure=FRONT, stride_h=stride):
        return Mistake(cause, lambda: {2: flatten(convolve(x, w, (P, Q), (stride_h, stride), (top, left)))}, cure)

    def store_by_columns():
        y = convolve(x, w, (P, Q), (stride, stride), (top, left))
        return {2: flatten(Expected(y.value.swapaxes(1, 2), y.bound.swapaxes(1, 2)))}

    def with_extent(*extent):
        start = (
            max(0, (extent[0] - 1) * stride + R - H) // 2,
            max(0, (extent[1] - 1) * stride + S - W) // 2,
        )
        y = flatten(convolve(x, w, extent, (stride, stride), start))
        unwritten = np.full(K * P * Q - y.value.size, np.nan)
        return {2: Expected(np.concatenate((y.value, unwritten)), np.concatenate((y.bound, unwritten)))}

    size = "P and Q are H / stride and W / stride, rounded up: add stride - 1 before `//`."
    yield Mistake("P and Q were rounded down", lambda: with_extent(H // stride, W // stride), size)
    unpadded = max(0, (H - R) // stride + 1), max(0, (W - S) // stride + 1)
    yield Mistake("P and Q were those without padding", lambda: with_extent(*unpadded), size)
    yield mistake("the extra zero were above", (1 + max(0, rows)) // 2, left)
    yield mistake("the extra zeros were above and on the left", (1 + max(0, rows)) // 2, (1 + max(0, columns)) // 2)
    yield mistake("top were R // 2 and left S // 2", R // 2, S // 2)
    yield mistake("top were (R - 1) // 2 and left (S - 1) // 2", (R - 1) // 2, (S - 1) // 2)
    not_negative = "Where the windows do not reach the end of the image, no zeros are needed: take `max(0, ...)`."
    yield mistake("top could be negative", rows // 2, left, not_negative)
    yield mistake("top and left could be negative", rows // 2, columns // 2, not_negative)
    yield mistake("left did not depend on the stride", top, max(0, Q - 1 + S - W) // 2)
    yield mistake("all zeros were above and on the left", max(0, rows), max(0, columns))
    further = max(0, rows + stride) // 2, max(0, columns + stride) // 2
    last = (
        "The last windows begin (P - 1) * stride below and (Q - 1) * stride right of the first, not P and Q times that."
    )
    yield mistake("there were one more row and column of windows", *further, last)
    yield mistake(
        "top and left were exchanged", left, top, "`top` follows from P, R and H, and `left` from Q, S and W."
    )
    across = max(0, (Q - 1) * stride + R - W) // 2
    yield mistake("R stood for S in left", top, across, "`left` follows from Q, S and W: a filter has S columns.")
    strides = "The first row of a window is p times the stride, minus `top`."
    yield mistake("the stride were 1 down the rows", top, left, strides, 1)
    yield Mistake("y were stored by columns", store_by_columns, "y is stored row by row: q counts fastest, then p.")


def flatten(y):
    return Expected(y.value.ravel(), y.bound.ravel())


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
        ((1,), (1, 2), Above(20), (2,), (6, 8), (5, 6, 7), (1, 2)),  # more rows above than the image has
        ((1, 2), (8,), (12,), (2,), (1,), (1, 2), (4, 5)),  # windows that end well before the image does
        ((1,), (9, 18), (10, 19), (2,), (4,), (5, 6), (9,)),  # and by more than a filter is tall
        ((1,), (1, 2), (22, 43), (1,), (17, 18), (3, 5), (21,)),  # a last column alone, and far more rows above
    ),
)
