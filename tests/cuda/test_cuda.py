"""`labkit.cuda`: kernels without a GPU, numba's dispatcher with one, and copies with other constants."""

import ast
import importlib.util
import inspect
import linecache
import os
import subprocess
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import some_kernels

import labkit
from labkit import cuda
from labkit.machine import device
from labkit.places import PACKAGE
from labkit.simulator.errors import KernelError, LaunchError, SimulatorError


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simulator")


@pytest.fixture
def kernels():
    """The kernels of `some_kernels`, made for the simulator."""
    return fresh("simulated")


@pytest.fixture
def double():
    @cuda.jit
    def double(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] + x[i]

    return double


X = np.arange(70, dtype=np.float32)


def environment():
    """For a process that imports what this one can."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


# --- launches ----------------------------------------------------------------------------------


def test_a_launch_writes_back_into_numpy_arrays(double):
    out = np.zeros_like(X)
    double[3, 32](X, out)
    assert (out == 2 * X).all()


def test_a_launch_writes_back_into_device_arrays_and_leaves_the_host_array(double):
    out = np.zeros_like(X)
    d_out = cuda.to_device(out)
    double[(3,), (32,), cuda.stream()](cuda.to_device(X), d_out)
    assert (d_out.copy_to_host() == 2 * X).all()
    assert not out.any()


def test_an_array_marked_as_input_only_is_not_written(double):
    out = np.zeros_like(X)
    double[3, 32](cuda.In(X), cuda.In(out))
    assert not out.any()
    double[3, 32](cuda.In(X), cuda.Out(out))
    assert out.any()


def test_a_read_only_input_may_be_passed(double):
    x = X.copy()
    x.flags.writeable = False
    out = np.zeros_like(X)
    double[3, 32](x, out)
    assert (out == 2 * X).all()


def test_forall_covers_every_task(double):
    out = np.zeros_like(X)
    double.forall(0)(X, out)
    assert not out.any()
    double.forall(X.size)(X, out)
    assert (out == 2 * X).all()


def test_dynamic_shared_memory_is_the_fourth_item(kernels):
    out = np.zeros(32, np.float32)
    kernels.reverse[1, 32, 0, 32 * 4](X[:32].copy(), out)
    assert (out == X[:32][::-1]).all()


def test_a_kernel_prints(capsys):
    @cuda.jit
    def say(x):
        print("thread", cuda.threadIdx.x)

    say[1, 2](X.copy())
    assert capsys.readouterr().out.split("\n")[:2] == ["thread 0", "thread 1"]


def test_an_error_finding_warns_at_the_launch(kernels):
    with pytest.warns(cuda.FindingWarning, match="Race on") as seen:
        kernels.racy[1, 64](np.zeros(64, np.float32))
    assert all(w.filename == __file__ for w in seen)


def test_a_launch_that_is_run_again_warns_again():
    code = "import numpy as np, some_kernels as k\nfor _ in range(3): k.racy[1, 64](np.zeros(64, np.float32))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True)
    assert done.stderr.count("FindingWarning: Race on") == 3, done.stderr


def test_a_right_launch_does_not_warn(double):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double[3, 32](X, np.zeros_like(X))


def test_the_same_kernel_can_be_simulated(double):
    trace = labkit.simulate(double, 3, 32, X, np.zeros_like(X))
    assert (trace.outputs[1] == 2 * X).all()


def test_device_functions_run_inside_kernels(kernels):
    out = np.zeros_like(X)
    kernels.cube[3, 32](X, out)
    assert (out == X * X * X).all()


@pytest.mark.parametrize(
    ("mistake", "says"),
    [
        (lambda k: k(X, X), r"without its grid and block: write double\[grid, block\]\(x, out\)"),
        (lambda k: k[3](X, X), r"needs the blocks of the grid and the threads of a block"),
        (lambda k: k[1, 32, 0, 0, 0](X, X), r"needs the blocks of the grid"),
        (lambda k: k[0, 32](X, X), "grid"),
        (lambda k: k[1, 2048](X, X), "2048"),
        (lambda k: k[1, 32](list(X), X), "list"),
        (lambda k: k[1, 32](X), "takes 2 arguments"),
    ],
)
def test_mistakes_at_a_launch_get_one_sentence(double, mistake, says):
    with pytest.raises(LaunchError, match=says) as caught:
        mistake(double)
    assert "\n" not in str(caught.value)


def test_a_device_function_cannot_be_launched(kernels):
    with pytest.raises(LaunchError, match="device function"):
        kernels.square[1, 32](X)
    with pytest.raises(LaunchError, match="device function"):
        kernels.square(2.0)


def test_jit_takes_signatures_and_options():
    @cuda.jit("void(float32[:])", fastmath=True)
    def fill(x):
        x[cuda.threadIdx.x] = 1

    x = np.zeros(8, np.float32)
    fill[1, 8](x)
    assert x.all()


def test_a_signature_takes_arrays_of_the_other_sign():
    """As numba's own test_atomic_sub3 has it: the same bits, and the array that was given keeps its dtype."""

    @cuda.jit("void(int32[:, :])")
    def less_one(x):
        r, c = cuda.grid(2)
        x[r, c] -= 1

    x = np.arange(32, dtype=np.uint32).reshape(4, 8)
    for given in (x.copy(), np.asfortranarray(x), cuda.to_device(x), cuda.to_device(np.repeat(x, 2, 0))[::2]):
        less_one[1, (4, 8)](given)
        after = given if isinstance(given, np.ndarray) else given.copy_to_host()
        assert after.dtype == np.uint32
        np.testing.assert_array_equal(after, x - np.uint32(1))
    (output,) = labkit.simulate(less_one, 1, (4, 8), x).outputs
    assert output.dtype == np.uint32 and output[0, 0] == 2**32 - 1


