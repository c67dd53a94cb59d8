"""The loss of a language model from logits that are not stored."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.exact_scores import HEAD_DIM, random_queries_and_keys
from labkit.exercises.problems import EPS
from labkit.ladder import Expected

ROWS = 32  # threads per block
IGNORED_SHARE = 0.2  # of the rows
SECTOR = 8  # numbers per sector


def make_launch(rng, rows, words):
    X, W = random_queries_and_keys(rng, rows, words)
    targets = np.where(rng.random(rows) < IGNORED_SHARE, -1, rng.integers(words, size=rows)).astype(np.int32)
    counted = rng.permutation(rows)[:2]  # one of the last words, and word 0, are targets like any other
    targets[counted] = (words - 1 - rng.integers(-(-words // 8)), 0)[: len(counted)]
    logits = X.astype(float) @ W.T
    row_max = logits.max(1)
    distances = row_max[:, None] - logits
    weights = np.exp(-distances)
    row_sum = weights.sum(1)
    loss = np.where(targets < 0, 0, row_max + np.log(row_sum) - logits[np.arange(rows), targets])
    # of row_max and the logit, the sum, its exponentials (32 and their exponents) and the loss
    roundings = 4 * np.abs(logits).max(1) + 2 * words + 32 + 2 * (weights * distances).sum(1) / row_sum + loss
    log_sum = np.log(row_sum)

    def expect_loss(loss, is_counted=targets >= 0, other=0.0):
        """Expect a loss for the rows that count, and another value for the others."""
        return {3: Expected(np.where(is_counted, loss, other), EPS * roundings * (is_counted | (targets < 0)))}

    blocks = -(-rows // ROWS)
    return Launch(
        label=f"{rows} row{'s' * (rows > 1)} and {words} word{'s' * (words > 1)}",
        args=(X.T.copy(), W, targets, unwritten_array((rows,))),
        outputs={3: Expected(loss, np.where(targets < 0, 0, EPS * roundings))},
        grid=(blocks,),
        block=(ROWS,),
        budgets=(
            Budget(
                "global loads",
                rows * (HEAD_DIM + 1) + blocks * words * HEAD_DIM,
                "each column of X and each target once, and each row of W once per block",
            ),
            Budget("global stores", rows, "one loss per row"),
            Budget(
                "load requests",
                blocks * (HEAD_DIM + 1 + words // 2 + 4),
                "9 per warp for its columns and targets, and one for two rows of W, which neighbours load together",
            ),
            Budget("sectors stored", 2 * blocks * ROWS // SECTOR, "8 per warp, which stores its losses together"),
            Budget(
                "load requests to shared memory",
                blocks * (2 * words * HEAD_DIM + 64),
                "16 per row of W: all threads of a warp use it at the same time",
            ),
            Budget(LOCAL_NUMBERS, 32, "32: there may be any number of words"),
            Budget(SHARED_BYTES, 2048, "2 KB: there may be any number of words"),
            NO_FLOAT64,
        ),
        nan_sources="exp(logit), infinite above 88, or -inf - -inf before the first word",
        mistakes=(
            Mistake(
                "rows without a target had a loss",
                lambda: expect_loss(loss, other=row_max + log_sum),
                "Store 0 where the target is -1.",
            ),
            Mistake(
                "rows without a target were not stored",
                lambda: expect_loss(loss, other=np.nan),
                "Store 0 where the target is -1: do not leave before the store.",
            ),
            Mistake(
                "word 0 were not a target",
                lambda: expect_loss(loss, targets > 0),
                "Look at the test of the target: 0 is a word, and -1 is none.",
            ),
            Mistake(
                "the loss had the opposite sign",
                lambda: expect_loss(-loss),
                "The loss is the log-sum-exp minus the target's logit.",
            ),
            Mistake(
                "the maximum and the target's logit were left out",
                lambda: expect_loss(log_sum),
                "Add the maximum to the logarithm, and subtract the target's logit.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="Cross-entropy without logits",
    task="The last layer of a language model gives each word of its vocabulary a logit: the product of a token's "
    "column of X with the word's row of W. A token's loss is the logarithm of the sum of the exponentials of all "
    "its logits, minus the logit of its target. Compute the losses without storing the logits.",
    points=4,
    function="cross_entropy",
    make_launch=make_launch,
    sizes=((40, 70), (33, 41), (3, 9), (1, 1)),  # rows, words
    random_sizes=(
        ((13, 14), range(1_001, 1_500, 2)),  # too many for the variables of a thread
        (range(5, 70, 3), range(33, 120, 2)),
        ((1, 2, 33), Above(120)),
        (Above(60), (1, 2, 8, 31)),
    ),
)
