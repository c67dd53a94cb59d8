"""Arrays and functions that a kernel takes from outside, or is compiled for."""

import os
from enum import IntEnum
from types import ModuleType

import numpy as np
import pytest
from cells import kernel_in, run_cell
from numba import float32

import labkit
from labkit import cuda
from labkit.gemm.fp32 import s03_tiled
from labkit.simulator import host
from labkit.simulator.errors import KernelError, LaunchError

TABLE = np.arange(6, dtype=np.int32).reshape(2, 3)
READ = "@cuda.jit\ndef kernel(y):\n    i = cuda.grid(1)\n    y[i] = {}"


@pytest.mark.parametrize("read", ["TABLE[1, i % 3]", "cuda.const.array_like(TABLE)[1, i % 3]"])
def test_an_array_of_the_module_is_frozen_in_constant_memory(read):
    table = TABLE.copy()
    kernel = kernel_in(READ.format(read), TABLE=table)
    for _ in range(2):
        trace = labkit.simulate(kernel, 1, 6, np.zeros(6))
        np.testing.assert_array_equal(trace.outputs[0], [3, 4, 5, 3, 4, 5])
        table[:] = 0
    (site,) = [c for c in trace.sites if c.site.kind == "load"]
    assert (site.site.space, site.requests, site.sectors) == ("constant", 1, 0)


def test_constant_memory_is_small_and_cannot_be_written():
    with pytest.raises(KernelError, match="65536 of constant memory"):
        labkit.simulate(kernel_in(READ.format("TABLE[i]"), TABLE=np.zeros(9000)), 1, 1, np.zeros(1))
    with pytest.raises(KernelError, match="constant memory, which a kernel cannot change"):
        labkit.simulate(kernel_in("@cuda.jit\ndef kernel(y):\n    TABLE[0] = y[0]", TABLE=TABLE[0]), 1, 1, np.zeros(1))


def test_a_device_array_of_the_module_is_read_as_it_is_at_the_launch():
    table = host.to_device(np.arange(4.0))
    kernel = kernel_in(READ.format("TABLE[i]"), TABLE=table)
    np.testing.assert_array_equal(labkit.simulate(kernel, 1, 4, np.zeros(4)).outputs[0], np.arange(4))
    table.copy_to_device(np.ones(4))
    np.testing.assert_array_equal(labkit.simulate(kernel, 1, 4, np.zeros(4)).outputs[0], np.ones(4))


def test_functions_dtypes_and_literals_are_arguments_of_device_functions():
    scope = run_cell(
        """
        @cuda.jit(device=True)
        def whole(n):
            return int(n)

        @cuda.jit(device=True)
        def counted(x, dtype, size, update, cast):
            t = cuda.threadIdx.x
            s = cuda.shared.array(size, dtype)
            s[t] = 0
            cuda.syncthreads()
            update(s, cast(x[t]), 1)
            cuda.syncthreads()
            x[t] = s[t]

        @cuda.jit
        def kernel(x):
            counted(x, int32, 32, cuda.atomic.add, whole)
        """
    )
    x = np.random.default_rng(0).integers(0, 32, 32).astype(np.float32)
    trace = labkit.simulate(scope["kernel"], 1, 32, x)
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[0], np.bincount(x.astype(int), minlength=32))


def test_each_literal_has_its_own_shared_array():
    scope = run_cell(
        """
        @cuda.jit(device=True)
        def length(size):
            return cuda.shared.array(size, float32).size

        @cuda.jit
        def kernel(y):
            y[0] = length(4)
            y[1] = length(7)
        """
    )
    trace = labkit.simulate(scope["kernel"], 1, 1, np.zeros(2))
    np.testing.assert_array_equal(trace.outputs[0], [4, 7])
    assert sorted(a.shape for a in trace.arrays if a.space == "shared") == [(4,), (7,)]


def test_a_name_set_once_to_a_number_is_a_size():
    kernel = kernel_in("@cuda.jit\ndef kernel(y):\n    n = 5\n    y[0] = cuda.local.array(n, float32).size")
    assert labkit.simulate(kernel, 1, 1, np.zeros(1)).outputs[0][0] == 5


