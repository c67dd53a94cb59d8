"""One query of an attention: its scores, their softmax, and its output, the mean of all values by probability."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float32

from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack
from labkit.views.wording import join

Run = tuple[
    Float32[np.ndarray, "N N"], Float32[np.ndarray, "N N"], Float32[np.ndarray, "N d"], Float32[np.ndarray, "N d"]
]
LEAST_REST = 0.005  # of a sum of probabilities: what is missing to 1 is rounding below, and a sink's part above
MOST_NAMED = 3  # keys that the sentence names
LEAST_NAMED = 0.05  # the least probability that the sentence names


def attention_row(
    words: Sequence[str], runs: Mapping[str, Run], features: Sequence[str] | None = None, start: int = 0
) -> View:
    """Step through the queries of a sequence; a menu chooses the run: a head, a mask.

    Parameters
    ----------
    words
        The tokens, one for each query and key.
    runs
        S, P, V and O of each run, by its name. S holds minus infinity where a key is masked.
    features
        Names of the columns of V and O; their numbers if left out.
    start
        The query that is shown first.
    """
    if not runs:
        raise ValueError("attention_row takes S, P, V and O of runs by their names, and there is no run.")
    N, columns = len(words), next(iter(runs.values()))[2].shape[-1]
    shapes = [(N, N), (N, N), (N, columns), (N, columns)]
    for name, arrays in runs.items():
        if [X.shape for X in arrays] != shapes:
            found = ", ".join(str(X.shape) for X in arrays)
            raise ValueError(f"For {N} words S, P, V and O have the shapes {shapes}; those of {name!r} have {found}.")
    S, P, V, O = (np.stack([arrays[k] for arrays in runs.values()]).astype(np.float32) for k in range(4))
    features = list(features) if features is not None else [f"column {k}" for k in range(columns)]
    visible = np.isfinite(S)
    says = [[_sentence(words, i, S[r, i], P[r, i]) for i in range(N)] for r in range(len(runs))]
    stats = [[_stats(S[r, i], P[r, i]) for i in range(N)] for r in range(len(runs))]
    lines = [
        [
            name,
            word,
            *(f"{S[r, i, j]:.2f}: {P[r, i, j]:.0%}" if visible[r, i, j] else "masked" for j in range(N)),
            " ".join(f"{value:.2f}" for value in O[r, i]),
        ]
        for r, name in enumerate(runs)
        for i, word in enumerate(words)
    ]
    data = {
        "say": says[0],
        "counter": [f"query {i + 1}" for i in range(N)],
        "start": start,
        "says": says,
        "runs": list(runs),
        "words": list(words),
        "features": features,
        "visible": pack(visible),
        "S": pack(np.where(visible, S, 0)),
        "P": pack(P),
        "V": pack(V),
        "O": pack(O),
        "labels": ["keys seen", "largest score", "its probability", "sum of probabilities"],
        "stats": stats,
        "table": table(["run", "query", *(f"{word}, key {j + 1}" for j, word in enumerate(words)), "O"], lines),
    }
    return View("attention_row", "Attention: one query, all keys", data, draw_still)


def _stats(S, P):
    """Return the numbers shown large for one query."""
    if not np.isfinite(S).any():
        return ["0", "-", "-", f"{P.sum():.0%}"]
    return [str(np.isfinite(S).sum()), f"{S.max():.2f}", f"{P[S.argmax()]:.0%}", f"{P.sum():.0%}"]


def _sentence(words, i, S, P):
    """Say which key scores highest for query i, and whose values its output is made of."""
    seen = int(np.isfinite(S).sum())
    if not seen:
        return f"**{words[i]}** sees no key."
    first, *others = np.argsort(-P, kind="stable")[:seen]
    numbers = [(f"{S[j]:.2f}", f"{P[j]:.0%}") for j in (first, *others)]
    equal = numbers.count(numbers[0])  # a word or more with the highest score, as the sentence rounds it
    (score, share), tied = numbers[0], [first, *others][:equal]
    names = join([f"`{words[j]}`" for j in tied]) if equal <= MOST_NAMED else f"{equal} keys"
    verbs = ("scores", "gets") if equal == 1 else ("score", "get")
    say = (
        f"**{words[i]}** (query {i + 1}) sees {seen} of {len(words)} keys. {names} {verbs[0]} highest, {score}, "
        f"and {verbs[1]} **{share}**{' each' * (equal > 1)}"
    )
    following = [f"`{words[j]}` {P[j]:.0%}" for j in others[equal - 1 : MOST_NAMED - 1] if P[j] >= LEAST_NAMED]
    say += f", before {' and '.join(following)}." if following else "."
    rest = 1 - float(P.sum())
    if rest > LEAST_REST:
        return say + f" The probabilities add up to {P.sum():.0%}: **{rest:.0%}** go to no key."
    return say + " O is the mean of all values, weighted by these probabilities."


def draw_still(figure, data, step):
    """Draw scores, probabilities, values and output of one query of the first run."""
    stills.set_size_and_title(figure, data, step, 9.5, 5.2)
    words, features = data["words"], data["features"]
    N, columns = len(words), len(features)
    visible, S, P, V, O = (unpack(data[name])[0] for name in ("visible", "S", "P", "V", "O"))
    grid = figure.add_gridspec(3, 2, width_ratios=(4, 1), height_ratios=(1, 1, 1.4))
    scores, probabilities, values, output = (
        figure.add_subplot(grid[place]) for place in ((0, 0), (1, 0), (2, 0), (2, 1))
    )
    seen = visible[step] != 0
    scores.bar(np.arange(N)[seen], S[step][seen], 0.7, color=COLOURS["A"])
    scores.set(ylabel="score", ylim=(min(0, S.min()) - 0.2, S.max() * 1.05 + 0.2))
    probabilities.bar(range(N), P[step], 0.7, color=COLOURS["B"])
    probabilities.set(ylabel="probability", ylim=(0, 1.05))
    for axes in (scores, probabilities):
        axes.set_xticks(range(N), [])
        axes.set_xlim(-0.5, N - 0.5)
        stills.hide_top_and_right(axes)
    scores.set_xticks(range(N), words, fontsize=7)
    scores.xaxis.tick_top()
    scores.get_xticklabels()[step].set_color(COLOURS["hot"])
    stills.show_cells(values, stills.tint("B", np.broadcast_to(P[step], (columns, N))), "V", lines=1, aspect="auto")
    for (j, k), value in np.ndenumerate(V):
        if value:
            stills.write(values, j, k, f"{value:g}", fontsize=7)
    values.set_yticks(range(columns), features, fontsize=7)
    values.tick_params(labelleft=True)
    fills = [COLOURS["C"] if value >= 0 else "none" for value in O[step]]  # hollow: negative
    output.barh(range(columns), O[step], 0.7, color=fills, edgecolor=COLOURS["C"])
    output.set(xlim=(min(0, V.min()), V.max()), ylim=(columns - 0.5, -0.5))
    output.set_yticks(range(columns), [f"{value:.2f}" for value in O[step]], fontsize=7)
    output.set_title(f"O of {words[step]}", fontsize=9, loc="left", weight="bold", color=COLOURS["fg"])
    stills.hide_top_and_right(output)
