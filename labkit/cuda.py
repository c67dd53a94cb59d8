"""`from labkit import cuda`: the language and host API of numba.cuda, on a GPU or without one.

On a GPU every name is numba's own, and `jit` gives numba's own dispatcher. Without one, kernels run in
the lockstep simulator and arrays stay in host memory; numba-cuda need not be installed then.
"""

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import update_wrapper
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING

from labkit import device as _device
from labkit.gpus import gpu as published
from labkit.rebinding import names_of, rebuilt, recomputed
from labkit.simulator import host
from labkit.simulator.caches import resident_blocks
from labkit.simulator.errors import LaunchError
from labkit.simulator.language import KNOWN
from labkit.simulator.signatures import parsed

if TYPE_CHECKING:
    from numba.cuda import *  # noqa: F403 - so that an editor completes the names below


class FindingWarning(UserWarning):
    """What the simulator found wrong in a launch."""


warnings.filterwarnings("always", category=FindingWarning)  # a cell that is run again warns again


def jit(func_or_sig=None, device=False, **options):
    """Make a kernel, or with `device=True` a function that kernels call; used as numba's `cuda.jit`.

    On a GPU the result is numba's dispatcher and takes all of its options. Without one it is a `Kernel`,
    which runs in the simulator: a signature fixes the types of its arguments there too and compiles it at once, and
    options that steer the compiler have no meaning.

    `cluster=2` (or 4, or 8) makes clusters of so many blocks, neighbours along x, which reach one another's shared
    memory (`labkit.ptx`); the grid has a multiple of that along x. `early=True` lets launches begin before the one
    before them has ended (`labkit.ptx.launches`). Both need compute capability 9.0. `cooperative=True` is for kernels
    whose blocks wait for one another: all of them run at once, or the launch is refused.
    """
    if on_gpu():
        from labkit import compiler

        return compiler.jit(func_or_sig, device=device, **options)
    if inspect.isfunction(func_or_sig):
        return Kernel(func_or_sig, device, options)
    signatures = parsed(func_or_sig)

    def compiled(function):
        kernel = Kernel(function, device, options, signatures)
        if signatures:
            from labkit.simulator.run import compile_declared

            compile_declared(kernel)
        return kernel

    return compiled


def on_gpu() -> bool:
    """Whether kernels run on a GPU."""
    return _device.current().kind == "gpu"


# --- without a GPU -----------------------------------------------------------------------------