def test_a_signature_compiles_where_it_is_written():
    with pytest.raises(KernelError, match="list does not exist"):

        @cuda.jit("void(float32[:])")
        def kernel(x):
            x[0] = [1]

    with pytest.raises(KernelError, match="`y` is not defined"):

        @cuda.jit("float32(float32)", device=True)
        def helper(x):
            return x + y

    with pytest.raises(KernelError, match=r"has 2 arguments, and the function takes 1 \(x\)"):

        @cuda.jit(["void(float32[:], int32)"])
        def fewer(x):
            x[0] = 1


def test_a_signature_freezes_globals_where_it_is_written():
    size = 1

    @cuda.jit("void(int32[:])")
    def kernel(x):
        x[0] = size

    size = 2
    x = np.zeros(1, np.int32)
    kernel[1, 1](x)
    assert x[0] == 1


# --- names -------------------------------------------------------------------------------------


def test_names_of_the_kernel_language_exist_and_say_where_they_belong():
    assert "array" in dir(cuda.shared) and "x" in dir(cuda.threadIdx)
    for use in (
        lambda: cuda.grid(1),
        lambda: cuda.shared.array(4, np.float32),
        lambda: cuda.threadIdx.x + 1,
        lambda: cuda.syncthreads(),
        lambda: cuda.atomic.add(X, 0, 1),
    ):
        with pytest.raises(SimulatorError, match="only inside a kernel"):
            use()


@pytest.mark.needs("numba-cuda")
def test_every_public_name_of_numba_cuda_is_there():
    from numba import cuda as theirs

    for name in dir(theirs):
        if not name.startswith("_"):
            assert hasattr(cuda, name), name
    assert set(dir(cuda)) >= {n for n in dir(theirs) if not n.startswith("_")}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="syncthread"):
        _ = cuda.syncthread
    with pytest.raises(AttributeError, match="w"):
        _ = cuda.threadIdx.w


def test_cuda_works_where_numba_cuda_is_not_installed():
    code = """
import sys
sys.modules["numba_cuda"] = None
sys.modules["numba.cuda"] = None
import numpy as np
from labkit import cuda
@cuda.jit
def fill(x):
    x[cuda.grid(1)] = 3
import some_kernels as k
x = cuda.to_device(np.ones(32, np.float32))
out = cuda.device_array_like(x)
k.cube[1, 32](x, out)
assert (out.copy_to_host() == 1).all()
assert "syncthreads" in dir(cuda) and not hasattr(cuda, "nonsense")
"""
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


# --- specialise --------------------------------------------------------------------------------


def test_specialise_replaces_module_constants_and_leaves_the_original(kernels):
    out = np.zeros(64, np.float32)
    small = labkit.specialise(kernels.label_tiles, TILE=8)
    small[1, 64](out)
    assert out.max() == 7
    kernels.label_tiles[1, 64](out)
    assert out.max() == 3
    assert kernels.TILE == 16


def test_specialise_reaches_the_device_functions_that_a_kernel_calls(kernels):
    out = np.zeros(64, np.float32)
    labkit.specialise(kernels.label_tiles_by_function, TILE=32)[1, 64](out)
    assert out.max() == 1


def test_specialise_replaces_closure_variables():
    def made(scale):
        @cuda.jit
        def times(x):
            i = cuda.grid(1)
            x[i] *= scale

        return times

    x = np.ones(32, np.float32)
    labkit.specialise(made(np.float32(2)), scale=np.float32(5))[1, 32](x)
    assert (x == 5).all()


