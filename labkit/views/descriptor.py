"""The descriptors that `wgmma` takes in place of pointers: 64 bits, and the bytes of a tile that they describe."""

import re

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from labkit.ptx.warpgroups import descriptors
from labkit.ptx.warpgroups.descriptors import BASE, FIELDS, LEADING, START, STRIDE, SWIZZLE
from labkit.simulator.tiles import swizzled
from labkit.trace import Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, table
from labkit.views.wording import check_trace, recorded_block

BITS, LINE_BITS = 64, 32
GROUPS = 3  # of eight rows, in the picture
PRODUCT_BYTES = 32  # of a row, in one product
WARPGROUP = 4  # warps
MOST_STEPS = 400
FIELD_COLOURS = {START.name: "A", LEADING.name: "dim", STRIDE.name: "C", BASE.name: "dim", SWIZZLE.name: "D"}


def descriptor(trace: Trace, *, block=None) -> View:
    """Show the descriptor of each operand that `wgmma` reads from shared memory, product by product.

    The bits are those that the GPU's code computes from the tile's address; the address is that of the simulated run.
    A menu chooses the operand, where warpgroups differ also the warpgroup.

    Parameters
    ----------
    trace
        A run of a kernel that multiplies by `wgmma`, whose operands have rows of 128 bytes along k (K-major).
    block
        Whose products: a recorded block (x, y, z), the first if left out.

    Raises
    ------
    ValueError
        The block multiplies nothing by `wgmma`, or rows of its tiles do not have 128 bytes, or its kernel calls a form
        of `wgmma` whose operands may be MN-major.
    """
    check_trace("descriptor", trace)
    if found := re.search(r"\bwgmma\w*_(?:major|scaled)\b", trace.source):
        raise ValueError(f"descriptor shows operands with rows along k, and those of {found.group()} may have others.")
    choices = [_choice(name, bytes_) for name, bytes_ in _operands(trace, block).items()]
    data = {**choices[0], "chosen": 0, "kept": choices, "names": [choice["name"] for choice in choices]}
    return View("descriptor", "A descriptor of `wgmma`: 64 bits in place of a pointer", data, draw_still)


def _operands(trace, block) -> dict[str, list[int]]:
    """Return the first byte of an operand at each product, by the operand's name."""
    _, recorded = recorded_block(trace, block)
    lines = {event.line for event in trace.events if event.kind == "product"}
    sites = [
        number
        for number, counted in enumerate(trace.sites)
        if (counted.site.space, counted.site.kind) == ("shared", "load") and counted.site.line in lines
    ]
    if not sites:
        raise ValueError("descriptor shows operands in shared memory of `wgmma`, and this run multiplies none.")
    operands = {}
    for site in sorted(sites, key=lambda number: trace.sites[number].site.array):
        info = trace.array(trace.sites[site].site.array)
        if info.shape[-1] * info.itemsize != descriptors.ROW_BYTES:
            raise ValueError(f"A row of {info.name} has {info.shape[-1] * info.itemsize} bytes, not 128.")
        rows = recorded[trace.samples.site[recorded] == site]
        groups = trace.samples.warp[rows] // WARPGROUP
        addresses = info.addresses(trace.samples.index[rows].max(axis=1))
        by_group = {
            int(group): addresses[(groups == group) & (trace.samples.warp[rows] % WARPGROUP == 0)].tolist()[:MOST_STEPS]
            for group in np.unique(groups)
        }
        are_equal = len({tuple(found) for found in by_group.values()}) == 1
        for number, found in enumerate(by_group.values(), 1):
            operands[f"{info.name}, all warpgroups" if are_equal else f"{info.name}, warpgroup {number}"] = found
    return operands


