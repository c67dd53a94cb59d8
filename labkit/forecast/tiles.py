"""The life of each tile that TMA copies, in a timeline: it lands, warps multiply with it, and its stage is free."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from labkit.forecast.timeline import Span, Timeline
from labkit.trace import Event

Moments = list[tuple[Event, float]]


@dataclass(frozen=True)
class Use:
    """What one warp does with a tile, in cycles.

    Attributes
    ----------
    waits
        From when to when it waits for the tile.
    multiplies
        From when to when tensor cores execute its products with the tile.
    frees
        When it arrives at the barrier that guards the tile's stage; None if the block needs the stage no more.
    """

    warp: int
    waits: tuple[float, float]
    multiplies: tuple[float, float]
    frees: float | None


@dataclass(frozen=True)
class Tile:
    """A tile of a shared array, copied from `start` to `end`, and its uses."""

    array: str
    start: float
    end: float
    uses: tuple[Use, ...]


def copied_tiles(line: Timeline, warps: Sequence[int]) -> list[Tile]:
    """Return the tiles that are copied in a timeline, in order, with the uses of some warps.

    A barrier that counts a right operand may count a left one too, and both are then tiles. Others, such as a tile of
    queries, are left out.
    """
    moments: dict[int, Moments] = defaultdict(list)
    for event, cycle in line.moments:
        moments[event.warp].append((event, cycle))
    guards = _guards(moments)
    copies = _copies(line)
    arrays: dict[str, set[str]] = defaultdict(set)  # that each barrier counts
    for _, at, _, array in copies:
        arrays[at].add(array)
    found = []
    for (*key, array), (start, end) in copies.items():
        own = [_use(moments[warp], _spans_of(line, warp), key, arrays, guards) for warp in warps]
        uses = tuple(use for use in own if use)
        if uses:
            found.append(Tile(array, start, end, uses))
    return found


def _copies(line) -> dict[tuple, tuple[float, float]]:
    """Return start and end of the copies of a tile, by block, barrier, phase of the barrier, and array."""
    spans = iter(sorted((span for span in line.spans if span.does == "copy"), key=lambda span: span.start))
    phases, copies = Counter(), {}
    for event, _ in line.moments:
        if event.kind == "arrive" and event.amount:  # it expects bytes: a phase begins
            phases[event.block, event.at] += 1
        elif event.kind == "copy":
            span, key = next(spans), (event.block, event.at, phases[event.block, event.at] - 1, event.array)
            start, _ = copies.get(key, (span.start, 0))
            copies[key] = start, span.end
    return copies


def _guards(moments) -> dict[str, str]:
    """Return the barrier at which a warp last waited before it copied, by the barrier that counts the copy's bytes."""
    guards = {}
    for own in moments.values():
        latest = ""
        for event, _ in own:
            if event.kind == "wait":
                latest = event.at
            elif event.kind == "copy" and latest:
                guards.setdefault(event.at, latest)
    return guards


def _spans_of(line, warp) -> list[Span]:
    return sorted((span for span in line.spans if span.warp == warp), key=lambda span: span.start)


def _use(own: Moments, spans: list[Span], key, arrays, guards) -> Use | None:
    """Return what a warp does with the tile of a block, barrier and phase; None if it does not multiply with it."""
    block, at, phase = key
    products = iter(span for span in spans if span.does == "product")
    waits_from = {span.end: span.start for span in spans if span.does == "wait" and span.of in arrays[at]}
    waits, multiplied, is_current, frees = None, [], False, None
    for event, cycle in own:
        product = next(products) if event.kind == "product" else None
        if event.block != block:
            continue
        if event.kind == "wait" and event.at == at and waits and multiplied:
            break  # the stage's next tile
        if event.kind == "wait" and (event.at, event.amount) == (at, phase):
            waits, is_current = (waits_from.get(cycle, cycle), cycle), True
        elif event.kind == "wait" and arrays.get(event.at, set()) & arrays[at]:
            is_current = False  # the next tile of this array
        elif is_current and product and product.of in arrays[at]:
            multiplied.append(product)
        elif multiplied and event.kind == "arrive" and event.at == guards.get(at):
            frees = cycle
            break
    if not waits or not multiplied:
        return None
    return Use(own[0][0].warp, waits, (multiplied[0].start, multiplied[-1].end), frees)
