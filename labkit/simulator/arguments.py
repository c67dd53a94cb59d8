"""What a launch is given, checked as a GPU would: grid, block, shared memory and arguments."""

import numpy as np
from numba import types
from numba.core.errors import NumbaError

from labkit.machine.gpus import Gpu
from labkit.simulator import numba_types
from labkit.simulator.errors import LaunchError
from labkit.simulator.host import check_copyable, unwrap
from labkit.simulator.limits import MAX_ARGUMENT_BYTES
from labkit.simulator.reading.trusted import in_words
from labkit.simulator.signatures import convert_arguments
from labkit.simulator.tensor_maps import BoxedArray, WindowedImages
from labkit.simulator.values import Array, NamedTuple, Record, TensorMap, Tuple

CLUSTERS = (1, 2, 4, 8)  # CUDA C++ Programming Guide, "Thread Block Clusters": every GPU with clusters has these
REGISTERS_PER_SM = 65_536
MAX_REGISTERS = 256  # of a thread
REGISTER_UNIT = 8  # registers of a thread, that are handed out together


def parse_dimensions(given, what):
    given = given if isinstance(given, (tuple, list)) else (given,)
    if not 1 <= len(given) <= 3 or not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in given):
        shown = given[0] if len(given) == 1 else tuple(given)
        is_float = any(isinstance(n, (float, np.floating)) for n in given)
        cure = "; divide with `//`, and round a grid up, `-(-n // threads)`" if is_float else ""
        raise LaunchError(f"the {what} must be one to three whole numbers, such as 4 or (4, 2), not {shown!r}{cure}")
    if min(given) < 1:
        shown = given[0] if len(given) == 1 else tuple(given)
        raise LaunchError(f"the {what} is {shown}, so nothing would run; every size must be at least 1")
    return tuple(int(n) for n in (*given, 1, 1)[:3])


def check_limits(grid, block, shared_bytes, gpu: Gpu):
    threads = block[0] * block[1] * block[2]
    if threads > gpu.threads_per_block:
        raise LaunchError(
            f"a block of {block[0]} x {block[1]} x {block[2]} has {threads} threads, and a GPU takes at most "
            f"{gpu.threads_per_block}; make the block smaller and the grid larger"
        )
    if block[2] > 64:
        raise LaunchError(f"a block may be 64 deep in z at most, not {block[2]}; use x and y")
    if grid[1] > 65535 or grid[2] > 65535 or grid[0] >= 2**31:
        raise LaunchError(f"the grid {grid} is too large: x may be up to 2**31 - 1, y and z up to 65535")
    if not isinstance(shared_bytes, (int, np.integer)) or shared_bytes < 0:
        raise LaunchError(f"shared_bytes is a number of bytes, 0 or more, not {shared_bytes!r}")


def cluster_size(kernel, grid) -> int:
    """How many blocks, neighbours along x, a cluster has: what a kernel asks for by `cuda.jit(cluster=...)`."""
    cluster = _options(kernel).get("cluster", 1)
    if cluster not in CLUSTERS:
        raise LaunchError(f"a cluster has {', '.join(map(str, CLUSTERS[:-1]))} or {CLUSTERS[-1]} blocks, not {cluster}")
    if grid[0] % cluster:
        raise LaunchError(
            f"the grid has {grid[0]} blocks along x, and clusters of {cluster} do not fill it; make it a multiple"
        )
    return cluster


def is_early(kernel) -> bool:
    """May the kernel begin before the launch before it has ended, as `cuda.jit(early=True)` asks?"""
    return bool(_options(kernel).get("early"))


