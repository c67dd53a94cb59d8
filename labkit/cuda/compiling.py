"""numba's CUDA compiler as `labkit.cuda` uses it on a GPU; imported only where numba-cuda is installed."""

import sys
from functools import partial
from inspect import isfunction
from types import SimpleNamespace

import labkit.cuda.numpy_names  # noqa: F401 - defines a name of NumPy that numba-cuda reads while it is loaded

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
from numba.cuda.typing.typeof import Purpose, typeof

from labkit import ptx
from labkit.cuda import packed  # launches in the driver's own form
from labkit.cuda.collector import collector_paused
from labkit.cuda.disk_cache import DiskCache
from labkit.ptx.intrinsics import load_gpu_code
from labkit.ptx.tensor_copies.map_types import compiling_device_function
from labkit.rebinding import names_used_by, rebuild

load_gpu_code(ptx)  # modules that tell numba how to compile our PTX instructions

config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a book uses small launches and host arrays on purpose
config.CUDA_WARN_ON_IMPLICIT_COPY = 0


def jit(func_or_sig=None, **options):
    """Apply numba's `cuda.jit` to a function whose `cuda` may be `labkit.cuda`, with further options of ours."""
    if isfunction(func_or_sig):
        return _dispatcher(func_or_sig, options)
    if func_or_sig is None:
        return lambda function: _dispatcher(function, options)
    numba_options, our_options = _split_options(options)
    compile_now = cuda.jit(func_or_sig, **numba_options)
    return lambda function: _adopt(compile_now(bind_cuda(function)), our_options)


def bind_cuda(function):
    """Replace `labkit.cuda` by `numba.cuda`, and our device functions by numba's, so that numba can type a function."""
    labkit_cuda = sys.modules["labkit.cuda"]
    changes = {}
    for name, value in names_used_by(function).items():
        load_gpu_code(value)  # of an instruction outside `labkit.ptx`; for any other value this does nothing
        if value is labkit_cuda:
            changes[name] = cuda
        elif isinstance(value, labkit_cuda.Kernel) and value.device:
            changes[name] = _dispatcher(value.py_func, {**value.options, "device": True})
    return rebuild(function, changes) if changes else function


def argument_types(arguments) -> tuple:
    """Return the types that a kernel is compiled for when it is launched with these arguments."""
    return tuple(typeof(argument, Purpose.argument) for argument in arguments)


def ptx_text(kernel, argument_types, compute_capability: tuple[int, int], lineinfo: bool = False) -> str:
    """Return the PTX of a kernel, or of a Python function. This needs no GPU.

    Of the kernel's options, only `launch_bounds` has an effect: it limits the registers.
    """
    function = bind_cuda(getattr(kernel, "py_func", kernel))
    options = getattr(kernel, "options", None) or getattr(kernel, "targetoptions", {})
    settings = {"device": False, "abi": "numba", "output": "ptx", "launch_bounds": options.get("launch_bounds")}
    return cuda.compile(function, tuple(argument_types), cc=compute_capability, lineinfo=lineinfo, **settings)[0]


def _device_to_compile_for(current=dispatcher.get_current_device):
    """Return the GPU for which numba compiles a device function: its kernel's, even without that GPU here."""
    capability = getattr(ConfigStack.top_or_none(), "compute_capability", None)  # of what this thread compiles
    return SimpleNamespace(compute_capability=capability) if capability else current()


dispatcher.get_current_device = _device_to_compile_for


