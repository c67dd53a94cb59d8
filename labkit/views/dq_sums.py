"""The additions to dQ: blocks of keys that share its rows, and four ways to keep their sums separate or in order."""

from collections.abc import Sequence

import numpy as np

from labkit import formats
from labkit.attention import AttentionBackward
from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, stats_by_step, unpack
from labkit.views.wording import check_trace, global_outputs, join

TO_COME, DONE, NOW, WAITS = range(4)  # states of a tile of scores
NONE = -1  # no block has added yet
LABELS = "GEMMs per tile of scores", "steps that blocks wait", "copies of dQ", "same bits in both runs"
TOLERANCE = 0.05  # of the size of dQ: shares are float32, those of the run are products of 16-bit P and dS


def dq_sums(problem: AttentionBackward, operands: tuple, adding: Trace, owners: Sequence[Trace]) -> View:
    """Step through the tiles of the backward pass: which block adds to which rows of dQ, and in which order.

    A choice above the picture changes how blocks share dQ. The run gives the tiles that a block visits, in their order.
    A random generator gives the order in which additions of different blocks arrive, twice: a GPU does not fix it.

    Parameters
    ----------
    problem, operands
        One head, in bfloat16.
    adding
        The kernel of `bulk_reduction` that adds to `dQ_sums`, with all blocks recorded: one for each tile of keys.
    owners
        The launches of a step in which no block adds to what another one writes, of the same problem.
    """
    for trace in (adding, *owners):
        check_trace("dq_sums", trace)
    visits = _visits(adding)
    shares = _shares(problem, operands, len(visits), len(global_outputs(adding)["dQ_sums"][0]))
    _check_shares(shares, global_outputs(adding)["dQ_sums"][0])
    gemms = round(_gemms(problem, [adding])), round(_gemms(problem, owners))
    ways = {
        "atomic adds": (gemms[0], _add_at_once(visits)),
        "turns": (gemms[0], _add_by_turns(visits)),
        "a copy per block": (gemms[0], _fill_copies(visits)),
        "a second kernel": (gemms[1], _own_rows(visits)),
    }
    at_random = _orders(ways["atomic adds"][1], is_random=True)
    elements = [_element(shares[:, tile], [order[tile] for order in at_random]) for tile in range(shares.shape[1])]
    choices = [
        {"name": name, **_choice_data(name, gemms_per_tile, frames, shares, elements)}
        for name, (gemms_per_tile, frames) in ways.items()
    ]
    rows = shares.shape[2]
    common = {"rows": [f"{n * rows} to {(n + 1) * rows - 1}" for n in range(shares.shape[1])], "blocks": len(visits)}
    data = {**choices[0], "kept": choices, "chosen": 0, "common": common}
    return View("dq_sums", "Which block adds up dQ?", data, draw_still)


# --- from the run ----------------------------------------------------------------------------------


