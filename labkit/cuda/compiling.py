"""numba's CUDA compiler as `labkit.cuda` uses it on a GPU; imported only where numba-cuda is installed."""

import sys
from functools import partial
from inspect import isfunction
from types import SimpleNamespace

import labkit.cuda.numpy_names  # noqa: F401 - before numba's own

# isort: split
from numba import cuda
from numba.cuda import cgutils, dispatcher, types
from numba.cuda.core import config
from numba.cuda.core.compiler_lock import global_compiler_lock
from numba.cuda.core.imputils import RefType, Registry, iternext_impl
from numba.cuda.core.targetconfig import ConfigStack
from numba.cuda.cudadrv.driver import binding, driver
from numba.cuda.descriptor import cuda_target
from numba.cuda.dispatcher import CUDADispatcher

from labkit import ptx
from labkit.cuda import packed
from labkit.ptx.intrinsics import load_machine_code
from labkit.ptx.tensor_copies.map_types import compiling_device_function
from labkit.rebinding import names_of, rebuilt

load_machine_code(ptx)

config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # small launches and host arrays are meant in a book
config.CUDA_WARN_ON_IMPLICIT_COPY = 0


def jit(func_or_sig=None, **options):
    """numba's `cuda.jit`, for functions whose `cuda` may be `labkit.cuda`, and for our options beside its own."""
    if isfunction(func_or_sig):
        return _dispatcher(func_or_sig, options)
    if func_or_sig is None:
        return lambda function: _dispatcher(function, options)
    theirs, ours = _apart(options)
    return lambda function: _adopted(cuda.jit(func_or_sig, **theirs)(bound(function)), ours)  # compiled now


def bound(function):
    """The function with `numba.cuda` for `labkit.cuda`, and numba's device functions for ours, which numba can type."""
    ours = sys.modules["labkit.cuda"]
    changes = {}
    for name, value in names_of(function).items():
        load_machine_code(value)
        if value is ours:
            changes[name] = cuda
        elif isinstance(value, ours.Kernel) and value.device:
            changes[name] = _dispatcher(value.py_func, {**value.options, "device": True})
    return rebuilt(function, changes) if changes else function


def ptx_text(kernel, argument_types, compute_capability: tuple[int, int], lineinfo: bool = False) -> str:
    """The PTX of a kernel, or of the Python function itself, for which no GPU is needed.

    Of its options the bounds of its launch count (`cuda.jit(launch_bounds=...)`), since they bound the registers.
    """
    function = bound(getattr(kernel, "py_func", kernel))
    options = getattr(kernel, "options", None) or getattr(kernel, "targetoptions", {})
    text, _ = cuda.compile(
        function,
        tuple(argument_types),
        device=False,
        abi="numba",
        cc=compute_capability,
        output="ptx",
        lineinfo=lineinfo,
        launch_bounds=options.get("launch_bounds"),
    )
    return text


def _device_to_compile_for(current=dispatcher.get_current_device):
    """For which GPU numba compiles a device function: its kernel's, whichever GPU is here, if any."""
    capability = getattr(ConfigStack.top_or_none(), "compute_capability", None)  # of what this thread compiles
    return SimpleNamespace(compute_capability=capability) if capability else current()


dispatcher.get_current_device = _device_to_compile_for


class Dispatcher(CUDADispatcher):
    """numba's dispatcher, which binds `cuda` when it first compiles: by then all names have their values.

    Its kernels may ask for all shared memory of a block, clusters of blocks, an early start and a
    cooperative launch, of which numba knows nothing. Several threads may compile it at once.

    Attributes
    ----------
    options
        All options, numba's and ours, as `labkit.cuda.Kernel` has them; those in `targetoptions` are numba's alone.
    """

    def __init__(self, py_func, targetoptions):
        super().__init__(py_func, _apart(targetoptions)[0])
        self.options = targetoptions

    def compile(self, sig):
        self.py_func = bound(self.py_func)
        return super().compile(sig)

    def compile_device(self, args, return_type=None):
        self.py_func = bound(self.py_func)
        with compiling_device_function():
            return super().compile_device(args, return_type)

    def add_overload(self, kernel, argtypes):
        prepare(kernel, **_apart(self.options)[1])  # before other threads find it
        super().add_overload(kernel, argtypes)

    def specialize(self, *args):
        self.py_func = bound(self.py_func)
        return _adopted(super().specialize(*args), _apart(self.options)[1])

    def _reduce_states(self):
        return {"py_func": self.py_func, "targetoptions": self.options}


