"""A matrix times a vector, one warp per row."""

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.exercises.problems import expect_product, random_matrix
from labkit.ladder import Expected


def make_launch(rng, M, N):
    A, x = random_matrix(rng, M, N), rng.standard_normal(N).astype("float32")

    def multiply(A, x):
        product = expect_product(A, x[:, None])
        return {2: Expected(product.value[:, 0], product.bound[:, 0])}

    whole = N // 32 * 32
    steps = M * -(-N // 32)
    return Launch(
        label=f"A {M} x {N}, one warp per row",
        args=(A, x, unwritten_array((M,))),
        outputs=multiply(A, x),
        grid=(M,),
        block=(32,),
        budgets=(
            Budget(
                "sectors loaded",
                9 * steps,
                "9 per 32 columns of a row: 4 of x, and 5 of A where rows begin anywhere",
            ),
            Budget("global stores", M, "one per row"),
            NO_FLOAT64,
        ),
        mistakes=(
            Mistake("lane 0 stored its own sum", lambda: multiply(A[:, ::32], x[::32])),
            *(Mistake("the columns after the last 32 were left out", lambda: multiply(A[:, :whole], x[:whole])),)
            * (whole < N),
        ),
    )


EXERCISE = Exercise(
    title="Write gemv",
    task="Write y = A @ x in float32, one warp per row, so that the lanes of a warp read neighbours.",
    points=3,
    function="my_gemv",
    make_launch=make_launch,
    sizes=((11, 96), (20, 45)),  # M, N
    random_sizes=((range(13, 40, 2), range(97, 200, 2)), ((1,), Above(200)), (Above(40), (1, 2, 31)), ((3, 5), (0,))),
)
