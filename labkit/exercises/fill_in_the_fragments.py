"""The words of A and B that each lane loads for an `mma`, and where its accumulators belong."""

from dataclasses import replace

import numpy as np

from labkit.checking import Budget, Exercise, Mistake
from labkit.checking.budget import TENSOR_FLOPS
from labkit.exercises.matmuls import RANDOM_SIZES_TO_ROUND, add_mistakes_in_fragments, make_tensor_core_launch, round_up
from labkit.exercises.problems import expect_product
from labkit.ladder import Expected


def make_launch(rng, M, N, K):
    M, N, K = round_up(M, 16), round_up(N, 8), round_up(K, 16)
    once = Budget(TENSOR_FLOPS, 2 * M * N * K, "2 M N K: each product once")
    launch = make_tensor_core_launch(rng, M, N, K, tile=(16, 8), block=(32,), budgets=(once,))
    launch = add_mistakes_in_fragments(launch)
    return replace(launch, mistakes=(*launch.mistakes, *mistakes_in_sums(launch)))


def mistakes_in_sums(launch):
    """Make usual mistakes in the four sums of each lane, and in their format."""
    product = launch.outputs[2]
    row, column = np.indices(product.value.shape)
    is_lower = row % 16 >= 8
    swapped = row, np.where(is_lower, column ^ 1, column)
    upper = np.where(is_lower, np.nan, product.value)
    A, B = (words.view(np.uint16).astype(np.uint32) << 16 for words in launch.args[:2])
    return (
        Mistake("sums 2 and 3 were exchanged", lambda: {2: Expected(product.value[swapped], product.bound[swapped])}),
        Mistake("sums 2 and 3 were not stored", lambda: {2: Expected(upper, product.bound)}),
        Mistake("A and B were bfloat16", lambda: {2: expect_product(A.view(np.float32), B.view(np.float32).T)}),
    )


EXERCISE = Exercise(
    title="Fill in the fragments",
    task="Let each lane load its words of A and of B for the `mma`, and store its four accumulators where they belong.",
    points=3,
    function="one_product",
    make_launch=make_launch,
    sizes=((32, 24, 32), (16, 16, 48)),  # M, N, K, rounded up to multiples of 16, 8 and 16
    random_sizes=RANDOM_SIZES_TO_ROUND,
)
