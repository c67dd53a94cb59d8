"""Element types and layouts of arrays of any package: NumPy, numba, torch, CuPy and others.

torch's bfloat16 and float8 tensors, and NumPy arrays of types of these names (ml_dtypes), count as the bits that
`labkit.formats` has for them. This module does not import torch: it recognises a tensor by its attributes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from labkit.arrays.addresses import VECTOR_BYTES, address_of
from labkit.arrays.element_types import BITS, dtype_of, have_same_type, type_name
from labkit.arrays.owners import owner_of
from labkit.arrays.views import View
from labkit.formats import TYPES, Format, format_named
from labkit.simulator.host import DeviceArray

TYPE_NAMES = {format: name for name, format in TYPES.items()}  # names of element types by format


def check_array(name: str, X, is_written: bool = False) -> None:
    """Raise TypeError or ValueError, with one sentence, if an operand is no array, or kernels must not use it."""
    try:
        owner = owner_of(X)
    except TypeError as error:
        raise TypeError(f"{name} is {error}") from None
    owner.check(name, X, is_written)


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape in words: "2 x 3"."""
    return " x ".join(map(str, shape)) or "a number"


def strides_of(X) -> tuple[int, ...]:
    """Return the strides of an array in bytes."""
    if hasattr(X, "data_ptr"):
        size = X.element_size()
        return tuple(n * size for n in X.stride())
    return tuple(X.strides)


def can_hold(X, format: Format) -> bool:
    """Return whether an array may hold numbers of a format: it has the format's type, or bits of that size."""
    name = type_name(X)
    return TYPES[name] == format if name in BITS else dtype_of(X) == format.dtype


def common_format(
    A,
    B,
    format: str | Format | None = None,
    names: Sequence[str] = "AB",
    formats: Sequence[Format] = tuple(TYPES.values()),
) -> Format:
    """Return the format of two operands: the named one, else the one of `formats` that their type declares.

    Raise TypeError if the operands hold another format, or different ones, or bits without a declared format. Raise
    ValueError if there is no format of that name.
    """
    held = f"{names[0]} holds {type_name(A)} and {names[1]} {type_name(B)}"
    if format is not None:
        wanted = format_named(format)
        if not (can_hold(A, wanted) and can_hold(B, wanted)):
            raise TypeError(f"{held}, but {wanted} is held by arrays of {wanted.dtype}: name another format, or none")
        return wanted
    types = {name: known for name, known in TYPES.items() if known in formats}
    first, second = (types.get(type_name(X)) for X in (A, B))
    bits = [known for known in types.values() if known.is_bits and can_hold(A, known) and can_hold(B, known)]
    if first is None and bits:
        raise TypeError(f'{held}, which may be bits of anything: say format="{bits[0]}" if they are of that')
    if first is None or first != second:
        *others, last = types
        cure = _to_float32(next((name for name, X in zip(names, (A, B)) if type_name(X) == "float64"), None), A)
        advice = "convert both to" if type_name(A) == type_name(B) else "give two arrays of one type,"
        raise TypeError(f"{held}: {advice} {', '.join(others)} or {last}{cure}")
    return first


def operand_format(name: str, X, format: str | Format | None, formats: Sequence[Format]) -> Format:
    """Return the format of one operand, one of `formats`: the named one, else the one that its type declares.

    Raise TypeError if the operand holds another format, or bits without a declared format. Raise ValueError if there is
    no format of that name, or it is none of `formats`.
    """
    supported = " or ".join(map(str, formats))
    if format is not None:
        wanted = format_named(format)
        if wanted not in formats:
            raise ValueError(f"{wanted} is not computed here: give {supported}")
        if not can_hold(X, wanted):
            raise TypeError(
                f"{name} holds {type_name(X)}, but {wanted} is held by arrays of {wanted.dtype}: convert it"
            )
        return wanted
    declared = TYPES.get(type_name(X))
    if declared is None or declared not in formats:
        bits = [known for known in formats if known.is_bits and can_hold(X, known)]
        hint = f', or say format="{bits[0]}" if these are bits of that' if bits else ""
        hint = hint or _to_float32(name if type_name(X) == "float64" else None, X)
        raise TypeError(f"{name} holds {type_name(X)}: give {supported}{hint}")
    return declared


def _to_float32(name, X) -> str:
    """Return the conversion of a float64 array, NumPy's default, to float32, in words; "" without such an array."""
    if name is None:
        return ""
    return f", as {name}.float() is" if hasattr(X, "data_ptr") else f", as {name}.astype(np.float32) is"


def check_same_type(arrays: Mapping[str, Any], first: str) -> None:
    """Raise TypeError or ValueError, with one sentence, if an array differs from the first in shape or type.

    Bits count as the format that the others hold.
    """
    like = arrays[first]
    for name, X in arrays.items():
        if tuple(X.shape) != tuple(like.shape):
            raise ValueError(f"{name} is {shape_text(X.shape)}, but {shape_text(like.shape)} beside {first}: change it")
        if not have_same_type(X, like):
            raise TypeError(f"{first} holds {type_name(like)} and {name} {type_name(X)}: make them alike")


def as_device_array(name: str, X, is_written: bool = False):
    """Return a device array; if it has only `__cuda_array_interface__`, as a numba array.

    Raise TypeError or ValueError if kernels must not use the array, it is on the host, or it is a negated or conjugated
    view.
    """
    check_array(name, X, is_written)
    owner = owner_of(X)
    if owner.is_on_host(X):
        cure = f"{name}.cuda()" if owner.name == "torch" else f"cuda.to_device({name}), after `from labkit import cuda`"
        raise TypeError(f"{name} is an array of the host, and a plan is for arrays of the device: take {cure}")
    if owner.resolve(X) is not X:
        raise ValueError(f"{name} is a negated or conjugated view, and a plan keeps no copy of it: pass {name}.clone()")
    return owner.as_array(X)


def as_view(X, owner=None):
    """Return a device array as a view of its memory, with a type that NumPy has.

    `owner` represents the memory in all views of this one (`View.owner`); if it is None, the array itself does.
    """
    if isinstance(X, DeviceArray) or (isinstance(X, View) and owner is None):
        return X
    X = owner_of(X).as_array(X)
    return View(X if owner is None else owner, tuple(X.shape), strides_of(X), dtype_of(X), address_of(X))


def layout(X) -> tuple:
    """Return the layout of an array of any package: shape, strides, type, and address modulo 16 bytes."""
    X = owner_of(X).as_array(X)
    return tuple(X.shape), strides_of(X), dtype_of(X), address_of(X) % VECTOR_BYTES


def order_of_axes(X) -> tuple[int, ...] | None:
    """Return the axes of an array from the largest stride to the smallest; None for C order, or a stride of 0."""
    strides = strides_of(X)
    if 0 in strides:
        return None
    axes = tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))
    return None if axes == tuple(range(len(axes))) else axes