class Dispatcher(CUDADispatcher):
    """numba's dispatcher, which binds `cuda` when it first compiles: by then all names have their values.

    Its kernels stay on disk for other processes (`disk_cache`). They may use all shared memory of a block, clusters of
    blocks, programmatic dependent launch (`early`) and cooperative launch, for which numba has no options. Several
    threads may compile it at the same time.

    Attributes
    ----------
    options
        All options, numba's and ours, as in `labkit.cuda.Kernel`; `targetoptions` has only numba's.
    """

    def __init__(self, py_func, targetoptions):
        super().__init__(py_func, _split_options(targetoptions)[0])
        self.options = targetoptions
        if not targetoptions.get("device"):
            self._cache = DiskCache(self)

    def compile(self, sig):
        self.py_func = bind_cuda(self.py_func)
        with collector_paused():
            return super().compile(sig)

    def compile_device(self, args, return_type=None):
        self.py_func = bind_cuda(self.py_func)
        with compiling_device_function():  # a tensor map comes by address there, and by value in a kernel
            return super().compile_device(args, return_type)

    def add_overload(self, kernel, argtypes):
        prepare(kernel, **_split_options(self.options)[1])  # before other threads find it
        super().add_overload(kernel, argtypes)

    def specialize(self, *args):
        self.py_func = bind_cuda(self.py_func)
        return _adopt(super().specialize(*args), _split_options(self.options)[1])

    def _reduce_states(self):
        return {"py_func": self.py_func, "targetoptions": self.options}


def _split_options(options):
    """Return numba's options, and ours."""
    our_options = {name: options[name] for name in ("cluster", "early", "cooperative") if name in options}
    return {name: value for name, value in options.items() if name not in our_options}, our_options


def prepare(kernel, cluster=1, early=False, cooperative=False):
    """Give a compiled kernel the attributes and the launch for which numba has no option, and return it.

    Launches may then use all dynamic shared memory of a block, not only 48 KB; run in clusters of `cluster` blocks
    along x; begin before the previous launch has ended (`early`, NVIDIA's programmatic dependent launch); or require
    that all blocks run at the same time. (CUDA C++ Programming Guide, compute capability 7.x, "Shared Memory": a kernel
    must opt in to more; CUDA driver API, cuKernelSetAttribute.)
    """
    kernel.make_ready = partial(_make_ready, kernel, cluster, set())  # `packed` calls it again, for other GPUs
    kernel.make_ready()
    if cooperative:
        kernel.cooperative = True  # numba's own name for it
    if early or packed.has_tensor_maps(kernel):
        kernel.launch = partial(packed.launch, kernel, early)
    return kernel


def _make_ready(kernel, cluster, devices):
    """Set the attributes of a kernel on the current GPU, unless this was done before; `devices` holds these GPUs."""
    function = kernel._codelibrary.get_cufunc()
    if function.device.id in devices:
        return
    names = binding.CUfunction_attribute
    max_bytes = function.device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN - function.attrs.shared
    attributes = {names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: max_bytes}
    if cluster > 1:
        attributes[names.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = cluster
        attributes[names.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] = 1
        attributes[names.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH] = 1
    for name, value in attributes.items():
        driver.cuKernelSetAttribute(name, value, function.handle, binding.CUdevice(function.device.id))
    devices.add(function.device.id)


def _adopt(dispatcher, our_options):
    """Turn a dispatcher of numba's class, whose kernels are compiled, into one of ours with these options."""
    dispatcher.__class__ = Dispatcher
    dispatcher.options = {**dispatcher.targetoptions, **our_options}
    if not dispatcher.options["device"]:
        for kernel in dispatcher.overloads.values():
            prepare(kernel, **our_options)
    return dispatcher


def _dispatcher(function, options):
    numba_options, our_options = _split_options(options)
    target_options = {**cuda.jit(function, **numba_options).targetoptions, **our_options}
    dispatcher = Dispatcher(function, targetoptions=target_options)
    if options.get("cache"):
        dispatcher.enable_caching()
    return dispatcher


# numba steps a `range` in a branch. The compiler then sees neither that the variable grows by a constant nor that it is
# never negative, and each iteration of a plain loop over k costs some 30 integer instructions more. Without the branch,
# the loop compiles like a C++ loop.

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
    cuda_target.target_context.refresh()  # load numba's own first, so that ours replace them
    cuda_target.target_context.install_registry(_ranges)
