"""numba's host API without a GPU: device arrays, streams and events, all kept in host memory.

Everything happens at once and in order, so a stream is always done. An event holds the host's clock: its times are the
simulator's, never a GPU's.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from labkit.simulator import host_device
from labkit.simulator.errors import LaunchError
from labkit.simulator.host_device import *  # noqa: F403 - its names are numba's, as are those of this module
from labkit.simulator.unwritten import LastStore, find_unwritten
from labkit.trace import Finding


def _ignore(finding, store):
    pass


# Receives what a copy to the host shows of the array, and the last launch that stored to it.
on_copy: Callable[[Finding, LastStore | None], None] = _ignore


class DeviceArray:
    """An array that only kernels may read and write; `copy_to_host` copies it back.

    Slices and other shapes share its memory, as numba's do. `blank` marks the elements that nothing has written yet;
    None if there are none. `stores` holds the last launch that stored to the array or to a view of it, if any.
    """

    def __init__(self, memory: np.ndarray, blank: np.ndarray | None = None, stores: list[LastStore] | None = None):
        self._memory = memory
        self._blank = blank
        self._stores = [] if stores is None else stores

    shape = property(lambda self: self._memory.shape)
    strides = property(lambda self: self._memory.strides)
    dtype = property(lambda self: self._memory.dtype)
    ndim = property(lambda self: self._memory.ndim)
    size = property(lambda self: self._memory.size)
    nbytes = property(lambda self: self._memory.nbytes)
    alloc_size = nbytes
    T = property(lambda self: self.transpose())

    def copy_to_host(self, ary: np.ndarray | None = None, stream=0) -> np.ndarray:
        """Copy to a new NumPy array, or to `ary` if given."""
        if ary is None:
            return self._read().copy()
        _check_same_shape_and_dtype(self, ary)
        np.copyto(ary, self._read())
        return ary

    def _read(self):
        """Return the elements for the host; tell of those that nothing has written."""
        if (blank := blank_mask(self)) is not None:
            store = self._stores[-1] if self._stores else None
            if finding := find_unwritten(blank, store):
                on_copy(finding, store)
        return self._memory

    def copy_to_device(self, ary, stream=0) -> None:
        """Overwrite with the elements of a NumPy or device array."""
        source = unwrap(ary)
        _check_same_shape_and_dtype(self, source)
        np.copyto(self._memory, source)
        self.fill_blank()

    def fill_blank(self, written=...) -> None:
        """Mark the elements that `written` selects as written."""
        if self._blank is not None:
            self._blank[written] = False

    def note_store(self, store: LastStore | None) -> None:
        """Keep what a launch stored, in place of the launch before."""
        if store:
            self._stores[:] = [store]

    def reshape(self, *shape, order: str = "C") -> "DeviceArray":
        if not np.may_share_memory(self._memory.reshape(*shape, order=order), self._memory) and self.size:
            raise LaunchError("this shape needs the elements in another order; copy the device array to the host")
        return self._view(lambda a: a.reshape(*shape, order=order))

    def ravel(self, order: str = "C", stream=0) -> "DeviceArray":
        return self.reshape(-1, order=order)

    def squeeze(self, axis=None, stream=0) -> "DeviceArray":
        return self._view(lambda a: a.squeeze(axis))

    def split(self, section: int, stream=0) -> Iterator["DeviceArray"]:
        """Return slices of `section` elements; the last may be shorter."""
        return (self[start : start + section] for start in range(0, self.size, section))

    def view(self, dtype) -> "DeviceArray":
        self.fill_blank()  # writes through the view are not tracked
        return DeviceArray(self._memory.view(dtype))

    def strided(self, shape, strides, dtype, begin_byte: int = 0) -> "DeviceArray":
        """Return the memory from byte `begin_byte` on with another shape, strides in bytes, and dtype."""
        self.fill_blank()  # writes through it are not tracked
        return DeviceArray(strided(self._memory, shape, strides, dtype, begin_byte))

    def transpose(self, axes=None) -> "DeviceArray":
        return self._view(lambda a: a.transpose(axes))

    def _view(self, change) -> "DeviceArray":
        return DeviceArray(change(self._memory), None if self._blank is None else change(self._blank), self._stores)

    def is_c_contiguous(self) -> bool:
        return self._memory.flags.c_contiguous

    def is_f_contiguous(self) -> bool:
        return self._memory.flags.f_contiguous

    def __getitem__(self, key):
        value = self._memory[key]
        return self._view(lambda a: a[key]) if isinstance(value, np.ndarray) else value

    def __setitem__(self, key, value):
        self._memory[key] = unwrap(value)
        self.fill_blank(key)

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("a device array becomes a NumPy array only by a copy; leave out copy=False")
        return self._read().astype(dtype or self.dtype)

    def __len__(self):
        return len(self._memory)

    def __repr__(self):
        return f"<device array of {self.dtype}, shape {self.shape}>"


def strided(array: np.ndarray, shape, strides, dtype, begin_byte: int = 0) -> np.ndarray:
    """Return an array's memory from byte `begin_byte` on with another shape, strides in bytes, and dtype."""
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    begin = array.ctypes.data + begin_byte - root.ctypes.data
    return np.ndarray(shape, dtype, root.ravel(order="K"), begin, strides)


