"""numba-cuda's own tests, read from the installed wheel and run on the simulator.

A test module is executed with `labkit.cuda` in place of `numba.cuda`, and with stand-ins for what numba's tests ask
of a driver. What a test then asserts, it asserts of the simulator.
"""

import importlib.util
import linecache
import re
import sys
import types
import unittest
from contextlib import nullcontext, redirect_stdout
from functools import cache
from io import StringIO
from itertools import count
from pathlib import Path
from unittest import mock

import numpy as np

from labkit import cuda

MODULES = """
    cudapy.test_sm cudapy.test_sm_creation cudapy.test_localmem cudapy.test_atomics cudapy.test_warp_ops
    cudapy.test_reduction cudapy.test_array_reductions cudapy.test_cooperative_groups cudapy.test_matmul
    cudapy.test_sync cudapy.test_constmem cudapy.test_vector_type cudapy.test_random
    cudapy.test_iterators cudapy.test_intrinsics
    doc_examples.test_cg doc_examples.test_cpointer doc_examples.test_cpu_gpu_compat doc_examples.test_ffi
    doc_examples.test_globals doc_examples.test_laplace doc_examples.test_matmul doc_examples.test_montecarlo
    doc_examples.test_random doc_examples.test_reduction doc_examples.test_sessionize doc_examples.test_ufunc
    doc_examples.test_vecadd
""".split()

SMALLER_WHEN_SIMULATED = {"cudapy.test_atomics", "cudapy.test_cooperative_groups", "cudapy.test_matmul"}

_texts = count(1)


def folder() -> Path | None:
    """Return the folder of the wheel's tests; None where numba-cuda is not installed."""
    found = importlib.util.find_spec("numba_cuda")
    return Path(found.origin).parent / "numba" / "cuda" / "tests" if found else None


class CUDATestCase(unittest.TestCase):
    """numba's base class, without its driver."""

    FLOAT16_RTOL = np.finfo(np.float16).eps

    def assertPreciseEqual(self, first, second, prec="exact", **_):
        np.testing.assert_allclose(first, second, rtol={"exact": 0, "single": 2**-23, "double": 2**-52}[prec])


def _keep(*arguments, **_):
    """Stands for a decorator that skips tests by what the driver can do: used as one, or called to make one."""
    return arguments[0] if arguments and isinstance(arguments[0], (type, types.FunctionType)) else _keep


class _Testing(types.ModuleType):
    """`numba.cuda.testing` and `tests.support`."""

    unittest = unittest
    CUDATestCase = TestCase = CUDATestCase
    MemoryLeakMixin = type("MemoryLeakMixin", (), {})

    captured_stdout = staticmethod(lambda: redirect_stdout(StringIO()))
    cc_X_or_above = staticmethod(lambda *_: True)
    test_data_dir = Path()
    override_config = staticmethod(lambda *_: nullcontext())

    def __getattr__(self, name):
        if name.startswith(("skip", "require")):
            return _keep
        raise AttributeError(name)


class _Config:
    """numba's settings. As its own simulator sees them, some tests leave the machine code alone and take less time."""

    CUDA_ENABLE_NRT = DISABLE_PERFORMANCE_WARNINGS = False

    def __init__(self, module):
        self.ENABLE_CUDASIM = module in SMALLER_WHEN_SIMULATED


class _Kernel(cuda.Kernel):
    """A kernel that runs in the simulator, and whose PTX is numba's own."""

    def inspect_asm(self, signature=None):
        from numba.cuda import compile_ptx

        from labkit.cuda.compiling import bind_cuda

        made = {s: compile_ptx(bind_cuda(self.py_func), s, cc=(9, 0))[0] for s in self.signatures}
        return made if signature is None else next(iter(made.values()))

    def specialize(self, *_):
        return self


def _run(text, scope, local=None):
    """`exec` that leaves the text where `inspect` finds it, as a notebook's cell does."""
    filename = f"<text {next(_texts)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), scope, scope if local is None else local)


_IMPORTS = (
    (r"from numba import cuda, (\w+)", r"from labkit import cuda; from numba import \1"),
    (r"from numba import cuda\b", "from labkit import cuda"),
    (r"from numba\.cuda\.random import", "from labkit.simulator.random import"),
    (r"from numba\.cuda\.testing import", "from _numba_testing import"),
    (r"from numba\.cuda\.tests\.support import", "from _numba_testing import"),
    (r"from numba\.cuda\.core import config\b", "config = _config"),
    (r"from numba\.cuda import config\b", "config = _config"),
    (r"from \.extensions_usecases import .*", "from numba.cuda.tests.cudapy.extensions_usecases import *"),
)


# As numba's suite does for its own simulator: less of the same work.
_SMALLER = {
    "nsamps = 1000000": "nsamps = 100000",
    "X, Y, Z = 701, 900, 719": "X, Y, Z = 71, 90, 72",
    "gx, gy, gz = 16, 16, 16": "gx, gy, gz = 2, 2, 2",
    "niter = 10000": "niter = 2000",
}


@cache
def load(name: str) -> dict:
    """The names of a test module, bound to the simulator."""
    path = folder() / f"{name.replace('.', '/')}.py"
    text = path.read_text()
    for pattern, put in _IMPORTS:
        text = re.sub(pattern, put, text)
    for large, small in _SMALLER.items():
        text = text.replace(large, small)
    sys.modules["_numba_testing"] = _Testing("_numba_testing")
    scope = {"__name__": name, "__file__": str(path), "_config": _Config(name), "exec": _run, "cuda": cuda}
    _run(text, scope)
    return scope


def cases(name: str) -> list[str]:
    """The tests of a module, as "Class.test" or "test"."""
    own = [x for x in load(name).values() if getattr(x, "__module__", None) == name]
    classes = [c for c in own if isinstance(c, type) and issubclass(c, unittest.TestCase)]
    methods = [f"{c.__name__}.{test}" for c in classes for test in unittest.TestLoader().getTestCaseNames(c)]
    return methods + [f.__name__ for f in own if isinstance(f, types.FunctionType) and f.__name__.startswith("test_")]


def run(name: str, case: str) -> None:
    """Runs one test; raises what it raises."""
    family, _, method = case.rpartition(".")
    with redirect_stdout(StringIO()), mock.patch.object(cuda, "Kernel", _Kernel):
        load(name)[family](method).debug() if family else load(name)[method]()
