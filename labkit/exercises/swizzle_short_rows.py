"""A tile of 8 channels x 32 pixels whose columns conflict in a few banks."""

import numpy as np

from labkit.checking import NO_ARITHMETIC, Above, Budget, Exercise, Launch, unwritten_array
from labkit.checking.budget import SHARED_BYTES
from labkit.exercises.problems import (
    depends_on_tile,
    exchanged_among_threads,
    expect,
    last_block_size,
    move_in_tiles,
    random_matrix,
    shared_among_threads,
    with_zeros,
)
from labkit.table import count_text

CHANNELS, PIXELS = 8, 32


def make_launch(rng, pixels):
    x = with_zeros(random_matrix(rng, CHANNELS, pixels))
    is_whole = pixels % 8 == 0  # otherwise rows of x begin inside a sector
    blocks = -(-pixels // PIXELS)
    last_pixels = last_block_size(pixels, PIXELS)
    return Launch(
        label=f"{count_text(pixels, 'pixel')} of {CHANNELS} channels, tiles of {CHANNELS} x {PIXELS}",
        args=(x, unwritten_array((pixels, CHANNELS))),
        outputs={1: expect(x.T.astype(float))},
        grid=(blocks,),
        block=(PIXELS, CHANNELS),
        budgets=(
            Budget(SHARED_BYTES, CHANNELS * PIXELS * 4, "CHANNELS * PIXELS * 4: the tile, without padding"),
            Budget("global loads", x.size, "each element once"),
            *(Budget("sectors loaded", pixels, "CHANNELS * pixels / 8: each sector of x once"),) * is_whole,
            Budget("sectors stored", pixels, "CHANNELS * pixels / 8: each sector of y once"),
            Budget("bank conflicts", 0, "each costs one more wavefront"),
            Budget("load requests to shared memory", CHANNELS * blocks, "one of each warp"),
        ),
        duties=(
            shared_among_threads(CHANNELS * last_pixels, most_per_thread=1),
            exchanged_among_threads(CHANNELS * last_pixels),
            NO_ARITHMETIC,
        ),
        dependences=(depends_on_tile(x.T),),
        mistakes=move_in_tiles(x, PIXELS, np.arange(CHANNELS), np.transpose),
    )


EXERCISE = Exercise(
    title="Swizzle short rows",
    task="- **Given**: x is 8 x pixels, y is pixels x 8, and a block transposes 8 x 32 elements. It stores rows of the "
    "tile, without conflicts. The 32 elements that a warp loads from the tile at once are 8 channels of 4 pixels, and "
    "the 8 channels of a pixel are in one bank.\n"
    "- **Change** where elements are stored in the tile, so that no access has a bank conflict.\n"
    "- **Limits**: no more shared memory; each sector of x and y is touched once.\n"
    "- **Sizes**: any number of pixels.",
    points=3,
    function="short_rows",
    make_launch=make_launch,
    sizes=((96,), (75,), (33,)),  # pixels; the last tile is ragged, or has a single pixel
    random_sizes=((range(97, 160),), ((1, 2, 7, 31),), (Above(300, 8),)),
)