@pytest.mark.parametrize("kernel", ["label_quarters", "label_quarters_by_function"])
@pytest.mark.parametrize(
    ("constants", "quarter"),
    [({"TILE": 32}, 8), ({"HALF": 32}, 16), ({"TILE": 8, "HALF": 64}, 32), ({"QUARTER": 1}, 1)],
)
def test_specialise_computes_anew_what_comes_from_a_constant(kernels, kernel, constants, quarter):
    out = np.zeros(64, np.float32)
    labkit.specialise(getattr(kernels, kernel), **constants)[1, 64](out)
    assert (out == np.arange(64) // quarter).all()
    assert (kernels.TILE, kernels.HALF, kernels.QUARTER) == (16, 8, 4)


def test_a_copy_of_a_copy_computes_from_the_constants_of_both(kernels):
    out = np.zeros(64, np.float32)
    labkit.specialise(labkit.specialise(kernels.label_quarters, TILE=64), PARTS=4)[1, 64](out)
    assert (out == np.arange(64) // 4).all()


def test_specialise_works_on_plain_functions(kernels):
    assert labkit.specialise(kernels.tiles_in, TILE=4)(64) == 16
    assert kernels.tiles_in(64) == 4


def test_specialise_names_the_constants_there_are(kernels):
    with pytest.raises(NameError, match="uses no constant named TILES; it uses TILE"):
        labkit.specialise(kernels.label_tiles, TILES=8)


def test_a_specialised_kernel_keeps_its_source(kernels):
    small = labkit.specialise(kernels.label_tiles, TILE=8)
    assert inspect.getsource(small.py_func) == inspect.getsource(kernels.label_tiles.py_func)


def test_what_is_kept_for_each_size_is_kept_for_so_many():
    """Kernels compiled for sizes, and choices made for problems: a program may meet any number, a bench a few."""
    sizes = {"problem", "work", "pixels", "vectors", "cut", "address", "code"}
    endless = []
    for path in set(PACKAGE.rglob("*.py")) - set(PACKAGE.glob("bench/*")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and "cache" in map(ast.unparse, node.decorator_list):
                endless += [(path.name, node.name) for each in node.args.args if each.arg in sizes]
    assert not endless


# --- on a GPU ----------------------------------------------------------------------------------


class Gpu:
    compute_capability = (8, 0)


@pytest.fixture
def compiled_for_gpu(monkeypatch):
    """`cuda.jit` as on a GPU, as far as a machine without one can go: up to the cubin's loading."""
    from numba.cuda import dispatcher
    from numba.cuda.core.caching import NullCache
    from numba.cuda.cudadrv import devices

    from labkit.cuda import compiling

    monkeypatch.setattr(compiling, "prepare", lambda kernel, cluster=1: kernel)
    monkeypatch.setattr(compiling, "DiskCache", lambda dispatcher: NullCache())
    monkeypatch.setattr(device, "current", lambda: device.Device("gpu", "A100", "compute capability 8.0"))
    monkeypatch.setattr(dispatcher, "get_current_device", Gpu)
    monkeypatch.setattr(devices, "get_context", lambda: SimpleNamespace(device=Gpu))
    monkeypatch.setattr(dispatcher._Kernel, "bind", lambda self: None)


def signature(*dimensions):
    from numba import types

    return tuple(types.Array(types.float32, n, "C") for n in dimensions)


def fresh(name):
    """`some_kernels` imported anew, so that `cuda.jit` runs again."""
    spec = importlib.util.spec_from_file_location(f"fresh_{name}", some_kernels.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cell(source):
    """A notebook cell's names: source that only IPython's line cache knows, run in a module of its own."""
    filename = "<ipython-input-7>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    names = {"__name__": "__main__"}
    exec(compile(source, filename, "exec"), names)
    return names


def ptx(kernel, argument_types):
    return kernel.compile(argument_types).inspect_asm((8, 0))


@pytest.mark.needs("numba-cuda")
def test_jit_gives_numbas_own_dispatcher(compiled_for_gpu):
    from numba.cuda.dispatcher import CUDADispatcher

    kernel = fresh("module").label_tiles
    assert isinstance(kernel, CUDADispatcher)
    assert type(kernel).__call__ is CUDADispatcher.__call__ and type(kernel).call is CUDADispatcher.call
    assert "fresh_module" in ptx(kernel, signature(1))


@pytest.mark.needs("numba-cuda")
def test_a_kernel_of_a_cell_compiles_and_sees_names_given_later(compiled_for_gpu):
    names = cell(
        "from labkit import cuda\nimport numpy as np\n@cuda.jit\ndef late(x):\n"
        "    s = cuda.shared.array(SIZE, np.float32)\n    s[cuda.threadIdx.x] = 1\n"
        "    cuda.syncthreads()\n    x[cuda.threadIdx.x] = s[0]\n"
    )
    names["SIZE"] = 24
    assert "[96]" in ptx(names["late"], signature(1))
    assert "cuda.shared" in inspect.getsource(names["late"].py_func)


@pytest.mark.needs("numba-cuda")
def test_a_closure_kernel_compiles(compiled_for_gpu):
    from labkit import cuda as local_name

    def made(size):
        @local_name.jit
        def closed(x):
            s = local_name.shared.array(size, np.float32)
            s[local_name.threadIdx.x] = 1
            local_name.syncthreads()
            x[local_name.threadIdx.x] = s[0]

        return closed

    assert "[96]" in ptx(made(24), signature(1))
    assert "[64]" in ptx(labkit.specialise(made(24), size=16), signature(1))


@pytest.mark.needs("numba-cuda")
def test_device_functions_compile_inside_kernels(compiled_for_gpu):
    module = fresh("device_functions")
    assert "mul" in ptx(module.cube, signature(1, 1))
    assert "mul" in ptx(labkit.specialise(module.label_tiles_by_function, TILE=8), signature(1))


@pytest.mark.needs("numba-cuda")
def test_a_signature_compiles_at_once(compiled_for_gpu):
    from numba import float32

    @cuda.jit((float32[::1],))
    def fill(x):
        x[cuda.threadIdx.x] = 1

    assert fill.signatures


@pytest.mark.needs("numba-cuda")
def test_a_specialised_kernel_has_its_own_shared_memory(compiled_for_gpu):
    module = fresh("specialised")
    sizes = {tile: tile * tile * 4 for tile in (8, 16, 32)}
    for tile, size in sizes.items():
        kernel = labkit.specialise(module.square_tile, TILE=tile)
        assert f"[{size}]" in ptx(kernel, signature(1)), tile


@pytest.mark.needs("numba-cuda")
def test_numba_does_not_warn_of_small_launches_and_copies(compiled_for_gpu):
    from numba.cuda.core import config

    fresh("warnings")
    assert config.CUDA_LOW_OCCUPANCY_WARNINGS == 0 and config.CUDA_WARN_ON_IMPLICIT_COPY == 0


@pytest.fixture
def on_gpu(monkeypatch):
    monkeypatch.delenv("LABKIT_DEVICE")


@pytest.mark.needs("gpu")
def test_kernels_and_device_functions_run_on_the_gpu(on_gpu):
    module = fresh("gpu")
    out = np.zeros_like(X)
    module.cube[3, 32](X, out)
    assert (out == X * X * X).all()
    tiles = cuda.to_device(np.zeros(64, np.float32))
    labkit.specialise(module.label_tiles_by_function, TILE=32)[1, 64](tiles)
    assert tiles.copy_to_host().max() == 1


@pytest.mark.needs("gpu")
def test_a_kernel_of_a_cell_runs_on_the_gpu(on_gpu):
    names = cell(
        "from labkit import cuda\n@cuda.jit\ndef scale(x):\n    i = cuda.grid(1)\n"
        "    if i < x.size:\n        x[i] *= FACTOR\n"
    )
    names["FACTOR"] = np.float32(3)
    x = cuda.to_device(X)
    names["scale"][3, 32](x)
    assert (x.copy_to_host() == 3 * X).all()
    trace = labkit.simulate(names["scale"], 3, 32, X)
    assert (trace.outputs[0] == 3 * X).all()


@pytest.mark.needs("gpu")
def test_a_closure_kernel_runs_on_the_gpu(on_gpu):
    def made(size):
        @cuda.jit
        def reverse(x, out):
            s = cuda.shared.array(size, np.float32)
            i = cuda.threadIdx.x
            s[i] = x[i]
            cuda.syncthreads()
            out[i] = s[size - 1 - i]

        return reverse

    out = np.zeros(64, np.float32)
    made(64)[1, 64](X[:64].copy(), out)
    assert (out == X[:64][::-1]).all()


@pytest.mark.needs("gpu")
def test_signatures_options_streams_and_events_work_on_the_gpu(on_gpu):
    @cuda.jit("void(float32[::1])", fastmath=True)
    def fill(x):
        x[cuda.grid(1)] = 7

    stream, start, end = cuda.stream(), cuda.event(), cuda.event()
    x = cuda.device_array(64, np.float32)
    start.record(stream)
    fill[2, 32, stream](x)
    end.record(stream)
    end.synchronize()
    assert (x.copy_to_host() == 7).all()
    assert 0 < start.elapsed_time(end) < 1000
    assert cuda.is_available() and len(cuda.gpus) >= 1
