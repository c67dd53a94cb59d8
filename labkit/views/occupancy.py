"""An SM as a box of warps that fills with a kernel's blocks until one of its resources is used up."""

from collections.abc import Mapping, Sequence
from math import prod

from matplotlib.patches import Rectangle

from labkit.machine.gpus import KIB, Gpu, gpu
from labkit.machine.occupancy import USUAL_REGISTERS, WARP_LANES, shared_allocation
from labkit.machine.occupancy import occupancy as sm_occupancy
from labkit.table import count_text
from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, stats_by_step
from labkit.views.wording import check_trace

COLUMNS = 16  # warps in a row of the box
LABELS = ["blocks on the SM", "warps on the SM", "warps that can run while one block waits"]


def occupancy(
    traces: Mapping[str, Trace],
    *,
    gpus: Sequence[str] = ("T4", "RTX 4090", "A100 SXM", "H100 SXM"),
    registers: int = USUAL_REGISTERS,
    start: str | None = None,
) -> View:
    """Fill an SM with blocks, launch by launch; a menu chooses the GPU.

    One block waits at a barrier. The picture shows the warps of the others, which can run meanwhile, and which of the
    SM's resources has no room for another block.

    Parameters
    ----------
    traces
        Runs by their names: each is a step. Their blocks' threads and shared memory count.
    gpus
        Positions of the menu; the last one is shown first.
    registers
        Registers of a thread, which only the compiler knows.
    start
        Name of the run that is shown first; the first one if left out.
    """
    for trace in traces.values():
        check_trace("occupancy", trace)
    if not traces or not gpus:
        raise ValueError("occupancy fills an SM with the blocks of a launch: give one launch and one GPU, or more.")
    if start is not None and start not in traces:
        raise ValueError(f"There is no run {start!r} to start with: choose one of {', '.join(traces)}.")
    choices = [_choice(gpu(name), traces, registers) for name in gpus]
    first = 0 if start is None else list(traces).index(start)
    data = {**choices[-1], "kept": choices, "chosen": len(choices) - 1, "start": first}
    return View("occupancy", f"An SM as a box of warps, filled with blocks of `{trace.kernel}`", data, draw_still)


def _choice(figures: Gpu, traces: Mapping[str, Trace], registers: int) -> dict:
    """Return what is drawn of one GPU, as JSON-ready data."""
    fills = [_fill(figures, name, trace, registers) for name, trace in traces.items()]
    cells = [[name, fill["threads"], fill["limiter"]] for name, fill in zip(traces, fills, strict=True)]
    values = [[fill["blocks"], f"{fill['warps']} of {figures.warps_per_sm}", fill["others"]] for fill in fills]
    return {
        "name": figures.name,
        "say": [fill.pop("say") for fill in fills],
        "counter": list(traces),
        "columns": COLUMNS,
        "slots": figures.warps_per_sm,
        "fills": fills,
        **stats_by_step(["run", "threads of a block", "no room for another in"], cells, LABELS, values),
    }


def _fill(figures: Gpu, name: str, trace: Trace, registers: int) -> dict:
    """Return the blocks of a launch that an SM holds, and the share of each resource that they use."""
    threads = prod(trace.block)
    found = sm_occupancy(figures, threads, trace.shared_bytes, registers)
    units = -(-registers * WARP_LANES // figures.registers_unit)  # registers are allocated for a warp, in units
    used = {
        "threads": ("warps", found.warps, figures.warps_per_sm),
        "blocks": ("blocks", found.blocks, figures.blocks_per_sm),
        "registers": ("registers", found.warps * units * figures.registers_unit, figures.registers_per_sm),
        "shared memory": (
            "KB of shared memory",
            found.blocks * shared_allocation(figures, trace.shared_bytes) / KIB,
            figures.shared_bytes_per_sm / KIB,
        ),
    }
    others = found.warps - found.warps_per_block * bool(found.blocks)
    return {
        "label": name,
        "threads": threads,
        "blocks": found.blocks,
        "warps": found.warps,
        "others": others,
        "warpsPerBlock": found.warps_per_block,
        "lanes": threads / WARP_LANES / found.warps_per_block,  # share of a block's lanes that have a thread
        "bars": [
            [f"{amount:,.0f} of {limit:,.0f} {unit}", amount / limit, found.limits.get(resource) == found.blocks]
            for resource, (unit, amount, limit) in used.items()
        ],
        "limiter": found.limiter,
        "say": _sentence(figures, name, threads, trace.shared_bytes, found, others),
    }


def _sentence(figures, name, threads, shared_bytes, found, others) -> str:
    size = f"{shared_bytes / KIB:.3g} KB" if shared_bytes >= KIB else count_text(shared_bytes, "byte")
    block = f"{name}: a block has {count_text(threads, 'thread')} in {count_text(found.warps_per_block, 'warp')}"
    text = f"{block} and {size} of shared memory. One SM of the {figures.name} holds"
    if not found.blocks:
        return f"{text} **no such block**: {found.limiter} would not suffice."
    held = f"{text} **{count_text(found.blocks, 'block')}, {found.warps} of {found.max_warps} warps**."
    if not others:
        return f"{held} While it waits at a barrier, **no other warp** can run."
    return f"{held} While one block waits at a barrier, **{count_text(others, 'warp')}** of the others can run."


def draw_still(figure, data, step):
    """Draw the box of warps, and the share of each resource."""
    fill = data["fills"][step]
    stills.set_size_and_title(figure, data, step, 9.5, 3)
    box, bars = figure.subplots(1, 2, width_ratios=[3, 2])
    for slot in range(data["slots"]):
        column, row = slot % COLUMNS, slot // COLUMNS
        box.add_patch(Rectangle((column, row), 0.9, 0.86, facecolor=COLOURS["cell"], edgecolor=COLOURS["line"]))
        if slot < fill["warps"]:
            block = slot // fill["warpsPerBlock"]
            colour = stills.tint("C", 0.4 + block % 3 * 0.2) if block else COLOURS["dim"]
            box.add_patch(Rectangle((column, row), 0.9 * fill["lanes"], 0.86, facecolor=colour))
    box.set(xlim=(-0.2, COLUMNS), ylim=(data["slots"] // COLUMNS, -0.2), xticks=[], yticks=[])
    box.set_title(f"SM of the {data['name']}: grey, a block that waits", fontsize=9, loc="left")
    for place, (text, share, is_full) in enumerate(fill["bars"]):
        bars.barh(place, 1, height=0.5, color=COLOURS["cell"])
        bars.barh(place, share, height=0.5, color=COLOURS["hot" if is_full else "A"])
        bars.text(0, place - 0.36, text + " (no room for one more)" * is_full, fontsize=8, color=COLOURS["fg"])
    bars.set(xlim=(0, 1), ylim=(len(fill["bars"]) - 0.5, -0.8), xticks=[], yticks=[])
    for axes in (box, bars):
        axes.spines[:].set_visible(False)