def _check_same_shape_and_dtype(device, host):
    if not isinstance(host, np.ndarray) or host.shape != device.shape or host.dtype != device.dtype:
        found = f"{host.dtype} of shape {host.shape}" if isinstance(host, np.ndarray) else type(host).__name__
        raise LaunchError(
            f"a copy needs arrays alike: the device array is {device.dtype} of shape {device.shape}, "
            f"the other is {found}"
        )


def unwrap(value):
    """Return the NumPy array behind a device array; any other value as it is."""
    return value._memory if isinstance(value, DeviceArray) else value


def check_copyable(array: np.ndarray, name: str = "") -> None:
    """Raise LaunchError for a host array that numba does not copy to a GPU: masked, or with gaps between elements.

    `name` is the kernel's for it, if a launch copies it.
    """
    subject, name = f"`{name}`" if name else "the array", name or "array"
    if isinstance(array, np.ma.MaskedArray):
        raise LaunchError(f"{subject} is a masked array, which no kernel takes; pass `{name}.filled(0)`")
    without_repeats = array[tuple(slice(None) if stride else 0 for stride in array.strides)] if array.size else array
    if not without_repeats.flags.forc:
        raise LaunchError(
            f"the elements of {subject} do not lie side by side, and numba copies no such array to a GPU; pass "
            f"`np.ascontiguousarray({name})`, or a slice of a device array"
        )


def allocation_address(value: DeviceArray) -> int:
    """Return the address of the allocation that a device array is in."""
    memory = value._memory
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    return memory.ctypes.data


def blank_mask(value) -> np.ndarray | None:
    """Return a mask of the elements of a device array that nothing has written; None if there are none."""
    blank = value._blank if isinstance(value, DeviceArray) else None
    return blank if blank is not None and blank.any() else None


# --- memory ------------------------------------------------------------------------------------


def to_device(obj, stream=0, copy=True, to: DeviceArray | None = None) -> DeviceArray:
    """Make a device array with the elements of `obj`; with `copy=False`, only with its shape and type."""
    if isinstance(obj, DeviceArray):
        return obj
    source = np.asanyarray(obj)
    check_copyable(source)
    if to is None:
        to = device_array_like(source)
    if copy:
        to.copy_to_device(source)
    return to


def device_array(shape, dtype: DTypeLike = np.float64, strides=None, order="C", stream=0) -> DeviceArray:
    """Make a device array that nothing has written: floats hold NaN, so that a read of one shows.

    Integers have all bits 1, which is NaN where a kernel sees them as floats: a workspace is made of bytes.
    """
    memory = np.empty(shape, np.dtype(dtype), order=order)
    if memory.dtype.kind in "fc":
        memory.fill(np.nan)
    elif memory.dtype.kind in "iu":
        memory.fill(~memory.dtype.type(0))
    return DeviceArray(memory, np.ones(shape, np.bool_, order=order))


def device_array_like(ary, stream=0) -> DeviceArray:
    order = "F" if ary.ndim > 1 and unwrap(ary).flags.fnc else "C"
    return device_array(ary.shape, ary.dtype, order=order)


def mapped_array(shape, dtype=np.float64, strides=None, order="C", stream=0, **options) -> np.ndarray:
    """Make a plain NumPy array: kernels and the host share it, and without a GPU there is nothing to pin it for."""
    return np.empty(shape, np.dtype(dtype), order=order)


def mapped_array_like(ary, stream=0, **options) -> np.ndarray:
    return np.empty_like(ary)


managed_array = pinned_array = mapped_array
pinned_array_like = mapped_array_like


