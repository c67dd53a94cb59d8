"""Arrays as a kernel sees them, and what a load, a store or an atomic of a warp set does to them."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from labkit.simulator import races
from labkit.simulator.counters import count_global, count_plain, count_shared
from labkit.simulator.errors import LaunchError
from labkit.trace import WARP_LANES

ADDRESS_ALIGNMENT = 512  # cudaMalloc aligns to at least 256 bytes


class Array:
    """An array of the kernel: where its elements lie, and what is watched about them.

    `data` is the flat storage; a shared array has a copy of `elements` for each block of the chunk, a local
    one for each lane. `shadow` is None where races cannot happen.
    """

    def __init__(self, name, space, data, shape, strides, offset, address, elements, line=0):
        self.name = name
        self.space = space
        self.data = data
        self.dtype = data.dtype
        self.itemsize = data.dtype.itemsize
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.address = address
        self.elements = elements
        self.line = line
        self.shadow = None
        self.written = None
        self.shape_values = tuple(np.int64(n) for n in shape)
        self.size_value = np.int64(np.prod(shape, dtype=np.int64))
        c_order = np.cumprod((1, *shape[:0:-1]))[::-1] if shape else ()
        self.contiguous = offset == 0 and all(s == c for s, c, n in zip(strides, c_order, shape) if n > 1)

    def c_order(self, place):
        """The C-order number of elements, given where they lie in `data` (within one copy)."""
        if self.contiguous:
            return place
        rest, number = place - self.offset, 0
        for axis in sorted(range(len(self.shape)), key=lambda a: -abs(self.strides[a])):
            if self.shape[axis] > 1:
                step = int(np.prod(self.shape[axis + 1 :], dtype=np.int64))
                number = number + rest // self.strides[axis] * step
                rest = rest % self.strides[axis]
        return number

    def position(self, flat: int) -> tuple[int, ...]:
        """The index of an element, given its place in C order."""
        return tuple(int(i) for i in np.unravel_index(flat, self.shape))


@dataclass
class Region:
    """Simulated global memory that holds one argument, or several that overlap: a copy of the bytes from `low`."""

    low: int
    data: np.ndarray
    address: int
    shadow: np.ndarray | None = None

    def first(self, value):
        """Where the first element of an argument lies in `data`."""
        return (value.ctypes.data - self.low) // value.dtype.itemsize if value.size else 0

    def view(self, value):
        """The argument as it is in simulated memory."""
        return as_strided(self.data[self.first(value) :], value.shape, value.strides)

    def array(self, name, value):
        """The argument as the kernel sees it."""
        strides = tuple(s // value.dtype.itemsize for s in value.strides)
        array = Array(name, "global", self.data, value.shape, strides, self.first(value), self.address, value.size)
        array.shadow = self.shadow
        return array

    def watch(self):
        """Remembers from now on who touched each element."""
        self.shadow = races.new_shadow(self.data.size, filled=True)


def place(arguments: dict[str, np.ndarray]) -> dict[str, Region]:
    """Copies arguments into simulated memory, each to a region of its own unless they overlap."""
    groups, end = [], 0
    bounds = {name: byte_bounds(a) if a.size else (0, 0) for name, a in arguments.items()}
    for name in sorted(arguments, key=lambda n: bounds[n]):
        if bounds[name][0] < end:
            groups[-1].append(name)
        else:
            groups.append([name])
        end = max(end, bounds[name][1])
    regions, address = {}, 0
    for name in arguments:
        if name not in regions:
            group = next(g for g in groups if name in g)
            region = _copied({n: arguments[n] for n in group}, {n: bounds[n] for n in group}, address)
            regions |= dict.fromkeys(group, region)
            address += -(-region.data.nbytes // ADDRESS_ALIGNMENT) * ADDRESS_ALIGNMENT
    return regions


def _copied(arrays, bounds, address):
    """The region of arrays that overlap; together they cover it."""
    first, *others = arrays
    dtype = arrays[first].dtype
    low = min(b[0] for b in bounds.values())
    for name, a in arrays.items():
        if any(s % dtype.itemsize for s in a.strides):
            raise LaunchError(f"the argument `{name}` has elements that are not aligned; pass a copy, `{name}.copy()`")
        if a.dtype != dtype or (bounds[name][0] - low) % dtype.itemsize:
            raise LaunchError(
                f"the arguments `{first}` and `{name}` overlap in memory with different dtypes; pass a copy of one, "
                f"`{name}.copy()`"
            )
    if not others and arrays[first].flags.c_contiguous:
        return Region(low, arrays[first].reshape(-1).copy(), address)
    data = np.empty((max(b[1] for b in bounds.values()) - low) // dtype.itemsize, dtype)
    for name, a in arrays.items():
        start, stop = ((place - low) // dtype.itemsize for place in bounds[name])
        if a.size:
            data[start:stop] = as_strided(_lowest(a), (stop - start,), (dtype.itemsize,))
    return Region(low, data, address)


def _lowest(value):
    """A view of the array whose first element is the one at the lowest address."""
    return value[tuple(slice(None, None, -1) if stride < 0 else slice(None) for stride in value.strides)]


def flatten(w, site, array, mask, index):
    """Where each lane's element lies, and the lanes whose index is inside the array.

    Indices below zero count from the end, as numba's do; one outside stops that lane's access.
    """
    flat = None
    fixed = array.offset
    outside = False
    for axis, i in enumerate(index):
        size, stride = array.shape[axis], array.strides[axis]
        if not isinstance(i, np.ndarray):
            i = int(i)
            if not -size <= i < size:
                w.chunk.launch.log.outside(w, site, array, mask, index)
                return None, False
            if i < 0:
                w.chunk.launch.log.negative(w, site, array, mask, index, axis)
                i += size
            fixed += i * stride
            continue
        i = i.astype(np.int64, copy=False)
        if i.min() < 0 or i.max() >= size:
            active = w.active(mask)
            below = (i < 0) & (i >= -size)
            if (below & active).any():
                w.chunk.launch.log.negative(w, site, array, below & active, index, axis)
                i = np.where(below, i + size, i)
            wrong = (i < 0) | (i >= size)
            if (wrong & active).any():
                outside = wrong if outside is False else outside | wrong
            i = np.where(wrong, 0, i)
        term = i if stride == 1 else i * stride
        flat = term if flat is None else flat + term
    if outside is not False:
        active = w.active(mask)
        w.chunk.launch.log.outside(w, site, array, outside & active, index)
        mask = active & ~outside
        if not mask.any():
            return None, False
    if flat is None:
        flat = np.full(w.lanes, fixed)
    elif fixed:
        flat = flat + fixed
    if array.space == "shared":
        flat = flat + w.instance_base(array)
    return flat, mask


def load(w, site, array, mask, *index):
    """The elements that the lanes of `mask` read; 0 where the index is outside."""
    if array.space == "local":
        return _load_local(w, site, array, mask, index)
    launch = w.chunk.launch
    flat, mask = flatten(w, site, array, mask, index)
    if mask is False:
        return array.dtype.type(0)
    lanes = w.active(mask)
    _count(w, site, array, flat, lanes, True)
    if array.shadow is not None:
        found, unwritten, first = races.watch_loads(
            flat, lanes, w.warps, w.chunk.epochs, w.warp_epochs, launch.clocks, launch.warps_per_block,
            site, array.shadow, launch.noted_race,
        )  # fmt: skip
        if found:
            launch.log.race(site, array, found)
        if unwritten:
            launch.log.uninitialised(w, site, array, flat[first], first, unwritten)
    w.chunk.sample(w, site, array, mask, flat)
    return array.data.take(flat)


def store(w, site, array, mask, value, *index):
    """Writes the lanes' values; of two lanes that write one element the later wins."""
    if array.space == "local":
        return _store_local(w, site, array, mask, value, index)
    launch = w.chunk.launch
    flat, mask = flatten(w, site, array, mask, index)
    if mask is False:
        return
    lanes = w.active(mask)
    value = w.fill(value)
    _count(w, site, array, flat, lanes, False)
    before = array.data.take(flat)
    if mask is None:
        array.data[flat] = value
    else:
        array.data[flat[mask]] = value[mask]
    unchanged = _same(before, value)
    if array.shadow is not None:
        launch.instruction += 2
        found = races.watch_stores(
            flat, lanes, unchanged, _same(array.data.take(flat), value), w.warps, w.chunk.epochs, w.warp_epochs,
            launch.clocks, launch.warps_per_block, launch.instruction, site, array.shadow, launch.noted_race,
        )  # fmt: skip
        if found:
            launch.log.race(site, array, found)
    if not unchanged.all():
        launch.version += 1
    w.chunk.sample(w, site, array, mask, flat)


