"""Launches laid out as the driver's `cuLaunchKernelEx` reads them; imported only where numba-cuda is installed.

numba prepares each launch anew, which takes tens of microseconds, and knows nothing of tensor maps and early starts. A
`Packed` launch is prepared once. Its arguments stay where they are in memory, so that it can be run again and again,
also with other addresses in the place of the ones that it was packed with.
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


def takes_maps(kernel) -> bool:
    """Whether a compiled kernel of numba's has a tensor map among its arguments, or in tuples among them."""
    kinds = kernel.argument_types
    return any(isinstance(kind, TensorMapType) for kind, _ in leaves(kinds, kinds))


def leaves(kinds, values):
    """Each type with its value, in place of a tuple what it holds: so a kernel gets its arguments."""
    for kind, value in zip(kinds, values, strict=True):
        if isinstance(kind, types.BaseTuple):
            yield from leaves(kind, value)
        else:
            yield kind, value


def launch(kernel, early, arguments, grid, block, stream=0, shared_bytes=0):
    """As numba's `_Kernel.launch`, but tensor maps go to the kernel by value, and it may begin before the one before
    it has ended."""
    packed = Packed(kernel, grid, block, arguments, shared_bytes, early, stream)
    packed.run()
    for copy in packed.write_back:
        copy()


def compiled(dispatcher, arguments):
    """numba's kernel for arguments of these types."""
    if dispatcher.specialized:
        return next(iter(dispatcher.overloads.values()))
    kinds = tuple(_kind(dispatcher, value) for value in arguments)
    return dispatcher.overloads.get(kinds) or dispatcher.compile(kinds)


def _kind(dispatcher, value):
    """numba's type of an argument; of an array in no C order one of any strides, which numba does not always see."""
    if isinstance(value, tuple):
        return types.BaseTuple.from_types([_kind(dispatcher, each) for each in value], type(value))
    if not hasattr(value, "address"):
        return dispatcher.typeof_pyval(value)
    in_c_order = is_in_c_order(value.shape, value.strides, value.dtype.itemsize)
    return types.Array(from_dtype(value.dtype), len(value.shape), "C" if in_c_order else "A")


class Packed:
    """A launch of a compiled kernel.

    Attributes
    ----------
    cells
        The arrays with an `address` among the arguments, each with the `ctypes` integer that holds this address.
    maps
        The arrays under tensor maps, each with the driver's map; `move` gives it another address.
    write_back
        Functions that bring back arrays of the host, which numba copied to the GPU for this launch.
    """

    def __init__(self, kernel, grid, block, arguments, shared_bytes=0, early=False, stream=0):
        self.cells, self.maps, self.write_back = [], [], []
        self._kernel, self._kept, places = kernel, [], []
        for kind, value in leaves(kernel.argument_types, arguments):
            if isinstance(kind, TensorMapType):
                places.append(self._place_of_map(value))
                continue
            if isinstance(kind, types.Array) and hasattr(value, "address"):
                fields = self._fields(value)
            else:
                prepared = []
                kernel._prepare_args(kind, value, stream, self.write_back, prepared)
                fields = list(map(_in_memory, prepared))
            self._kept += fields
            places += map(ctypes.addressof, fields)
        self._places = (ctypes.c_void_p * len(places))(*places)
        self._parameters = ctypes.addressof(self._places)
        if hasattr(kernel, "make_ready"):  # on this GPU, too
            kernel.make_ready()
        self._function = binding.CUfunction(int(kernel._codelibrary.get_cufunc().handle))
        self._config = config = binding.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = _three(grid)
        config.blockDimX, config.blockDimY, config.blockDimZ = _three(block)
        config.sharedMemBytes = shared_bytes
        config.attrs = attributes = [EARLY] * bool(early) + [COOPERATIVE] * bool(kernel.cooperative)
        config.numAttrs = len(attributes)
        self.set_stream(int(getattr(stream, "handle", stream)))

    def set_stream(self, handle: int) -> None:
        """Runs on this stream from now on, by the driver's handle."""
        self._config.hStream = binding.CUstream(handle)

    def run(self) -> None:
        """Launches the kernel.

        Raises
        ------
        RuntimeError
            The driver refuses it.
        """
        (status,) = _launch(self._config, self._function, self._parameters, 0)
        if status != SUCCESS:
            raise RuntimeError(f"the driver refuses to launch {self._kernel.py_func.__name__}: {status.name}")

    def _fields(self, array):
        """numba's struct of an array: pointers to nothing, its size, the size of an element, and where it lies."""
        values = 0, 0, prod(array.shape), array.dtype.itemsize, array.address, *array.shape, *array.strides
        fields = list(map(ctypes.c_int64, values))
        self.cells.append((array, fields[4]))
        return fields

    def _place_of_map(self, tensor_map):
        room = ctypes.create_string_buffer(MAP_BYTES + MAP_ALIGNMENT)
        begin = -(-ctypes.addressof(room) // MAP_ALIGNMENT) * MAP_ALIGNMENT
        made = encode_map(tensor_map)  # named, or its memory would be free before it is copied
        ctypes.memmove(begin, int(made.getPtr()), MAP_BYTES)
        self._kept.append(room)
        self.maps.append((tensor_map.array, binding.CUtensorMap(begin)))
        return begin


_launch = binding.cuLaunchKernelEx


def move(tensor_map, address: int) -> None:
    """Lets a map of the driver describe memory from another address on.

    Raises
    ------
    RuntimeError
        The driver refuses it.
    """
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


def _three(sides) -> tuple[int, int, int]:
    sides = sides if isinstance(sides, tuple) else (sides,)
    return (*map(int, sides), 1, 1)[:3]


def _in_memory(value):
    """What numba prepared, as an object that has an address; plain numbers are as wide as a pointer."""
    if isinstance(value, bool):
        return ctypes.c_bool(value)
    return ctypes.c_int64(value) if isinstance(value, int) else value
