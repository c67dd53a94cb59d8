"""A small matmul on tensor cores with ragged edges, from a blank kernel."""

from dataclasses import replace

import numpy as np

from labkit.checking import Above, Budget, Exercise, Mistake
from labkit.exercises.matmuls import add_mistakes_in_fragments, make_tensor_core_launch, round_up
from labkit.exercises.problems import expect_product, pad_to
from labkit.ladder import Expected


def make_launch(rng, M, N, K):
    K = round_up(K, 16)
    steps = -(-M // 16) * -(-N // 32) * (K // 16)
    loads = Budget("global loads", 384 * steps, "12 words per lane, block and step of k: each of A and B once")
    launch = make_tensor_core_launch(rng, M, N, K, tile=(16, 32), block=(32,), budgets=(loads,))
    launch = add_mistakes_in_fragments(launch)
    return replace(launch, mistakes=(*launch.mistakes, *make_mistakes(launch)))


def make_mistakes(launch):
    """Make usual mistakes in the four products of a block and in the stores of their sums."""
    A, B = (words.view(np.float16).astype(np.float32) for words in launch.args[:2])
    M, N, K = len(A), *B.shape
    padded = expect_product(pad_to((16, 16), A), pad_to((32, 16), B).T)  # whole tiles of C

    def mistake(cause, cure, change):
        """`change` makes other tiles of (tile row, 16, tile column, j, 8), or of other parts that it asks for."""

        def make_outputs():
            value, bound = (change(part.reshape(-1, 2, 8, part.shape[1] // 32, 4, 4, 2)) for part in parts)
            return {2: Expected(*(part.reshape(-1, padded.value.shape[1])[:M, :N] for part in (value, bound)))}

        parts = padded.value, padded.bound
        return Mistake(cause, make_outputs, cure)

    def add_all(parts):
        total = np.zeros_like(parts)
        total[:, :, :, :, 0] = parts.sum(4)
        return total

    def take_words(X):
        return pad_to((8, 16), X).reshape(-1, K // 16, 8, 2)[:, :, [0, 1, 2, 3, 1, 2, 3, 4]].reshape(-1, K)[: len(X)]

    yield mistake(
        "all four `mma` added to the sums of the first",
        "Give each `mma` its own row of `sums`: the index after `sums` follows j.",
        add_all,
    )
    yield mistake(
        "the four `mma` multiplied the same rows of B",
        "Let the row of B that a lane loads follow j: each `mma` makes the next 8 columns of C.",
        lambda parts: np.repeat(parts[:, :, :, :, :1], 4, 4),
    )
    yield mistake(
        "rows and columns of a lane's sums were exchanged",
        "Where C is stored: sums 0 and 1 of a lane are in row g, and sums 2 and 3 in row g + 8.",
        lambda parts: parts.swapaxes(1, 6),
    )
    if K > 16:
        yield Mistake(
            "only the last 16 of K were multiplied",
            lambda: {2: expect_product(A[:, -16:], B[:, -16:].T)},
            "Set the sums to 0 once, before the loop over k.",
        )
    yield Mistake(
        "the second words of A and B were those after the first",
        lambda: {2: expect_product(take_words(A), take_words(B).T)},
        "a2, a3 and b1 are 4 words after a0, a1 and b0, not 1.",
    )


EXERCISE = Exercise(
    title="Write a GEMM on tensor cores",
    task="Write C = A @ B.T with `ptx.mma`, from a blank kernel, for any M and N.",
    points=4,
    function="small_gemm",
    make_launch=make_launch,
    sizes=((32, 64, 48), (21, 37, 80)),  # M, N and K, which is rounded up to a multiple of 16
    random_sizes=(
        ((1, *range(17, 24)), range(33, 64, 2), range(81, 129)),
        ((9, 25, 31), Above(64), (1,)),  # the lower half of a block is ragged
        (Above(32), (1, 57, 63), Above(128, 16)),
    ),
)