def _same(before, value):
    same = before == value
    if value.dtype.kind == "f":
        same |= np.isnan(before) & np.isnan(value)
    return same


def _count(w, site, array, flat, lanes, is_load):
    launch = w.chunk.launch
    totals = launch.totals[site]
    if array.space == "shared":
        count_shared(flat, array.address, array.itemsize, array.elements, lanes, w.warps, totals)
        return
    to_l2 = launch.l2.rows(w.lanes)
    rows = count_global(
        flat, array.address, array.itemsize, lanes, w.warps, w.warp_clock, is_load, launch.l1, totals, to_l2
    )
    if rows:
        launch.l2.send(to_l2[:rows], site, not is_load)


def _load_local(w, site, array, mask, index):
    if any(isinstance(i, np.ndarray) for i in index):
        flat, mask = flatten(w, site, array, mask, index)
        if mask is False:
            return array.dtype.type(0)
        place = (flat, np.arange(w.lanes))
    else:
        flat, mask = flatten(w, site, array, mask, index)
        if mask is False:
            return array.dtype.type(0)
        place = int(flat[0])
    count_plain(w.active(mask), w.warps, w.chunk.launch.totals[site])
    missing = ~array.written[place] & w.active(mask)
    if missing.any():
        lane = int(np.argmax(missing))
        w.chunk.launch.log.uninitialised(w, site, array, flat[lane], lane, int(missing.sum()))
    return array.data[place].copy()


