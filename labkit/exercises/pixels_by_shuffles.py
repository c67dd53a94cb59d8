"""Planes of red, green and blue turned into pixels by a warp's shuffles alone."""

import numpy as np

from labkit.checking import NO_ARITHMETIC, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import LOADING_THREADS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import expect, last_block_size, random_matrix, shared_among_threads, with_zeros
from labkit.table import count_text

CHANNELS, THREADS, WARP = 3, 128, 32


def make_launch(rng, pixels):
    x = with_zeros(random_matrix(rng, CHANNELS, pixels))
    y = x.T.astype(float)
    warps, sectors = -(-pixels // WARP), -(-pixels // 8)
    # rows of x that begin inside a sector need one more per warp
    per_plane = sectors if pixels % 8 == 0 else sectors + warps
    i = np.arange(pixels)[:, None] % WARP * CHANNELS + np.arange(CHANNELS)  # of a warp's elements of y
    lanes = np.arange(pixels)[:, None] // WARP * WARP + i % WARP
    of_lane = x[np.arange(CHANNELS), np.minimum(lanes, pixels - 1)].astype(float)
    from_lane = np.where(lanes < pixels, of_lane, 0)
    in_whole_warps = np.arange(pixels)[:, None] < pixels // WARP * WARP
    return Launch(
        label=f"{count_text(pixels, 'pixel')}, blocks of {THREADS}",
        args=(x, unwritten_array(y.shape)),
        outputs={1: expect(y)},
        grid=(-(-pixels // THREADS),),
        block=(THREADS,),
        budgets=(
            Budget("global loads", x.size, "each element once"),
            Budget("sectors loaded", CHANNELS * per_plane, "3 * pixels / 8: each sector of x once"),
            Budget("sectors stored", CHANNELS * warps * WARP // 8, "12 per warp: each sector of y once"),
            Budget("global stores", y.size, "each element once"),
            Budget(SHARED_BYTES, 0, "none: lanes exchange registers"),
            Budget(LOCAL_NUMBERS, 2 * CHANNELS, "a pixel before and after"),
        ),
        duties=(
            shared_among_threads(last_block_size(pixels, THREADS), 1, LOADING_THREADS),
            NO_ARITHMETIC,
        ),
        mistakes=(
            Mistake(
                "element i of a warp came from lane i % 32",
                lambda: {1: expect(from_lane)},
                "Shuffle from the lane of the element's pixel; a pixel has 3 elements.",
            ),
            Mistake(
                "channels were stored in the order blue, green, red",
                lambda: {1: expect(y[:, ::-1])},
                "Look at the line that chooses one of the three registers by its channel.",
            ),
            Mistake(
                "the last pixels, which fill no warp, were left out",
                lambda: {1: expect(np.where(in_whole_warps, y, np.nan))},
                "Guard each store by the pixel that it stores, not by the warp's last.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="Pixels by shuffles",
    task="- **Given**: a photograph as three planes: x is 3 x pixels, red, green and blue. The first layer of a "
    "network wants NHWC: y is pixels x 3.\n"
    "- **Write** the kernel without shared memory: the 32 lanes of a warp exchange what they have loaded by "
    "`cuda.shfl_sync`.\n"
    "- **Limits**: blocks of 128 threads, one per pixel; each sector of x and of y is touched once.\n"
    "- **Sizes**: any number of pixels.",
    points=3,
    function="to_pixels",
    make_launch=make_launch,
    sizes=((32,), (256,), (141,), (7,)),  # pixels; first one warp
    random_sizes=((range(257, 400),), ((1, 2, 31, 33, 127, 129),), (Above(400, 32),), (Above(400),)),
)
