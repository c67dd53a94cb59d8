"""`from labkit import cuda`: the language and host API of numba.cuda, on a GPU or without one.

On a GPU its names are numba's own, and `jit` returns numba's own dispatcher. Without one, kernels run in the lockstep
simulator and arrays stay in host memory; numba-cuda need not be installed then. Ours are the further options of `jit`,
`on_gpu`, `specialise` (a copy of a kernel with other values of its module's constants), and `FindingWarning`, by which
the simulator tells of a fault.
"""

import inspect
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from labkit.cuda.constants import specialise as specialise
from labkit.cuda.simulated import FindingWarning as FindingWarning
from labkit.cuda.simulated import Kernel
from labkit.machine import device as _device
from labkit.simulator import host
from labkit.simulator.language import KNOWN
from labkit.simulator.seam import types as _types
from labkit.simulator.signatures import parse_signatures

if TYPE_CHECKING:
    from numba.cuda import *  # noqa: F403 - so that an editor completes the names below

    from labkit.simulator.host import device_array as device_array  # numba's has no types


def jit(func_or_sig=None, device=False, **options):
    """Make a kernel, or with `device=True` a function that kernels call; used as numba's `cuda.jit`.

    On a GPU the result is numba's dispatcher and accepts all of its options. Without one it is a `Kernel`, which runs
    in the simulator: a signature fixes the argument types there too and compiles it at once, and options of the
    compiler have no effect.

    `cluster=2` (or 4, or 8) makes clusters of that many blocks along x, which access one another's shared memory
    (`labkit.ptx`); the grid's size along x is a multiple of it. `early=True` lets a launch begin before the previous
    one has ended (`labkit.ptx.launches`). Both need compute capability 9.0. `cooperative=True` is for kernels whose
    blocks wait for one another: all blocks run at the same time, or the launch is refused.
    """
    if on_gpu():
        from labkit.cuda import compiling

        return compiling.jit(func_or_sig, device=device, **options)
    if inspect.isfunction(func_or_sig):
        return Kernel(func_or_sig, device, options)
    signatures = parse_signatures(func_or_sig)

    def decorate(function):
        kernel = Kernel(function, device, options, signatures)
        if signatures:
            from labkit.simulator.run import compile_declared

            compile_declared(kernel)
        return kernel

    return decorate


def on_gpu() -> bool:
    """Return whether kernels run on a GPU."""
    return _device.current().kind == "gpu"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if not on_gpu() and (value := simulated_name(name)) is not None:
        return value
    try:
        return import_module("numba.cuda.random") if name == "random" else getattr(_numba_cuda(), name)
    except AttributeError:
        raise AttributeError(f"cuda has no {name!r}, and neither has numba.cuda") from None


def simulated_name(name: str):
    """Return what a name of numba's `cuda` is without a GPU; None if it has no meaning there."""
    if name in host.__all__:
        return getattr(host, name)
    if name in _types.__all__:
        return getattr(_types, name)
    if name == "random":
        return import_module("labkit.simulator.random")
    if name in ("reduce", "Reduce"):
        return import_module("labkit.cuda.block_reduction").make_reduce_class(sys.modules[__name__])
    return host.KernelName(name) if name in _kernel_names() else None


def simulated_names() -> list[str]:
    """Return the names that `simulated_name` knows, and `jit`."""
    return sorted({*host.__all__, *_types.__all__, *_kernel_names(), "random", "reduce", "Reduce", "jit"})


def _kernel_names():
    """Return the names of `cuda` that have a meaning only in a kernel."""
    return {name.split(".")[1] for name in KNOWN if name.startswith("cuda.")} - {"types", *_types.__all__}


def __dir__():
    return sorted({*dir(_numba_cuda()), *simulated_names()})


def _numba_cuda():
    try:
        from numba import cuda
    except ImportError:  # a numba without `cuda`, and no numba-cuda
        return None
    return cuda
