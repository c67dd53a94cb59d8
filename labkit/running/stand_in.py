"""labkit's `cuda` under other packages' names: `from numba import cuda` then gives the simulator.

So does `from numba_cuda_mlir import cuda`, whether or not that package is installed.
"""

import os
import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

from labkit.running import mlir
from labkit.running.modules import module_with, names_for_kernels, no_such_name, simulated_cuda
from labkit.simulator import host
from labkit.simulator.seam import package as numba

NAME = "numba.cuda"
PACKAGES = NAME, mlir.NAME  # all of whose modules are from here


class SubmoduleFinder(MetaPathFinder, Loader):
    """Python's import of the modules of other packages that have a stand-in."""

    def find_spec(self, name, path=None, target=None):
        __tracebackhide__ = True  # by pytest
        if not f"{name}.".startswith(tuple(f"{package}." for package in PACKAGES)):
            return None
        if name not in MODULES:
            package, _, field = name.rpartition(".")
            if package.endswith("cuda"):  # without `name=`: `from numba.cuda import ...` shows this message
                raise ModuleNotFoundError(no_such_name(field))
            raise ModuleNotFoundError(f"labkit's simulator has nothing in place of {name}", name=name)
        return ModuleSpec(name, self)

    def create_module(self, spec):
        module = MODULES[spec.name](spec.name)
        path: list[str] = []
        vars(module)["__path__"] = path
        return module

    def exec_module(self, module):
        """Do nothing: the module is complete."""


def install() -> None:
    """Put labkit's `cuda` in the place of numba's, and choose the simulator, for the rest of the process."""
    os.environ["LABKIT_DEVICE"] = "simulator"
    if sys.modules.get("numba") is not numba:  # which is not installed
        sys.modules.update({"numba": numba, "numba.types": numba.types})
    sys.meta_path.insert(0, SubmoduleFinder())
    _place(simulated_cuda(NAME))


def _place(module):
    sys.modules[NAME] = module
    setattr(numba, "cuda", module)  # noqa: B010 - which type checkers refuse as an assignment


@contextmanager
def _without_stand_in():
    """Restore numba's own `numba.cuda` within the context, for code that reads numba's source."""
    placed = {name: sys.modules.pop(name) for name in (NAME, *MODULES) if name in sys.modules}
    finders = [finder for finder in sys.meta_path if isinstance(finder, SubmoduleFinder)]
    for finder in finders:
        sys.meta_path.remove(finder)
    try:
        yield
    finally:
        sys.meta_path[:0] = finders
        sys.modules.update(placed)
        _place(placed[NAME])


def _random(name):
    with _without_stand_in():
        return module_with(name, vars(import_module("labkit.simulator.random")))


def _vectorizers(name):
    from labkit.cuda import vectorized

    return module_with(name, {"CUDAVectorize": vectorized.Vectorize, "CUDAGUFuncVectorize": vectorized.GUVectorize})


def _cudadrv(name):
    def submodule(field):
        if f"{name}.{field}" in MODULES:
            return import_module(f"{name}.{field}")
        raise AttributeError(f"labkit's simulator has nothing in place of {name}.{field}")

    return module_with(name, {}, submodule)


MODULES = {
    f"{NAME}.vectorizers": _vectorizers,
    f"{NAME}.random": _random,
    f"{NAME}.types": lambda name: module_with(name, vars(numba.types)),
    f"{NAME}.libdevice": names_for_kernels,
    f"{NAME}.fp16": names_for_kernels,
    f"{NAME}.bf16": names_for_kernels,
    f"{NAME}.cudadrv": _cudadrv,
    f"{NAME}.cudadrv.devicearray": lambda name: module_with(
        name, {"DeviceNDArray": host.DeviceArray, "is_cuda_ndarray": host.is_cuda_array}
    ),
    **mlir.MODULES,
}
