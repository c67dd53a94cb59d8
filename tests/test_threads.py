"""Several threads that simulate, compile and launch kernels at once get what each would get alone."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from types import SimpleNamespace

import numpy as np
import pytest
from cells import kernel_in
from numba import types, uint16, uint64
from numba.core.compiler_lock import global_compiler_lock

import labkit
from labkit import cuda, ptx
from labkit.simulator import in_place, numba_types, run
from labkit.simulator.seam import by_numba

THREADS = 4
KERNELS = ["cube", "reverse", "racy", "label_tiles_by_function"]

# In a process of its own, in which numba has typed nothing yet; threads change places as often as they can.
FIRST_USE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import some_kernels
from numba import float32

import labkit
from labkit import cuda

x, together = np.arange(64, dtype=np.float32), Barrier(len(sys.argv) - 1)


def traced(name, wait=lambda: None):
    function = getattr(some_kernels, name).py_func
    count = function.__code__.co_argcount
    wait()
    cuda.jit((float32,), device=True)(some_kernels.square.py_func)
    kernel = cuda.jit((float32[::1],) * count)(function)
    trace = labkit.simulate(kernel, 2, 32, *[x, 0 * x][-count:], shared_bytes=256)
    return [o.tobytes() for o in trace.outputs], str(trace.counters), [f.message for f in trace.findings]


sys.setswitchinterval(1e-6)
with ThreadPoolExecutor(len(sys.argv) - 1) as threads:
    found = list(threads.map(lambda name: traced(name, together.wait), sys.argv[1:]))
assert found == list(map(traced, sys.argv[1:]))
"""


@pytest.mark.parametrize("kernels", [KERNELS, KERNELS[:1] * THREADS], ids=["several_kernels", "one_kernel"])
def test_threads_may_be_the_first_to_simulate(kernels):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "LABKIT_DEVICE": "simulator"}
    command = [sys.executable, "-c", FIRST_USE, *kernels]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_numba_is_asked_for_types_under_the_lock_of_its_compiler(monkeypatch):
    """It fills the tables that it answers from, whenever something is compiled."""
    asked = []

    def answer(*_):
        asked.append(global_compiler_lock.is_locked())

    context = SimpleNamespace(resolve_function_type=answer, resolve_overload=answer, unify_types=answer)
    monkeypatch.setattr(by_numba, "typing_context", lambda: context)
    one, other = types.Opaque("one"), types.Opaque("other")  # of which nothing else asks
    numba_types.resolve(one, (other,))
    numba_types.resolve_overload((), (other,))
    numba_types.unify(one, other)
    assert asked == [True] * 3


def test_a_kernel_is_translated_once_whichever_threads_simulate_it(monkeypatch):
    translated, together = [], Barrier(THREADS)
    translate = run.translate.translate

    def translate_slowly(*arguments, **options):
        translated.append(arguments)
        with suppress(BrokenBarrierError):
            together.wait(0.5)
        return translate(*arguments, **options)

    monkeypatch.setattr(run.translate, "translate", translate_slowly)
    kernel, x = kernel_in(MARK), np.zeros(8)
    with ThreadPoolExecutor(THREADS) as threads:
        traces = list(threads.map(lambda i: labkit.simulate(kernel, 1, 1, x, i), range(THREADS)))
    assert [trace.outputs[0].nonzero()[0].item() for trace in traces] == list(range(THREADS))
    assert len(translated) == 1


MARK = """
@cuda.jit
def mark(x, i):
    x[i] += 1
"""


