"""Whose arrays are taken: a file a package, which says how its arrays are read, made and watched.

Nothing of these packages is imported: an array is known by its class. `owner_of(X)` gives the `Owner` of its class.
"""

from collections.abc import Callable

from labkit.arrays.owners.base import NotPlain, Owner
from labkit.arrays.owners.cupy_arrays import CuPyArrays
from labkit.arrays.owners.numba_arrays import NumbaArrays
from labkit.arrays.owners.numpy_arrays import NumPyArrays
from labkit.arrays.owners.others import Others
from labkit.arrays.owners.simulated import SimulatedArrays
from labkit.arrays.owners.torch_tensors import TensorsWithoutMemory, TorchTensors
from labkit.arrays.owners.views import Views

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
_of_classes: dict[type, Owner] = {}  # as many as there are classes of arrays
SIGNATURES: dict[type, Callable] = {}  # the method of the same owners, found at once


def owner_of(X) -> Owner:
    """The owner of an array's class.

    Raises
    ------
    TypeError
        It is no array.
    """
    return _of_classes.get(X.__class__) or _found(X)


def signature_of(X) -> Callable:
    """The method `signature` of the array's owner; raises as `owner_of`."""
    return owner_of(X).signature


def _found(X):
    kind = X.__class__
    owner = next((one for one in OWNERS if one.owns(X)), None)
    if owner is None:
        raise TypeError(f"a {kind.__name__}, not an array: make it one with np.array or cuda.to_device")
    _of_classes[kind], SIGNATURES[kind] = owner, owner.signature
    return owner


__all__ = ["SIGNATURES", "NotPlain", "Owner", "owner_of", "signature_of"]
