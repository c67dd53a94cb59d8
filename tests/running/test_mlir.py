"""Programs for numba_cuda_mlir run as those for numba.cuda do, whether or not that package is installed."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from programs import pytest as run_pytest
from programs import run

KERNELS = (Path(__file__).parent / "kernels.py").read_text()
INSTALLED = "raise ImportError('the installed package was imported')\n"  # what no program may reach
# Names of both modules whose values are only for the package itself.
INTERNAL = {"alias", "config_default_cc", "numba_cuda_default_ptx_cc"}


def report(folder, text):
    """Run a program; return its output, and its report without times."""
    result = run(folder, text, options=("--json", "report.json"))
    assert "Traceback" not in result.stderr, result.stderr
    found = json.loads((folder / "report.json").read_text())
    for timed in (found, *found["kernels"]):
        del timed["time_s"]
    return result.stdout, found


def test_a_program_has_the_same_report_under_both_names(tmp_path):
    (tmp_path / "numba_cuda_mlir").mkdir()
    (tmp_path / "numba_cuda_mlir" / "__init__.py").write_text(INSTALLED)
    output, found = report(tmp_path, KERNELS)
    assert (output, found) == report(tmp_path, KERNELS.replace("numba_cuda_mlir", "numba"))
    assert len(found["kernels"]) == 20 and output.count("\n") == 20
    errors = {(f["kernel"], f["kind"]) for f in found["findings"] if f["severity"] == "error"}
    assert errors == {
        ("wrong_vector_add", "bounds"),
        ("wrong_matmul", "race"),
        ("wrong_block_sum", "barrier"),
        ("wrong_block_sum", "race"),
        ("wrong_histogram", "race"),
        ("wrong_transpose", "race"),
    }


def test_names_of_the_package_alone_have_their_meaning(tmp_path):
    program = """\
import numba_cuda_mlir.cuda as cuda
import numpy as np
from numba_cuda_mlir import types
from numba_cuda_mlir.cuda import float32, libdevice, literal_unroll, random, shared
from numba_cuda_mlir.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32
from numba_cuda_mlir.cuda.types import i8

N = 64

@cuda.jit
def each(x, out):
    t = cuda.threadIdx.x
    s = cuda.shared_array(shape=N, dtype=cuda.float32)
    mine = cuda.local_array(2, types.f32)
    bits = shared.array(N, i8)
    s[t], mine[1], bits[t] = x[t], x[t], t
    cuda.syncthreads()
    cuda.intrin.nanosleep(10)
    total = float32(s[N - 1 - t]) + mine[1] + libdevice.fabsf(cuda.float2(-3, 1).x) + cuda.libdevice.sqrtf(float32(4))
    for value in literal_unroll((types.int32(1), float32(0.5))):
        total += float32(value)
    out[cuda.grid(1)] = total + 100 * cuda.intrin.cluster_ctarank() + 1000 * bits[t]

@cuda.jit
def declared(n: types.int32, out: types.float64[:]):
    out[cuda.grid(1)] = n

@cuda.jit
def draw(states, out):
    out[cuda.grid(1)] = xoroshiro128p_uniform_float32(states, cuda.grid(1))
    out[cuda.grid(1)] += cuda.random.xoroshiro128p_uniform_float32(states, cuda.grid(1))

x, out = np.arange(N, dtype=np.float32), np.zeros(2 * N, np.float32)
each.configure(2, N, cluster=2)(x, out)
print(out[:3], out[N : N + 3])
result = np.zeros(32)
declared[1, 32](np.int64(2**32 + 7), result)
print(result[0], declared.signatures[0][0])
draw[2, N](create_xoroshiro128p_states(2 * N, seed=1), out)
print(0 < out.min() < out.max() < 2)
print(isinstance(cuda.to_device(x), cuda.DeviceNDArray), cuda.is_available(), hasattr(cuda, "nothing"))
print(cuda.reduce(lambda a, b: a + b)(x))
"""
    output, found = report(tmp_path, program)
    assert output.splitlines() == [
        "[  69.5 1069.5 2069.5] [ 169.5 1169.5 2169.5]",
        "7.0 int32",
        "True",
        "True True False",
        "2016.0",
    ]
    assert not [f for f in found["findings"] if f["severity"] == "error"]


REFUSALS = """\
import numpy as np
from numba_cuda_mlir import cuda, types
from numba_cuda_mlir.cuda import CUSource, compile_ptx, inline_ptx, tensor_map
from numba_cuda_mlir.cuda.experimental import consteval
from numba_cuda_mlir.extending import intrinsic