def test_launches_of_several_threads_all_leave_what_they_wrote(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simulator")
    together = Barrier(THREADS)

    def simulate(*arguments, **options):
        trace = labkit.simulate(*arguments, **options)
        with suppress(BrokenBarrierError):  # launches may follow one another
            together.wait(0.5)
        return trace

    monkeypatch.setattr(in_place, "simulate", simulate)
    kernel, x = kernel_in(MARK), np.zeros(THREADS)
    with ThreadPoolExecutor(THREADS) as threads:
        list(threads.map(lambda i: kernel[1, 1](x, i), range(THREADS)))
    assert x.tolist() == [1] * THREADS


# --- on a GPU ----------------------------------------------------------------------------------

IN_CLUSTERS = """
@cuda.jit(cluster=CLUSTER)
def rotate(source, out):
    tile = cuda.shared.array((ROWS, 64), uint16, alignment=1024)
    bar = cuda.shared.array(1, uint64)
    t = cuda.threadIdx.x
    if t == 0:
        ptx.mbarrier_init(bar, 0, 1)
        ptx.mbarrier_init_fence()
    cuda.syncthreads()
    fetch(tile, source, bar)
    for r in range(ROWS):
        out[cuda.blockIdx.x, r, t] = tile[r, t] + uint16(100 * ptx.cluster_rank())
"""
FETCH = """
@cuda.jit(device=True)
def fetch(tile, source, bar):
    if cuda.threadIdx.x == 0:
        ptx.mbarrier_expect(bar, 0, ROWS * 128)
        ptx.tma_load(tile, (0, 0), source, (ROWS * cuda.blockIdx.x, 0), bar, 0)
    ptx.mbarrier_wait(bar, 0, 0)
"""
BLOCKS = 8


@pytest.mark.needs("gpu")
def test_threads_compile_and_launch_kernels_with_clusters_and_tensor_maps_at_once():
    """Each kernel has a size of clusters and of boxes of its own, and is launched by two threads."""
    kinds = [(cluster, rows) for cluster in (1, 2, 4, 8) for rows in (8, 16)]
    names = dict(ptx=ptx, uint16=uint16, uint64=uint64)
    kernels = [kernel_in(FETCH + IN_CLUSTERS, **names, CLUSTER=cluster, ROWS=rows) for cluster, rows in kinds]
    together = Barrier(2 * len(kinds))

    def launched(number):
        (cluster, rows), kernel = kinds[number // 2], kernels[number // 2]
        x = np.random.default_rng(number).integers(0, 1000, (BLOCKS * rows, 64), np.uint16)
        source = ptx.TensorMap(cuda.to_device(x), (rows, 64))
        together.wait(60)
        found = []
        for _ in range(20):
            out = cuda.to_device(np.zeros((BLOCKS, rows, 64), np.uint16))
            kernel[BLOCKS, 64](source, out)
            found.append(out.copy_to_host())
        return all(np.array_equal(out, expected(x, cluster, rows)) for out in found)

    with ThreadPoolExecutor(len(kinds) * 2) as threads:
        assert all(threads.map(launched, range(2 * len(kinds))))


def expected(x, cluster, rows):
    """Rows in shared memory with their pieces of 16 bytes where TMA puts them."""
    pieces = x.reshape(BLOCKS, rows, 8, 8)
    places = np.arange(8) ^ (np.arange(rows) % 8)[:, None]
    lies = np.take_along_axis(pieces, places[None, :, :, None], axis=2).reshape(BLOCKS, rows, 64)
    return lies + (100 * (np.arange(BLOCKS) % cluster)).astype(np.uint16)[:, None, None]


@pytest.mark.needs("gpu")
def test_threads_compile_one_kernel_for_several_types_at_once():
    kernel = kernel_in("@cuda.jit(cluster=2)\ndef ranks(out):\n    out[cuda.blockIdx.x] = ptx.cluster_rank()", ptx=ptx)
    dtypes = [np.int32, np.int64, np.uint32, np.uint64, np.float32, np.float64, np.int16, np.uint8]
    together = Barrier(len(dtypes))

    def launched(dtype):
        out = cuda.to_device(np.full(8, 9, dtype))
        together.wait(60)
        kernel[8, 32](out)
        return out.copy_to_host().tolist()

    with ThreadPoolExecutor(len(dtypes)) as threads:
        assert list(threads.map(launched, dtypes)) == [[0, 1] * 4] * len(dtypes)
