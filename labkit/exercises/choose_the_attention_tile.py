"""The tile of scores that loads the fewest keys within shared memory and registers."""

from typing import Any

import numpy as np
from jaxtyping import Int

from labkit.checking import Above, Exercise, Questions

STEP, LARGEST_SIDE = 16, 256  # of rows and of columns
SIDES = np.arange(STEP, LARGEST_SIDE + 1, STEP)
CASES = (  # queries, keys, head_dim, causal, shared_bytes, registers
    (512, 512, 64, False, 49_152, 16_384),
    (512, 512, 64, True, 49_152, 16_384),
    (100, 300, 128, False, 101_376, 65_536),
    (300, 100, 128, True, 101_376, 65_536),
    (1, 777, 96, True, 232_448, 65_536),
    (777, 1, 96, True, 49_152, 32_768),
    (64, 64, 64, False, 10_240, 1_280),
    (64, 64, 64, False, 10_239, 1_280),
    (64, 64, 64, False, 10_240, 1_279),
    (1, 1, 1, True, 10**6, 10**6),
)


def make_launch(rng, count):
    """Ask for the cases above (count 0), or for this many random ones."""
    calls = CASES if count == 0 else tuple(draw_case(rng) for _ in range(count))

    def find_mistake(answers):
        for call, answer in zip(calls, answers, strict=True):
            if why := find_fault(call, answer):
                queries, keys, head_dim, causal, shared_bytes, registers = call
                return (
                    f"Of {queries} queries and {keys} keys of {head_dim} numbers, {'not ' * (not causal)}causal, with "
                    f"{shared_bytes:,} bytes of shared memory and {registers:,} registers, {answer!r} {why}."
                )
        return ""

    return Questions(f"{count} attentions" if count else "attentions made for it", calls, find_mistake)


def find_fault(call: tuple, answer: Any) -> str:
    """Say what is wrong with an answer, in words that follow it; "" if none is better."""
    fits, loaded, counts = count_tiles(*call)
    if answer is None or not fits.any():
        return "" if answer is None and not fits.any() else "is wrong: " + ("one fits" if fits.any() else "none fits")
    is_pair = isinstance(answer, tuple | list) and len(answer) == 2 and all(type(side) is int for side in answer)
    if not is_pair or not set(answer) <= set(SIDES.tolist()):
        return "is no pair (rows, columns) of multiples of 16 up to 256"
    index = tuple(side // STEP - 1 for side in answer)
    if not fits[index]:
        return "does not fit"
    least = loaded[fits].min()
    if loaded[index] > least:
        return f"loads {loaded[index]:,} keys, and {least:,} are enough"
    fewest = counts[fits & (loaded == least)].min()
    return f"takes {counts[index]:,} iterations, and {fewest:,} are enough" if counts[index] > fewest else ""


def count_tiles(
    queries, keys, head_dim, causal, shared_bytes, registers
) -> tuple[Int[np.ndarray, "rows columns"], ...]:
    """Return for each tile shape if it fits, how many keys its blocks load, and in how many tiles."""
    rows, columns = SIDES[:, None], SIDES
    fits = (2 * head_dim * (rows + 4 * columns) <= shared_bytes) & (rows * (head_dim + columns) <= registers)
    loaded, counts = np.zeros((2, len(SIDES), len(SIDES)), int)
    for i, side in enumerate(SIDES):
        end = np.minimum(np.arange(0, queries, side) + side, queries)  # of each block's queries
        visible = np.maximum(end + keys - queries, 0) if causal else np.full(len(end), keys)
        block_tiles = -(-visible[:, None] // columns)
        counts[i] = block_tiles.sum(0)
        loaded[i] = np.minimum(block_tiles * columns, keys).sum(0)
    return fits, loaded, counts


def draw_case(rng):
    """Draw an attention, with limits that often are just what a tile needs, or one less."""
    queries, keys = (int(10 ** rng.uniform(0, 3)) for _ in range(2))
    if rng.integers(2):
        queries = keys = max(queries, keys)
    head_dim = int(rng.choice((64, 128, rng.integers(1, 257))))
    limits = []
    for _ in range(2):
        rows, columns = rng.choice(SIDES, 2).tolist()
        need = 2 * head_dim * (rows + 4 * columns) if not limits else rows * (head_dim + columns)
        limits.append(max(need - int(rng.integers(2)), 1) if rng.integers(4) else 10 * need)
    return queries, keys, head_dim, bool(rng.integers(2)), *limits


EXERCISE = Exercise(
    title="Choose the tile",
    task="A block owns `rows` queries. It loops over tiles of `columns` keys, beginning at the first key. It skips the "
    "tiles at the end in which none of its queries sees a key. The last tile may be cut off: the block loads only keys "
    "that exist. Find the tile that loads the fewest keys and fits in shared memory and registers.",
    points=3,
    function="best_tile",
    make_launch=make_launch,
    sizes=((0,),),
    random_sizes=((range(40, 60),), (range(40, 60),), (Above(60),)),
    machine="python",
)