class Kernel:
    """A kernel that runs in the simulator: `kernel[grid, block](*arguments)`."""

    def __init__(self, function: FunctionType, device: bool, options: dict, signatures: tuple = ()):
        self.py_func = function
        self.device = device
        self.options = options
        self.signatures = signatures
        update_wrapper(self, function)

    def __getitem__(self, configuration) -> "_Launch":
        if self.device:
            raise LaunchError(f"{self.__name__} is a device function: call it from a kernel, not with [...]")
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise LaunchError(
                f"{self.__name__}[...] needs the blocks of the grid and the threads of a block: "
                f"write {self.__name__}[grid, block]({self._arguments()})"
            )
        return _Launch(self, *configuration)

    def configure(self, griddim, blockdim, stream=0, sharedmem=0) -> "_Launch":
        return self[griddim, blockdim, stream, sharedmem]

    def forall(self, ntasks: int, tpb: int = 0, stream=0, sharedmem: int = 0) -> Callable[..., None]:
        """A launch of one thread a task, in blocks of `tpb` threads (128 if that is 0); none for no tasks."""
        if ntasks == 0:
            return _no_launch
        threads = tpb or 128
        return self[-(-ntasks // threads), threads, stream, sharedmem]

    @property
    def overloads(self) -> dict:
        """For each signature that the kernel was declared with, what numba tells of its compiled form."""
        return {signature: Overload(self, signature) for signature in self.signatures}

    def __call__(self, *args):
        if self.device:
            raise LaunchError(f"{self.__name__} is a device function: call it from a kernel, not from here")
        raise LaunchError(
            f"{self.__name__} was called without its grid and block: "
            f"write {self.__name__}[grid, block]({self._arguments()})"
        )

    def __repr__(self):
        return f"<{'device function' if self.device else 'kernel'} {self.__name__}, runs in the simulator>"

    def _arguments(self):
        return ", ".join(inspect.signature(self.py_func).parameters)


@dataclass(frozen=True)
class Overload:
    """A kernel for arguments of given types."""

    kernel: Kernel
    signature: tuple

    @property
    def cooperative(self) -> bool:
        """Whether the kernel waits for its whole grid."""
        return self._program().cooperative

    def max_cooperative_grid_blocks(self, blockdim: int | tuple[int, ...], dynsmemsize: int = 0) -> int:
        """How many blocks of that size the modelled GPU holds at once, as many as a cooperative grid may have."""
        gpu = published(host.MODELLED_GPU)
        threads = math.prod(blockdim) if isinstance(blockdim, tuple) else blockdim
        return gpu.sms * resident_blocks(gpu, threads, self._program().static_shared_bytes + dynsmemsize)

    def _program(self):
        from labkit.simulator.run import program_for

        return program_for(self.kernel.py_func, self.signature)


def _no_launch(*arguments) -> None:
    """Runs nothing, as `forall` of no tasks does."""


@dataclass(frozen=True)
class _Launch:
    kernel: Kernel
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    stream: object = 0
    shared_bytes: int = 0

    def __call__(self, *arguments):
        from labkit.simulator.in_place import simulate_in_place

        trace = simulate_in_place(self.kernel, self.grid, self.block, *arguments, shared_bytes=self.shared_bytes)
        for line in trace.printed:
            print(line)
        for finding in trace.errors:
            warnings.warn(finding.message, FindingWarning, stacklevel=2)


# --- copies with other constants ---------------------------------------------------------------


def specialise(kernel, **constants):
    """A copy of a kernel or function with new values for module constants or closure variables.

    numba freezes such a value when it first compiles, so setting the global later changes nothing. Device
    functions that the kernel calls and that use the same names are copied too. What a function's file computes
    from these constants, such as `THREADS = TILE * TILE`, is computed anew, unless it is given as well. All other
    names keep the values they have now.

    Parameters
    ----------
    kernel
        What `cuda.jit` returned, or a plain function.
    **constants
        The new values, by name.

    Raises
    ------
    TypeError
        What was given is no kernel and no function.
    NameError
        Neither the kernel nor a function it calls uses a constant of that name.

    Examples
    --------
    >>> small = specialise(tiled, TILE=8)
    """
    if not isinstance(getattr(kernel, "py_func", kernel), FunctionType):
        raise TypeError(f"specialise takes a kernel or a function, not {kernel!r}")
    used = set()
    copy = _specialised(kernel, constants, used)
    if unknown := sorted(constants.keys() - used):
        function = getattr(kernel, "py_func", kernel)
        known = [n for n, v in names_of(function).items() if isinstance(v, int | float | str | tuple)]
        raise NameError(
            f"{function.__name__} uses no constant named {' or '.join(unknown)}; "
            + (f"it uses {', '.join(sorted(known))}" if known else "it uses none")
        )
    return copy


def _specialised(kernel, constants, used):
    function = getattr(kernel, "py_func", kernel)
    names = names_of(function)
    values, sources = recomputed(function, constants)
    used |= constants.keys() & (names.keys() | sources)
    changes = {name: value for name, value in values.items() if name in names}
    for name, value in names.items():
        if name not in constants and hasattr(value, "py_func") and value is not kernel:
            helper = _specialised(value, constants, used)
            if helper is not value:
                changes[name] = helper
    if not changes:
        return kernel
    copy = rebuilt(function, {**values, **changes})  # all, for a copy of this copy
    if isinstance(kernel, Kernel):
        return Kernel(copy, kernel.device, kernel.options, kernel.signatures)
    if kernel is not function:
        return type(kernel)(copy, targetoptions=getattr(kernel, "options", kernel.targetoptions))
    return copy


# --- names -------------------------------------------------------------------------------------


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if not on_gpu():
        if name in host.__all__:
            return getattr(host, name)
        if name == "random":
            return import_module("labkit.simulator.random")
        if name in ("reduce", "Reduce"):
            return import_module("labkit.reduction").Reduce
        if name in _language():
            return host.KernelName(name)
    try:
        return import_module("numba.cuda.random") if name == "random" else getattr(_theirs(), name)
    except AttributeError:
        raise AttributeError(f"cuda has no {name!r}, and neither has numba.cuda") from None


def _language():
    """The names of `cuda` that have a meaning in a kernel alone."""
    return {name.split(".")[1] for name in KNOWN if name.startswith("cuda.")} - {"types"}


def __dir__():
    return sorted({*dir(_theirs()), *host.__all__, *_language(), "jit"})


def _theirs():
    try:
        from numba import cuda
    except ImportError:  # a numba that no longer carries it, and no numba-cuda
        return None
    return cuda