def kernel(body):
    code = f"@cuda.jit\\ndef k(x):\\n    {body}\\n"
    with open("k.py", "w") as file:
        file.write(code)
    exec(compile(code, "k.py", "exec"), globals())
    k[1, 32](np.zeros(32))

def derive():
    class Manager(cuda.BaseCUDAMemoryManager):
        pass

for use in (
    lambda: compile_ptx(None, ()),
    lambda: CUSource("code"),
    lambda: cuda.runtime.get_version(),
    lambda: tensor_map.create_tensor_map_from_tensor(None, (8, 8)),
    lambda: intrinsic(kernel),
    derive,
    lambda: kernel("inline_ptx('bar.sync 0;')"),
    lambda: kernel("x[0] = consteval(3)"),
    lambda: kernel("x[0] = cuda.vector.load(x, 0, 2)[0]"),
    lambda: kernel("x[0] = cuda.intrin.elect_sync()"),
    lambda: kernel("x[0] = types.f8E4M3FN(1)"),
):
    try:
        use()
    except Exception as error:
        print(error)
"""


def test_a_name_that_the_simulator_lacks_is_refused_at_its_use(tmp_path):
    result = run(tmp_path, REFUSALS)
    nothing = "labkit's simulator has nothing in place of numba_cuda_mlir."
    assert result.stdout.splitlines() == [
        f"{nothing}cuda.compile_ptx",
        f"{nothing}cuda.CUSource",
        f"{nothing}cuda.runtime.get_version",
        f"{nothing}cuda.tensor_map.create_tensor_map_from_tensor",
        f"{nothing}extending.intrinsic",
        f"{nothing}cuda.BaseCUDAMemoryManager",
        "line 3: `inline_ptx` is not in the kernel language",
        "line 3: `consteval` is not in the kernel language",
        "line 3: the module `cuda.vector` has no `load` for a kernel",
        "line 3: the module `cuda.intrin` has no `elect_sync` for a kernel",
        "line 3: `types.f8E4M3FN` is not in the kernel language",
    ], result.stderr


def test_pytest_runs_its_kernels_too(tmp_path):
    (tmp_path / "test_add.py").write_text("""\
import numpy as np
from numba_cuda_mlir import cuda

@cuda.jit
def add(x, out):
    i = cuda.grid(1)
    out[i] = x[i] + x[i]

def test_add():
    x = np.arange(30)
    add[1, 32](x, np.zeros_like(x))
""")
    result = run_pytest(tmp_path, "--labkit")
    assert result.returncode == 1
    assert "test_add.py:7: error (bounds) in kernel add" in result.stdout


@pytest.mark.skipif(not find_spec("numba_cuda_mlir"), reason="needs numba_cuda_mlir")
def test_every_public_name_of_the_installed_package_is_there(tmp_path):
    program = """\
from types import ModuleType
from numba_cuda_mlir import cuda, types
for module in cuda, types:
    names = (n for n in dir(module) if not n.startswith("_"))
    print(*(n for n in names if n == "runtime" or not isinstance(getattr(module, n), ModuleType)))
"""
    real = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    ours = run(tmp_path, program).stdout
    for theirs, known in zip(real.splitlines(), ours.splitlines(), strict=True):
        assert {*theirs.split()} - INTERNAL <= {*known.split()}
