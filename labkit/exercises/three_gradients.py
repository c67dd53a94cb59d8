"""The gradients of a layer norm, all three from one read of x and g."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import ACTIVE_THREADS, BARRIERS, LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.problems import EPS, random_matrix, shared_among_threads
from labkit.ladder import Expected
from labkit.table import count_text

WARP, MAX_WARPS = 32, 32
ROUNDINGS = 24  # of a product of sums, besides those of the sums


def make_launch(rng, rows, columns, blocks):
    columns = min(columns, WARP * MAX_WARPS)
    threads = -(-columns // WARP) * WARP
    x = random_matrix(rng, rows, columns) * np.float32(3) + random_matrix(rng, rows, 1)
    g, (weight,) = random_matrix(rng, rows, columns) + np.float32(1), random_matrix(rng, 1, columns)
    mean = x.astype(float).mean(1).astype(np.float32)
    scale = (1 / np.sqrt(x.astype(float).var(1) + rng.uniform(0.1, 1))).astype(np.float32)
    normalised = (x.astype(float) - mean[:, None]) * scale[:, None]
    h = weight * g.astype(float)
    of_block = np.arange(rows) % blocks == np.arange(blocks)[:, None]

    def expect_dx(h=h, centre=True, project=True, count=columns):
        """Expect the gradient of x, with either sum over a row left out, or divided by another count."""
        along = normalised * (h * normalised).sum(1, keepdims=True) / count * project
        about = h.sum(1, keepdims=True) / count * centre
        sizes = np.abs(h).sum(1, keepdims=True) / count, np.abs(h * normalised).sum(1, keepdims=True)
        size = np.abs(h) + sizes[0] + (np.abs(normalised) + 1) * sizes[1] / count
        bound = (columns + ROUNDINGS) * EPS * size * scale[:, None]
        return Expected((h - about - along) * scale[:, None], bound)

    def expect_sums(terms, of_block=of_block):
        """Expect the sums over the rows of each block."""
        return Expected(of_block @ terms, (rows + ROUNDINGS) * EPS * (of_block @ (np.abs(terms) + np.abs(g))))

    dx, dweight, dbias = expect_dx(), expect_sums(g * normalised), expect_sums(g.astype(float))
    last_rows = np.arange(rows) >= rows - blocks

    def change_dx(**changes):
        return lambda: {5: expect_dx(**changes)}

    return Launch(
        label=f"x {rows} x {columns}, {count_text(blocks, 'block')} of {threads}",
        args=(
            x,
            g,
            weight,
            mean,
            scale,
            *(unwritten_array(shape) for shape in ((rows, columns), (blocks, columns), (blocks, columns))),
        ),
        outputs={5: dx, 6: dweight, 7: dbias},
        grid=(blocks,),
        block=(threads,),
        budgets=(
            Budget(
                "global loads",
                2 * rows * columns + 2 * rows * threads + blocks * threads,
                "each element of x and g once; the mean and the scale of a row, and a weight, per thread",
                {"x": rows * columns, "g": rows * columns, "mean": rows * threads, "scale": rows * threads}
                | {"weight": blocks * threads},
            ),
            Budget(
                "global stores",
                rows * columns + 2 * blocks * columns,
                "each gradient once, and each sum once per block",
                {"dx": rows * columns, "dweight": blocks * columns, "dbias": blocks * columns},
            ),
            Budget(BARRIERS, 2 * rows, "two per row: before the warps' sums are read, and after"),
            Budget(SHARED_BYTES, 2 * 2 * 4 * MAX_WARPS, "two numbers per warp, twice"),
            Budget(LOCAL_NUMBERS, 4, "4: a thread has one column"),
            NO_FLOAT64,
        ),
        duties=(shared_among_threads(columns, 1, ACTIVE_THREADS),),
        mistakes=(
            Mistake(
                "the weights were left out",
                change_dx(h=g.astype(float)),
                "Multiply g by the weight of its column to get h.",
            ),
            Mistake(
                "the mean of h were not subtracted",
                change_dx(centre=False),
                "Add h up along the row, and subtract its mean in the line of dx.",
            ),
            Mistake(
                "the part along n were not subtracted",
                change_dx(project=False),
                "Subtract n times the mean of h * n in the line of dx.",
            ),
            Mistake(
                "the sums over a row were taken, not the means",
                change_dx(count=1),
                "Divide both sums by the number of columns.",
            ),
            Mistake(
                "g were weighted in dweight",
                lambda: {6: expect_sums(g * weight.astype(float) * normalised)},
                "Add up g itself times n, without the weight: h is for dx alone.",
            ),
            Mistake("g were weighted in dbias", lambda: {7: expect_sums(g * weight.astype(float))}, "Add up g itself."),
            Mistake(
                "only the last row of each block were added up",
                lambda: {
                    6: expect_sums(g * normalised, of_block & last_rows),
                    7: expect_sums(g.astype(float), of_block & last_rows),
                },
                "Set both sums to 0 before the loop over rows, and add to them with `+=`.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="Three gradients",
    task="A layer norm computes y = n * weight + bias, where n = (x - mean) * scale is the normalised row. Compute all "
    "three of its gradients while x and g are read once.\n"
    "- **Given**: x; g, the gradient of y; weight, per column; mean and scale, per row. A thread per column; a block "
    "takes rows b, b + gridDim.x, and so on.\n"
    "- **Write** dx = scale * (h - mean of h - n * mean of h * n), where h = weight * g and the means go along the "
    "row; and for each block dweight and dbias, the sums of g * n and of g over its rows.\n"
    "- **Limits**: x and g are loaded once; a thread loads its weight once, and the mean and scale of each row once; "
    "two barriers per row; no arrays but two numbers per warp.\n"
    "- **Sizes**: up to 1,024 columns, any number of rows.",
    points=4,
    function="gradients",
    make_launch=make_launch,
    sizes=(  # rows, columns, blocks; first one row in one warp
        (1, 32, 1),
        (9, 64, 2),
        (6, 77, 4),
        (3, 5, 1),
        (3, 1024, 1),  # all 32 warps, row after row
    ),
    random_sizes=(
        (range(10, 20), range(65, 130), (2, 3)),
        ((1, 2), Above(200), (3,)),  # a block without rows has sums of 0
        (Above(20), (1, 2, 33), (5, 6)),
    ),
)
