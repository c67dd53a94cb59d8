"""A matrix on its way to its transpose: what each access of a warp moves, with and without a tile in shared memory."""

from collections.abc import Mapping

import numpy as np

from labkit.trace import SECTOR_BYTES, Trace
from labkit.views import stills
from labkit.views.base import View, pack, pack_lanes, stats_by_step, unpack
from labkit.views.wording import check_traces

BANKS, WORD_BYTES = 32, 4
MOST_SIDE = 64  # elements of a side, which can be told apart
NOT_YET, MOVED = 0.07, 0.35  # strength of a cell's colour


def transposing(runs: Mapping[str, Trace], *, source: str = "x", target: str = "y", tile: str = "tile") -> View:
    """Step through kernels that transpose one matrix: each access of a warp, its sectors, and its wavefronts.

    Parameters
    ----------
    runs
        Runs that recorded all of their blocks, by the name to show. They take the same matrix.
    source, target
        Arrays of the kernels: 1 x rows x columns, and 1 x columns x rows.
    tile
        Shared array of two axes; a kernel may have none.

    Raises
    ------
    ValueError
        Runs have other arrays, or have not recorded a load and a store of each element.
    """
    check_traces("transposing", runs)
    sides = [_side(name, trace, source, target, tile) for name, trace in runs.items()]
    if len({tuple(side["shapes"][0]) for side in sides}) > 1:
        raise ValueError("transposing compares runs on one matrix: these have other shapes.")
    steps = max(len(side["facts"]) for side in sides)
    labels, values = [], []
    for side in sides:
        labels.append(f"sectors of {source} and {target}, {side['name']}")
        values.append(np.cumsum(_padded([fact["sectors"] for fact in side["facts"]], steps)))
        if side["has_tile"]:
            labels.append(f"wavefronts of {tile}, {side['name']}")
            values.append(np.cumsum(_padded([fact["wavefronts"] for fact in side["facts"]], steps)))
    data = {
        "say": [_sentence(sides, step, source, target, tile) for step in range(steps)],
        "names": [source, tile, target],
        "sides": [{key: value for key, value in side.items() if key != "facts"} for side in sides],
        **stats_by_step(["access"], [[step + 1] for step in range(steps)], labels, np.array(values).T.tolist()),
    }
    title = f"From `{source}` to its transpose `{target}`, an access of a warp at a time"
    return View("transposing", title, data, draw_still)


def _padded(numbers, length):
    return [*numbers, *[0] * (length - len(numbers))]


