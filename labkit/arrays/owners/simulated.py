"""Device arrays of the simulator."""

from labkit.arrays.addresses import VECTOR_BYTES
from labkit.arrays.element_types import numpy_type
from labkit.arrays.owners.base import Owner
from labkit.simulator import host


class SimulatedArrays(Owner):
    """Owner of the simulator's device arrays. See `Owner`."""

    name = "the simulator"

    def owns(self, X) -> bool:
        return isinstance(X, host.DeviceArray)

    def signature(self, X):
        address = host.unwrap(X).ctypes.data
        return (X.__class__, X.shape, X.strides, X.dtype, address % VECTOR_BYTES), address

    def empty(self, like, shape, type_name=None):
        return host.device_array(shape, like.dtype if type_name is None else numpy_type(type_name))
