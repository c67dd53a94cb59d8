"""Tiles of an implicit GEMM, channels last: each thread copies a vector of a pixel to its swizzled place."""

import numpy as np

from labkit.checking import (
    NO_ARITHMETIC,
    NO_FLOAT64,
    Above,
    Budget,
    Dependence,
    Duty,
    Exercise,
    Launch,
    Mistake,
    unwritten_array,
)
from labkit.checking.budget import FILLING_THREADS
from labkit.ladder import Expected
from labkit.simulator.disturbance import COPIES

ROWS, CHANNELS, VECTORS = 32, 32, 8  # of a tile; float32 channels in 128 bytes; vectors of 16 bytes
BLOCK = ROWS * VECTORS

PADDING = "The zeros come before the image: subtract `top` from the row of the pixel, and `left` from its column."
STRIDE = "Windows begin a stride apart, and their taps are neighbours: `p * stride` plus the tap's row, and so on."
TAPS = "A row of a window has S taps: r is the quotient of the tap by S, and s the remainder."
OUTPUTS = "q counts fastest, then p, then n: q is `npq % Q`, and p is `npq // Q % P`."


def make_launch(rng, N, H, W, R, S, stride, top, left):
    H, W = max(H, R), max(W, S)  # so that there are outputs
    P, Q = (H + 2 * top - R) // stride + 1, (W + 2 * left - S) // stride + 1
    x = rng.standard_normal((N, H, W, CHANNELS), np.float32)
    blocks = -(-N * P * Q // ROWS)

    def expect_rows(disturb):
        """Expect the rows of each tap if every copy is disturbed; zeros are copies, too."""
        padded = np.pad(x, ((0, 0), (top, top), (left, left), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (R, S), (1, 2))[:, ::stride, ::stride]
        rows = np.zeros((R * S, blocks * ROWS, CHANNELS), np.float32)
        rows[:, : N * P * Q] = windows.transpose(4, 5, 0, 1, 2, 3).reshape(R * S, N * P * Q, CHANNELS)
        return Expected(disturb(rows).astype(float), np.zeros(rows.shape))

    n, p, q, tap = _split_indices(P, Q, blocks * ROWS, R * S)

    def gather(h, w):
        """Expect the pixels at h and w of image n, and zeros outside of the images."""
        is_inside = (n < N) & (h >= 0) & (h < H) & (w >= 0) & (w < W)
        rows = x[np.minimum(n, N - 1), np.clip(h, 0, H - 1), np.clip(w, 0, W - 1)]
        return Expected(np.where(is_inside[..., None], rows, 0).astype(float), np.zeros(rows.shape))

    def mistake(cause, h, w, cure):
        return Mistake(cause, lambda: {1: gather(h, w)}, cure)

    def swizzle(rows_of_store):
        """Expect the rows if vectors are stored as `rows_of_store` says and loaded at vector ^ row % 8."""
        row, vector = np.arange(blocks * ROWS)[:, None], np.arange(CHANNELS // 4)
        value = expect_rows(lambda rows: rows).value.reshape(R * S, blocks * ROWS, -1, 4)
        value = value[:, row, vector ^ row % 8 ^ row % rows_of_store].reshape(R * S, blocks * ROWS, CHANNELS)
        return {1: Expected(value, np.zeros(value.shape))}

    npq, (r, s) = (n * P + p) * Q + q, (tap // S, tap % S)
    h, w = p * stride + r - top, q * stride + s - left
    # told before taps counted by columns, which are the same in windows of one column
    every_third_tap = (
        (mistake("each row of a window had 3 taps", h - r + tap // 3, w - s + tap % 3, TAPS),) if S != 3 else ()
    )
    why = "load each vector with a copy, and outside of the images with a copy that reads no bytes"
    return Launch(
        label=f"{N} image{'s' * (N > 1)} of {H} x {W}, windows of {R} x {S}, stride {stride}, zeros on each side: "
        f"{top} above and below, {left} left and right",
        args=(x.reshape(-1, 4), unwritten_array((R * S, blocks * ROWS, CHANNELS)), N, H, W, S, P, Q, stride, top, left),
        outputs={1: expect_rows(lambda rows: rows)},
        grid=(blocks, R * S),
        block=(BLOCK,),
        budgets=(
            Budget(
                "store requests to shared memory",
                blocks * R * S * BLOCK // 32,
                "one copy per warp; an `if` with a copy on either side runs both",
            ),
            Budget("bank conflicts", 0, "store vector v of row i at place v ^ (i % 8)"),
            NO_FLOAT64,
        ),
        duties=(NO_ARITHMETIC, Duty(FILLING_THREADS, BLOCK, "one vector per thread")),
        dependences=(
            Dependence(COPIES, why, lambda disturbance: [expect_rows(lambda rows: disturbance.disturb(COPIES, rows))]),
        ),
        mistakes=(
            mistake("the padding were left out", h + top, w + left, PADDING),
            mistake("the padding were added", h + 2 * top, w + 2 * left, PADDING),
            mistake("the stride were 1", p + r - top, q + s - left, STRIDE),
            mistake("the rows of a window were a stride apart", (p + r) * stride - top, w, STRIDE),
            *every_third_tap,
            mistake("taps were counted by columns", p * stride + s - top, q * stride + r - left, TAPS),
            mistake(
                "outputs were counted by columns", npq % P * stride + r - top, npq // P % Q * stride + s - left, OUTPUTS
            ),
            mistake("P and Q were exchanged", npq // P % Q * stride + r - top, npq % P * stride + s - left, OUTPUTS),
            mistake("p went on from image to image", npq // Q * stride + r - top, w, OUTPUTS),
            Mistake(
                "only the reads from the tile were swizzled",
                lambda: swizzle(1),
                "Store vector v of row i at place v ^ (i % 8); a place has 4 words.",
            ),
            Mistake(
                "the stores to the tile were swizzled over 4 rows",
                lambda: swizzle(4),
                "Take the row modulo 8 where the vector's place is computed.",
            ),
        ),
    )


def _split_indices(P, Q, rows, taps):
    """Return n, p, q and the tap of each row of each tap's matrix."""
    tap, npq = np.indices((taps, rows))
    return npq // (P * Q), npq // Q % P, npq % Q, tap


EXERCISE = Exercise(
    title="Gather a row",
    task="Do by hand what TMA does: each thread copies one vector of 16 bytes. A row of the tile is one pixel: the "
    "pixel under tap `blockIdx.y` in the window of output `blockIdx.x * ROWS + row`. Vector v of row i is stored "
    "at place v ^ (i % 8). Pixels outside of the images, and rows past the last output, are zeros.",
    points=4,
    function="gather_a_tile",
    make_launch=make_launch,
    sizes=((2, 5, 6, 3, 3, 1, 1, 1), (1, 9, 7, 2, 3, 2, 0, 1), (3, 4, 3, 3, 1, 1, 2, 0)),  # N H W R S stride top left
    random_sizes=(
        ((2, 3), range(5, 9), range(6, 11), (2, 3), (3, 4), (1, 2), (1,), (1, 2)),
        (Above(3), (2, 3), Above(10), (3,), Above(4), (1,), (2,), Above(2)),
        ((1, 2), Above(9), (2, 3), Above(3), (2, 3), Above(2), Above(2), (1,)),
    ),
)
