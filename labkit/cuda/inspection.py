"""Attributes of compiled kernels on the simulator: values where it has them, else an error that says so.

The names are those of numba-cuda's dispatcher and of its entries in `overloads`.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

from labkit.machine.gpus import gpu as find_gpu
from labkit.simulator import host, host_device
from labkit.simulator.caches import resident_blocks
from labkit.simulator.errors import LaunchError
from labkit.simulator.seam import NumbaError, typeof
from labkit.simulator.signatures import parse_signatures

# Attributes of numba's compiler, or of the machine code that it makes.
OF_COMPILER = set(
    """get_regs_per_thread get_local_mem_per_thread inspect_llvm inspect_asm inspect_lto_ptx inspect_sass
    inspect_sass_cfg inspect_cfg inspect_disasm_cfg add_overload call compile_device disable_compile dump
    fold_argument_types get_annotation_info get_call_template get_compile_result get_function_type get_metadata
    get_overload mark_launch_config_sensitive stats targetctx targetdescr typeof_pyval typingctx
    regs_per_thread local_mem_per_thread bind codegen initialize_once launch library maybe_link_nrt
    type_annotation NRT_functions""".split()
)


class NoMachineCode:
    """An attribute of a compiled kernel that the simulator lacks: its use says so."""

    def __init__(self, kernel: str, name: str):
        self._sentence = (
            f"`{kernel}.{name}` needs machine code, which the simulator does not make; use it on a machine with a GPU, "
            "without labkit's simulator"
        )

    def _refuse(self, *args, **kwargs) -> NoReturn:
        raise LaunchError(self._sentence)

    def __getattr__(self, name) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    __call__ = __getitem__ = __iter__ = __len__ = __int__ = __index__ = __bool__ = __str__ = __format__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __mul__ = __rmul__ = _refuse


@dataclass(frozen=True)
class Overload:
    """A kernel for arguments of given types."""

    kernel: "Inspected"
    signature: tuple

    @property
    def argument_types(self) -> tuple:
        return self.signature

    @property
    def cooperative(self) -> bool:
        """Whether the kernel waits for its whole grid."""
        return self._program().cooperative

    @property
    def shared_mem_per_block(self) -> int:
        """Bytes of shared arrays of a fixed size."""
        return self._program().static_shared_bytes

    @property
    def const_mem_size(self) -> int:
        """Bytes of constant arrays."""
        return sum(array.data.nbytes for array in self._program().constants.values())

    @property
    def max_threads_per_block(self) -> int:
        """The modelled GPU's limit; the registers that a thread needs, which may lower it, are not known."""
        return find_gpu(host_device.MODELLED_GPU).threads_per_block

    def max_cooperative_grid_blocks(self, blockdim: int | tuple[int, ...], dynsmemsize: int = 0) -> int:
        """Return the number of such blocks that the modelled GPU runs at the same time: a cooperative grid's limit."""
        gpu = find_gpu(host_device.MODELLED_GPU)
        threads = math.prod(blockdim) if isinstance(blockdim, tuple) else blockdim
        return gpu.sms * resident_blocks(gpu, threads, self._program().static_shared_bytes + dynsmemsize)

    def inspect_types(self, file=None) -> None:
        """Print the variables with their types."""
        name, signature = self.kernel.py_func.__name__, ", ".join(map(str, self.signature))
        lines = [f"{name} ({signature})"]
        for variable, kinds in self._program().variables.items():
            lines.append(f"    {variable}: {' or '.join(sorted(map(str, kinds)))}")
        print("\n".join(lines), file=file or sys.stdout)

    def __getattr__(self, name) -> Any:
        if name in OF_COMPILER:
            return NoMachineCode(self.kernel.py_func.__name__, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _program(self):
        from labkit.simulator.run import translate_for_signature

        return translate_for_signature(self.kernel.py_func, self.signature)


class Inspected:
    """A kernel with numba's attributes; its `overloads` are its declared signatures and those it was launched for."""

    py_func: Any
    options: dict
    signatures: tuple
    _launched: dict[tuple, None]

    @property
    def overloads(self) -> dict[tuple, Overload]:
        return {signature: Overload(self, signature) for signature in (*self.signatures, *self._launched)}

    @property
    def nopython_signatures(self) -> list[tuple]:
        return list(self.overloads)

    @property
    def is_compiling(self) -> bool:
        return False

    @property
    def extensions(self) -> list:
        return list(self.options.get("extensions") or ())

    def compile(self, sig) -> Overload:
        """Translate the kernel for a signature."""
        (signature,) = parse_signatures(sig)
        overload = Overload(self, signature)
        overload._program()
        self._launched.setdefault(signature)
        return overload

    def recompile(self) -> None:
        """Translate the kernel again at its next launch, with the globals of that time."""
        from labkit.simulator.run import forget

        forget(self.py_func)

    def enable_caching(self) -> None:
        """Do nothing: each process translates its kernels again."""

    @property
    def specialized(self) -> bool:
        """Whether it is compiled for only one signature."""
        return len(self.signatures) == 1

    def note_launch(self, arguments) -> None:
        """Keep the types of a launch's arguments."""
        values = [host.unwrap(a.value if isinstance(a, host.InOut) else a) for a in arguments]
        try:
            self._launched.setdefault(tuple(map(typeof, values)))
        except (NumbaError, ValueError):  # such as a tensor map, for which numba has no type
            return

    def get_shared_mem_per_block(self, signature=None) -> int | dict[tuple, int]:
        return self._of_overloads("shared_mem_per_block", signature)

    def get_const_mem_size(self, signature=None) -> int | dict[tuple, int]:
        return self._of_overloads("const_mem_size", signature)

    def get_max_threads_per_block(self, signature=None) -> int | dict[tuple, int]:
        return self._of_overloads("max_threads_per_block", signature)

    def inspect_types(self, file=None) -> None:
        """Print the variables with their types, for each signature."""
        for overload in self.overloads.values():
            overload.inspect_types(file)

    def _of_overloads(self, name, signature):
        """Return a value for one signature, or for each, as numba does."""
        if signature is not None:
            return getattr(Overload(self, tuple(getattr(signature, "args", signature))), name)
        values = {types: getattr(overload, name) for types, overload in self.overloads.items()}
        return next(iter(values.values())) if self.specialized else values

    def __getattr__(self, name) -> Any:
        if name in OF_COMPILER and "py_func" in vars(self):
            return NoMachineCode(self.py_func.__name__, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
