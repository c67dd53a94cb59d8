"""A squared distance in one launch, whose last block may read sums that are not written yet."""

import numpy as np

from labkit.checking import Above, Budget, Dependence, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import EPS, shared_among_threads
from labkit.ladder import Expected
from labkit.simulator.disturbance import FENCES
from labkit.table import count_text

WARP = 32


def make_launch(rng, size, blocks):
    x, y = rng.integers(-32, 33, (2, size)).astype(np.float32)
    if size == 1:
        y[:] = x  # a distance of 0 is to be stored, too
    squares = (x.astype(np.float64) - y) ** 2
    last_elements = max(0, size - (blocks - 1) * max(WARP, -(-size // blocks)))  # by strides or by parts
    blocks_of = np.arange(size) // 32 % blocks  # where a block goes on after as many elements as the grid has threads
    allowed = 2 * size + 2 * blocks
    return Launch(
        label=f"{count_text(size, 'element')}, {count_text(blocks, 'block')} of 32",
        args=(x, y, unwritten_array((blocks,)), np.zeros(1, np.uint32), unwritten_array((1,))),
        outputs={
            3: Expected(np.zeros(1), np.zeros(1)),  # the arrival counter is back at 0
            2: Expected(np.zeros(blocks), np.full(blocks, np.inf)),  # the sum of each block, for any split of the work
            **expect_total(squares.sum(), size),
        },
        grid=(blocks,),
        block=(WARP,),
        budgets=(
            Budget("global loads", allowed, "each element of x and of y once, each block's sum, and its arrival"),
        ),
        duties=(shared_among_threads(min(WARP, last_elements), most_per_thread=2),),
        dependences=(Dependence(FENCES, "let the last block add up what the others wrote before"),) * (blocks > 1),
        mistakes=(
            Mistake(
                "the counter were not set back",
                lambda: {3: Expected(np.array([float(blocks)]), np.zeros(1))},
                "Count by `cuda.atomic.inc`, which goes back to 0 after its limit.",
            ),
            Mistake(
                "only half of the elements were added",
                lambda: expect_total(squares[: size // 2].sum(), size),
                "Let the loop over i end at `x.size`.",
            ),
            Mistake(
                "each block added all elements",
                lambda: expect_total(blocks * squares.sum(), size * blocks),
                "Begin at the thread's number in the grid, and go on by `cuda.gridsize(1)`.",
            ),
            Mistake(
                "only 32 blocks had a sum",
                lambda: expect_total(squares[blocks_of < 32].sum(), size),
                "There may be more blocks than lanes: go on by 32 in a loop.",
            ),
        ),
    )


def expect_total(total, terms):
    """Expect a sum of whole numbers, which float32 holds exactly below 2**24."""
    return {4: Expected(np.array([total]), np.array([0 if total < 2**24 else terms * EPS * total]))}


EXERCISE = Exercise(
    title="The last block",
    task="The last block adds up sums that may not be there yet. Add what is missing.",
    points=2,
    function="one_launch",
    make_launch=make_launch,
    sizes=((1000, 5), (333, 40)),  # elements, blocks of one warp
    random_sizes=(
        (range(2001, 3000, 2), range(33, 60)),
        ((1,), (1, 2)),
        ((2, 3, 31), (1, 2)),
        (Above(3000), Above(60)),
    ),
)