def _choice(name, addresses) -> dict:
    """Return what is drawn of one operand, as JSON-ready data."""
    found = [descriptors.k_major_descriptor(address) for address in addresses]
    rows = [[n, f"{address:,}", f"{bits:#018x}"] for n, (address, bits) in enumerate(zip(addresses, found), 1)]
    return {
        "say": [_sentence(name, addresses, step) for step in range(len(addresses))],
        "counter": [f"product {n}" for n in range(1, len(addresses) + 1)],
        "name": name,
        "bits": [f"{bits:064b}" for bits in found],
        "fields": [
            {
                "name": field.name,
                "first": field.first,
                "bits": field.bits,
                "colour": FIELD_COLOURS[field.name],
                "words": [_words(field, bits) for bits in found],
            }
            for field in FIELDS
        ],
        "addresses": addresses,
        "slots": [_slots(address) for address in addresses],
        "groups": GROUPS,
        "table": table(["product", "first byte", "descriptor"], rows, by_step=True),
    }


def _sentence(name, addresses, step) -> str:
    array, _, whose = name.partition(", ")
    text = f"Product **{step + 1}** reads `{array}` ({whose}) from byte **{addresses[step]:,}** of shared memory on"
    if not step:
        return f"{text}."
    change = addresses[step] - addresses[step - 1]
    return f"{text}: {abs(change):,} bytes {'after' if change > 0 else 'before'} the product before."


def _words(field, bits) -> str:
    """Return a field's value, and what it means."""
    value = field.read(bits)
    if field == START:
        return f"{value:,} x {descriptors.UNIT_BYTES} = byte {value * descriptors.UNIT_BYTES:,}"
    if field == STRIDE:
        return f"{value:,} x {descriptors.UNIT_BYTES} = {value * descriptors.UNIT_BYTES:,} bytes"
    if field == SWIZZLE:
        return f"{value}: {descriptors.SWIZZLED_BYTES[value]} bytes"
    return f"{value}, not used" if field == LEADING else str(value)


def _slots(address) -> list[list[int]]:
    """Return the two slots of each row of a group that a product reads, in the order of k."""
    row_bytes, unit = descriptors.ROW_BYTES, descriptors.UNIT_BYTES
    rows = address + row_bytes * np.arange(descriptors.GROUP_ROWS)[:, None]
    return (swizzled(rows + np.arange(0, PRODUCT_BYTES, unit)) % row_bytes // unit).tolist()


# --- the picture that stands still -----------------------------------------------------------------


def draw_still(figure, data, step):
    """Draw the bits in two lines with their fields, and below them three groups of eight rows."""
    stills.set_size_and_title(figure, data, step, 9.4, 4.6)
    bits, tile = figure.subplots(2, 1, height_ratios=(3, 4))
    _draw_bits(bits, data, step)
    _draw_groups(tile, data, step)
    for axes in (bits, tile):
        axes.set_axis_off()


def _draw_bits(axes: Axes, data, step):
    for number in range(BITS):
        field = next((f for f in data["fields"] if f["first"] <= number < f["first"] + f["bits"]), None)
        line, column = 1 - number // LINE_BITS, LINE_BITS - 1 - number % LINE_BITS
        face = stills.tint(field["colour"], 0.35) if field else COLOURS["cell"]
        axes.add_patch(Rectangle((column, 3 * line), 0.92, 1, facecolor=face))
        stills.write(axes, column + 0.46, 3 * line + 0.5, data["bits"][step][BITS - 1 - number], fontsize=8)
    for field in data["fields"]:
        line, last = 1 - field["first"] // LINE_BITS, field["first"] + field["bits"] - 1
        text = f"{field['name']}: {field['words'][step]}"
        axes.text(LINE_BITS - 1 - last % LINE_BITS, 3 * line - 0.25, text, fontsize=7)
    axes.set(xlim=(0, LINE_BITS), ylim=(4.2, -1.2))


def _draw_groups(axes: Axes, data, step):
    first = data["addresses"][step] // descriptors.ROW_BYTES * descriptors.ROW_BYTES
    for group in range(data["groups"]):
        x = 10 * group
        axes.text(x, -0.4, f"byte {first + group * 1024:,}", fontsize=8)
        for row, read in enumerate(data["slots"][step]):
            for slot in range(8):
                face = COLOURS["A"] if slot in read else COLOURS["cell"]
                axes.add_patch(Rectangle((x + slot, row), 0.92, 0.92, facecolor=face))
    axes.set(xlim=(0, 10 * data["groups"]), ylim=(8.2, -1.6))
