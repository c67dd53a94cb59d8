"""An array of structs becomes a struct of arrays, each sector touched once on either side."""

import numpy as np

from labkit.checking.budget import AT_WORK, Budget
from labkit.checking.duty import COPY_ALONE, Duty
from labkit.checking.exercise import Beyond, Exercise, Launch
from labkit.checking.unwritten import unwritten
from labkit.exercises.problems import expect, from_tile, matrix

FIELDS, STRUCTS = 7, 128
SIZES = ((256,), (300,), (50,))  # structs


def launch(rng, structs):
    fields = matrix(rng, FIELDS, structs)
    blocks = -(-structs // STRUCTS)
    whole = structs % 8 == 0  # otherwise arrays begin within a sector
    sectors = -(-fields.size // 8)
    return Launch(
        label=f"{structs} structs of {FIELDS} fields, blocks of {STRUCTS}",
        args=(np.ascontiguousarray(fields.T).ravel(), unwritten(fields.shape)),
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
        duties=(Duty(AT_WORK, -(-(structs - (blocks - 1) * STRUCTS) // 2), "the elements for all threads"), COPY_ALONE),
        dependences=(from_tile(fields),),
    )


EXERCISE = Exercise(
    id="structs-to-arrays",
    title="Structs to arrays",
    task="Turn an array of structs into a struct of arrays, and touch each sector once on both sides.",
    points=4,
    function="to_arrays",
    launch=launch,
    sizes=SIZES,
    drawn=((range(257, 400),), ((1, 2, 33, 127, 129),), (Beyond(400, 8),), (Beyond(300),)),
)
