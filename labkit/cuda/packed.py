"""Launches in the form that the driver's `cuLaunchKernelEx` reads; imported only where numba-cuda is installed.

numba prepares each launch anew, which takes tens of microseconds, and has neither tensor maps nor programmatic
dependent launch (`early`). A `PackedLaunch` is prepared once. Its arguments keep their place in memory, so that it can
run many times, also with other addresses of arrays.
"""

import ctypes
from math import prod

from numba.cuda import types
from numba.cuda.cudadrv.driver import binding
from numba.cuda.np.numpy_support import from_dtype

from labkit.layout import is_in_c_order
from labkit.ptx.tensor_copies.map_types import TensorMapType, encode_map

MAP_BYTES, MAP_ALIGNMENT = 128, 64
SUCCESS = binding.CUresult.CUDA_SUCCESS


def has_tensor_maps(kernel) -> bool:
    """Return whether a compiled kernel of numba's has a tensor map among its arguments, or in tuples among them."""
    kinds = kernel.argument_types
    return any(isinstance(kind, TensorMapType) for kind, _ in flatten_arguments(kinds, kinds))


def flatten_arguments(kinds, values):
    """Yield each type with its value; tuples are flattened, as in a kernel's parameters."""
    for kind, value in zip(kinds, values, strict=True):
        if isinstance(kind, types.BaseTuple):
            yield from flatten_arguments(kind, value)
        else:
            yield kind, value


def launch(kernel, early, arguments, grid, block, stream=0, shared_bytes=0):
    """Launch like numba's `_Kernel.launch`; tensor maps pass by value, and `early` overlaps the previous launch."""
    packed = PackedLaunch(kernel, grid, block, arguments, shared_bytes, early, stream)
    packed.run()
    for copy in packed.write_back:
        copy()


def get_compiled(dispatcher, arguments):
    """Return numba's kernel for arguments of these types, and compile it if needed."""
    if dispatcher.specialized:
        return next(iter(dispatcher.overloads.values()))
    kinds = tuple(_kind(dispatcher, value) for value in arguments)
    return dispatcher.overloads.get(kinds) or dispatcher.compile(kinds)


def _kind(dispatcher, value):
    """Return numba's type of an argument; for an array not in C order, which numba may miss, a type for any strides."""
    if isinstance(value, tuple):
        return types.BaseTuple.from_types([_kind(dispatcher, item) for item in value], type(value))
    if not hasattr(value, "address"):
        return dispatcher.typeof_pyval(value)
    in_c_order = is_in_c_order(value.shape, value.strides, value.dtype.itemsize)
    return types.Array(from_dtype(value.dtype), len(value.shape), "C" if in_c_order else "A")


class PackedLaunch:
    """A launch of a compiled kernel.

    Attributes
    ----------
    cells
        Arrays with an `address` among the arguments, each with the `ctypes` integer that holds this address.
    maps
        Arrays of tensor maps, each with the driver's map; `move_map` gives it another address.
    write_back
        Functions that copy back host arrays, which numba copied to the GPU for this launch.
    """

    def __init__(self, kernel, grid, block, arguments, shared_bytes=0, early=False, stream=0):
        self.cells, self.maps, self.write_back = [], [], []
        self._kernel, self._buffers, places = kernel, [], []
        for kind, value in flatten_arguments(kernel.argument_types, arguments):
            if isinstance(kind, TensorMapType):
                places.append(self._encode_map(value))
                continue
            if isinstance(kind, types.Array) and hasattr(value, "address"):
                fields = self._fields(value)
            else:
                prepared = []
                kernel._prepare_args(kind, value, stream, self.write_back, prepared)
                fields = list(map(_as_ctypes, prepared))
            self._buffers += fields
            places += map(ctypes.addressof, fields)
        self._places = (ctypes.c_void_p * len(places))(*places)
        self._parameters = ctypes.addressof(self._places)
        if hasattr(kernel, "make_ready"):  # on this GPU, too
            kernel.make_ready()
        self._function = binding.CUfunction(int(kernel._codelibrary.get_cufunc().handle))
        self._config = config = binding.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = _three_sizes(grid)
        config.blockDimX, config.blockDimY, config.blockDimZ = _three_sizes(block)
        config.sharedMemBytes = shared_bytes
        config.attrs = attributes = [EARLY] * bool(early) + [COOPERATIVE] * bool(kernel.cooperative)
        config.numAttrs = len(attributes)
        self.set_stream(int(getattr(stream, "handle", stream)))

    def set_stream(self, handle: int) -> None:
        """Set the stream of later runs, by the driver's handle."""
        self._config.hStream = binding.CUstream(handle)

    def run(self) -> None:
        """Launch the kernel; raise RuntimeError if the driver refuses it."""
        (status,) = _launch(self._config, self._function, self._parameters, 0)
        if status != SUCCESS:
            raise RuntimeError(f"the driver refuses to launch {self._kernel.py_func.__name__}: {status.name}")

    def _fields(self, array):
        """Return numba's struct of an array: two null pointers, element count and size, address, shape, strides."""
        values = 0, 0, prod(array.shape), array.dtype.itemsize, array.address, *array.shape, *array.strides
        fields = list(map(ctypes.c_int64, values))
        self.cells.append((array, fields[4]))
        return fields

    def _encode_map(self, tensor_map):
        """Copy the driver's form of a tensor map to aligned memory, and return its address."""
        buffer = ctypes.create_string_buffer(MAP_BYTES + MAP_ALIGNMENT)
        begin = -(-ctypes.addressof(buffer) // MAP_ALIGNMENT) * MAP_ALIGNMENT
        driver_map = encode_map(tensor_map)  # a name keeps its memory alive during the copy
        ctypes.memmove(begin, int(driver_map.getPtr()), MAP_BYTES)
        self._buffers.append(buffer)
        self.maps.append((tensor_map.array, binding.CUtensorMap(begin)))
        return begin


_launch = binding.cuLaunchKernelEx


def move_map(tensor_map, address: int) -> None:
    """Give a map of the driver another address; raise RuntimeError if the driver refuses it."""
    (status,) = binding.cuTensorMapReplaceAddress(tensor_map, address)
    if status != SUCCESS:
        raise RuntimeError(f"the driver refuses to move a tensor map to {address:#x}: {status.name}")


def _attribute(name, field):
    attribute = binding.CUlaunchAttribute()
    attribute.id = getattr(binding.CUlaunchAttributeID, f"CU_LAUNCH_ATTRIBUTE_{name}")
    setattr(attribute.value, field, 1)
    return attribute


EARLY = _attribute("PROGRAMMATIC_STREAM_SERIALIZATION", "programmaticStreamSerializationAllowed")
COOPERATIVE = _attribute("COOPERATIVE", "cooperative")


def _three_sizes(sizes) -> tuple[int, int, int]:
    return (*map(int, sizes if isinstance(sizes, tuple) else (sizes,)), 1, 1)[:3]


def _as_ctypes(value):
    """Return a prepared argument as an object with an address; plain numbers are as wide as a pointer."""
    if isinstance(value, bool):
        return ctypes.c_bool(value)
    return ctypes.c_int64(value) if isinstance(value, int) else value
