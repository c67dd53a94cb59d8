"""A cluster of blocks that normalises an array: its pieces in shared memory, the exchange of sums, and the result."""

import ast
from collections import Counter
from textwrap import dedent

import numpy as np

from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, stats_by_step, unpack
from labkit.views.wording import check_trace

MAX_VALUES = 128  # of a piece, which can be told apart


def cluster(trace: Trace, x: str = "x", y: str = "y", sums: str = "moments") -> View:
    """Step through a cluster: copy pieces, sum them, exchange the sums, normalise what is in shared memory.

    Parameters
    ----------
    trace
        A run that recorded all blocks of one cluster: `record=[(b,) for b in range(8)]`.
    x, y
        Arguments of the kernel: the array that is read, and the array that is written.
    sums
        Shared array to which each block of the cluster writes its sums, in every block.
    """
    check_trace("cluster", trace)
    blocks = len(trace.samples.blocks)
    read, written = (_elements(trace, name, kind, "global") for name, kind in ((x, "load"), (y, "store")))
    sent = [Counter(elements.tolist()) for elements in _elements(trace, sums, "store", "shared")]
    if blocks < 2 or any(not each or set(each.values()) != {blocks} for each in sent):
        raise ValueError(
            f"In this run of {trace.kernel} no recorded block writes each of its sums to {sums} of all recorded "
            "blocks: record all blocks of one cluster."
        )
    size = max(map(len, read))
    once = all(len(np.unique(np.concatenate(pieces))) == blocks * size for pieces in (read, written))
    if not 0 < size <= MAX_VALUES or not once or any(len(piece) != size for piece in (*read, *written)):
        raise ValueError(
            f"cluster shows pieces of the same size, at most {MAX_VALUES} values, and each read and written once, not "
            f"of {', '.join(str(len(piece)) for piece in read)} values: choose a smaller problem."
        )
    before, after = (
        np.stack([_argument(trace, name).ravel()[piece] for piece in pieces])
        for name, pieces in ((x, read), (y, written))
    )
    means = before.mean(1, dtype=float)
    mean, spread = before.mean(dtype=float), before.std(dtype=float)
    per_block = len(sent[0])  # numbers that a block sends to each block
    total, count = blocks * size, f"{blocks * size:,} values"
    says = [
        f"A cluster of **{blocks} blocks** takes a channel of {count}: {size} for each block. Nothing is on the "
        "chip yet.",
        f"Each block copies its piece into its own shared memory. **{count} of `{x}` are read, each once.**",
        f"Each block sums its own piece. The means of the {blocks} pieces differ: from {min(means):.2f} to "
        f"{max(means):.2f}. No block has the channel's mean yet.",
        *(
            f"Exchange, {target + 1} of {blocks}: every block writes its {per_block} numbers into the shared memory of "
            f"**block {target}**. Nothing goes through `{x}` or `{y}`."
            for target in range(blocks)
        ),
        f"After a barrier of the cluster each block merges the {blocks} entries. All get the same mean, "
        f"**{mean:.2f}**, and the same spread, **{spread:.2f}**.",
        f"Each block normalises what **is still in its shared memory**, and writes {count} of `{y}`. `{x}` "
        "was read once.",
    ]
    # What a block writes to itself is not sent.
    exchanged = [0, 0, 0, *(per_block * (blocks - 1) * (target + 1) for target in range(blocks))]
    exchanged += [exchanged[-1]] * 2
    names = ["start", "copy", "sum", *(f"exchange {target + 1}" for target in range(blocks)), "merge", "normalise"]
    steps = len(names)
    reads, writes = [0] + [total] * (steps - 1), [0] * (steps - 1) + [total]
    data = {
        "say": says,
        "blocks": blocks,
        "x": x,
        "y": y,
        "before": pack(before),
        "after": pack(after),
        "means": [round(float(value), 4) for value in means],
        "mean": round(float(mean), 4),
        "spread": round(float(spread), 4),
        **stats_by_step(
            ["step"],
            [[name] for name in names],
            [f"values of {x} read from memory", "numbers sent between blocks", f"values of {y} written"],
            [[f"{number:,}" for number in row] for row in zip(reads, exchanged, writes)],
        ),
    }
    return View("cluster", f"A channel in the shared memory of {blocks} blocks", data, draw_still)


def _elements(trace, name, kind, space) -> list[np.ndarray]:
    """Return the elements of an array that each recorded block accesses, in the order of its accesses."""
    samples, elements = trace.samples, [[] for _ in trace.samples.blocks]
    for block, number, index in zip(samples.block, samples.site, samples.index):
        site = trace.sites[number].site if number >= 0 else None
        if site and (site.array, site.kind, site.space) == (name, kind, space):
            lanes = index[index >= 0]
            elements[block].append((lanes[:, None] + np.arange(site.elements)).ravel())
    return [np.concatenate(each) if each else np.zeros(0, int) for each in elements]


def _argument(trace, name) -> np.ndarray:
    """Return an argument of the kernel after the run, by its name."""
    tree = ast.parse(dedent(trace.source))
    kernel = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == trace.kernel)
    return trace.outputs[[argument.arg for argument in kernel.args.args].index(name)]


def draw_still(figure, data, step):
    """Draw each block's shared memory at a step."""
    blocks, last = data["blocks"], len(data["say"]) - 1
    stills.set_size_and_title(figure, data, step, 10, 3.2)
    before, after = unpack(data["before"]), unpack(data["after"])
    shown = after if step == last else before
    high, low = (float(limit) for limit in (max(before.max(), after.max(), 0), min(before.min(), after.min(), 0)))
    for block, axes in enumerate(figure.subplots(1, blocks, sharey=True)):
        colour = "line" if step == 0 else "C" if step == last else "A"
        axes.vlines(np.arange(before.shape[1]), 0, shown[block], color=COLOURS[colour], linewidth=1)
        axes.axhline(0, color=COLOURS["dim"], linewidth=0.6)
        if 2 <= step < last - 1:
            axes.axhline(data["means"][block], color=COLOURS["hot"], linewidth=2)
        elif step == last - 1:
            axes.axhline(data["mean"], color=COLOURS["hot"], linewidth=2)
        axes.set_ylim(low, high)
        axes.set_xticks([])
        axes.set_title(f"block {block}", fontsize=8, color=COLOURS["hot" if step - 3 == block else "fg"])
        axes.tick_params(labelsize=7)
