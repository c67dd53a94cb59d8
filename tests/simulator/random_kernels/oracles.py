"""numba as the oracle of a random kernel: the types of its variables, its values on a CPU, and those on a GPU."""

import warnings
from functools import cache
from types import SimpleNamespace
from unittest.mock import patch

from cells import run_cell
from numba import njit, types
from numba.cpython import numbers

from labkit.simulator import numba_types
from random_kernels.writer import BLOCK, GRID, THREADS

CAPABILITY = (9, 0)


def argument_types(arrays):
    return tuple(types.Array(numba_types.type_of(a.dtype), a.ndim, "C") for a in arrays)


def inferred_types(function, arrays) -> dict[str, set]:
    """The types that numba-cuda infers for each scalar variable, over the versions that the code assigns or reads."""
    from numba.cuda.compiler import compile_extra
    from numba.cuda.core.callconv import CUDACallConv
    from numba.cuda.descriptor import cuda_target
    from numba.cuda.flags import CUDAFlags
    from numba.cuda.utils import numba_target_override

    flags = CUDAFlags()
    flags.error_model = "numpy"
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.compute_capability = CAPABILITY
    context = cuda_target.target_context
    with _no_driver(), numba_target_override():
        blocks, typemap = compile_extra(
            cuda_target.typing_context, context, function, argument_types(arrays), types.void, flags, {},
            pipeline_class=_types_only(), call_conv=CUDACallConv(context),
        )  # fmt: skip
    statements = [s for block in blocks.values() for s in block.body]
    named = {v.name for s in statements if not _joins(s) for v in s.list_vars()}
    found: dict[str, set] = {}
    for name, kind in typemap.items():
        if name in named and not name.startswith(("$", "arg.")) and isinstance(kind, types.Number | types.Boolean):
            found.setdefault(name.split(".")[0], set()).add(str(types.unliteral(kind)).replace("__nv_", ""))
    return found


def _no_driver():
    """numba-cuda asks the driver what to compile device functions for; this answers in its place."""
    device = SimpleNamespace(compute_capability=CAPABILITY)
    return patch("numba.cuda.dispatcher.get_current_device", lambda: device)


def compiled(kernel, arrays) -> str:
    """The PTX of a kernel."""
    from numba import cuda

    with _no_driver():
        return cuda.compile_ptx(kernel.py_func, argument_types(arrays), cc=CAPABILITY)[0]


def _joins(statement) -> bool:
    """Does the statement only join the versions of a variable where paths meet, or end a version's life?"""
    from numba.cuda.core import ir

    if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Var):
        return statement.target.name.split(".")[0] == statement.value.name.split(".")[0]
    return isinstance(statement, ir.Del) or (
        isinstance(statement, ir.Assign) and getattr(statement.value, "op", None) == "phi"
    )


@cache
def _types_only():
    """numba-cuda's compiler, up to the inference of types."""
    from numba.cuda.compiler import CUDACompiler
    from numba.cuda.core.compiler import _EarlyPipelineCompletion
    from numba.cuda.core.compiler_machinery import FunctionPass, PassManager, register_pass
    from numba.cuda.core.typed_passes import NopythonTypeInference

    @register_pass(mutates_CFG=False, analysis_only=True)
    class KeepTypes(FunctionPass):
        _name = "keep_types"

        def __init__(self):
            super().__init__()

        def run_pass(self, state):
            raise _EarlyPipelineCompletion((state.func_ir.blocks, state.typemap))

    class TypesOnly(CUDACompiler):
        def define_pipelines(self):
            (whole,) = super().define_pipelines()
            last = [pass_ for pass_, _ in whole.passes].index(NopythonTypeInference)
            manager = PassManager("types only")
            manager.passes = [*whole.passes[: last + 1], (KeepTypes, "keep the types")]
            manager.finalize()
            return [manager]

    return TypesOnly


def by_njit(kernel, names):
    """The arrays after all threads have run, one after another, compiled for the CPU.

    numba tells LLVM that signed integers do not overflow, and then `c >= 0` may be true of a product that became
    negative. Random kernels do overflow, so the oracle is compiled without that promise: integers wrap.
    """
    function = njit(error_model="numpy")(run_cell(kernel.thread, device=njit, **names)["thread"])
    arrays = {name: array.copy() for name, array in kernel.parameters.items()}
    with patch.object(numbers, "_int_arith_flags", lambda rettype: []):
        for i in range(THREADS):
            function(i, i % BLOCK, *arrays.values())
    return arrays


def by_gpu(function, kernel, shared_bytes):
    """The arrays after a run on the GPU, compiled without fused multiply-adds."""
    from numba.cuda import dispatcher

    compiled = dispatcher.compile_cuda

    def without_fma(*arguments, nvvm_options=None, **options):
        return compiled(*arguments, nvvm_options={**(nvvm_options or {}), "fma": False}, **options)

    arrays = {name: array.copy() for name, array in kernel.parameters.items()}
    with patch.object(dispatcher, "compile_cuda", without_fma), warnings.catch_warnings(action="ignore"):
        function[GRID, BLOCK, 0, shared_bytes](*arrays.values())
    return arrays