def _store_local(w, site, array, mask, value, index):
    flat, mask = flatten(w, site, array, mask, index)
    if mask is False:
        return
    count_plain(w.active(mask), w.warps, w.chunk.launch.totals[site])
    uniform = not any(isinstance(i, np.ndarray) for i in index)
    lanes = slice(None) if mask is None else np.flatnonzero(mask)
    rows = int(flat[0]) if uniform else flat[lanes]
    columns = lanes if uniform or mask is not None else np.arange(w.lanes)
    array.data[rows, columns] = value[lanes] if isinstance(value, np.ndarray) else value
    array.written[rows, columns] = True


def sync_warps(w, mask):
    """`syncwarp`: orders the accesses of a warp's lanes."""
    counts = np.add.reduceat(w.active(mask), w.warps[:, 0])
    w.warp_epochs[counts > 0] += 1


# --- atomics: one lane after another -----------------------------------------------------------


@njit(cache=True)
def _atomic_add(data, flat, lanes, value, compare, old):
    for i in range(flat.size):
        if lanes[i]:
            old[i] = data[flat[i]]
            data[flat[i]] += value[i]


@njit(cache=True)
def _atomic_sub(data, flat, lanes, value, compare, old):
    for i in range(flat.size):
        if lanes[i]:
            old[i] = data[flat[i]]
            data[flat[i]] -= value[i]