def register_limit(kernel) -> int | None:
    """How many registers a thread has at most as its kernel begins, by the options that bound them; None for no bound.

    As ptxas 13 does: launch bounds count if they say how many blocks an SM is to hold, and `max_registers` counts
    where there are none.
    """
    options = _options(kernel)
    bounds = options.get("launch_bounds")
    if bounds is None:
        most = options.get("max_registers")
        return most and min(-(-most // REGISTER_UNIT) * REGISTER_UNIT, MAX_REGISTERS)
    threads, blocks = (*bounds, 0)[:2] if isinstance(bounds, (tuple, list)) else (bounds, 0)
    if not blocks:
        return None
    return min(REGISTERS_PER_SM // (threads * blocks) // REGISTER_UNIT * REGISTER_UNIT, MAX_REGISTERS)


def _options(kernel):
    return getattr(kernel, "options", None) or getattr(kernel, "targetoptions", {})


def check_writable(stored, given):
    """Refuses arrays among those `given` by name that are read-only, where the kernel has stores to them."""
    for name in sorted(stored & given.keys()):
        if isinstance(given[name], np.ndarray) and not given[name].flags.writeable:
            raise LaunchError(f"the argument `{name}` is read-only, and the kernel writes to it; pass `{name}.copy()`")


def typed_arguments(names, args, signatures=()):
    """numba's types of the arguments, and the arguments as NumPy values.

    `signatures` are those that the kernel was declared with; one of them must fit.
    """
    if len(args) != len(names):
        cure = f"pass `{'`, `'.join(names[len(args) :])}` as well" if len(args) < len(names) else "leave the others out"
        raise LaunchError(
            f"the kernel takes {len(names)} argument{'s' * (len(names) != 1)} ({', '.join(names)}), but "
            f"{len(args)} {'was' if len(args) == 1 else 'were'} given; {cure}"
        )
    for name, value in flatten_arguments(names, args).items():
        if isinstance(value, np.ndarray):
            check_copyable(name, value)
    if signatures:
        args = convert_arguments(names, [_on_host(a) for a in args], signatures)
    typed = [_typed_argument(name, value) for name, value in zip(names, args)]
    return tuple(kind for kind, _ in typed), [value for _, value in typed]


def flatten_arguments(names, args) -> dict:
    """The arguments by name, in place of each tuple what it holds: `t[0]`, or `p.x` of a named one; of a tensor map its
    array.
    """
    found = {}
    for name, value in zip(names, args):
        value = value.array if isinstance(value, BoxedArray) else value
        found |= (
            flatten_arguments(*zip(*tuple_entries(name, value)))
            if isinstance(value, tuple) and value
            else {name: value}
        )
    return found


def tuple_entries(name, value) -> list[tuple]:
    """The entries of a tuple, each after the name by which a kernel calls it."""
    fields = getattr(value, "_fields", None)
    return [(f"{name}.{fields[i]}" if fields else f"{name}[{i}]", part) for i, part in enumerate(value)]


def _on_host(value):
    """An argument as a NumPy array, if it is one of the device: of the simulator's its memory, of a GPU's a copy."""
    value = unwrap(value)  # slices of one device array keep overlapping
    return value.copy_to_host() if hasattr(value, "copy_to_host") else value


def _typed_argument(name, value):
    """numba's type of an argument, or the translator's, and the argument as a NumPy value."""
    if isinstance(value, BoxedArray):
        kind, array = _typed_argument(name, value.array)
        of = "PixelMap" if isinstance(value, WindowedImages) else "TensorMap"
        return TensorMap(kind, value.box, of), value.of(array)
    value = _on_host(value)
    if isinstance(value, np.ndarray):
        value = np.asarray(value)  # a matrix would keep its two dimensions
        if value.nbytes > MAX_ARGUMENT_BYTES:
            raise LaunchError(f"the argument `{name}` has {value.nbytes:,} bytes, too many to simulate; pass less")
        return Array(_element_type(name, value), value.ndim, "global", name), value
    if isinstance(value, np.void) and value.dtype.names:
        alone = np.array(value)  # an array without dimensions
        return Record((Array(_element_type(name, alone), 0, "global", name),)), alone
    if isinstance(value, (bool, np.bool_)):
        return types.boolean, np.bool_(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise LaunchError(f"the argument `{name}`, {in_words(value)}, does not fit into 64 bits")
        return (types.int64, np.int64(value)) if value < 2**63 else (types.uint64, np.uint64(value))
    if isinstance(value, (float, complex, np.number)):
        value = value if isinstance(value, np.generic) else np.asarray(value)[()]
        return _element_type(name, value), value
    if isinstance(value, tuple):
        parts = [_typed_argument(*entry) for entry in tuple_entries(name, value)]
        kinds, values = tuple(kind for kind, _ in parts), tuple(v for _, v in parts)
        fields = getattr(value, "_fields", None)
        return (NamedTuple(kinds, fields), value._make(values)) if fields else (Tuple(kinds), values)
    if isinstance(value, list):
        raise LaunchError(
            f"the argument `{name}` is a list, which a GPU cannot read; pass `np.array({name}, dtype=np.float32)`"
        )
    raise LaunchError(
        f"the argument `{name}` is {with_article(value)}; a kernel takes NumPy arrays, device arrays, numbers and tuples of "
        "these alone"
    )


def _element_type(name, value):
    try:
        kind = numba_types.type_of(value.dtype)
    except NumbaError:
        kind = None
    if isinstance(kind, types.Record) and isinstance(value, np.ndarray):
        return kind
    if not isinstance(kind, types.Number | types.Boolean):
        raise LaunchError(
            f"the argument `{name}` has dtype {value.dtype}, which a kernel does not take; use float32 or another "
            "float, complex or integer type, or bool"
        )
    return kind


def with_article(thing):
    if thing is None:
        return "None"
    name = type(thing).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
