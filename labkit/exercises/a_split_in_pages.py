"""Split decoding of sequences of any length, whose keys are in the pages that a table names."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import LOCAL_NUMBERS, SHARED_BYTES
from labkit.exercises.exact_scores import HEAD_DIM, random_queries_and_keys
from labkit.exercises.problems import EPS, MIN_NORMAL, random_matrix
from labkit.ladder import Expected
from labkit.table import count_text

KEYS, PAGE = 64, 16  # per part, per page
LEFTOVERS = np.array((np.inf, -np.inf, 3e38, -1.0), np.float32)  # of a page that is not full


def make_launch(rng, sequences, longest, whole):
    lengths = np.full(sequences, longest) if whole else rng.integers(0, longest + 1, sequences)
    lengths[rng.integers(sequences)] = longest
    parts, pages_each = -(-longest // KEYS), -(-lengths // PAGE)
    table = np.full((sequences, -(-longest // PAGE)), -1, np.int32)
    table[np.arange(table.shape[1]) < pages_each[:, None]] = rng.permutation(pages_each.sum() + 3)[: pages_each.sum()]
    K, V = rng.choice(LEFTOVERS, (2, pages_each.sum() + 3, PAGE, HEAD_DIM))
    q = np.zeros((sequences, HEAD_DIM), np.float32)
    filled = {}  # keys and values of each part that has any
    for s, length in enumerate(lengths):
        q[s : s + 1], keys = random_queries_and_keys(rng, 1, length)
        values = random_matrix(rng, length, HEAD_DIM)
        place = table[s, np.arange(length) // PAGE], np.arange(length) % PAGE
        K[place], V[place] = keys, values
        for part in range(-(-length // KEYS)):
            own = slice(part * KEYS, (part + 1) * KEYS)
            filled[s, part] = keys[own], values[own]

    def expect_parts(q=q, count=KEYS, is_divided=True, of_sum=lambda scores: 0.0):
        """Expect O and the log-sum-exp of the first keys of each part; exponents of the sum may be others."""
        O, O_bound = np.zeros((2, sequences, parts, HEAD_DIM))
        lse, lse_bound = np.full((sequences, parts), -np.inf), np.zeros((sequences, parts))
        for (s, part), (keys, values) in filled.items():
            scores = keys[:count].astype(float) @ q[s]
            lse[s, part] = np.logaddexp.reduce(scores + of_sum(scores))
            log_P = scores - (lse[s, part] if is_divided else scores.max())
            P, distances = np.exp(log_P), np.abs(log_P)
            O[s, part] = P @ values[:count]
            P_error = EPS * (KEYS + 32 + 2 * distances + distances.max()) * P
            O_bound[s, part] = P_error @ np.abs(values[:count]) + MIN_NORMAL
            lse_bound[s, part] = EPS * (KEYS + 2 * np.abs(lse[s, part]))
        return {5: Expected(O, O_bound), 6: Expected(lse, lse_bound)}

    def leave_unscaled(scores):
        """Return how much lower the maximum of each key's lane is than that of the part."""
        lanes = np.append(scores, np.full(-len(scores) % 32, -np.inf)).reshape(-1, 32)
        return scores.max() - np.tile(lanes.max(0), len(lanes))[: len(scores)]

    right = expect_parts()
    maxima = np.zeros((sequences, parts))
    for place, (keys, _) in filled.items():
        maxima[place] = (keys.astype(float) @ q[place[0]]).max()
    without_maximum = Expected(right[6].value - maxima, right[6].bound + EPS * np.abs(maxima))
    warp_steps, num_keys = int((-(-lengths // 32)).sum()), int(lengths.sum())
    return Launch(
        label=f"{count_text(sequences, 'sequence')} of up to {count_text(longest, 'key')}",
        args=(q, K, V, table, lengths.astype(np.int32), *(unwritten_array(right[i].value.shape) for i in (5, 6))),
        outputs=right,
        grid=(parts, sequences),
        block=(32,),
        budgets=(
            Budget(
                "global loads",
                2 * HEAD_DIM * num_keys + (HEAD_DIM + 1) * 32 * (warp_steps + parts * sequences),
                "each key and value once; the query, the table and the length per lane",
                {"K": HEAD_DIM * num_keys, "V": HEAD_DIM * num_keys},
            ),
            Budget(
                "load requests",
                (3 * HEAD_DIM + 1) * warp_steps + (HEAD_DIM + 1) * parts * sequences,
                "25 per 32 keys, and those of a query and a length per block",
            ),
            Budget("global stores", (HEAD_DIM + 1) * parts * sequences, "8 numbers and a log-sum-exp per part"),
            Budget(LOCAL_NUMBERS, 3 * HEAD_DIM, "24: sums, a query, a key"),
            Budget(SHARED_BYTES, 0, "a warp shares by shuffles"),
            NO_FLOAT64,
        ),
        nan_sources="exp(score), infinite above 88, a lane or part without keys (-inf - -inf, 0 / 0), "
        "or 0 * what is left in a page",
        mistakes=(
            Mistake(
                "all sequences had the query of the first",
                lambda: expect_parts(np.tile(q[:1], (sequences, 1))),
                "Take the query of the block's sequence: look at the first index of `q`.",
            ),
            Mistake(
                "only the first 32 keys of a part were taken",
                lambda: expect_parts(count=32),
                "A lane has every 32nd key of its part: give it a loop from its first key to the part's end.",
            ),
            Mistake(
                "each lane's sum of weights kept its own maximum",
                lambda: expect_parts(of_sum=leave_unscaled),
                "Multiply each lane's sum by exp(its maximum - the part's) before lanes add them.",
            ),
            Mistake(
                "O were not divided by the sum of the weights",
                lambda: {5: expect_parts(is_divided=False)[5]},
                "Divide O by the sum over all lanes where you store it.",
            ),
            Mistake(
                "the maximum were left out of the log-sum-exp",
                lambda: {6: without_maximum},
                "Add the part's maximum to the logarithm of the sum.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="A split in pages",
    task="Split the decoding of several sequences: each block takes 64 keys of one sequence, finds them by the page "
    "table, and writes O and the log-sum-exp of its part.",
    points=4,
    function="decode",
    make_launch=make_launch,
    sizes=(
        (1, 64, True),
        (2, 77, True),
        (5, 200, False),
        (3, 1, False),
        (1, 65, True),
    ),  # sequences, longest, whether all are as long
    random_sizes=(
        (range(3, 8), range(65, 190, 3), (False,)),
        ((1,), Above(200), (True,)),
        (Above(5), (1, 15, 17, 33), (False,)),
    ),
)
