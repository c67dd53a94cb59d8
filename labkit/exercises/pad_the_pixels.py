"""Pixels of a few channels, padded with zeros to 16 bytes or more."""

import numpy as np

from labkit.checking import Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import expect, last_block_size, random_matrix, shared_among_threads

THREADS = 128


def make_launch(rng, pixels, C, V):
    C = min(C, V)
    x = random_matrix(rng, C, pixels)
    y = np.zeros((pixels, V))
    y[:, :C] = x.T
    is_there = np.arange(V) < C
    last_again = x[np.minimum(np.arange(V), C - 1)].T.astype(float)
    return Launch(
        label=f"{pixels} pixel{'s' * (pixels > 1)}, {C} channel{'s' * (C > 1)}, V = {V}, blocks of {THREADS}",
        args=(x, unwritten_array(y.shape)),
        outputs={1: expect(y)},
        grid=(-(-y.size // THREADS),),
        block=(THREADS,),
        duties=(shared_among_threads(last_block_size(y.size, THREADS), most_per_thread=1),),
        budgets=(
            Budget("global loads", x.size, "C * pixels: each element once, and none for the zeros"),
            Budget("global stores", y.size, "V * pixels: each element once"),
            Budget("sectors stored", -(-y.size // 8), "V * pixels / 8: each sector of y once"),
        ),
        mistakes=(
            Mistake("the zeros were not stored", lambda: {1: expect(np.where(is_there, y, np.nan))}),
            Mistake("the last channel came in place of the zeros", lambda: {1: expect(last_again)}),
        )
        * (C < V),
    )


EXERCISE = Exercise(
    title="Pad the pixels",
    task="- **Given**: x is C x pixels, y is pixels x V. The kernel's result is right, but a warp stores 32 elements "
    "that are V apart.\n"
    "- **Change** it so that it stores each sector of y once. A pixel has zeros after its C channels.\n"
    "- **Limits**: a thread per element of y, 128 per block; each element of x is loaded once.\n"
    "- **Sizes**: any number of pixels, and any C up to V.",
    points=2,
    function="padded_pixels",
    make_launch=make_launch,
    sizes=((300, 3, 8), (77, 1, 4), (40, 70, 81)),  # pixels, C, V
    random_sizes=(
        (range(129, 400), (2, 3, 5), range(6, 17)),
        ((1, 2, 5), range(6, 13), range(13, 33)),
        (Above(400), (3, 4), (4, 8)),  # `Above`: 501 pixels or more, about 900 on average
        (range(33, 60), Above(12), (4, 32)),
        (range(33, 60), Above(31), Above(64)),
    ),
)
