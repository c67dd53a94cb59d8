"""Stand-ins for a GPU package's modules: names that the simulator has, and names that it refuses."""

from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType

from labkit import cuda
from labkit.simulator import host, host_device
from labkit.simulator.errors import LaunchError

SUBMODULES = "random", "types", "cudadrv", "vectorizers"  # that are read before they are imported
# Names of `cuda` that the simulator lacks: importing one works, using it raises an error.
LACKED = """compile compile_all compile_for_current_device compile_ptx compile_ptx_for_current_device declare_device
    from_cuda_array_interface open_ipc_array IpcHandle set_memory_manager BaseCUDAMemoryManager GetIpcHandleMixin
    HostOnlyCUDAMemoryManager MemoryPointer MappedMemory PinnedMemory LinkableCode Archive CUSource Cubin Fatbin LTOIR
    Object PTXSource""".split()

DEVICES = host_device.DeviceList([host_device.SimulatedDevice()])


def simulated_cuda(name: str) -> ModuleType:
    """Return a module with the names of numba's `cuda` that the simulator has, and with a device, as on a GPU.

    It is a plain module, since the simulator reads no attribute of any other class.
    """
    module = ModuleType(name, f"The simulator, in place of {name}.")

    def name_of_cuda(field):
        if field in SUBMODULES:
            return import_module(f"{name}.{field}")
        if field in LACKED:
            return absent(f"{name}.{field}")
        if (value := None if field.startswith("__") else cuda.simulated_name(field)) is None:
            raise AttributeError(no_such_name(field))
        return value

    path: list[str] = []  # marks a package, whose submodules Python looks for
    vars(module).update(
        __path__=path,
        __all__=cuda.simulated_names(),
        __getattr__=name_of_cuda,
        jit=cuda.jit,
        is_available=lambda: True,
        gpus=DEVICES,
        list_devices=lambda: DEVICES,
        detect=_detect,
    )
    return module


def no_such_name(field: str) -> str:
    """Return the message about a name that `cuda` lacks, with the known name most like it."""
    close = get_close_matches(field, cuda.simulated_names(), n=1, cutoff=0.75)
    hint = f" (did you mean `cuda.{close[0]}`?)" if close else ""
    return f"cuda.{field} does not exist on the simulator, or numba has no such name{hint}"


def _detect():
    """Print the device, as numba's `detect` lists GPUs."""
    print(f"Found 1 CUDA devices: {DEVICES[0].name}")
    return True


def module_with(name: str, names, other_name: Callable[[str], object] | None = None) -> ModuleType:
    """Return a module that has these names, and for others what `other_name` returns."""
    module = ModuleType(name)
    vars(module).update({key: value for key, value in names.items() if not key.startswith("__")})
    if other_name:
        vars(module)["__getattr__"] = other_name
    return module


def names_for_kernels(name: str) -> ModuleType:
    """Return a module of functions to which only a kernel gives a meaning, such as `numba.cuda.libdevice`."""
    within_cuda = name.partition("cuda.")[2]
    return _module_of_any_name(name, lambda field: host.KernelName(f"{within_cuda}.{field}"))


def absent_names(name: str) -> ModuleType:
    """Return a module that the simulator lacks: using one of its names raises an error."""
    return _module_of_any_name(name, lambda field: absent(f"{name}.{field}"))


def absent(name: str) -> type:
    """Return a value for a name that the simulator lacks: importing it works, using it raises an error.

    It is a class, so that other classes may be compared with it, and kernels refuse it as an unknown name of `cuda`.
    """

    def refuse(*args, **kwargs):
        raise LaunchError(f"labkit's simulator has nothing in place of {name}")

    uses = dict.fromkeys(("__new__", "__init_subclass__", "__class_getitem__"), refuse)
    names = {"__module__": host.KernelName.__module__, "__qualname__": name}
    return type(name.rpartition(".")[2], (), names | uses)


def _module_of_any_name(name, make: Callable[[str], object]):
    def named(field):
        if field.startswith("__"):
            raise AttributeError(field)
        return make(field)

    module = ModuleType(name)
    vars(module)["__getattr__"] = named
    return module
