"""An array of structs turned into a struct of arrays, each sector touched once on either side."""

import numpy as np

from labkit.checking import NO_ARITHMETIC, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import (
    depends_on_tile,
    exchanged_among_threads,
    expect,
    last_block_size,
    random_matrix,
    shared_among_threads,
    with_zeros,
)
from labkit.table import count_text

FIELDS, STRUCTS = 7, 128


def make_launch(rng, structs):
    fields = with_zeros(random_matrix(rng, FIELDS, structs))
    blocks = -(-structs // STRUCTS)
    last_structs = last_block_size(structs, STRUCTS)
    is_last, of_first = np.arange(FIELDS)[:, None] == FIELDS - 1, np.arange(structs) % STRUCTS
    is_whole = structs % 8 == 0  # otherwise arrays begin inside a sector
    sectors = -(-fields.size // 8)
    return Launch(
        label=f"{count_text(structs, 'struct')} of {FIELDS} fields, blocks of {STRUCTS}",
        args=(np.ascontiguousarray(fields.T).ravel(), unwritten_array(fields.shape)),
        outputs={1: expect(fields.astype(float))},
        grid=(blocks,),
        block=(STRUCTS,),
        budgets=(
            Budget("global loads", fields.size, "FIELDS per struct: each element once"),
            Budget("sectors loaded", sectors, "FIELDS * structs / 8: each sector once"),
            Budget(
                "sectors stored",
                sectors if is_whole else FIELDS * (-(-structs // 8) + blocks * STRUCTS // 32),
                "FIELDS * structs / 8: each sector once" if is_whole else "each sector once, and shared ones twice",
            ),
            Budget("bank conflicts", 0, "each costs one more wavefront"),
        ),
        duties=(
            shared_among_threads(last_structs, most_per_thread=2),
            exchanged_among_threads(FIELDS * last_structs),
            NO_ARITHMETIC,
        ),
        dependences=(depends_on_tile(fields),),
        mistakes=(
            Mistake(
                "the last field were not stored",
                lambda: {1: expect(np.where(is_last, np.nan, fields))},
                "Let the loop over the fields end at FIELDS.",
            ),
            Mistake(
                "all blocks loaded the structs of the first",
                lambda: {1: expect(fields[:, of_first].astype(float))},
                "Add the number of elements before the block's first struct to the index of the load.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="Structs to arrays",
    task="- **Given**: a simulation keeps each particle as a struct of FIELDS = 7 numbers: three coordinates, three "
    "velocities and a mass. structs holds one struct after the other. Kernels that move the particles read one field "
    "of 32 neighbours at once.\n"
    "- **Write** arrays, which has a row per field.\n"
    "- **Limits**: blocks of STRUCTS = 128 threads; each sector is touched once on both sides; no bank conflicts.\n"
    "- **Sizes**: any number of structs.",
    points=4,
    function="to_arrays",
    make_launch=make_launch,
    sizes=((256,), (300,), (51,)),  # structs
    random_sizes=((range(257, 400),), ((1, 2, 33, 127, 129),), (Above(600, 8),), (Above(300),)),
)
