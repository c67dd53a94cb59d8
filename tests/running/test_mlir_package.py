"""The installed numba_cuda_mlir: it has the names for which others stand in, and compiles the kernels of tests."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from programs import run

from labkit.running import mlir_intrinsics

pytestmark = pytest.mark.skipif(not find_spec("numba_cuda_mlir"), reason="needs numba_cuda_mlir")
HERE = Path(__file__).parent
# Names of both modules whose values are only for the package itself.
INTERNAL = {"alias", "config_default_cc", "numba_cuda_default_ptx_cc"}
WITHOUT_A_DRIVER = "from numba_cuda_mlir import tools; tools._cached_cc = (9, 0)  # else it asks the driver\n"


def by_the_package(program, *arguments) -> str:
    """The output of a program that meets the installed package."""
    command = [sys.executable, "-c", WITHOUT_A_DRIVER + program, *map(str, arguments)]
    settings = {**os.environ, "NUMBA_CUDA_MLIR_ICE_FULL_TB": "1"}
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=True).stdout


def test_every_public_name_of_the_installed_package_is_there(tmp_path):
    program = """\
from types import ModuleType
from numba_cuda_mlir import cuda, types
for module in cuda, types:
    names = (n for n in dir(module) if not n.startswith("_"))
    print(*(n for n in names if n == "runtime" or not isinstance(getattr(module, n), ModuleType)))
"""
    ours = run(tmp_path, program).stdout
    for theirs, known in zip(by_the_package(program).splitlines(), ours.splitlines(), strict=True):
        assert {*theirs.split()} - INTERNAL <= {*known.split()}


def test_the_functions_that_stand_in_are_those_of_the_package():
    program = """\
from numba_cuda_mlir.cuda import experimental, intrin, vector
for module in intrin, vector, experimental:
    print(*dir(module))
"""
    ours = mlir_intrinsics.INTRIN, mlir_intrinsics.VECTOR, {"inline_ptx"}
    for theirs, known in zip(by_the_package(program).splitlines(), ours, strict=True):
        assert {*known} <= {*theirs.split()}


COMPILE = """\
import contextlib, io, sys
import numpy as np
from numba_cuda_mlir import cuda
from numba_cuda_mlir.numba_cuda.typing.typeof import typeof

class Compiled:
    def __init__(self, function):
        self.function, self.__name__ = function, function.__name__

    def __getitem__(self, configuration):
        return self

    def __call__(self, *arguments):
        kinds = tuple(typeof(np.asarray(a) if isinstance(a, np.ndarray) else a) for a in arguments)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                cuda.compile(self.function, kinds, device=False, abi="numba", cc=(9, 0))
            outcome = "compiles"
        except Exception as error:
            outcome = str(error).splitlines()[0]
        print("kernel", self.__name__, outcome)

class OnDevice(np.ndarray):
    def copy_to_host(self):
        return np.asarray(self)

def jit(function=None, **options):
    if options:
        return cuda.jit(**options)
    return Compiled(function) if callable(function) else Compiled

cuda.to_device, cuda.device_array_like = lambda x: x.view(OnDevice), np.empty_like
text = open(sys.argv[1]).read().replace("@cuda.jit", "@jit")
exec(compile(text, sys.argv[1], "exec"), globals())
"""


@pytest.mark.needs("toolkit")
@pytest.mark.parametrize(
    ("program", "kernels", "beyond_it"),
    # it has no mbarriers of compute capability 9.0 but the wait
    [("kernels.py", 20, set()), ("intrinsics.py", 5, {"hand_over"})],
)
def test_the_kernels_that_the_simulator_runs_compile(program, kernels, beyond_it):
    lines = [line.split(maxsplit=2) for line in by_the_package(COMPILE, HERE / program).splitlines()]
    outcomes = {name: outcome for word, name, outcome in filter(lambda words: words[0] == "kernel", lines)}
    assert len(outcomes) == kernels
    assert {name: outcome for name, outcome in outcomes.items() if outcome != "compiles"}.keys() <= beyond_it
