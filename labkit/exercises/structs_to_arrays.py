"""An array of structs becomes a struct of arrays, each sector touched once on either side."""

import numpy as np

from labkit.checking import NO_ARITHMETIC, Beyond, Budget, Duty, Exercise, Launch, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS
from labkit.exercises.problems import expect, from_tile, matrix

FIELDS, STRUCTS = 7, 128
SIZES = ((256,), (300,), (50,))  # structs


def make_launch(rng, structs):
    fields = matrix(rng, FIELDS, structs)
    blocks = -(-structs // STRUCTS)
    whole = structs % 8 == 0  # otherwise arrays begin within a sector
    sectors = -(-fields.size // 8)
    return Launch(
        label=f"{structs} structs of {FIELDS} fields, blocks of {STRUCTS}",
        args=(np.ascontiguousarray(fields.T).ravel(), unwritten_array(fields.shape)),
        outputs={1: expect(fields.astype(float))},
        grid=(blocks,),
        block=(STRUCTS,),
        budgets=(
            Budget("global loads", fields.size, "FIELDS for each struct: each element once"),
            Budget("sectors loaded", sectors, "FIELDS * structs / 8: each sector once"),
            Budget(
                "sectors stored",
                sectors if whole else FIELDS * (-(-structs // 8) + blocks * STRUCTS // 32),
                "FIELDS * structs / 8: each sector once" if whole else "each sector once, and shared ones twice",
            ),
            Budget("bank conflicts", 0, "none"),
        ),
        duties=(
            Duty(ACTIVE_THREADS, -(-(structs - (blocks - 1) * STRUCTS) // 2), "the elements for all threads"),
            NO_ARITHMETIC,
        ),
        dependences=(from_tile(fields),),
    )


EXERCISE = Exercise(
    id="structs-to-arrays",
    title="Structs to arrays",
    task="Turn an array of structs into a struct of arrays, and touch each sector once on both sides.",
    points=4,
    function="to_arrays",
    make_launch=make_launch,
    sizes=SIZES,
    random_sizes=((range(257, 400),), ((1, 2, 33, 127, 129),), (Beyond(400, 8),), (Beyond(300),)),
)
