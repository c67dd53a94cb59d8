"""The recorded accesses of one block as steps: what each statement does, in numbers and in words."""

from dataclasses import dataclass

import numpy as np

from labkit.trace import SECTOR_BYTES, Trace
from labkit.views.wording import block_name, join


@dataclass(frozen=True)
class Step:
    """One statement, run by the warps that run it together.

    phase: what kind of work it is. global_loads, shared_reads: lane accesses. copies: loads that went to shared
    memory. copy_reads: those of the shared reads that found such a loaded value.
    loaded: the elements loaded from global memory, as (array, element).
    """

    phase: str
    sentence: str
    line: int | None = None
    global_loads: int = 0
    shared_reads: int = 0
    copies: int = 0
    copy_reads: int = 0
    loaded: frozenset = frozenset()


def step_offsets(site, warp, line) -> list[int]:
    """Return the row where each step begins, and the end: a step holds each site at most once per warp."""
    offsets, seen, current = [0], set(), None
    for row, key in enumerate(zip(site.tolist(), warp.tolist(), strict=True)):
        here = (line[row], key[0] < 0)
        if row and (here != current or key in seen):
            offsets.append(row)
            seen = set()
        current = here
        seen.add(key)
    if len(site):
        offsets.append(len(site))
    return offsets


def copies(sites) -> dict[int, int]:
    """Return shared stores that copy: index of the store -> that of the one global load in the same statement."""
    load_of_store = {}
    for i, store in enumerate(sites):
        if (store.space, store.kind) == ("shared", "store"):
            wanted = (store.line, "global", "load")
            loads = [j for j, s in enumerate(sites) if (s.line, s.space, s.kind) == wanted]
            if len(loads) == 1:
                load_of_store[i] = loads[0]
    return load_of_store


