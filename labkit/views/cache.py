"""A cache at work: reuse, hits and misses of every element."""

from math import prod

import numpy as np

from labkit import layout
from labkit.loops import LoopTrace
from labkit.machine.gpus import Cpu
from labkit.machine.gpus import cpu as named_cpu
from labkit.table import count_text
from labkit.trace import Trace
from labkit.views.base import COLOURS, View, layout_data, pack, pack_lanes, table, unpack
from labkit.views.replay import Replay, replay_launch, replay_loop
from labkit.views.wording import ANY_TRACE, block_name, check_trace, element_name, elements_in


def cache(trace: Trace | LoopTrace, cpu: str | Cpu | None = None, steps: int = 2000) -> View:
    """Watch the first cache of a GPU or CPU at work, access by access.

    Parameters
    ----------
    trace : Trace or LoopTrace
        A simulated launch, whose recorded blocks run through the L1s of their SMs, or a traced loop of chapter 01.
    cpu : str or Cpu, optional
        The CPU of a loop, where it is not the named one of its trace.
    steps : int
        How many accesses to show.
    """
    check_trace("cache", trace, ANY_TRACE)
    if steps < 1:
        raise ValueError(f"A cache view of {steps} accesses shows nothing: give steps=1 or more.")
    if isinstance(trace, LoopTrace):
        cpu_or_name = cpu or trace.cpu
        machine = named_cpu(cpu_or_name) if isinstance(cpu_or_name, str) else cpu_or_name
        replay = replay_loop(trace, machine.caches[0], steps)
        whole_run = trace.counters if machine.name == trace.cpu else None
    else:
        whole_run = None
        replay = replay_launch(trace, steps)
    if not len(replay.array):
        remedy = "trace it with record=2000" if isinstance(trace, LoopTrace) else "record a block that loads some"
        raise ValueError(f"{trace.kernel} has no recorded accesses of global arrays to show: {remedy}")
    data = {
        "say": _sentences(replay),
        "arrays": [{"name": info.name, **layout_data(info)} for info in replay.arrays],
        "piece_bytes": replay.piece_bytes,
        "array": pack(replay.array),
        "elements": pack(replay.elements),
        "pieces": pack_lanes(replay.pieces),
        "moves": pack(replay.moves),
        "table": table(("array", "accesses", "misses", "accesses per element"), _rows(replay)),
        "start": len(replay.array) // 2,
        "whole": whole_run and replay.left_out and {"misses": whole_run.l1_misses, "accesses": whole_run.accesses},
    }
    subject = f"a {replay.cache}" if replay.copies == 1 else f"the {replay.cache} of each of {replay.copies} SMs"
    total = len(replay.array) + replay.left_out
    part = f", the first {len(replay.array):,} of {total:,} accesses" if replay.left_out else ""
    return View("cache", f"Cache: {subject} while `{trace.kernel}` runs{part}", data, draw_still)


def _sentences(replay: Replay):
    pieces_by_step = [{} for _ in replay.array]
    for step, piece, entered in replay.moves.tolist():
        if entered:
            pieces_by_step[step][piece] = None
    loop = replay.elements.shape[1] == 1
    describe = _loop_sentence if loop else _warp_sentence
    left_out = (
        f" (The first {len(replay.array):,} accesses; {replay.left_out:,} more followed.)" if replay.left_out else ""
    )
    sentences = [describe(replay, step, list(incoming)) for step, incoming in enumerate(pieces_by_step)]
    sentences[-1] += left_out
    return sentences


def _loop_sentence(replay, step, incoming):
    info = replay.arrays[replay.array[step]]
    element = replay.elements[step, 0]
    text = f"Access {step + 1:,}, line {replay.line[step]}: {element_name(info, element)} "
    if not incoming:
        return text + "was in the cache."
    return text + (
        f"was **not in the cache**: its line of {replay.piece_bytes} bytes comes in, "
        f"{elements_in(info, incoming[0], replay.piece_bytes)}."
    )


def _warp_sentence(replay, step, incoming):
    info = replay.arrays[replay.array[step]]
    lanes = replay.elements[step][replay.elements[step] >= 0]
    requested = len(np.unique(replay.pieces[step][replay.elements[step] >= 0]))
    block = f" of block {block_name(replay.blocks[replay.block[step]])}" if len(replay.blocks) > 1 else ""
    text = f"Load {step + 1:,}, line {replay.line[step]}: warp {replay.warp[step]}{block} reads "
    text += f"{count_text(len(np.unique(lanes)), 'element')} of `{info.name}` in {count_text(requested, 'sector')}; "
    if not incoming:
        return text + "L1 had all of it."
    first = elements_in(info, incoming[0], replay.piece_bytes)
    return text + f"**{count_text(len(incoming), 'sector')} of {requested} had to come in**, the first with {first}."


def _rows(replay):
    for i, info in enumerate(replay.arrays):
        used = replay.elements[replay.array == i]
        accesses = int((used >= 0).sum())
        misses = int(replay.moves[replay.array[replay.moves[:, 0]] == i, 2].sum())
        touched = len(np.unique(used[used >= 0]))
        yield info.name, f"{accesses:,}", f"{misses:,}", f"{accesses / max(touched, 1):.3g}"


def cached_flags(data, step) -> list[np.ndarray]:
    """Return a flag per element of each array: is it in the cache after a step?"""
    moves = unpack(data["moves"])
    moved = moves[moves[:, 0] <= step]
    held = np.flatnonzero(np.bincount(moved[:, 1], weights=2 * moved[:, 2] - 1) > 0)
    flags = []
    for info in data["arrays"]:
        flat = np.arange(prod(info["shape"]))
        addresses = info["base"] + layout.element_offsets(flat, info["shape"], info["strides"])
        flags.append(np.isin(addresses // data["piece_bytes"], held))
    return flags


def draw_still(figure, data, step):
    """Draw the elements that are in the cache after a step, one picture per array."""
    array, elements = (unpack(data[name]) for name in ("array", "elements"))
    figure.set_size_inches(2.8 * len(data["arrays"]), 3.2)
    figure.suptitle(data["title"].replace("`", ""), fontsize=10)
    for i, (info, held) in enumerate(zip(data["arrays"], cached_flags(data, step), strict=True)):
        shade = 0.45 * held
        if array[step] == i:
            shade[elements[step][elements[step] >= 0]] = 1
        axes = figure.add_subplot(1, len(data["arrays"]), i + 1)
        axes.imshow(shade.reshape(prod(info["shape"][:-1]), -1), cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
        axes.set_title(info["name"], color=COLOURS["fg"], fontsize=10)
        axes.set(xticks=[], yticks=[])