def _side(name, trace, source, target, tile):
    """Return a run's accesses: the elements and the sectors' elements of each, and those of the tile that go along."""
    shapes = [list(_info(trace, array, space).shape[-2:]) for array, space in ((source, "global"), (target, "global"))]
    has_tile = any(info.name == tile and info.space == "shared" for info in trace.arrays)
    if shapes[0] != shapes[1][::-1] or max(shapes[0]) > MOST_SIDE:
        raise ValueError(
            f"{name} takes {shapes[0]} to {shapes[1]}: transposing shows a matrix and its transpose, at most "
            f"{MOST_SIDE} x {MOST_SIDE}."
        )
    samples, accesses, open_loads, tile_loads = trace.samples, [], {}, {}
    for number, block, warp, lanes in zip(samples.site, samples.block, samples.warp, samples.index):
        if number < 0:
            continue
        site, thread = trace.sites[number].site, (int(block), int(warp))
        if site.array in (source, target):
            access = {"array": site.array, "lanes": lanes, "tile": np.full(len(lanes), -1), "wavefronts": 0}
            info = _info(trace, site.array, "global")
            sectors = np.unique(info.addresses(lanes[lanes >= 0]) // SECTOR_BYTES)
            access["moved"] = np.concatenate([info.elements_in(int(sector), SECTOR_BYTES) for sector in sectors])
            access["sectors"] = len(sectors)
            if site.array == target and thread in tile_loads:
                access |= tile_loads.pop(thread)
            elif site.array == source:
                open_loads[thread] = access
            accesses.append(access)
        elif site.array == tile:
            info = _info(trace, tile, "shared")
            moved = {"tile": lanes, "wavefronts": _wavefronts(info.addresses(lanes[lanes >= 0]))}
            if site.kind == "load":
                tile_loads[thread] = moved
            else:
                open_loads[thread] |= moved
    for array in (source, target):
        touched = [access["lanes"][access["lanes"] >= 0] for access in accesses if access["array"] == array]
        if not touched or len(np.unique(np.concatenate(touched))) != shapes[0][0] * shapes[0][1]:
            raise ValueError(f"{name} has not recorded an access of each element of {array}: record all of its blocks.")
    moved = [(step, element) for step, access in enumerate(accesses) for element in access["moved"]]
    return {
        "name": name,
        "shapes": [shapes[0], list(_info(trace, tile, "shared").shape) if has_tile else [0, 0], shapes[1]],
        "has_tile": has_tile,
        "stores": [int(access["array"] == target) for access in accesses],
        "lanes": pack_lanes([access["lanes"] for access in accesses]),
        "tiles": pack_lanes([access["tile"] for access in accesses]),
        "moved": pack(np.array(moved)),
        "facts": [
            {
                "sectors": access["sectors"],
                "wavefronts": access["wavefronts"],
                "lanes": int(np.count_nonzero(access["lanes"] >= 0)),
            }
            for access in accesses
        ],
    }


def _info(trace, name, space):
    for info in trace.arrays:
        if (info.name, info.space) == (name, space):
            return info
    raise ValueError(f"{trace.kernel} has no {space} array {name}: name its arrays.")


def _wavefronts(addresses) -> int:
    """Count the wavefronts of one shared access: words of one bank need one after the other."""
    words = np.unique(addresses // WORD_BYTES)
    return int(np.bincount(words % BANKS).max())


def _sentence(sides, step, source, target, tile):
    parts = []
    for side in sides:
        if step >= len(side["facts"]):
            parts.append(f"`{side['name']}` is done")
            continue
        fact, is_store = side["facts"][step], side["stores"][step]
        verb, array = ("stores", target) if is_store else ("loads", source)
        text = f"`{side['name']}` {verb} {fact['lanes']} elements of `{array}` in **{fact['sectors']} sectors**"
        if fact["wavefronts"]:
            count = f"{fact['wavefronts']} wavefront{'s' * (fact['wavefronts'] > 1)}"
            text += f", {'from' if is_store else 'to'} `{tile}` in {count}"
        parts.append(text)
    return f"{'; '.join(parts)}."


def cells_at(side, step):
    """Return for each panel at a step: strength of each cell's colour, and which cells are used and which moved now."""
    (rows, cols), tile_shape, _ = side["shapes"]
    lanes, tiles, moved = unpack(side["lanes"]), unpack(side["tiles"]), unpack(side["moved"])
    ramp = 0.25 + 0.7 * np.arange(cols) / max(cols - 1, 1)  # a shade for each column of the source
    strength = [np.tile(ramp, rows), np.full(int(np.prod(tile_shape)), NOT_YET), np.full(rows * cols, NOT_YET)]
    last = min(step, len(side["stores"]) - 1)
    for at in range(last + 1):
        used, held = lanes[at], tiles[at]
        if not side["stores"][at]:
            strength[1][held[held >= 0]] = ramp[used[held >= 0] % cols]
        else:
            strength[2][used[used >= 0]] = ramp[used[used >= 0] // rows]
    now = [[], [], []]
    if step == last:
        panel = 2 if side["stores"][step] else 0
        now[panel] = lanes[step][lanes[step] >= 0].tolist()
        now[1] = tiles[step][tiles[step] >= 0].tolist()
        return strength, now, (panel, moved[moved[:, 0] == step, 1].tolist())
    return strength, now, (0, [])


def draw_still(figure, data, step):
    """Draw each run's matrices at a step."""
    panels = [(side, panel) for side in data["sides"] for panel in range(3) if side["has_tile"] or panel != 1]
    stills.set_size_and_title(figure, data, step, 2.2 * len(panels), 3)
    for axes, (side, panel) in zip(np.ravel(figure.subplots(1, len(panels))), panels, strict=True):
        strength, now, (of, moved) = cells_at(side, step)
        cells = stills.tint("ABC"[panel], strength[panel])
        if of == panel:
            cells[moved] = stills.tint("hot", np.array(MOVED))
        cells[now[panel]] = stills.rgb("hot")
        title = f"{side['name']}: {data['names'][panel]}"
        stills.show_cells(axes, cells.reshape(*side["shapes"][panel], 3), title)