def test_a_signature_converts_what_is_passed():
    kernel = cuda.jit("void(int32[:], int32)")(kernel_in("def kernel(y, n):\n    y[cuda.grid(1)] = n + 1"))
    y = np.zeros(4, np.int32)
    kernel[1, 4](y, 2**32 + 1)  # wraps around, as on a GPU
    np.testing.assert_array_equal(y, 2)
    with pytest.raises(Exception, match="signature has array\\(int32, 1d, A\\) for `y`, but array\\(float64"):
        labkit.simulate(kernel, 1, 4, np.zeros(4), 1)
    with pytest.raises((LaunchError, TypeError), match="float"):
        kernel[1, 4](y, 5.9)


def test_arrays_of_a_function_in_another_file_are_as_many_as_there():
    """All of it is said to stand where it is called; it has two arrays, each with its own memory."""
    tiled = cuda.jit(device=True)(s03_tiled.tiled.py_func)

    @cuda.jit
    def of_batches(A, B, C):
        tiled(A[cuda.blockIdx.z], B[cuda.blockIdx.z], C[cuda.blockIdx.z])

    A, B = (np.random.default_rng(n).standard_normal((2, 20, 20)).astype(np.float32) for n in range(2))
    trace = labkit.simulate(of_batches, (2, 2, 2), (16, 16), A, B, np.zeros((2, 20, 20), np.float32))
    assert not trace.errors and sum(a.space == "shared" for a in trace.arrays) == 2
    np.testing.assert_allclose(trace.outputs[2], A @ B, atol=1e-5)


def test_every_array_has_a_name_of_its_own():
    kernel = kernel_in(
        """
        @cuda.jit(device=True)
        def there_and_back(value):
            own = cuda.local.array(1, float32)
            own[0] = value
            return own[0]

        @cuda.jit
        def kernel(y):
            y[0] = there_and_back(float32(1)) + there_and_back(int32(2)) + there_and_back(4.0)
        """
    )
    trace = labkit.simulate(kernel, 1, 1, np.zeros(1))
    names = [array.name for array in trace.arrays if array.space == "local"]
    assert len(names) == len({*names}) == 3 and trace.outputs[0][0] == 7


class OfNumba:
    """An array of numba's on a GPU, as far as the simulator knows such."""

    def __init__(self, array):
        self.copy_to_host, self.dtype = array.copy, array.dtype


@pytest.mark.parametrize("signature", [None, "void(float32[::1], float32[:])"])
def test_arrays_that_numba_has_on_a_gpu_are_copied(signature):
    function = kernel_in("def kernel(x, y):\n    y[cuda.grid(1)] = x[cuda.grid(1)] + float32(1)")
    x = np.arange(4, dtype=np.float32)
    trace = labkit.simulate(cuda.jit(signature)(function), 1, 4, OfNumba(x), OfNumba(np.zeros(4, np.float32)))
    np.testing.assert_array_equal(trace.outputs[1], x + 1)


def numbas_barrier():
    return pytest.importorskip("numba.cuda").syncthreads


@pytest.mark.parametrize("barrier", [lambda: cuda.syncthreads, numbas_barrier], ids=["labkit", "numba"])
def test_a_barrier_waits_by_another_name_too(barrier):
    text = """
        @cuda.jit
        def kernel(y):
            t = cuda.threadIdx.x
            s = cuda.shared.array(64, float32)
            s[t] = t
            if t < 64:
                wait()
            y[t] = s[63 - t]"""
    trace = labkit.simulate(kernel_in(text, wait=barrier()), 1, 64, np.zeros(64))
    np.testing.assert_array_equal(trace.outputs[0], np.arange(63, -1, -1))
    assert trace.errors == () and trace.counters.barriers == 1


def test_a_barrier_is_not_handed_on():
    text = "@cuda.jit(device=True)\ndef of(f):\n    f()\n\n\n@cuda.jit\ndef kernel(y):\n    of(cuda.syncthreads)"
    with pytest.raises(KernelError, match="it cannot be handed on"):
        labkit.simulate(kernel_in(text), 1, 64, np.zeros(64))


