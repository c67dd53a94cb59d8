"""A row of attention's output while its keys arrive: a larger maximum rescales the sum and the accumulator alike."""

import numpy as np

from labkit.attention import AttentionForward
from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, stats_by_step, unpack
from labkit.views.score_tiles import tile_visits
from labkit.views.wording import check_trace, global_outputs

LABELS = "maximum so far", "rescale factor", "sum", "accumulator / sum differs from O by"
TOLERANCE = 1e-3  # of O: the run's O is float32


def rescaled_output(problem: AttentionForward, trace: Trace, query: int) -> View:
    """Step through the tiles of keys that one query meets: its exponentials, their sum, and the accumulator of O.

    A tile that raises the maximum takes two steps: all that was accumulated shrinks by one factor, then it is added.

    Parameters
    ----------
    problem
        Of one head.
    trace
        A run with the blocks of this query recorded, as for `score_tiles`; its O is what the last step must give.
    query
        Row of Q and of O.

    Raises
    ------
    ValueError
        No recorded block has this query, or O of the run is another.
    """
    check_trace("rescaled_output", trace)
    tiles = [keys for queries, keys, _ in tile_visits(trace) if query in queries]
    if not tiles:
        raise ValueError(f"No recorded block of this run has query {query}: choose another, or record its block.")
    Q, K, V, O = (global_outputs(trace)[name].astype(float) for name in "QKVO")
    scores = np.where(problem.allowed()[query], problem.factor * (K @ Q[query]), -np.inf)
    row_max, row_sum, acc, arrived = -np.inf, 0.0, np.zeros(V.shape[1]), 0
    states = []  # of each step: is it a rescaling, keys that arrived, maximum, factor, sum, accumulator
    for keys in tiles:
        new_max = max(row_max, scores[keys].max())
        alpha = float(np.exp(row_max - new_max)) if np.isfinite(row_max) else 1.0
        row_max, row_sum, acc = new_max, row_sum * alpha, acc * alpha
        if alpha < 1:
            states.append((True, arrived, row_max, alpha, row_sum, acc))
        weights = np.exp(scores[keys] - row_max)
        row_sum, acc, arrived = row_sum + weights.sum(), acc + weights @ V[keys], arrived + len(keys)
        states.append((False, arrived, row_max, alpha, row_sum, acc))
    if not np.allclose(acc / row_sum, O[query], atol=TOLERANCE * np.abs(O[query]).max()):
        raise ValueError(f"O[{query}] of this run is not what its tiles give: show a kernel whose result is right.")
    order = np.concatenate(tiles)
    heights = [np.where(np.arange(len(order)) < n, np.exp(scores[order] - top), 0) for _, n, top, *_ in states]
    stats = [
        [
            f"{top:.2f}",
            f"{alpha:.2f}" if is_rescaling else "1",
            f"{total:.2f}",
            f"{np.abs(a / total - O[query]).max():.2g}",
        ]
        for is_rescaling, _, top, alpha, total, a in states
    ]
    data = {
        "say": [_sentence(query, *state) for state in states],
        "query": query,
        "tile": len(tiles[0]),
        "heights": pack(np.array(heights)),
        "acc": pack(np.array([state[-1] for state in states])),
        "rescales": [state[0] for state in states],
        **stats_by_step(["keys"], [[state[1]] for state in states], list(LABELS), stats),
    }
    return View("rescaled_output", f"Query {query}: its row of O, one tile of keys at a time", data, draw_still)


def _sentence(query, is_rescaling, arrived, row_max, alpha, row_sum, acc) -> str:
    if is_rescaling:
        return (
            f"The next tile has a larger score, {row_max:.2f}. **Everything so far is multiplied by {alpha:.2f}**: the "
            "exponentials, their sum and all of the accumulator."
        )
    return f"{arrived} keys have arrived. The sum is {row_sum:.2f}, relative to the maximum {row_max:.2f}."


def draw_still(figure, data, step):
    """Draw the exponentials and the accumulator at a step, over outlines of those before a rescaling."""
    stills.set_size_and_title(figure, data, step, 9, 4.2, wrap=True)
    panels = {"exp(score - maximum)": "heights", "accumulator": "acc"}
    for axes, (label, name) in zip(figure.subplots(2, 1), panels.items(), strict=True):
        values = unpack(data[name])
        columns = np.arange(values.shape[1])
        if data["rescales"][step]:
            axes.bar(columns, values[step - 1], 0.8, color="none", edgecolor=COLOURS["dim"], linewidth=0.6)
        axes.bar(columns, values[step], 0.8, color=COLOURS["A" if name == "heights" else "C"])
        axes.set_ylabel(label, fontsize=8)
        axes.set_ylim(min(values.min(), 0) * 1.05, values.max() * 1.05)
        stills.hide_top_and_right(axes)
