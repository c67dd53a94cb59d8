"""numba's compiler as labkit uses it: what it must still do right, on a GPU."""

import pickle
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from inspect import signature
from threading import Barrier, BrokenBarrierError, Event
from types import SimpleNamespace

import numpy as np
import pytest
from numba import types
from numba.core.sigutils import normalize_signature

from labkit import ptx, specialise
from labkit.simulator.errors import LaunchError


@pytest.mark.needs("gpu")
@pytest.mark.parametrize(
    "bounds", [(7,), (0,), (-3,), (2, 9), (9, 2), (3, 20, 4), (20, 3, -4), (5, 5, 1), (-9, 9, 6)], ids=str
)
@pytest.mark.parametrize("kind", ["int64", "int32", "uint64"])
def test_a_loop_over_range_visits_what_it_should_on_the_gpu(bounds, kind):
    from labkit import cuda

    if kind == "uint64" and min(bounds) < 0:
        pytest.skip("not negative")

    @cuda.jit
    def visit(bounds, seen):
        n = 0
        k = bounds[0]
        if bounds.size == 1:
            for k in range(bounds[0]):
                seen[n] = k
                n += 1
        elif bounds.size == 2:
            for k in range(bounds[0], bounds[1]):
                seen[n] = k
                n += 1
        else:
            for k in range(bounds[0], bounds[1], bounds[2]):
                seen[n] = k
                n += 1
        seen[n] = 100 + k

    expected = list(range(*bounds))
    seen = np.full(30, -99, np.int64)
    visit[1, 1](np.array(bounds, kind), seen)
    last = expected[-1] if expected else bounds[0]
    assert seen[: len(expected) + 2].tolist() == [*expected, 100 + last, -99]


@pytest.mark.needs("numba-cuda")
def test_a_kernel_may_be_given_all_the_shared_memory_that_a_block_can_have(monkeypatch):
    from labkit.cuda import compiling

    asked = []
    monkeypatch.setattr(compiling, "driver", SimpleNamespace(cuKernelSetAttribute=lambda *given: asked.append(given)))
    device = SimpleNamespace(id=3, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=232448)
    function = SimpleNamespace(device=device, attrs=SimpleNamespace(shared=1024), handle="the kernel's")
    kernel = SimpleNamespace(_codelibrary=SimpleNamespace(get_cufunc=lambda: function), argument_types=())
    compiling.prepare(kernel)
    names = compiling.binding.CUfunction_attribute
    ((*what, on),) = asked
    assert what == [names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 231424, "the kernel's"] and int(on) == 3
    asked.clear()
    compiling.prepare(kernel, cluster=4)
    given = {name: value for name, value, *_ in asked}
    assert given[names.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] == 4
    assert given[names.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] == 1
    assert not hasattr(kernel, "launch")  # numba's own
    compiling.prepare(kernel, early=True)
    assert kernel.launch.func is compiling.packed.launch and kernel.launch.args == (kernel, True)


@pytest.mark.needs("numba-cuda")
def test_numba_is_told_nothing_of_clusters_and_early_launches(monkeypatch):
    from numba.cuda.dispatcher import _Kernel

    from labkit import cuda  # noqa: F401 - kernels are bound to it
    from labkit.cuda import compiling

    prepared = []
    monkeypatch.setattr(compiling.CUDADispatcher, "compile", add_overload)
    monkeypatch.setattr(compiling, "prepare", lambda kernel, **options: prepared.append(options) or kernel)
    made = compiling.jit(cluster=2, early=True, cooperative=True, max_registers=64, cache=True)(scale)
    made.compile(ONE_FLOAT)
    assert prepared == [OURS]
    assert made.targetoptions.keys() <= signature(_Kernel.__init__).parameters.keys()
    assert made.targetoptions["max_registers"] == 64
    assert made.options.items() >= {**OURS, "max_registers": 64}.items()


def scale(x):
    x[0] *= 2


def add_overload(dispatcher, argument_types):
    """In place of numba's `compile`, which needs a GPU."""
    kernel = SimpleNamespace(entry_point=None)
    dispatcher.add_overload(kernel, normalize_signature(argument_types)[0])
    return kernel


OURS = {"cluster": 2, "early": True, "cooperative": True}
ONE_FLOAT = (types.float32,)


