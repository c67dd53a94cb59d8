"""One warp that reads images in each layout: the sectors that its loads touch."""

from collections.abc import Sequence
from numbers import Integral

import numpy as np
from jaxtyping import Int
from matplotlib.patches import Rectangle

import labkit
from labkit import cuda
from labkit.trace import WARP_LANES, Trace
from labkit.views.base import COLOURS, View, heading, pack, pack_lanes, table, unpack

PIXELS = 64  # of a row
LOADS = 8
TILE_SIDE = 16  # of a tensor core's tile
SHIFTS = 2  # first pixels: 0, and 1, where the second tap of a window begins
SECTOR_BYTES = 32
LINE_SECTORS = 16  # sectors in a line of the picture
MAX_CHANNELS = 256  # channels that it has room for
READS = ("one channel, neighbours along W", "pixel after pixel, neighbours along C", "a tensor core's tile of 16 x 16")
DTYPES = {1: np.int8, 2: np.uint16, 4: np.float32}
COUNTED = "sectors requested", "different sectors", "bytes used of these"
LAYOUTS = {"NCHW": 1, "NCHW_VECT_C 4": 4, "NCHW_VECT_C 32": 32, "NHWC": None}  # channels that are neighbours in memory


@cuda.jit
def read_row(x, out, channels):
    first, way, lane = cuda.blockIdx.x, cuda.blockIdx.y, cuda.threadIdx.x
    vector = x.shape[2]  # channels that are neighbours in memory
    for k in range(LOADS):
        i = WARP_LANES * k + lane
        if way == 0:
            c, pixel = k, lane
        elif way == 1:
            c, pixel = i % channels, i // channels
        else:
            side = min(vector, TILE_SIDE)
            c, pixel = i % side + i // (side * TILE_SIDE) * side, i // side % TILE_SIDE
        if c < channels and first + pixel < PIXELS:
            out[way, first, k, lane] = x[c // vector, first + pixel, c % vector]


def sectors(
    *,
    channels: Sequence[int] = (1, 3, 4, 8, 16, 32, 64),
    itemsizes: Sequence[int] = (1, 2, 4),
    start: tuple[int, int, int, int] = (64, 2, 0, 0),
) -> View:
    """Show the sectors that one warp's loads touch in NCHW, NCHW_VECT_C and NHWC, from a run per layout and size.

    The memory of a row of 64 pixels is drawn, with all of their channels. Sliders choose how many channels there are,
    the bytes of an element, what the warp reads, and from which pixel on; steps go from load to load. All settings are
    drawn in one scale. A tensor core's tile is counted as a whole, the other reads load by load.

    Parameters
    ----------
    channels, itemsizes
        Positions of the sliders; elements have 1, 2 or 4 bytes.
    start
        What is shown first: channels, bytes, which of the three ways to read, and the first pixel, 0 or 1.
    """
    channels, itemsizes = list(channels), list(itemsizes)
    _check(channels, itemsizes, start)
    loaded, totals, rows = [], [], []
    for count in channels:
        for size in itemsizes:
            for layout, vector in LAYOUTS.items():
                lanes = loads_of(simulate_reads(count, size, vector or count))
                counts = count_sectors(lanes, size)
                totals.append(counts)
                if size == itemsizes[0]:  # the same elements are read, whatever their size
                    loaded.append(lanes)
                for way, first in np.ndindex(len(READS), SHIFTS):
                    of_row = counts[way, first].tolist()
                    rows.append([count, size, READS[way], first, layout, *of_row, used_share(of_row)])
    data = {
        "say": [f"Load **{load + 1}** of {LOADS} of a warp, over one row of {PIXELS} pixels." for load in range(LOADS)],
        "pixels": PIXELS,
        "line": LINE_SECTORS,
        "channels": list(map(int, channels)),
        "itemsizes": list(map(int, itemsizes)),
        "reads": list(READS),
        "layouts": list(LAYOUTS),
        "vectors": [[vector or count for vector in LAYOUTS.values()] for count in channels],
        "first": [channels.index(start[0]), itemsizes.index(start[1]), *start[2:]],
        "loaded": pack_lanes(np.concatenate([lanes.reshape(-1, WARP_LANES) for lanes in loaded])),
        "totals": pack(np.array(totals).reshape(len(channels), len(itemsizes), len(LAYOUTS), len(READS), SHIFTS, 3)),
        "table": table(["channels", "bytes", "the warp reads", "first pixel", "layout", *COUNTED, "their share"], rows),
    }
    return View("sectors", "Sectors: what one warp touches in each layout", data, draw_still)


def _check(channels, itemsizes, start):
    for count in channels:
        if not isinstance(count, Integral) or not 1 <= count <= MAX_CHANNELS:
            raise ValueError(f"{count} channels are not shown: take whole numbers from 1 to {MAX_CHANNELS}.")
    for size in itemsizes:
        if size not in DTYPES:
            raise ValueError(f"elements of {size} bytes are not shown: take sizes of {_listed(DTYPES)}.")
    if len(start) != 4:
        raise ValueError(f"start has {len(start)} numbers: give channels, bytes, way to read and first pixel.")
    count, size, way, first = start
    if count not in channels:
        raise ValueError(
            f"start has {count} channels, which are not in channels: start with one of {_listed(channels)}."
        )
    if size not in itemsizes:
        raise ValueError(
            f"start has elements of {size} bytes, which are not in itemsizes: start with one of {_listed(itemsizes)}."
        )
    if way not in range(len(READS)) or first not in range(SHIFTS):
        raise ValueError(
            f"start reads in way {way} from pixel {first}: give a way from 0 to {len(READS) - 1}, and pixel 0 or 1."
        )


def _listed(values):
    return ", ".join(map(str, values))


def simulate_reads(channels: int, itemsize: int, vector: int) -> Trace:
    """Simulate the three ways to read a row of pixels; `vector` channels are neighbours in memory."""
    x = np.zeros((-(-channels // vector), PIXELS, vector), DTYPES[itemsize])
    out = np.zeros((len(READS), SHIFTS, LOADS, WARP_LANES), x.dtype)
    blocks = [(first, way, 0) for way in range(len(READS)) for first in range(SHIFTS)]
    return labkit.simulate(read_row, (SHIFTS, len(READS)), WARP_LANES, x, out, channels, record=blocks)


def loads_of(trace: Trace) -> Int[np.ndarray, "ways firsts loads lanes"]:
    """Return the element that each lane loads; -1 where it loads none."""
    (site_number,) = (i for i, found in enumerate(trace.sites) if (found.site.array, found.site.kind) == ("x", "load"))
    lanes = np.full((len(READS), SHIFTS, LOADS, WARP_LANES), -1)
    samples = trace.samples
    for number, (first, way, _) in enumerate(samples.blocks):
        index = samples.index[(samples.block == number) & (samples.site == site_number)]
        lanes[way, first, : len(index)] = index
    return lanes


def count_sectors(lanes: Int[np.ndarray, "*shape loads lanes"], itemsize: int) -> Int[np.ndarray, "*shape 3"]:
    """Count sectors summed over the loads, different sectors, and bytes used."""
    totals = np.zeros((*lanes.shape[:-2], 3), int)
    for at in np.ndindex(lanes.shape[:-2]):
        touched = [np.unique(load[load >= 0] * itemsize // SECTOR_BYTES) for load in lanes[at]]
        elements = np.unique(lanes[at][lanes[at] >= 0])
        totals[at] = sum(map(len, touched)), len(np.unique(np.concatenate(touched))), len(elements) * itemsize
    return totals


def used_share(counts) -> str:
    """Return the used share of the bytes of the different sectors."""
    _, different, bytes_ = counts
    return f"{bytes_ / (SECTOR_BYTES * different):.0%}"


def draw_still(figure, data, step):
    """Draw the layouts side by side: sectors that a load touches, and their used bytes."""
    at_channels, at_size, way, first = data["first"]
    size, vectors = data["itemsizes"][at_size], data["vectors"][at_channels]
    channels = data["channels"][at_channels]
    lanes = unpack(data["loaded"]).reshape(len(data["channels"]), len(LAYOUTS), len(READS), SHIFTS, LOADS, -1)
    counts = unpack(data["totals"])
    figure.set_size_inches(10, 4)
    subtitle = f"{channels} channels of {size} bytes; {READS[way]}, from pixel {first}"
    figure.suptitle(f"{heading(data, step)} {subtitle}", fontsize=9, x=0.02, ha="left", color=COLOURS["fg"])
    for panel, axes in enumerate(figure.subplots(1, len(LAYOUTS))):
        all_sectors = -(-channels // vectors[panel]) * vectors[panel] * PIXELS * size // SECTOR_BYTES
        elements = lanes[at_channels, panel, way, first, step]
        bytes_ = elements[elements >= 0] * size
        touched = np.unique(bytes_ // SECTOR_BYTES)
        count = len(touched) if way != len(READS) - 1 else counts[at_channels, at_size, panel, way, first, 0]
        for sector in range(all_sectors):
            colour = COLOURS["line" if sector in touched else "cell"]
            axes.add_patch(Rectangle((sector % LINE_SECTORS, sector // LINE_SECTORS), 0.92, 0.86, facecolor=colour))
        for byte in bytes_:
            sector, inside = divmod(int(byte), SECTOR_BYTES)
            left = sector % LINE_SECTORS + 0.92 * inside / SECTOR_BYTES
            width = 0.92 * size / SECTOR_BYTES
            axes.add_patch(Rectangle((left, sector // LINE_SECTORS), width, 0.86, facecolor=COLOURS["hot"]))
        axes.set(xlim=(0, LINE_SECTORS), ylim=(max(16, -(-all_sectors // LINE_SECTORS)), 0), xticks=[], yticks=[])
        axes.set_title(f"{data['layouts'][panel]}: {count} sectors", fontsize=9, loc="left", weight="bold")
        axes.spines[:].set_visible(False)
