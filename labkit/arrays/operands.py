"""Arrays as callers give them: NumPy's, or of the device, by numba, torch, CuPy and others.

torch's bfloat16 and float8 tensors, and NumPy arrays of types of these names (ml_dtypes), are taken as the bits that
`labkit.formats` has for them. Nothing of torch is imported: a tensor is known by what it can be asked.
"""

from collections.abc import Hashable, Sequence

import numpy as np

from labkit import cuda
from labkit.arrays.addresses import PIECE_BYTES, address_of
from labkit.arrays.views import View
from labkit.formats import BF16, E4M3, FP16, FP32, Format, format_named
from labkit.simulator.host import DeviceArray

DECLARED = {  # what an array holds, by the name of its type
    "float32": FP32,
    "float16": FP16,
    "bfloat16": BF16,
    "float8_e4m3fn": E4M3,
}
BITS = {"bfloat16": BF16.dtype, "float8_e4m3fn": E4M3.dtype}  # as what arrays are taken whose type NumPy lacks


def check_array(name: str, X) -> None:
    """Raises TypeError where an operand is no array, or a masked one, or a tensor that is not on the GPU."""
    if hasattr(X, "data_ptr"):
        if not X.is_cuda:
            raise TypeError(
                f"{name} is a tensor of the host: move it to the GPU with {name}.cuda(), or give {name}.numpy()"
            )
    elif not (all(hasattr(X, field) for field in ("shape", "dtype", "strides")) or cuda.is_cuda_array(X)):
        raise TypeError(f"{name} is a {type(X).__name__}, not an array: make it one with np.array or cuda.to_device")
    elif isinstance(X, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, and no mask is looked at: pass {name}.filled(0)")


def check_on_device(name: str, X) -> None:
    """Raises TypeError where an operand is no array of the device."""
    check_array(name, X)
    if isinstance(X, np.ndarray):
        raise TypeError(f"{name} is an array of the host, and a plan is for arrays of the device: use cuda.to_device")


def type_name(X) -> str:
    """The name of what an array holds: "float32", "bfloat16"."""
    return str(X.dtype).removeprefix("torch.")


def sides(shape: Sequence[int]) -> str:
    """A shape as sentences have it: "2 x 3"."""
    return " x ".join(map(str, shape)) or "a number"


def dtype_of(X) -> np.dtype:
    """NumPy's type of what an array holds, of bits where NumPy has none."""
    name = type_name(X)
    if name in BITS:
        return BITS[name]
    if isinstance(X.dtype, np.dtype):
        return X.dtype
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(f"V{X.element_size()}")  # nothing that is multiplied


def strides_of(X) -> tuple[int, ...]:
    """The strides of an array, in bytes."""
    if hasattr(X, "data_ptr"):
        size = X.element_size()
        return tuple(n * size for n in X.stride())
    return tuple(X.strides)


def holds(X, format: Format) -> bool:
    """Whether an array may hold numbers of a format: it is of the format's type, or of bits of that size."""
    name = type_name(X)
    return DECLARED[name] is format if name in BITS else dtype_of(X) == format.dtype


def format_of(
    A,
    B,
    format: str | Format | None = None,
    names: Sequence[str] = "AB",
    formats: Sequence[Format] = tuple(DECLARED.values()),
) -> Format:
    """The format of two operands: the one that is named, or else the one of `formats` that their type declares.

    Raises
    ------
    TypeError
        They hold something else than this format, or different things, or bits that nobody declared.
    ValueError
        There is no format of that name.
    """
    held = f"{names[0]} holds {type_name(A)} and {names[1]} {type_name(B)}"
    if format is not None:
        wanted = format_named(format)
        if not (holds(A, wanted) and holds(B, wanted)):
            raise TypeError(f"{held}, but {wanted} is held by arrays of {wanted.dtype}: name another format, or none")
        return wanted
    types = {name: one for name, one in DECLARED.items() if one in formats}
    declared = [types.get(type_name(X)) for X in (A, B)]
    bits = [one for name, one in types.items() if name in BITS and BITS[name] == dtype_of(A) == dtype_of(B)]
    if declared[0] is None and bits:
        raise TypeError(f'{held}, which may be bits of anything: say format="{bits[0]}" if they are of that')
    if None in declared or declared[0] is not declared[1]:
        *others, last = types
        raise TypeError(f"{held}: give two arrays of one type, {', '.join(others)} or {last}")
    return declared[0]


def format_held(name: str, X, format: str | Format | None, formats: Sequence[Format]) -> Format:
    """The format of one operand, one of `formats`: the one that is named, or else the one that its type declares.

    Raises
    ------
    TypeError
        It holds something else than this format, or bits that nobody declared.
    ValueError
        There is no format of that name, or it is none of `formats`.
    """
    known = " or ".join(map(str, formats))
    if format is not None:
        wanted = format_named(format)
        if wanted not in formats:
            raise ValueError(f"{wanted} is not computed here: give {known}")
        if not holds(X, wanted):
            raise TypeError(
                f"{name} holds {type_name(X)}, but {wanted} is held by arrays of {wanted.dtype}: convert it"
            )
        return wanted
    declared = DECLARED.get(type_name(X))
    if declared not in formats:
        bits = [str(one) for one in formats if str(one) in BITS and BITS[str(one)] == dtype_of(X)]
        hint = f', or say format="{bits[0]}" if these are bits of that' if bits else ""
        raise TypeError(f"{name} holds {type_name(X)}: give {known}{hint}")
    return declared


def taken(X, owner=None):
    """An array of the device as a view of its memory, of a type that NumPy has.

    `owner` stands for the memory in all views of this one (`View.owner`); if it is None, the array itself does.
    """
    if isinstance(X, DeviceArray) or (isinstance(X, View) and owner is None):
        return X
    return View(X if owner is None else owner, tuple(X.shape), strides_of(X), dtype_of(X), address_of(X))


def on_device(X, stream=0):
    """An array of the device with what X holds: X itself, or if it is one of the host a copy in C order."""
    if not isinstance(X, np.ndarray):
        return X if hasattr(X, "strides") or hasattr(X, "data_ptr") else cuda.as_cuda_array(X)
    return cuda.to_device(np.ascontiguousarray(X).view(dtype_of(X)), stream=stream)


def seen(X) -> tuple[Hashable, int]:
    """All that matters of an array of the device to kernels beside what it holds, and where it begins.

    The first is the same for arrays for which the same launches will do; it also tells how aligned they are.
    It is found quickly, so that it may differ for arrays of different makers.
    """
    kind = X.__class__
    if (look := _looks.get(kind)) is None:  # what an array can be asked depends on its class
        look = _looks[kind] = _look_of(X)
    return look(X)


_looks: dict = {}


def _look_of(X):
    if hasattr(X, "device_ctypes_pointer"):
        return _seen_of_numba
    if hasattr(X, "data_ptr"):
        return _seen_of_torch
    return _seen_of_other


def _seen_of_numba(X):
    address = X.device_ctypes_pointer.value or 0
    return (X.__class__, X.shape, X.strides, X.dtype, address % PIECE_BYTES), address


def _seen_of_torch(X):
    address = X.data_ptr()
    return (X.__class__, X.shape, X.stride(), X.dtype, address % PIECE_BYTES), address


def _seen_of_other(X):
    if not isinstance(X, DeviceArray | View):
        _wait_for_its_stream(X)
    address = address_of(X)
    return (X.__class__, tuple(X.shape), tuple(X.strides), X.dtype, address % PIECE_BYTES), address


def layout(X) -> tuple:
    """As `seen`, but the same whoever made the array."""
    return tuple(X.shape), strides_of(X), dtype_of(X), address_of(X) % PIECE_BYTES


def _wait_for_its_stream(X):
    """Waits for the stream on which an array is made, if it names one. (CUDA Array Interface, version 3.)"""
    stream = X.__cuda_array_interface__.get("stream")
    if stream is not None:
        cuda.external_stream(stream).synchronize()


def new_alike(X, shape: tuple[int, ...]):
    """A new array of the device, of the package that X is of, that holds what X does."""
    if hasattr(X, "new_empty"):  # torch's
        return X.new_empty(shape)
    if type(X).__module__.partition(".")[0] == "cupy":
        return type(X)(shape, X.dtype)
    return cuda.device_array(shape, X.dtype)
