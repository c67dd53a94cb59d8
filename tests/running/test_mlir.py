"""Programs for numba_cuda_mlir run as those for numba.cuda do, whether or not that package is installed."""

import json
import re
from pathlib import Path

import pytest
from programs import pytest as run_pytest
from programs import run

from labkit.running import mlir_intrinsics

KERNELS = (Path(__file__).parent / "kernels.py").read_text()
INTRINSICS = (Path(__file__).parent / "intrinsics.py").read_text()
INSTALLED = "raise ImportError('the installed package was imported')\n"  # what no program may reach


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


def test_functions_for_kernels_of_the_package_alone_have_their_meaning(tmp_path):
    output, found = report(tmp_path, INTRINSICS)
    assert output.splitlines() == [
        "[32. 34. 36.]",
        "[0 5] [1. 2.]",
        "[ 3.  2.  3.  0.  7.  6. 11.  4.]",
        "[128.  64.  32.  16.]",
        "[1. 1. 1. 1.]",
    ]
    assert not [f for f in found["findings"] if f["severity"] == "error"]


def test_each_text_of_inline_ptx_that_is_known_is_tested():
    written = {
        re.sub(r"(?<=[ ,])\d+(?=[,;])", "#", " ".join(text.split())) for text in re.findall(r'"(.+;)"', INTRINSICS)
    }
    assert {text.replace("\\n", " ") for text in written} == {*mlir_intrinsics.INLINE}


@pytest.mark.parametrize(
    ("written", "instead", "kernel", "kind"),
    [
        ("        cuda.intrin.mbarrier_arrive_expect_tx(full, 0)\n", "", "hand_over", "deadlock"),
        ("        cuda.intrin.mbarrier_try_wait(full, 0)\n", "", "hand_over", "race"),
        ("(full, 32)", "(full, 31)", "hand_over", "mbarrier"),
        ("0xFFFFFFE0", "0xFFFFFFF0", "leaders", "mask"),
        ("x, i + 2, 2, 8", "x, i + 1, 2, 8", "in_vectors", "misaligned"),
        ('    experimental.inline_ptx("bar.sync 3, 32;")\n', "", "texts", "race"),
    ],
)
def test_their_faults_are_found_in_the_program(written, instead, kernel, kind, tmp_path):
    assert INTRINSICS.count(written) == 1
    _, found = report(tmp_path, INTRINSICS.replace(written, instead))
    assert {(f["kernel"], f["kind"]) for f in found["findings"] if f["severity"] == "error"} == {(kernel, kind)}


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
    lambda: kernel("inline_ptx('brkpt;')"),
    lambda: kernel("inline_ptx('bar.sync 1, 32;', 'r', 1)"),
    lambda: kernel("inline_ptx('bar.sync 1, 32;', TEXT, 1)"),
    lambda: kernel("x[0] = consteval(3)"),
    lambda: kernel("x[0] = cuda.vector.load(x, 0, 2, 8).x"),
    lambda: kernel("x[0] = cuda.vector.load(x, 0, 3, 16).x"),
    lambda: kernel("cuda.vector.store(x, 0, cuda.float64x2(1, 2), 16)"),
    lambda: kernel("cuda.vector.add(x)"),
    lambda: kernel("cuda.intrin.mapa(x, 1)"),
    lambda: kernel("cuda.intrin.mbarrier_init(types.ptr(3), 1)"),
    lambda: kernel("x[0] = types.f8E4M3FN(1)"),
):
    try:
        use()
    except Exception as error:
        print(str(error).partition("; it knows ")[0])
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
        "line 3: the simulator does not know what `brkpt;` does to lanes",
        "line 3: the simulator does not know what `bar.sync 1, 32;` does to lanes",
        "line 3: the text and the constraints of `inline_ptx` are strings, written out in the call",
        "line 3: `consteval` is not in the kernel language",
        "line 3: the simulator moves whole vectors: their alignment is their size, 16 bytes here",
        "line 3: the simulator loads vectors of 2 or 4 elements, not of 3",
        "line 3: give the vector to store a name in the line above: `v = ...`",
        "line 3: the module `cuda.vector` has no `add` for a kernel",
        "line 3: the module `cuda.intrin` has no `mapa` for a kernel",
        "line 3: a pointer points to an array here, and this is int64",
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
