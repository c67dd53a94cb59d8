"""Kernels without a GPU: the simulator runs them."""

import inspect
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import update_wrapper
from types import FunctionType

from labkit.cuda.inspection import Inspected
from labkit.simulator import host
from labkit.simulator.errors import LaunchError
from labkit.trace import Trace


class FindingWarning(UserWarning):
    """A finding of the simulator in a launch."""


warnings.filterwarnings("always", category=FindingWarning)  # warn again if a cell runs again


class Kernel(Inspected):
    """A kernel that runs in the simulator: `kernel[grid, block](*arguments)`."""

    def __init__(self, function: FunctionType, device: bool, options: dict, signatures: tuple = ()):
        self.py_func = function
        self.device = device
        self.options = options
        self.signatures = signatures
        self._launched = {}
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
        """Return a launch of one thread per task, in blocks of `tpb` threads (0 means 128); no launch for no tasks."""
        if ntasks == 0:
            return _no_launch
        threads = tpb or 128
        return self[-(-ntasks // threads), threads, stream, sharedmem]

    def specialize(self, *args) -> "Kernel":
        """Return the kernel: it is compiled for any arguments."""
        return self

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


def _no_launch(*arguments) -> None:
    """Launch nothing, like `forall` of no tasks."""


@dataclass(frozen=True)
class _Launch:
    kernel: Kernel
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    stream: object = 0
    shared_bytes: int = 0

    def __call__(self, *arguments):
        from labkit.simulator.in_place import simulate_in_place
        from labkit.simulator.raised import host_exception

        start = time.perf_counter()
        with launch_options(self.kernel.__name__) as options:
            launch = self.kernel, self.grid, self.block
            trace = simulate_in_place(*launch, *arguments, shared_bytes=self.shared_bytes, **options)
        self.kernel.note_launch(arguments)
        on_launch(trace, time.perf_counter() - start)
        if trace.raised and self.kernel.options.get("debug"):
            raise host_exception(trace.raised, trace.filename)


def _show(trace, time_s):
    """Print what the kernel printed, and warn of its errors at the line that launched it."""
    for line in trace.printed:
        print(line)
    for finding in trace.errors:
        warnings.warn(finding.message, FindingWarning, stacklevel=3)


def _show_copy(finding, store):
    """Warn of an error at the line that copied an array to the host."""
    if finding.severity == "error":
        warnings.warn(finding.message, FindingWarning, stacklevel=4)


@contextmanager
def _no_options(kernel):
    """Give a launch no options."""
    yield {}


# Gives the launch of a kernel options of `simulate_in_place`; `labkit run` shows the launch's progress meanwhile.
launch_options: Callable[[str], AbstractContextManager[dict]] = _no_options
# Receives each launch's trace and seconds; `labkit run` collects them.
on_launch: Callable[[Trace, float], None] = _show
host.on_copy = _show_copy
