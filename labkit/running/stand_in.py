"""labkit's `cuda` under numba's name: `from numba import cuda` then gives the simulator.

Programs for numba_cuda_mlir, a package of the same language, get it too.
"""

import os
import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import numba

from labkit import cuda
from labkit.simulator import host, host_device

NAME = "numba.cuda"
DEVICES = host_device.DeviceList([host_device.SimulatedDevice()])


def simulated_cuda() -> ModuleType:
    """Return a module with the names of `numba.cuda` that the simulator has, and with a device, as on a GPU.

    It is a plain module, since the simulator reads no attribute of any other class.
    """
    module = ModuleType(NAME, "The simulator, in place of numba.cuda.")
    path: list[str] = []  # marks a package, whose submodules Python looks for
    vars(module).update(
        __path__=path,
        __all__=cuda.simulated_names(),
        __getattr__=_name_of_cuda,
        jit=cuda.jit,
        is_available=lambda: True,
        gpus=DEVICES,
        list_devices=lambda: DEVICES,
        detect=_detect,
    )
    return module


def _detect():
    """Print the device, as numba's `detect` lists GPUs."""
    print(f"Found 1 CUDA devices: {DEVICES[0].name}")
    return True


def _name_of_cuda(name):
    if name == "random":
        return import_module(f"{NAME}.random")
    if (value := None if name.startswith("__") else cuda.simulated_name(name)) is None:
        raise AttributeError(f"cuda.{name} does not exist on the simulator, or numba has no such name")
    return value


def names_for_kernels(name: str) -> ModuleType:
    """Return a module of functions to which only a kernel gives a meaning, such as `numba.cuda.libdevice`."""

    def kernel_name(field):
        if field.startswith("__"):
            raise AttributeError(field)
        return host.KernelName(f"{name.removeprefix(NAME + '.')}.{field}")

    module = ModuleType(name)
    vars(module)["__getattr__"] = kernel_name
    return module


class SubmoduleFinder(MetaPathFinder, Loader):
    """Python's import of the submodules of `numba.cuda`."""

    def find_spec(self, name, path=None, target=None):
        if name.startswith(f"{NAME}.") and name not in SUBMODULES:
            raise ModuleNotFoundError(f"labkit's simulator has nothing in place of {name}", name=name)
        return ModuleSpec(name, self) if name in SUBMODULES else None

    def create_module(self, spec):
        module = SUBMODULES[spec.name](spec.name)
        path: list[str] = []
        vars(module)["__path__"] = path
        return module

    def exec_module(self, module):
        """Do nothing: the module is complete."""


def install() -> None:
    """Put labkit's `cuda` in the place of numba's, and choose the simulator, for the rest of the process."""
    os.environ["LABKIT_DEVICE"] = "simulator"
    sys.meta_path.insert(0, SubmoduleFinder())
    _place(simulated_cuda())


def _place(module):
    sys.modules[NAME] = module
    setattr(numba, "cuda", module)  # noqa: B010 - which type checkers refuse as an assignment


@contextmanager
def _without_stand_in():
    """Give `numba.cuda` its own meaning again meanwhile, for code that reads numba's source."""
    module = sys.modules.pop(NAME)
    finders = [finder for finder in sys.meta_path if isinstance(finder, SubmoduleFinder)]
    for finder in finders:
        sys.meta_path.remove(finder)
    try:
        yield
    finally:
        sys.meta_path[:0] = finders
        _place(module)


def module_with(name: str, names) -> ModuleType:
    """Return a module that has these names."""
    module = ModuleType(name)
    vars(module).update({key: value for key, value in names.items() if not key.startswith("__")})
    return module


def _random(name):
    with _without_stand_in():
        return module_with(name, vars(import_module("labkit.simulator.random")))


def _vectorizers(name):
    from labkit.cuda import vectorized

    return module_with(name, {"CUDAVectorize": vectorized.Vectorize, "CUDAGUFuncVectorize": vectorized.GUVectorize})


SUBMODULES = {
    f"{NAME}.vectorizers": _vectorizers,
    f"{NAME}.random": _random,
    f"{NAME}.types": lambda name: module_with(name, vars(numba.types)),
    f"{NAME}.libdevice": names_for_kernels,
    f"{NAME}.fp16": names_for_kernels,
    f"{NAME}.bf16": names_for_kernels,
    f"{NAME}.cudadrv": lambda name: module_with(name, {}),
    f"{NAME}.cudadrv.devicearray": lambda name: module_with(
        name, {"DeviceNDArray": host.DeviceArray, "is_cuda_ndarray": host.is_cuda_array}
    ),
}
