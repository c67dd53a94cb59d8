"""Owners: one file per array package, with its ways to read, make and mark arrays.

No file imports its package: the class of an array identifies it. `owner_of(X)` returns the `Owner` of the class.
"""

from collections.abc import Callable

from labkit.arrays.owners.base import NeedsPreparation, Owner
from labkit.arrays.owners.cupy_arrays import CuPyArrays
from labkit.arrays.owners.labkit_arrays import SimulatedArrays, Views
from labkit.arrays.owners.numba_arrays import NumbaArrays
from labkit.arrays.owners.numpy_arrays import NumPyArrays
from labkit.arrays.owners.others import Others
from labkit.arrays.owners.torch_tensors import TensorsWithoutMemory, TorchTensors

OWNERS = (
    NumPyArrays(),
    TensorsWithoutMemory(),
    TorchTensors(),
    NumbaArrays(),
    SimulatedArrays(),
    Views(),
    CuPyArrays(),
    Others(),
)
_owners: dict[type, Owner] = {}  # by the class of arrays
SIGNATURES: dict[type, Callable] = {}  # the method `signature` of the same owners


def owner_of(X) -> Owner:
    """Return the owner of an array's class.

    Raise TypeError if X is no array.
    """
    return _owners.get(X.__class__) or _find_owner(X)


def signature_of(X) -> Callable:
    """Return the method `signature` of the array's owner; raise TypeError if X is no array."""
    return owner_of(X).signature


def _find_owner(X):
    kind = X.__class__
    owner = next((owner for owner in OWNERS if owner.owns(X)), None)
    if owner is None:
        raise TypeError(f"a {kind.__name__}, not an array: make it one with np.array or cuda.to_device")
    _owners[kind], SIGNATURES[kind] = owner, owner.signature
    return owner


__all__ = ["SIGNATURES", "NeedsPreparation", "Owner", "owner_of", "signature_of"]
