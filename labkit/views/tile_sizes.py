"""The tile of an attention kernel: the resources that it needs of an SM, and its arithmetic intensity from L2."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from numbers import Integral

import numpy as np
from matplotlib.patches import Rectangle

from labkit import attention, formats
from labkit.attention import AttentionForward
from labkit.forecast.roofline import ridge_point
from labkit.formats import Format
from labkit.machine.gpus import KIB, Gpu
from labkit.machine.gpus import gpu as named_gpu
from labkit.views import stills
from labkit.views.base import COLOURS, View, pack, table, unpack
from labkit.views.wording import type_name

STAGES = 2  # of K and of V
THREADS_A_ROW = 2  # a warpgroup of 128 has 64 rows
OTHER_REGISTERS = 32  # registers of a thread for all that is neither O nor a score
MOST_REGISTERS = 255  # of a thread
ACC_BYTES = 4  # of an element of O and of the scores, in registers
PACKED_FIELDS = "shared", "registers", "threads", "flops"


def tile_sizes(
    problem: AttentionForward,
    *,
    rows: Sequence[int] = (16, 32, 64, 128, 192, 256),
    keys: Sequence[int] = (16, 32, 64, 128, 192, 256),
    head_dims: Sequence[int] = (64, 128, 256),
    numbers: Sequence[Format] = (formats.FP32, formats.BF16),
    start: tuple[int, int, int] = (128, 128, 128),
    gpu: str = "H100 SXM",
) -> View:
    """Choose a tile: see its sides, the shared memory and registers that it needs, and if L2 can feed it.

    Queries are outside: a block keeps its tile of Q and of O, and all keys come by, in two stages of K and of V. A
    tile's scores and O are float32 in registers, two threads per row, with 32 more registers in each thread.

    Parameters
    ----------
    problem
        Whose queries and keys count; head_dim is a slider's.
    rows, keys, head_dims
        Positions of the sliders: queries and keys of a tile, head_dim.
    numbers
        Formats of Q, K and V; the last of them is shown first.
    start
        What is shown first: queries, keys, head_dim.
    gpu
        Whose limits and peaks count.
    """
    if not isinstance(problem, AttentionForward):
        raise TypeError(f"tile_sizes takes an AttentionForward, not {type_name(problem)}.")
    sides = {"queries": list(rows), "keys": list(keys), "head_dim": list(head_dims)}
    for (name, values), first in zip(sides.items(), start, strict=True):
        if not values or not all(isinstance(value, Integral) and value > 0 for value in values):
            raise ValueError(f"{name} of a tile are whole numbers above 0, and these are {values}.")
        if first not in values:
            raise ValueError(f"start has {first} {name}, which the slider does not have: {values}.")
    figures = named_gpu(gpu)
    tiles = [_tile(problem, *sizes, figures) for sizes in product(numbers, head_dims, keys, rows)]
    positions = [list(values).index(first) for values, first in zip(sides.values(), start, strict=True)]
    first = [*positions, len(numbers) - 1]
    data = {
        "say": [tiles[_flat_index(first, sides, numbers)]["say"]],
        "says": [tile["say"] for tile in tiles],
        "sides": sides,
        "formats": [str(form) for form in numbers],
        "first": first,
        **{name: pack(np.array([tile[name] for tile in tiles])) for name in PACKED_FIELDS},
        "moved": [tile["moved"] for tile in tiles],
        "limits": {
            "shared": figures.shared_bytes_per_block,
            "registers": figures.registers_per_sm * ACC_BYTES,
            "thread": MOST_REGISTERS,
        },
        "ridges": [[_l2_ridge(figures, form), ridge_point(figures, form.arithmetic)] for form in numbers],
        "gpu": figures.name,
        "table": table(
            ["format", "head_dim", "keys", "queries", "KB of shared memory", "KB of registers", "MB from L2",
             "FLOP per byte", "fits"],
            [tile["row"] for tile in tiles],
        ),
    }  # fmt: skip
    return View("tile_sizes", f"A tile of attention on an SM of an {figures.name}", data, draw_still)


def _flat_index(at, sides, numbers):
    """Return the flat index of a choice among all tiles; formats are the first axis and queries the last."""
    queries, keys, width, form = at
    return int(np.ravel_multi_index((form, width, keys, queries), (len(numbers), *map(len, reversed(sides.values())))))


def _l2_ridge(gpu: Gpu, form: Format) -> float:
    """Return the FLOPs per byte from L2 above which arithmetic is the limit."""
    return gpu.peak_tflops[form.arithmetic] * 1000 / (gpu.l2_bytes_per_clock * gpu.clock_ghz)


def _tile(problem, form, width, keys, rows, gpu: Gpu) -> dict:
    """Return a tile's bytes in shared memory (Q, K, V) and in registers (O, scores, others), and its intensity."""
    size, threads = form.itemsize, THREADS_A_ROW * rows
    shared = rows * width * size, *[STAGES * keys * width * size] * 2
    registers = [ACC_BYTES * count for count in (rows * width, rows * keys, OTHER_REGISTERS * threads)]
    one_head = replace(problem, batch=1, heads=1, kv_heads=None, head_dim=width)
    moved = sum(attention.traffic.q_outer(one_head, rows, keys, form).values())
    flops = one_head.flops / moved
    of_thread = (width + keys) // THREADS_A_ROW + OTHER_REGISTERS
    shortages = []
    if sum(shared) > gpu.shared_bytes_per_block:
        shortages.append(
            f"Q, K and V take **{_kb(sum(shared))} KB** of shared memory, and a block has "
            f"{gpu.shared_bytes_per_block // KIB}"
        )
    if of_thread > MOST_REGISTERS:
        shortages.append(f"a thread would need **{of_thread} registers**, and has {MOST_REGISTERS} at most")
    elif sum(registers) > gpu.registers_per_sm * ACC_BYTES:
        available = gpu.registers_per_sm * ACC_BYTES // KIB
        shortages.append(
            f"O, scores and the rest take **{_kb(sum(registers))} KB** of registers, and an SM has {available}"
        )
    l2, dram = _l2_ridge(gpu, form), ridge_point(gpu, form.arithmetic)
    if shortages:
        say = f"It **does not fit**: {'; '.join(shortages)}."
    else:
        say = (
            f"It **fits**: {_kb(sum(shared))} KB of shared memory, {_kb(sum(registers))} KB of registers, "
            f"**{flops:.0f} FLOP** for each byte from L2, "
        )
        if flops < l2:
            say += f"and {l2:.0f} would keep the arithmetic busy: L2 is the limit."
        elif flops < dram:
            say += f"enough for what L2 delivers ({l2:.0f}), not if all of it came from DRAM ({dram:.0f})."
        else:
            say += f"enough even if all of it came from DRAM ({dram:.0f})."
    row = [str(form), width, keys, rows, _kb(sum(shared)), _kb(sum(registers)), f"{moved / 2**20:,.0f}", f"{flops:.1f}"]
    return {
        "shared": shared,
        "registers": registers,
        "threads": of_thread,
        "flops": flops,
        "moved": f"{moved / 2**20:,.0f}",
        "say": f"{rows} queries x {keys} keys, head_dim {width}, {form}. {say}",
        "row": [*row, "no" if shortages else "yes"],
    }


