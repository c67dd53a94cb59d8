"""What arrays hold and how they lie, whoever made them: NumPy, numba, torch, CuPy and others.

torch's bfloat16 and float8 tensors, and NumPy arrays of types of these names (ml_dtypes), are taken as the bits that
`labkit.formats` has for them. Nothing of torch is imported: a tensor is known by what it can be asked.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from labkit.arrays.addresses import PIECE_BYTES, address_of
from labkit.arrays.owners import owner_of
from labkit.arrays.views import View
from labkit.formats import BF16, E4M3, FP16, FP32, Format, format_named
from labkit.simulator.host import DeviceArray

DECLARED = {  # what an array holds, by the name of its type
    "float32": FP32,
    "float16": FP16,
    "bfloat16": BF16,
    "float8_e4m3fn": E4M3,
}
DECLARING = {format: name for name, format in DECLARED.items()}  # the type that says so
BITS = {"bfloat16": BF16.dtype, "float8_e4m3fn": E4M3.dtype}  # as what arrays are taken whose type NumPy lacks


def check_array(name: str, X, is_written: bool = False) -> None:
    """Raises TypeError or ValueError, in a sentence, where kernels must not take an operand, or it is no array."""
    try:
        owner = owner_of(X)
    except TypeError as error:
        raise TypeError(f"{name} is {error}") from None
    owner.check(name, X, is_written)


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
        cure = _to_float32(next((name for name, X in zip(names, (A, B)) if type_name(X) == "float64"), None), A)
        raise TypeError(f"{held}: give two arrays of one type, {', '.join(others)} or {last}{cure}")
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
        hint = hint or _to_float32(name if type_name(X) == "float64" else None, X)
        raise TypeError(f"{name} holds {type_name(X)}: give {known}{hint}")
    return declared


def _to_float32(name, X) -> str:
    """How an array of float64, NumPy's default, becomes one that is taken; "" if there is none."""
    if name is None:
        return ""
    return f", as {name}.float() is" if hasattr(X, "data_ptr") else f", as {name}.astype(np.float32) is"


def check_alike(arrays: Mapping[str, object], first: str) -> None:
    """Raises TypeError or ValueError, in a sentence, where arrays do not have the shape and the type of the first.

    Bits are taken as what the others hold.
    """
    like = arrays[first]
    for name, X in arrays.items():
        if tuple(X.shape) != tuple(like.shape):
            raise ValueError(f"{name} is {sides(X.shape)}, but {sides(like.shape)} beside {first}: change it")
        if dtype_of(X) != dtype_of(like):
            raise TypeError(f"{first} holds {type_name(like)} and {name} {type_name(X)}: make them alike")


def check_plain(name: str, X, is_written: bool = False):
    """An array of the device as it is, or as numba's if it only says where it is.

    Raises
    ------
    TypeError, ValueError
        Kernels must not take it, in a sentence; it is of the host, or its memory holds something else than it says.
    """
    check_array(name, X, is_written)
    owner = owner_of(X)
    if owner.is_on_host(X):
        cure = f"{name}.cuda()" if owner.name == "torch" else f"cuda.to_device({name}), after `from labkit import cuda`"
        raise TypeError(f"{name} is an array of the host, and a plan is for arrays of the device: take {cure}")
    if owner.resolved(X) is not X:
        raise ValueError(f"{name} is a negated or conjugated view, of which a plan keeps no copy: pass {name}.clone()")
    return owner.adopted(X)


def as_view(X, owner=None):
    """An array of the device as a view of its memory, of a type that NumPy has.

    `owner` stands for the memory in all views of this one (`View.owner`); if it is None, the array itself does.
    """
    if isinstance(X, DeviceArray) or (isinstance(X, View) and owner is None):
        return X
    X = owner_of(X).adopted(X)
    return View(X if owner is None else owner, tuple(X.shape), strides_of(X), dtype_of(X), address_of(X))


def layout(X) -> tuple:
    """How an array lies, whoever made it: shape, strides, type, and how far from a multiple of 16 bytes it begins."""
    X = owner_of(X).adopted(X)
    return tuple(X.shape), strides_of(X), dtype_of(X), address_of(X) % PIECE_BYTES


def order_of_axes(X) -> tuple[int, ...] | None:
    """The axes of an array from the largest stride to the smallest; None if that is C order."""
    strides = strides_of(X)
    axes = tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))
    return None if axes == tuple(range(len(axes))) else axes
