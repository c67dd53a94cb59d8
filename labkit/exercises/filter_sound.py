"""Audio filters over several channels as a tiled matmul, one matrix of which is not stored."""

import numpy as np

from labkit.checking import NO_FLOAT64, Above, Budget, Exercise, Launch, Mistake, unwritten_array
from labkit.checking.budget import BARRIERS
from labkit.exercises.matmuls import USES_TILES, add_expected_results
from labkit.exercises.problems import (
    expect_product,
    grid_for,
    multiply_transposed_tiles,
    one_thread_per_element,
    random_matrix,
)
from labkit.table import count_text

TILE = 16


def make_launch(rng, K, C, L, T, hop):
    rest = hop + L // 2 if T % 2 else 0  # samples after those that an output needs
    w, sound = random_matrix(rng, K, C * L), random_matrix(rng, C, (T - 1) * hop + L + rest)
    all_windows = np.lib.stride_tricks.sliding_window_view(sound, L, 1)  # C T L
    windows = all_windows[:, : (T - 1) * hop + 1 : hop]

    def lower(windows, order=(0, 2, 1)):
        return np.ascontiguousarray(windows.transpose(order).reshape(C * L, T))

    lowered, turned_taps = lower(windows), w.reshape(K, C, L)[..., ::-1].reshape(K, C * L)
    tiles = -(-K // TILE) * -(-T // TILE) * -(-C * L // TILE)
    return Launch(
        label=f"{count_text(C, 'channel')} of {sound.shape[1]} samples, "
        f"{count_text(K, 'filter')} of {L} taps, hop {hop}",
        args=(sound, w.reshape(K, C, L), unwritten_array((K, T)), hop),
        outputs={2: expect_product(w, lowered)},
        grid=grid_for((T, K), (TILE, TILE)),
        block=(TILE, TILE),
        budgets=(
            Budget("global loads", 2 * TILE**2 * tiles, "2 per thread and tile, so that the edges have room"),
            Budget("global stores", K * T, "each output once"),
            Budget(BARRIERS, 2 * tiles, "one pair per iteration of each block"),
            NO_FLOAT64,
        ),
        duties=(one_thread_per_element((T, K), (TILE, TILE)),),
        dependences=add_expected_results((USES_TILES,), w, lowered),
        mistakes=(
            Mistake(
                "the hop were 1",
                lambda: {2: expect_product(w, lower(all_windows[:, :T]))},
                "Output t begins at sample t times `hop`.",
            ),
            Mistake(
                "only the first channel were filtered",
                lambda: {2: expect_product(w[:, :L], lowered[:L])},
                "Let the loop over tiles run to C * L.",
            ),
            Mistake(
                "the taps were turned",
                lambda: {2: expect_product(turned_taps, lowered)},
                "Tap l meets the sample at `hop` times t, plus l.",
            ),
            Mistake(
                "samples were counted over channels first",
                lambda: {2: expect_product(w, lower(windows, (2, 0, 1)))},
                "A row of the matrix is c L + l: c is its number divided by L, and l the remainder.",
            ),
            Mistake(
                "each tile of x were transposed",
                lambda: {2: multiply_transposed_tiles(w, lowered, TILE)},
                "In the tile of x, taps run down and outputs across.",
            ),
        ),
    )


EXERCISE = Exercise(
    title="Filter sound",
    task="Sound x has C channels of samples in a row, and each of the K filters in w has L taps per channel. "
    "Write y[k, t], the sum over all c and l of w[k, c, l] * x[c, t * hop + l], as a tiled product whose right "
    "matrix is never stored, with TILE x TILE threads per block.",
    points=4,
    function="filter_sound",
    make_launch=make_launch,
    sizes=(  # filters, channels, taps, outputs, hop
        (20, 2, 24, 70, 1),
        (5, 3, 9, 37, 2),
        (33, 1, 16, 18, 3),
        (4, 1, 7, 10, 5),
        (9, 3, 11, 5, 2),  # the last tile has one tap
        (18, 2, 41, 19, 43),  # samples that no tap meets; 41 times the float32 nearest to 1/41 is less than 1
    ),
    random_sizes=(
        (range(17, 40), (2, 4), (8, 16, 24), range(33, 60), (1, 2)),
        ((1,), Above(3), (5, 16), Above(70), (1,)),
        (Above(33), (2, 3), Above(24, 8), (1, 5, 16), Above(3)),
    ),
)