@njit(cache=True)
def _atomic_max(data, flat, lanes, value, compare, old):
    for i in range(flat.size):
        if lanes[i]:
            old[i] = data[flat[i]]
            data[flat[i]] = max(data[flat[i]], value[i])


@njit(cache=True)
def _atomic_min(data, flat, lanes, value, compare, old):
    for i in range(flat.size):
        if lanes[i]:
            old[i] = data[flat[i]]
            data[flat[i]] = min(data[flat[i]], value[i])


@njit(cache=True)
def _atomic_exch(data, flat, lanes, value, compare, old):
    for i in range(flat.size):
        if lanes[i]:
            old[i] = data[flat[i]]
            data[flat[i]] = value[i]


@njit(cache=True)
def _atomic_cas(data, flat, lanes, value, compare, old):
    for i in range(flat.size):
        if lanes[i]:
            old[i] = data[flat[i]]
            if old[i] == compare[i]:
                data[flat[i]] = value[i]


@njit(cache=True)
def _atomic_and(data, flat, lanes, value, compare, old):
    for i in range(flat.size):
        if lanes[i]:
            old[i] = data[flat[i]]
            data[flat[i]] &= value[i]


@njit(cache=True)
def _atomic_or(data, flat, lanes, value, compare, old):
    for i in range(flat.size):
        if lanes[i]:
            old[i] = data[flat[i]]
            data[flat[i]] |= value[i]


@njit(cache=True)
def _atomic_xor(data, flat, lanes, value, compare, old):
    for i in range(flat.size):
        if lanes[i]:
            old[i] = data[flat[i]]
            data[flat[i]] ^= value[i]


_ATOMICS = {
    "add": _atomic_add,
    "sub": _atomic_sub,
    "max": _atomic_max,
    "min": _atomic_min,
    "exch": _atomic_exch,
    "cas": _atomic_cas,
    "and_": _atomic_and,
    "or_": _atomic_or,
    "xor": _atomic_xor,
}


def atomic(w, site, array, mask, operation, value, compare, result_used, *index):
    """Reads, changes and writes an element, one lane after another; returns what each lane read."""
    launch = w.chunk.launch
    flat, mask = flatten(w, site, array, mask, index)
    if mask is False:
        return array.dtype.type(0)
    lanes = w.active(mask)
    value = w.fill(value)
    compare = value if compare is None else w.fill(compare)
    _count(w, site, array, flat, lanes, False)
    old = np.zeros(w.lanes, array.dtype)
    before = array.data.take(flat)
    _ATOMICS[operation](array.data, flat, lanes, value, compare, old)
    if not np.array_equal(before, array.data.take(flat)):
        launch.version += 1
    if launch.clocks.size:
        _exchange_clocks(w, array, flat, lanes)
    if array.shadow is not None:
        found, unwritten, first = races.watch_atomics(
            flat, lanes, operation != "cas", w.warps, w.chunk.epochs, w.warp_epochs, launch.clocks,
            launch.warps_per_block, site, array.shadow, launch.noted_race,
        )  # fmt: skip
        if found:
            launch.log.race(site, array, found)
        if unwritten:
            launch.log.uninitialised(w, site, array, flat[first], first, unwritten)
    w.chunk.sample(w, site, array, mask, flat)
    return old


def _exchange_clocks(w, array, flat, lanes):
    """An atomic passes on what its warp knows, and learns what the warps before it knew there."""
    launch = w.chunk.launch
    for start, stop, block, thread, *_ in w.warps:
        warp = block * launch.warps_per_block + thread // WARP_LANES
        touched = np.unique(flat[start:stop][lanes[start:stop]])
        for element in touched:
            key = (id(array.data), int(element))
            known = launch.cell_clocks.get(key)
            mine = launch.clocks[warp]
            if known is not None:
                np.maximum(mine, known, out=mine)
            mine[warp] += 1
            launch.cell_clocks[key] = mine.copy()