def test_a_grid_that_waits_for_itself_knows_how_many_blocks_there_is_room_for():
    kernel = cuda.jit([(float32[:],)])(kernel_in("def kernel(y):\n    cuda.cg.this_grid().sync()\n    y[0] = 1"))
    overload = kernel.overloads[(float32[:],)]
    assert overload.cooperative
    assert overload.max_cooperative_grid_blocks(256) == overload.max_cooperative_grid_blocks((16, 16)) == 132 * 8


@pytest.mark.parametrize("size", [0, 1, 15, 256, 1000])
def test_reduce_makes_one_number_of_an_array(size):
    x = np.random.default_rng(size).integers(-9, 9, size).astype(np.float64)
    assert cuda.reduce(lambda a, b: a + b)(x, init=3) == x.sum() + 3
    assert cuda.Reduce(lambda a, b: max(a, b))(cuda.to_device(x), init=-100) == max(-100, *x, -100)
    on_device = cuda.to_device(np.zeros(1))
    assert cuda.reduce(lambda a, b: a + b)(x, size=size // 2, res=on_device) == (None if size > 1 else 0)
    assert on_device[0] == x[: size // 2].sum()


class Colour(IntEnum):
    RED = 7


@cuda.jit(device=True)
def twice(value):
    return 2 * value


@cuda.jit(device=True)
def after_all(value):
    cuda.syncthreads()
    return value


@cuda.jit(device=True)
def of(function, value):
    return function(value)


SETTINGS = ModuleType("settings")
vars(SETTINGS).update(
    SCALE=2.5, PAIR=(3, 4), TABLE=np.arange(8.0), KIND=np.dtype(np.int32), np=np, twice=twice, after_all=after_all,
    Colour=Colour, path=os, _hidden=3,
)  # fmt: skip


@pytest.mark.parametrize(
    ("read", "value"),
    [
        ("settings.SCALE * settings.PAIR[1]", 10),
        ("settings.TABLE[i]", np.arange(8)),
        ("settings.np.float32(i)", np.arange(8)),
        ("settings.twice(i)", 2 * np.arange(8)),
        ("settings.after_all(i)", np.arange(8)),
        ("of(settings.twice, i)", 2 * np.arange(8)),
        ("settings.Colour.RED", 7),
        ("cuda.local.array(4, settings.KIND).itemsize", 4),
    ],
)
def test_a_module_gives_its_numbers_and_functions(read, value):
    trace = labkit.simulate(kernel_in(READ.format(read), settings=SETTINGS, of=of), 1, 8, np.zeros(8))
    np.testing.assert_array_equal(trace.outputs[0], np.broadcast_to(value, 8))
    assert trace.errors == () and trace.counters.barriers == ("after_all" in read)


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        ("settings.twice", "cannot be used as a value"),
        ("settings.path.environ", "`settings.path.environ` cannot be used as a value"),
        ("settings.path.getcwd()", "is not a function for kernels"),
        ("settings.MISSING", "the module `settings` has no `MISSING` for a kernel"),
        ("settings.__dict__", "has no `__dict__`"),
    ],
)
def test_a_module_gives_nothing_else(read, reason):
    with pytest.raises(KernelError, match=reason):
        labkit.simulate(kernel_in(READ.format(read), settings=SETTINGS), 1, 8, np.zeros(8))


@pytest.mark.parametrize("module", ["", "cuda.random.", "R."])
def test_random_numbers_are_numbas(module):
    from numba.cuda.random import xoroshiro128p_uniform_float32 as by_numba

    states = cuda.random.create_xoroshiro128p_states(8, seed=3)
    text = f"{module}xoroshiro128p_uniform_float32(states, i)"
    kernel = kernel_in(
        f"@cuda.jit\ndef kernel(states, y):\n    i = cuda.grid(1)\n    y[i] = {text}",
        xoroshiro128p_uniform_float32=cuda.random.xoroshiro128p_uniform_float32,
        R=cuda.random,
    )
    trace = labkit.simulate(kernel, 1, 8, states, np.zeros(8, np.float32))
    host = states.copy_to_host()
    np.testing.assert_array_equal(trace.outputs[1], np.array([by_numba(host, i) for i in range(8)], np.float32))