class Reader:
    """Reader of one block's steps in order; sentences are about `warp`."""

    def __init__(self, trace: Trace, block, warp: int):
        self.arrays = {info.name: info for info in trace.arrays}
        self.sites = [counted.site for counted in trace.sites]
        self.copies = copies(self.sites)
        self.block, self.warp = block_name(block), warp
        shared = [info for info in trace.arrays if info.space == "shared"]
        self.shared = bool(shared)
        # Which shared elements hold a value that came straight from global memory.
        self.from_global = {info.name: np.zeros(int(np.prod(info.shape, dtype=int)), bool) for info in shared}

    def step(self, site, warps, lanes) -> Step:
        """Return the step that consists of these rows of the samples."""
        if site[0] < 0:
            return Step("barrier", "a barrier. No thread of the block goes on until all have come here.")
        rows = {i: site == i for i in dict.fromkeys(site.tolist())}
        elements = {i: lanes[mask][lanes[mask] >= 0] for i, mask in rows.items()}
        by_act = {}
        for i in rows:
            by_act.setdefault((self.sites[i].space, self.sites[i].kind), []).append(i)
        loads = by_act.get(("global", "load"), [])
        copied = sum(self._fill(i, rows, warps, lanes) for i in by_act.get(("shared", "store"), []))
        reads = by_act.get(("shared", "load"), [])
        loaded = set()
        if not self.shared:
            for i in loads:
                loaded.update((self.sites[i].array, e) for e in np.unique(elements[i]).tolist())
        line = self.sites[next(iter(rows))].line
        return Step(
            phase=self._phase(by_act),
            sentence=f"line {line}: {self._sentence(by_act, rows, warps, lanes, elements)}",
            line=line,
            global_loads=sum(len(elements[i]) for i in loads),
            shared_reads=sum(len(elements[i]) for i in reads),
            copies=copied,
            copy_reads=sum(int(self.from_global[self.sites[i].array][elements[i]].sum()) for i in reads),
            loaded=frozenset(loaded),
        )

    def _fill(self, store, rows, warps, lanes) -> int:
        """Mark the elements that a shared store fills from global memory; returns their number."""
        target = lanes[rows[store]]
        loaded = np.zeros(target.shape, bool)
        load = self.copies.get(store)
        if load in rows:
            row_of_warp = np.full(int(warps.max()) + 1, -1)
            row_of_warp[warps[rows[load]]] = np.arange(rows[load].sum())
            row = row_of_warp[warps[rows[store]]]
            loaded = (lanes[rows[load]][row] >= 0) & (row >= 0)[:, None] & (target >= 0)
        self.from_global[self.sites[store].array][target[target >= 0]] = loaded[target >= 0]
        return int(loaded.sum())

    def _phase(self, by_act) -> str:
        written = [i for act in by_act for i in by_act[act] if act in {("global", "store"), ("global", "atomic")}]
        if ("global", "load") in by_act and ("shared", "store") in by_act:
            return "load into shared memory"
        if written:
            return f"write {self.sites[written[0]].array}"
        if ("global", "load") in by_act:
            return "load from global memory"
        shared = {kind for space, kind in by_act if space == "shared"}
        if shared == {"load"}:
            return "read shared memory"
        return "work in shared memory" if shared else "work in each thread's own arrays"

    def _sentence(self, by_act, rows, warps, lanes, elements) -> str:
        loads = by_act.get(("global", "load"), [])
        filled = by_act.get(("shared", "store"), [])
        count = sum(len(elements[i]) for i in loads)
        cost = f"{count:,} loads from global memory, {self._sectors(loads, rows, lanes)}"
        if any(self.copies.get(i) in rows for i in filled):
            source = self._regions(loads, elements) or "zeros"
            return f"block {self.block} copies {source} into {self._regions(filled, elements)}: {cost}."
        mine = warps == self.warp
        if not mine.any():
            others = sorted(set(warps.tolist()))
            who = f"warp {others[0]} is" if len(others) == 1 else f"{len(others)} warps of the block are"
            return f"{who} at work here; warp {self.warp} takes no part."
        own = {i: lanes[mask & mine][lanes[mask & mine] >= 0] for i, mask in rows.items()}
        parts = []
        for (space, kind), which in by_act.items():
            if any(len(own[i]) for i in which):
                verbs = {"load": "loads" if space == "global" else "reads", "store": "writes", "atomic": "updates"}
                parts.append(f"{verbs[kind]} {self._regions(which, own)}")
        say = f"warp {self.warp} {join(parts)}."
        if loads:
            return f"{say} The block makes {cost}."
        if set(by_act) != {("shared", "load")}:
            return say
        copied = any(self.from_global[self.sites[i].array][elements[i]].any() for i in rows)
        return f"{say} Nothing comes from global memory{'; the elements that were copied are marked there' * copied}."

    def _regions(self, which, elements) -> str:
        return join([slice_text(self.arrays[self.sites[i].array], elements[i]) for i in which if len(elements[i])])

    def _sectors(self, loads, rows, lanes) -> str:
        """Return the mean number of sectors that one warp's load touches, as text."""
        counts = []
        for i in loads:
            pieces = self.arrays[self.sites[i].array].pieces(lanes[rows[i]], SECTOR_BYTES, self.sites[i].offset_bytes)
            sectors = np.sort(pieces, axis=1)
            new = np.diff(sectors, axis=1, prepend=-1) != 0
            counts += [n for n in new.sum(axis=1).tolist() if n]
        mean = sum(counts) / max(1, len(counts))
        return f"{mean:.1f} sectors per warp".replace(".0", "") if mean != 1 else "1 sector per warp"


def slice_text(info, elements) -> str:
    """Return elements as a slice of their array, if they form one: `A[0:16, 3]`."""
    touched = np.unique(elements)
    shape = info.shape or (1,)
    coordinates = np.unravel_index(touched, shape)
    bounds = [(int(c.min()), int(c.max()), n) for c, n in zip(coordinates, shape, strict=True)]
    if np.prod([high - low + 1 for low, high, _ in bounds]) == len(touched):
        return f"`{info.name}[{', '.join(_slice(*bound) for bound in bounds)}]`"
    return f"{len(touched)} elements of `{info.name}`"


def _slice(low, high, length):
    if low == high:
        return str(low)
    return ":" if (low, high) == (0, length - 1) else f"{low}:{high + 1}"