@contextmanager
def pinned(*arrays):
    """Pin nothing: host memory needs no pinning here, and no cleanup is deferred."""
    yield


defer_cleanup = pinned


@contextmanager
def mapped(*arrays, stream=0):
    """Make device arrays that share the memory of `arrays`."""
    shared = [DeviceArray(array) for array in arrays]
    yield shared[0] if len(shared) == 1 else shared


def as_cuda_array(obj, sync=True) -> DeviceArray:
    if not isinstance(obj, DeviceArray):
        raise TypeError(f"{type(obj).__name__} is not a device array; copy it with cuda.to_device")
    return obj


def is_cuda_array(obj) -> bool:
    return isinstance(obj, DeviceArray)


@dataclass(frozen=True)
class InOut:
    """A host array that a kernel reads and writes."""

    value: np.ndarray


class In(InOut):
    """A host array that a kernel reads; what the kernel writes to it is dropped."""


class Out(InOut):
    """A host array that a kernel writes."""


# --- order and time ----------------------------------------------------------------------------


class Stream:
    """A queue of work that is always done, because every launch returns when it has run."""

    def synchronize(self) -> None:
        pass

    @contextmanager
    def auto_synchronize(self):
        yield self

    def __cuda_stream__(self):
        return 0, 0  # the protocol's version, and the handle of the stream on which all is done

    def __repr__(self):
        return "<stream of the simulator>"


class Event:
    """A moment on the host's clock."""

    def __init__(self, timing: bool = True):
        self._time_s = None

    def record(self, stream=0) -> None:
        self._time_s = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def wait(self, stream=0) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, evtend: "Event") -> float:
        """Return milliseconds of the host's clock from this event to `evtend`: the simulator's speed, no GPU's."""
        if self._time_s is None or evtend._time_s is None:
            raise LaunchError("an event has no time before it was recorded: call its record() first")
        return (evtend._time_s - self._time_s) * 1e3


def stream() -> Stream:
    return Stream()


def external_stream(ptr: int) -> Stream:
    """Return the stream of another package: here all streams are alike."""
    return Stream()


default_stream = legacy_default_stream = per_thread_default_stream = stream


def event(timing: bool = True) -> Event:
    return Event(timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    return evtstart.elapsed_time(evtend)


def synchronize() -> None:
    """Do nothing: the device is always idle, and there is nothing to close or to profile."""


close = profile_start = profile_stop = synchronize


@contextmanager
def profiling():
    """Profile nothing meanwhile."""
    yield


__all__ = [
    *"""DeviceArray to_device device_array device_array_like pinned_array pinned_array_like mapped_array
    mapped_array_like managed_array pinned mapped defer_cleanup as_cuda_array is_cuda_array In Out InOut Stream
    Event stream external_stream default_stream legacy_default_stream per_thread_default_stream event
    event_elapsed_time synchronize close profile_start profile_stop profiling""".split(),
    *host_device.__all__,
]

# --- the names of the kernel language, outside a kernel ---

# Names that are reached through another one, as `cuda.threadIdx.x`.
FIELDS = {
    **dict.fromkeys(("threadIdx", "blockIdx", "blockDim", "gridDim"), "x y z"),
    **dict.fromkeys(("shared", "local"), "array"),
    "const": "array_like",
    "cg": "this_grid",
    "atomic": "add sub and_ or_ xor inc dec exch max min nanmax nanmin compare_and_swap cas",
}


class KernelName:
    """A name of the kernel language outside a kernel: it completes, and only a kernel gives it a meaning."""

    __module__ = "labkit.cuda"  # where it is found

    def __init__(self, name: str):
        self._name = self.__qualname__ = name  # as a function has it

    def __getattr__(self, field):
        if field in FIELDS.get(self._name, "").split():
            return KernelName(f"{self._name}.{field}")
        raise AttributeError(f"cuda.{self._name} has no {field!r}")

    def __dir__(self):
        return FIELDS.get(self._name, "").split()

    def __repr__(self):
        return f"<cuda.{self._name}, a name for use inside a kernel>"

    def _refuse_on_host(self, *args, **kwargs):
        raise LaunchError(f"cuda.{self._name} has a meaning only inside a kernel: use it in a function under @cuda.jit")

    __call__ = __index__ = __int__ = __float__ = __bool__ = _refuse_on_host
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse_on_host
    __floordiv__ = __mod__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse_on_host