def _kb(count) -> str:
    return f"{count / KIB:,.0f}"


def draw_still(figure, data, step):
    """Draw the tiles to scale and the bars of memory, for the choice that is shown first."""
    rows, keys, width = (values[at] for values, at in zip(data["sides"].values(), data["first"]))
    place = _flat_index(data["first"], data["sides"], data["formats"])
    stills.set_size_and_title(figure, data, step, 9.5, 4.2, fontsize=8, wrap=True)
    picture, bars = figure.subplots(1, 2, width_ratios=[1, 1])
    gap = 16
    top = max(width, keys)
    parts = {
        "Q": (0, top + gap, width, rows, "A"),
        "K": (width + gap, top - width, keys, width, "B"),
        "S": (width + gap, top + gap, keys, rows, "D"),
        "V": (width + keys + 2 * gap, top - keys, width, keys, "B"),
        "O": (width + keys + 2 * gap, top + gap, width, rows, "C"),
    }
    for name, (x, y, wide, tall, colour) in parts.items():
        picture.add_patch(Rectangle((x, y), wide, tall, facecolor=COLOURS[colour], alpha=0.8))
        stills.write(picture, x + wide / 2, y + tall / 2, name, fontsize=9)
    picture.set(xlim=(0, 2 * width + keys + 2 * gap), ylim=(top + gap + rows, 0), aspect="equal")
    picture.axis("off")
    limits, shown = data["limits"], {"shared": ("A", "B", "B"), "registers": ("C", "D", "dim")}
    for line, (name, colours) in enumerate(shown.items()):
        left = 0
        for amount, colour in zip(unpack(data[name])[place].tolist(), colours, strict=True):
            bars.barh(line, amount / KIB, left=left, color=COLOURS[colour], edgecolor="white", height=0.5)
            left += amount / KIB
        limit = limits[name] / KIB
        bars.plot([limit] * 2, [line - 0.4, line + 0.4], color=COLOURS["fg"], linewidth=2)
    bars.set_yticks([0, 1], ["shared memory", "registers"], fontsize=8)
    bars.invert_yaxis()
    bars.set_xlabel("KB, and how many there are", fontsize=8)
    stills.hide_top_and_right(bars)