def _apart(options):
    """numba's options, and ours."""
    ours = {name: options[name] for name in ("cluster", "early", "cooperative") if name in options}
    return {name: value for name, value in options.items() if name not in ours}, ours


def prepare(kernel, cluster=1, early=False, cooperative=False):
    """Gives a compiled kernel the attributes and the launch that numba has no option for; returns it.

    Launches may then ask for as much dynamic shared memory as a block can have, not only for 48 KB, run in clusters of
    so many blocks along x, begin early (`labkit.ptx.launches`), or only if all blocks run at once. (CUDA C++
    Programming Guide, compute capability 7.x, "Shared Memory": a kernel has to opt in to more; CUDA driver
    API, cuKernelSetAttribute.)
    """
    kernel.make_ready = partial(_make_ready, kernel, cluster, set())
    kernel.make_ready()
    if cooperative:
        kernel.cooperative = True  # numba's own name for it
    if early or packed.takes_maps(kernel):
        kernel.launch = partial(packed.launch, kernel, early)
    return kernel


def _make_ready(kernel, cluster, devices):
    """Sets the attributes of a kernel on the current GPU, if it is not among those where this was done."""
    function = kernel._codelibrary.get_cufunc()
    if function.device.id in devices:
        return
    names = binding.CUfunction_attribute
    most_bytes = function.device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN - function.attrs.shared
    attributes = {names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: most_bytes}
    if cluster > 1:
        attributes[names.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = cluster
        attributes[names.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] = 1
        attributes[names.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] = 1
    for name, value in attributes.items():
        driver.cuKernelSetAttribute(name, value, function.handle, binding.CUdevice(function.device.id))
    devices.add(function.device.id)


def _adopted(made, ours):
    """A dispatcher of numba's own class, whose kernels are compiled, as one of ours with these options."""
    made.__class__ = Dispatcher
    made.options = {**made.targetoptions, **ours}
    if not made.options["device"]:
        for kernel in made.overloads.values():
            prepare(kernel, **ours)
    return made


def _dispatcher(function, options):
    theirs, ours = _apart(options)
    made = Dispatcher(function, targetoptions={**cuda.jit(function, **theirs).targetoptions, **ours})
    if options.get("cache"):
        made.enable_caching()
    return made


# numba steps a `range` inside a branch of its own, and the compiler then sees neither that the variable
# grows by a constant nor that it is never negative: each pass of a plain loop over k pays some 30 integer
# instructions for it. Stepped without the branch, the same loop compiles to what a C++ loop does.

_ranges = Registry("labkit ranges")


def _step_without_branch(iterator_type, no_overflow):
    @_ranges.lower("iternext", iterator_type)
    @iternext_impl(RefType.BORROWED)
    def iternext(context, builder, sig, args, result):
        state = cgutils.create_struct_proxy(iterator_type)(context, builder, args[0])
        left, value = builder.load(state.count), builder.load(state.iter)
        result.set_valid(builder.icmp_signed(">", left, left.type(0)))
        result.yield_(value)
        builder.store(builder.sub(left, left.type(1), flags=["nsw"]), state.count)
        builder.store(builder.add(value, state.step, flags=[no_overflow]), state.iter)


_step_without_branch(types.range_iter32_type, "nsw")
_step_without_branch(types.range_iter64_type, "nsw")
_step_without_branch(types.unsigned_range_iter64_type, "nuw")
with global_compiler_lock:  # another thread may be compiling with numba alone
    cuda_target.target_context.refresh()  # numba's own come first, so that these replace them
    cuda_target.target_context.install_registry(_ranges)
