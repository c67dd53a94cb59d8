"""labkit's own arrays: device arrays of the simulator, and views of GPU memory."""

from labkit.arrays.owners.base import Owner
from labkit.arrays.owners.numba_arrays import NumbaArrays
from labkit.arrays.views import View
from labkit.simulator import host


class SimulatedArrays(Owner):
    """Owner of the simulator's device arrays. See `Owner`."""

    name = "the simulator"

    def owns(self, X) -> bool:
        return isinstance(X, host.DeviceArray)

    def address(self, X) -> int:
        return host.unwrap(X).ctypes.data


class Views(NumbaArrays):
    """Owner of labkit's views of GPU memory; its new arrays are numba's. See `Owner`."""

    name = "labkit"

    def owns(self, X) -> bool:
        return isinstance(X, View)

    def address(self, X) -> int:
        return X.address