def _visits(trace) -> list[list[int]]:
    """Return the row tiles of dQ to which each recorded block adds, in its order."""
    sums = global_outputs(trace).get("dQ_sums")
    sites = [n for n, c in enumerate(trace.sites) if (c.site.array, c.site.kind) == ("dQ_sums", "atomic")]
    if sums is None or not sites or sums.shape[0] != 1:
        raise ValueError("dq_sums shows a kernel whose blocks add to dQ_sums, for one head: run `bulk_reduction`.")
    samples, visits = trace.samples, []
    for block in range(len(samples.blocks)):
        chosen = np.isin(samples.site, sites) & (samples.block == block)
        elements = samples.index[chosen].max(axis=1, initial=NONE)
        visits.append(list(dict.fromkeys((elements // sums.shape[2]).tolist())))
    if len(visits) != trace.grid[0]:
        raise ValueError(f"dq_sums needs all {trace.grid[0]} blocks recorded, not {len(visits)}.")
    return visits


def _shares(problem, operands, blocks, tiles) -> np.ndarray:
    """Return the share of each block in dQ, in float32: blocks x tiles x rows x head_dim, without the scale."""
    Q, K, V, O, dO = (formats.BF16.decode(operands[n])[0, 0].astype(np.float32) for n in (0, 1, 2, 3, 5))
    scores = np.where(problem.allowed(), problem.factor * (Q @ K.T), -np.inf).astype(np.float32)
    P = np.exp(scores - operands[4][0, 0][:, None])
    dS = P * (dO @ V.T - (O * dO).sum(1, keepdims=True))
    if problem.batch * problem.heads != 1 or len(Q) % tiles or len(K) % blocks:
        raise ValueError("dq_sums shows one head whose queries and keys are multiples of the tiles: choose such a one.")
    by_block = np.stack([dS[:, keys] @ K[keys] for keys in np.split(np.arange(len(K)), blocks)])
    return by_block.reshape(blocks, tiles, len(Q) // tiles, -1)


def _check_shares(shares, sums):
    """Refuse a run whose dQ is not the sum of these shares; the run has another order of elements."""
    sizes, expected = (np.linalg.norm(X.reshape(len(sums), -1), axis=1) for X in (sums, shares.sum(0)))
    if not np.allclose(sizes, expected, rtol=TOLERANCE):
        raise ValueError("The sums of this run are not those of the operands: give the operands that it had.")


def _gemms(problem, traces) -> float:
    """Return how many GEMMs of the size of S the tensor cores computed."""
    flops = sum(n for t in traces for kind, n in t.counters.flops_by_dtype.items() if "tensor" in kind)
    return flops / (2 * problem.queries * problem.keys * problem.head_dim)


# --- ways to share: frames of (states of tiles, blocks that arrive at each row tile) -----------------


def _frame(visits):
    tiles = 1 + max(max(visit, default=0) for visit in visits)
    return np.full((tiles, len(visits)), TO_COME), [[] for _ in range(tiles)]


def _add_at_once(visits):
    """All blocks add as soon as they have a share."""
    frames, (states, _) = [], _frame(visits)
    for time in range(max(map(len, visits))):
        states, arrivals = np.where(states == NOW, DONE, states), [[] for _ in states]
        for block, visit in enumerate(visits):
            if time < len(visit):
                states[visit[time], block] = NOW
                arrivals[visit[time]].append(block)
        frames.append((states, arrivals))
    return frames


def _add_by_turns(visits):
    """Add to a row tile only after all blocks with lower numbers."""
    frames, (states, _), position = [], _frame(visits), [0] * len(visits)
    while any(at < len(visit) for at, visit in zip(position, visits, strict=True)):
        before = np.where(states == NOW, DONE, states)
        states, arrivals = np.where(before == WAITS, TO_COME, before), [[] for _ in before]
        for block, visit in enumerate(visits):
            if position[block] == len(visit):
                continue
            tile = visit[position[block]]
            may_add = all(before[tile, other] == DONE for other in range(block) if tile in visits[other])
            states[tile, block] = NOW if may_add else WAITS
            if may_add:
                arrivals[tile].append(block)
                position[block] += 1
        frames.append((states, arrivals))
    return frames


def _fill_copies(visits):
    """Each block adds to a copy of its own; then another kernel sums the copies."""
    frames = _add_at_once(visits)
    states = np.where(frames[-1][0] == NOW, DONE, frames[-1][0])
    return [*frames, (states, [[] for _ in states])]


def _own_rows(visits):
    """A kernel for dK and dV, which adds nothing to dQ; then one whose blocks own rows of dQ."""
    frames, (states, _) = [(states, [[] for _ in states]) for states, _ in _add_at_once(visits)], _frame(visits)
    keys = [[block for block, visit in enumerate(visits) if tile in visit] for tile in range(len(states))]
    for time in range(max(map(len, keys))):
        states, arrivals = np.where(states == NOW, DONE, states), [[] for _ in states]
        for tile, blocks in enumerate(keys):
            if time < len(blocks):
                states[tile, blocks[time]] = NOW
                arrivals[tile].append(blocks[time])
        frames.append((states, arrivals))
    return frames


# --- what is drawn ---------------------------------------------------------------------------------


def _choice_data(name, gemms, frames, shares, elements) -> dict:
    """Return what is drawn of one way to share dQ, as JSON-ready data."""
    is_atomic, has_copies, has_owners = (name == way for way in ("atomic adds", "a copy per block", "a second kernel"))
    orders = _orders(frames, is_atomic)
    waits = sum(int((states == WAITS).sum()) for states, _ in frames)
    blocks, kernels = shares.shape[0], _kernels(name, frames)
    steps = []
    for n, (states, arrivals) in enumerate(frames):
        done = [sum(len(earlier[1][tile]) for earlier in frames[: n + 1]) for tile in range(len(states))]
        is_final = n == len(frames) - 1
        shown = [[order[tile][: done[tile]] for tile in range(len(states))] for order in orders]
        sums = [
            [
                _sum_text(shares[(slice(None), tile, *element)], order[tile])
                if len(order[tile]) == done[tile] and (is_final or not has_copies)
                else ""
                for tile, element in enumerate(elements)
            ]
            for order in orders
        ]
        steps.append({"arrivals": shown, "sums": sums, "new": [len(new) for new in arrivals]})
    say = [_sentence(name, n, frames, steps, kernels, shares.shape[2]) for n in range(len(frames))]
    first, second = orders
    is_same = all(
        (_float_sum(shares[:, tile], first[tile]) == _float_sum(shares[:, tile], second[tile])).all()
        for tile in range(shares.shape[1])
    )
    values = [[gemms, waits, blocks if has_copies else 1, "yes" if is_same else "no"]] * len(frames)
    cells = [
        [n + 1, *("; ".join(_order_text(run[tile]) for run in step["arrivals"]) for tile in range(shares.shape[1]))]
        for n, step in enumerate(steps)
    ]
    columns = ["step", *(f"order of adds to row tile {tile}" for tile in range(shares.shape[1]))]
    return {
        "say": say,
        "states": pack(np.stack([states for states, _ in frames])),
        "steps": steps,
        "kernels": kernels,
        "hasCopies": has_copies,
        "firstOwned": next(n for n, (_, new) in enumerate(frames) if any(new)) if has_owners else None,
        **stats_by_step(columns, cells, list(LABELS), values),
    }


def _orders(frames, is_random) -> list[list[list[int]]]:
    """Return for two runs the order in which blocks add to each row tile; within a frame it is random, or by number."""
    orders = []
    for seed in (1, 4):
        rng = np.random.default_rng(seed)
        of_run = [[] for _ in frames[0][1]]
        for _, arrivals in frames:
            for order, new in zip(of_run, arrivals, strict=True):
                order += rng.permutation(new).tolist() if is_random else new
        orders.append(of_run)
    return orders


def _float_sum(values, order) -> np.float32:
    total = np.float32(0)
    for block in order:
        total += values[block]
    return total


def _sum_text(values, order) -> str:
    return f"{_float_sum(values, order):.9f}"


def _element(shares, orders) -> tuple[int, int]:
    """Return the element of a row tile whose sums in two orders differ most."""
    first, second = (_float_sum(shares, order) for order in orders)
    row, column = np.unravel_index(np.argmax(np.abs(first - second)), first.shape)
    return int(row), int(column)


def _kernels(name, frames) -> list[str]:
    """Return what runs in each frame."""
    if name == "a copy per block":
        return ["dK, dV, shares of dQ"] * (len(frames) - 1) + ["sum of the copies"]
    if name == "a second kernel":
        first = next(n for n, (_, new) in enumerate(frames) if any(new))
        return ["dK and dV"] * first + ["dQ"] * (len(frames) - first)
    return ["dK, dV, shares of dQ"] * len(frames)


def _order_text(order) -> str:
    return " ".join(map(str, order)) or "-"


def _sentence(name, n, frames, steps, kernels, rows) -> str:
    states, arrivals = frames[n]
    start = f"Step {n + 1} of {len(frames)}. "
    adding = [
        f"block{'s' * (len(new) > 1)} {join(list(map(str, new)))} to rows {tile * rows} to {(tile + 1) * rows - 1}"
        for tile, new in enumerate(arrivals)
        if new
    ]
    if kernels[n] == "sum of the copies":
        return (
            f"{start}Another kernel sums {states.shape[1]} copies **in a fixed order**: both runs have the same bits."
        )
    if kernels[n] == "dK and dV":
        return f"{start}The first kernel has a block per column. It computes dK and dV, and **no dQ**."
    if kernels[n] == "dQ":
        return (
            f"{start}The second kernel has a block per row. **It owns these rows of dQ**, and computes S and dP again."
        )
    if name == "a copy per block":
        return f"{start}Each block adds to **a copy of its own**: {join(adding)}."
    if name == "turns":
        waiting = [str(block) for block in range(states.shape[1]) if (states[:, block] == WAITS).any()]
        text = f"Added now: {join(adding)}."
        verb = "waits for its turn" if len(waiting) == 1 else "wait for their turn"
        return start + text + (f" **Block{'s' * (len(waiting) > 1)} {join(waiting)} {verb}.**" if waiting else "")
    tile = next(tile for tile, new in enumerate(arrivals) if new)
    orders = [_order_text(run[tile]) for run in steps[n]["arrivals"]]
    return (
        f"{start}All add at once: {join(adding)}. The order is **{orders[0]}** in one run, **{orders[1]}** in another."
    )


def draw_still(figure, data, step):
    """Draw the tiles of scores and the sums of dQ at a step."""
    stills.set_size_and_title(figure, data, step, 9, 3.2, wrap=True)
    states, drawn = unpack(data["states"])[step], data["steps"][step]
    colours = np.stack(
        [stills.tint(name, weight) for name, weight in (("line", 0.5), ("A", 0.4), ("hot", 1), ("B", 0.7))]
    )
    tiles, sums = figure.subplots(1, 2, width_ratios=[1, 2])
    stills.show_cells(tiles, colours[states], "rows of dQ x blocks of keys", lines=2)
    sums.set(xlim=(0, 1), ylim=(len(states) - 0.5, -0.5))
    sums.set(xticks=[], yticks=[])
    stills.hide_marks(sums)
    for tile, rows in enumerate(data["common"]["rows"]):
        for run in range(2):
            text = f"{_order_text(drawn['arrivals'][run][tile])}   {drawn['sums'][run][tile]}"
            label = f"rows {rows}, run {run + 1}: {text}"
            sums.text(0.02, tile - 0.2 + 0.4 * run, label, fontsize=8, color=COLOURS["fg"], va="center")