@pytest.mark.needs("numba-cuda")
def test_threads_that_compile_a_kernel_at_once_all_give_it_its_clusters(monkeypatch):
    from labkit import cuda  # noqa: F401 - kernels are bound to it
    from labkit.cuda import compiling

    together, prepared = Barrier(2), []

    def compiled(dispatcher, argument_types):
        with suppress(BrokenBarrierError):  # one after the other will do as well
            together.wait(1)
        return add_overload(dispatcher, argument_types)

    monkeypatch.setattr(compiling.CUDADispatcher, "compile", compiled)
    monkeypatch.setattr(compiling, "prepare", lambda kernel, **options: prepared.append(options) or kernel)
    made = compiling.jit(**OURS)(scale)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(made.compile, [ONE_FLOAT, (types.float64,)]))
    made.compile((types.int32,))
    assert prepared == [OURS] * 3


@pytest.mark.needs("numba-cuda")
def test_no_thread_finds_a_kernel_that_has_not_got_its_clusters_yet(monkeypatch):
    from labkit import cuda  # noqa: F401 - kernels are bound to it
    from labkit.cuda import compiling

    to_be_found = []
    monkeypatch.setattr(compiling.CUDADispatcher, "compile", add_overload)
    monkeypatch.setattr(compiling, "prepare", lambda kernel, **_: to_be_found.append(len(made.overloads)) or kernel)
    made = compiling.jit(**OURS)(scale)
    made.compile(ONE_FLOAT)
    assert to_be_found == [0] and len(made.overloads) == 1


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("copied", [lambda made: pickle.loads(pickle.dumps(made)), lambda made: specialise(made, N=3)])
@pytest.mark.parametrize("declared", [(), ("void(float32[::1])",)], ids=["lazily", "with_a_signature"])
def test_a_copy_of_a_kernel_keeps_its_options(monkeypatch, copied, declared):
    from labkit import cuda  # noqa: F401 - kernels are bound to it
    from labkit.cuda import compiling

    monkeypatch.setattr(compiling.CUDADispatcher, "compile", add_overload)
    monkeypatch.setattr(compiling, "prepare", lambda kernel, **options: kernel)
    made = compiling.jit(*declared, **OURS, max_registers=64)(shifted)
    copy = copied(made)
    assert copy is not made and copy.options == made.options
    assert copy.options.items() >= {**OURS, "max_registers": 64}.items()


N = 2


def shifted(x):
    x[N] *= 2


@pytest.mark.needs("numba-cuda")
def test_threads_compile_for_several_gpus_at_once(monkeypatch):
    """Device functions too, each for the GPU that its kernel is compiled for."""
    from numba.cuda import dispatcher

    from labkit import cuda
    from labkit.cuda import compiling

    compile_text, found = compiling.cuda.compile, dispatcher.get_current_device
    begun, both_begun = Event(), Event()

    def compiled(*arguments, cc, **options):
        if cc == (7, 5):
            begun.set()
            assert both_begun.wait(60)
        else:
            both_begun.set()
            wait([older], 60)
        return compile_text(*arguments, cc=cc, **options)

    @cuda.jit(device=True)
    def done():
        ptx.cp_async_commit()

    @cuda.jit
    def kernel(x):
        done()
        x[0] = 1

    def text(capability):
        return compiling.ptx_text(kernel, (types.Array(types.float32, 1, "C"),), capability)

    monkeypatch.setattr(compiling.cuda, "compile", compiled)
    with ThreadPoolExecutor(2) as threads:
        older = threads.submit(text, (7, 5))
        assert begun.wait(60)
        newer = threads.submit(text, (8, 0))
        with pytest.raises(LaunchError, match="needs a GPU of compute capability 8.0, and this one has 7.5"):
            older.result()
        assert ".target sm_80" in newer.result() and "cp.async.commit_group" in newer.result()
    assert dispatcher.get_current_device is found


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("made", ["when_launched", "specialised", "with_a_signature"])
def test_a_launch_may_ask_for_more_than_48_kb_of_shared_memory(made):
    from numba import float32, types

    from labkit import cuda

    def mirror(x, out):
        kept = cuda.shared.array(0, float32)
        n = x.size
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            kept[i] = x[i]
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
            out[i] = kept[n - 1 - i]

    x, out = cuda.to_device(np.arange(15_000, dtype=np.float32)), cuda.device_array(15_000, np.float32)
    if made == "with_a_signature":
        kernel = cuda.jit((types.Array(float32, 1, "C"),) * 2)(mirror)
    else:
        kernel = cuda.jit(mirror)
        kernel = kernel.specialize(x, out) if made == "specialised" else kernel
    kernel[1, 256, 0, 60_000](x, out)
    assert np.array_equal(out.copy_to_host(), np.arange(15_000)[::-1])
