"""The registers of an SM filled by the blocks of a kernel: how many warps they leave room for."""

from collections.abc import Mapping

from matplotlib.patches import Rectangle

from labkit.machine.gpus import gpu as find_gpu
from labkit.machine.occupancy import MAX_REGISTERS, WARP_LANES, occupancy
from labkit.views import stills
from labkit.views.base import COLOURS, View, heading, table
from labkit.views.wording import join

FEWEST = 24  # registers of a thread at the first step


def register_file(gpu: str, threads: int, kernels: Mapping[str, int] | None = None) -> View:
    """Step through registers per thread: the warps whose registers an SM has room for, and what is left over.

    Shared memory is left out, and so is everything else that may limit the blocks of an SM but its warps.

    Parameters
    ----------
    gpu
        Such as "H100 SXM".
    threads
        Threads of a block, a multiple of 32.
    kernels
        Names of kernels, and the registers that a thread of each takes; they are marked on the scale.
    """
    figures = find_gpu(gpu)
    warps = -(-threads // WARP_LANES)
    unit = figures.registers_unit // WARP_LANES  # registers of a thread come in such units
    steps = [min(count, MAX_REGISTERS) for count in range(FEWEST, MAX_REGISTERS + unit, unit)]
    kernels = dict(kernels or {})
    if outside := [name for name, count in kernels.items() if not 0 < count <= MAX_REGISTERS]:
        raise ValueError(f"{outside[0]} takes {kernels[outside[0]]} registers: a thread has 1 to {MAX_REGISTERS}.")
    fits = [occupancy(figures, threads, registers=count) for count in steps]
    names = [[name for name, used in kernels.items() if _at(used, unit) == count] for count in steps]
    data = {
        "say": [_sentence(*each) for each in zip(steps, fits, names, strict=True)],
        "counter": [f"{count} registers" for count in steps],
        "start": steps.index(128),
        "registers": steps,
        "blocks": [fit.blocks for fit in fits],
        "blockWarps": warps,
        "mostWarps": figures.warps_per_sm,
        "parts": figures.sm_parts,
        "partRegisters": figures.registers_per_sm // figures.sm_parts,
        "warpRegisters": [-(-count // unit) * figures.registers_unit for count in steps],
        "kernels": sorted(kernels.items(), key=lambda kernel: -kernel[1]),  # so that no line crosses a name
        "table": table(
            ["registers of a thread", "blocks on an SM", "warps", "kernels"],
            [[count, fit.blocks, fit.warps, ", ".join(of)] for count, fit, of in zip(steps, fits, names, strict=True)],
            by_step=True,
        ),
    }
    return View(
        "register_file", f"Registers: an SM of {figures.name}, filled by blocks of {threads} threads", data, draw_still
    )


def _at(registers, unit) -> int:
    """Return registers rounded up to what a thread is given."""
    return min(-(-registers // unit) * unit, MAX_REGISTERS)


def _sentence(registers, fit, names):
    blocks = "1 block" if fit.blocks == 1 else f"{fit.blocks} blocks"
    text = f"With **{registers} registers** per thread, an SM has room for {blocks}, "
    text += f"**{fit.warps} of {fit.max_warps} warps**"
    if fit.limiter == "threads":
        text += ", all that it can hold"
    return f"{text}. Such kernels: {join([f'`{name}`' for name in names])}." if names else f"{text}."


def draw_still(figure, data, step):
    """Draw the register file's parts as rows, filled by warps."""
    figure.set_size_inches(9.5, 2.4)
    axes = figure.add_subplot()
    width = data["warpRegisters"][step]
    for warp in range(data["blocks"][step] * data["blockWarps"]):
        x, part = warp // data["parts"] * width, warp % data["parts"]
        strength = 0.75 if warp // data["blockWarps"] % 2 else 0.4
        colour = tuple(stills.tint("A", strength))
        axes.add_patch(Rectangle((x, part), width, 0.9, facecolor=colour, edgecolor=COLOURS["bg"]))
    parts = range(data["parts"])
    for part in parts:
        axes.add_patch(Rectangle((0, part), data["partRegisters"], 0.9, fill=False, edgecolor=COLOURS["dim"]))
    axes.set(xlim=(0, data["partRegisters"]), ylim=(data["parts"], -0.1), xlabel="registers of each part")
    axes.set_yticks([part + 0.45 for part in parts], [f"part {part + 1}" for part in parts])
    stills.hide_marks(axes, labelsize=8)
    axes.set_title(heading(data, step), fontsize=8, loc="left", color=COLOURS["fg"])
