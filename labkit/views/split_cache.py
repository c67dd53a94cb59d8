"""A paged cache read by the blocks of a decoding kernel: which block reads which page, and the merge of their parts."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int
from matplotlib.patches import Rectangle

from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, stats_by_step
from labkit.views.wording import check_trace, join

SEQUENCE_COLOURS = "A", "B", "C"
MAX_TILES, MAX_PAGES = 48, 64  # of a sequence, and of the cache, which can be told apart
MAX_NAMED = 4  # parts whose shares a sentence names
LABELS = ["blocks that read now", "tiles read one after the other", "keys read"]


def split_cache(
    runs: Mapping[str, Trace],
    queries: Float[np.ndarray, "sequences D"],
    keys: Float[np.ndarray, "pages page D"],
    table: Int[np.ndarray, "sequences pages_of_a_sequence"],
    lengths: Sequence[int],
    *,
    tile: int,
    scale: float = 1.0,
    K: str = "K",
) -> View:
    """Step through a cache: at each step every block reads one more tile of keys; at the end parts are merged.

    A choice above the picture changes the kernel. Blocks run at the same time, and a step is the time in which
    one of them reads a tile.

    Parameters
    ----------
    runs
        Runs of decoding kernels by their names, on the same cache with one head. All blocks are recorded.
    queries
        One query per sequence.
    keys
        All pages of the cache.
    table, lengths
        Pages of each sequence in order, and its number of keys.
    tile
        Keys that a block reads at a step; it divides the page.
    scale
        Factor of the scores.
    K
        Name of the cache of keys in the kernels.
    """
    cache = _Cache(np.asarray(queries, float), np.asarray(keys, float), np.asarray(table), lengths, tile, scale)
    choices = []
    for name, trace in runs.items():
        check_trace("split_cache", trace)
        choices.append({"name": name, **_choice_data(name, trace, cache, K)})
    if not choices:
        raise ValueError("split_cache shows how a kernel reads a cache: give it a run.")
    owners = np.full((len(cache.keys), 2), -1)
    for sequence, pages in enumerate(cache.pages):
        owners[pages] = [[sequence, number] for number in range(len(pages))]
    shared = {
        "owners": owners.tolist(),
        "tiles_per_page": cache.page // tile,
        "tile": tile,
        "lengths": [int(length) for length in lengths],
        "pages": [pages.tolist() for pages in cache.pages],
    }
    return View(
        "split_cache",
        "A cache of pages, and the blocks that read it",
        {**choices[0], **shared, "choices": choices, "chosen": 0},
        draw_still,
    )


class _Cache:
    """Pages of each sequence, and for each key its row in memory and its probability."""

    def __init__(self, queries, keys, table, lengths, tile, scale):
        self.keys, self.page, self.tile, self.lengths = keys, keys.shape[1], tile, lengths
        if not 0 < len(lengths) <= len(SEQUENCE_COLOURS) or len(queries) != len(lengths) or len(table) != len(lengths):
            raise ValueError(
                f"split_cache shows 1 to {len(SEQUENCE_COLOURS)} sequences, with a query and a row of the table each."
            )
        if self.page % tile:
            raise ValueError(f"A page of {self.page} keys is not a multiple of a tile of {tile}: choose another tile.")
        if min(lengths) < 1 or max(lengths) > MAX_TILES * tile or len(keys) > MAX_PAGES:
            raise ValueError(
                f"split_cache shows sequences of 1 to {MAX_TILES} tiles in up to {MAX_PAGES} pages: choose others."
            )
        self.pages = [row[: -(-length // self.page)] for row, length in zip(table, lengths, strict=True)]
        self.rows = [
            (pages[:, None] * self.page + np.arange(self.page)).ravel()[:length]
            for pages, length in zip(self.pages, lengths, strict=True)
        ]
        flat = keys.reshape(-1, keys.shape[-1])
        scores = [scale * flat[rows] @ query for rows, query in zip(self.rows, queries, strict=True)]
        self.lse = [np.log(np.exp(s - s.max()).sum()) + s.max() for s in scores]
        self.probabilities = [np.exp(s - lse) for s, lse in zip(scores, self.lse, strict=True)]


def _choice_data(name, trace, cache, K) -> dict:
    """Return what is drawn of one kernel, as JSON-ready data."""
    block_tiles = _tiles_by_block(trace, cache, K)
    rounds = max(map(len, block_tiles))
    tiles = [[[-1, -1] for _ in range(-(-length // cache.tile))] for length in cache.lengths]
    for block, read in enumerate(block_tiles):
        for step, (sequence, number) in enumerate(read):
            if tiles[sequence][number][0] >= 0:
                raise ValueError(f"In the run of {name} two blocks read one key: show a cache with one head.")
            tiles[sequence][number] = [block, step]
    if any(block < 0 for sequence in tiles for block, _ in sequence):
        raise ValueError(f"In the run of {name} no recorded block reads some keys: record all blocks.")
    parts = [_parts(of, p, cache.tile) for of, p in zip(tiles, cache.probabilities, strict=True)]
    says, stats, names = [], [], []
    working = sum(map(bool, block_tiles))
    for step in range(rounds):
        reading = sum(len(read) > step for read in block_tiles)
        keys = sum(_keys_of(cache, tile) for read in block_tiles for tile in read[: step + 1])
        names.append("read")
        stats.append([reading, step + 1, f"{keys:,} of {sum(cache.lengths):,}"])
        says.append(_reading(step, rounds, reading, working, cache.tile))
    for sequence, of_sequence in enumerate(parts):
        names.append(f"merge {sequence}")
        stats.append([0, rounds, stats[-1][2]])
        says.append(_merging(sequence, of_sequence))
    steps = [[number + 1, name] for number, name in enumerate(names)]
    return {
        "say": says,
        "rounds": rounds,
        "tiles": tiles,
        "parts": parts,
        **stats_by_step(["step", "what"], steps, LABELS, stats),
    }


def _tiles_by_block(trace, cache, K) -> list[list[tuple[int, int]]]:
    """Return the tiles, as sequence and number, that each recorded block reads, in the order of its first accesses."""
    (shape,) = {array.shape for array in trace.arrays if array.name == K} or {()}
    where = {int(row): (b, n // cache.tile) for b, rows in enumerate(cache.rows) for n, row in enumerate(rows)}
    row_elements = int(np.prod(shape)) // (len(cache.keys) * cache.page)
    if not row_elements:
        raise ValueError(f"{trace.kernel} reads no array {K} as large as these pages: name the cache of keys.")
    samples, found = trace.samples, [{} for _ in trace.samples.blocks]
    for block, number, index in zip(samples.block, samples.site, samples.index, strict=True):
        site = trace.sites[number].site if number >= 0 else None
        if site and (site.array, site.kind) == (K, "load"):
            for row in np.unique(index[index >= 0] // row_elements).tolist():
                if row in where:
                    found[block][where[row]] = None
    return [list(tiles) for tiles in found]


def _keys_of(cache, tile) -> int:
    sequence, number = tile
    return min(cache.tile, cache.lengths[sequence] - number * cache.tile)


def _parts(tiles, probabilities, tile) -> list[dict]:
    """Return the runs of neighbouring tiles that one block reads, with their share of the probability."""
    parts: list[dict] = []
    for number, (block, _) in enumerate(tiles):
        if not parts or parts[-1]["block"] != block:
            parts.append({"block": block, "first": number, "share": 0.0})
        parts[-1]["end"] = number + 1
    for part in parts:
        part["share"] = round(float(probabilities[part["first"] * tile : part["end"] * tile].sum()), 4)
    return parts


def _reading(step, rounds, reading, working, tile) -> str:
    blocks = f"**{reading} of {working} block{'s'[: working > 1]}** read{'s'[: reading == 1]}"
    if step == 0:
        return f"{blocks} at the same time, each a tile of {tile} keys. The table says in which page it is."
    if reading < working:
        return f"Tile {step + 1}: {blocks}. The others have read their parts, and wait."
    return f"Tile {step + 1} of {rounds}: {blocks}, wherever the pages are."


def _merging(sequence, parts) -> str:
    if len(parts) == 1:
        return f"Sequence {sequence} was read by block {parts[0]['block']} alone: there is nothing to merge."
    shares = [f"{part['share']:.0%}" for part in parts]
    if len(parts) <= MAX_NAMED:
        weights = f"**{join(shares)}**"
    else:
        low, high = (choose(part["share"] for part in parts) for choose in (min, max))
        weights = f"from **{low:.0%} to {high:.0%}**"
    return (
        f"**Merge** of sequence {sequence}: its O is the weighted sum of the O of {len(parts)} parts. The weights "
        f"follow from their log-sum-exps: {weights}."
    )


def draw_still(figure, data, step):
    """Draw the tiles of each sequence in order, read or not, and the shares of merged parts."""
    lengths, per_page = data["lengths"], data["tiles_per_page"]
    stills.set_size_and_title(figure, data, step, 9.5, 1.2 + 0.9 * len(lengths))
    widest = max(map(len, data["tiles"]))
    for sequence, axes in enumerate(np.atleast_1d(figure.subplots(len(lengths), 1))):
        colour = SEQUENCE_COLOURS[sequence]
        for number, (_, when) in enumerate(data["tiles"][sequence]):
            face = COLOURS["hot"] if when == step else stills.tint(colour, 0.9 if when < step else 0.25)
            axes.add_patch(Rectangle((number, 0), 0.92, 1, facecolor=face))
        for number, page in enumerate(data["pages"][sequence]):
            axes.text(number * per_page, 1.15, str(page), fontsize=6, color=COLOURS["dim"])
        left, total = 0.0, len(data["tiles"][sequence])
        for part in data["parts"][sequence]:
            axes.text(part["first"], -0.55, f"block {part['block']}", fontsize=6, color=COLOURS["fg"])
            if step >= data["rounds"] + sequence:
                width = part["share"] * total
                axes.add_patch(
                    Rectangle((left, -1.8), width, 0.8, facecolor=stills.tint(colour, 0.7), edgecolor="white")
                )
                left += width
        axes.set(xlim=(0, widest), ylim=(-2, 1.7), xticks=[], yticks=[])
        axes.set_ylabel(f"sequence {sequence}", fontsize=7, rotation=0, ha="right")
        stills.hide_marks(axes)
