"""Checks of a launch's grid, block, shared memory and arguments, as a GPU makes them."""

import numpy as np

from labkit.machine.gpus import Gpu
from labkit.simulator import numba_types
from labkit.simulator.errors import LaunchError
from labkit.simulator.host import check_copyable, unwrap
from labkit.simulator.limits import MAX_ARGUMENT_BYTES
from labkit.simulator.reading.trusted import in_words
from labkit.simulator.seam import NumbaError, types
from labkit.simulator.signatures import convert_arguments
from labkit.simulator.tensor_maps import BoxedArray, WindowedImages
from labkit.simulator.values import Array, NamedTuple, Record, TensorMap, Tuple

CLUSTERS = (1, 2, 4, 8)  # CUDA C++ Programming Guide, "Thread Block Clusters": every GPU with clusters has these
REGISTERS_PER_SM = 65_536
MAX_REGISTERS = 256  # of a thread
REGISTER_UNIT = 8  # registers per thread are allocated in multiples of this


def parse_dimensions(sizes, name):
    """Turn a grid or a block, one to three whole numbers, into three; raise LaunchError for anything else."""
    sizes = sizes if isinstance(sizes, (tuple, list)) else (sizes,)
    shown = sizes[0] if len(sizes) == 1 else tuple(sizes)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in sizes):
        is_float = any(isinstance(n, (float, np.floating)) for n in sizes)
        cure = "; divide with `//`, and round a grid up, `-(-n // threads)`" if is_float else ""
        raise LaunchError(f"the {name} must be one to three whole numbers, such as 4 or (4, 2), not {shown!r}{cure}")
    if min(sizes) < 1:
        raise LaunchError(f"the {name} is {shown}, so nothing would run; every size must be at least 1")
    return tuple(int(n) for n in (*sizes, 1, 1)[:3])


def check_limits(grid, block, shared_bytes, gpu: Gpu):
    """Raise LaunchError for a grid, block or amount of shared memory beyond the GPU's limits."""
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
    """Return the blocks per cluster along x, as `cuda.jit(cluster=...)` asks; raise LaunchError where none fit."""
    cluster = _options(kernel).get("cluster", 1)
    if cluster not in CLUSTERS:
        raise LaunchError(f"a cluster has {', '.join(map(str, CLUSTERS[:-1]))} or {CLUSTERS[-1]} blocks, not {cluster}")
    if grid[0] % cluster:
        raise LaunchError(
            f"the grid has {grid[0]} blocks along x, and clusters of {cluster} do not fill it; make it a multiple"
        )
    return cluster


def is_early(kernel) -> bool:
    """Return whether the kernel may begin before the previous launch has ended (`cuda.jit(early=True)`)."""
    return bool(_options(kernel).get("early"))


def register_limit(kernel) -> int | None:
    """Return the register limit per thread that the kernel's options set, or None.

    The rule is that of ptxas 13: launch bounds count if they name the blocks per SM, and `max_registers` counts without
    launch bounds.
    """
    options = _options(kernel)
    bounds = options.get("launch_bounds")
    if bounds is None:
        max_registers = options.get("max_registers")
        return max_registers and min(-(-max_registers // REGISTER_UNIT) * REGISTER_UNIT, MAX_REGISTERS)
    threads, blocks = (*bounds, 0)[:2] if isinstance(bounds, (tuple, list)) else (bounds, 0)
    if not blocks:
        return None
    return min(REGISTERS_PER_SM // (threads * blocks) // REGISTER_UNIT * REGISTER_UNIT, MAX_REGISTERS)


def _options(kernel):
    return getattr(kernel, "options", None) or getattr(kernel, "targetoptions", {})


def check_writable(stored, arguments):
    """Raise LaunchError if one of the `arguments`, by name, is read-only and the kernel stores to it (`stored`)."""
    for name in sorted(stored & arguments.keys()):
        if isinstance(arguments[name], np.ndarray) and not arguments[name].flags.writeable:
            raise LaunchError(f"the argument `{name}` is read-only, and the kernel writes to it; pass `{name}.copy()`")


def typed_arguments(names, args, signatures=()):
    """Return numba's types of the arguments, and the arguments as NumPy values.

    `names` are the kernel's parameters. If it has declared `signatures`, the first that fits converts the arguments.
    """
    if len(args) != len(names):
        cure = f"pass `{'`, `'.join(names[len(args) :])}` as well" if len(args) < len(names) else "leave the others out"
        raise LaunchError(
            f"the kernel takes {len(names)} argument{'s' * (len(names) != 1)} ({', '.join(names)}), but "
            f"{len(args)} {'was' if len(args) == 1 else 'were'} given; {cure}"
        )
    copied = [(name, value) for name, value in zip(names, args) if not isinstance(value, BoxedArray)]
    for name, value in flatten_arguments(*zip(*copied)).items() if copied else ():
        if isinstance(value, np.ndarray):  # under a tensor map it is memory of the GPU, with any strides
            check_copyable(value, name)
    if signatures:
        args = convert_arguments(names, [_on_host(a) for a in args], signatures)
    typed = [_typed_argument(name, value) for name, value in zip(names, args)]
    return tuple(kind for kind, _ in typed), [value for _, value in typed]


def flatten_arguments(names, args) -> dict:
    """Return the arguments by name, with tuples replaced by their entries (`t[0]`, `p.x`).

    A tensor map is replaced by its array.
    """
    result = {}
    for name, value in zip(names, args):
        value = value.array if isinstance(value, BoxedArray) else value
        result |= (
            flatten_arguments(*zip(*tuple_entries(name, value)))
            if isinstance(value, tuple) and value
            else {name: value}
        )
    return result


def tuple_entries(name, value) -> list[tuple]:
    """Return (name in the kernel, value) for each entry of a tuple."""
    fields = getattr(value, "_fields", None)
    return [(f"{name}.{fields[i]}" if fields else f"{name}[{i}]", entry) for i, entry in enumerate(value)]


def _on_host(value):
    """Return a device array's NumPy array (the simulator's own memory, a copy from a GPU); else the value."""
    value = unwrap(value)  # slices of one device array keep overlapping
    return value.copy_to_host() if hasattr(value, "copy_to_host") else value


def _typed_argument(name, value):
    """Return the type of an argument, numba's or the translator's, and its NumPy value."""
    if isinstance(value, BoxedArray):
        kind, array = _typed_argument(name, value.array)
        class_name = "PixelMap" if isinstance(value, WindowedImages) else "TensorMap"
        return TensorMap(kind, value.box, class_name), value.of(array)
    value = _on_host(value)
    if isinstance(value, np.ndarray):
        value = np.asarray(value)  # a matrix would keep its two dimensions
        if value.nbytes > MAX_ARGUMENT_BYTES:
            raise LaunchError(f"the argument `{name}` has {value.nbytes:,} bytes, too many to simulate; pass less")
        return Array(_element_type(name, value), value.ndim, "global", name), value
    if isinstance(value, np.void) and value.dtype.names:
        record = np.array(value)  # an array without dimensions
        return Record((Array(_element_type(name, record), 0, "global", name),)), record
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
        f"the argument `{name}` is {with_article(value)}; a kernel takes NumPy arrays, device arrays, numbers and "
        "tuples of these alone"
    )


def _element_type(name, value):
    """Return numba's type of an argument's dtype; raise LaunchError for one that no kernel takes."""
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


def with_article(value):
    """Return a value's type name with its article, for a sentence."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
