"""numba's compiler as labkit uses it: what it must still do right, on a GPU."""

import numpy as np
import pytest


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
    from types import SimpleNamespace as Stand

    from labkit import compiler

    asked = []
    monkeypatch.setattr(compiler, "driver", Stand(cuKernelSetAttribute=lambda *given: asked.append(given)))
    device = Stand(id=3, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=232448)
    function = Stand(device=device, attrs=Stand(shared=1024), handle="the kernel's")
    kernel = Stand(_codelibrary=Stand(get_cufunc=lambda: function), argument_types=())
    compiler.prepare(kernel)
    names = compiler.binding.CUfunction_attribute
    ((*what, on),) = asked
    assert what == [names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 231424, "the kernel's"] and int(on) == 3
    asked.clear()
    compiler.prepare(kernel, cluster=4)
    given = {name: value for name, value, *_ in asked}
    assert given[names.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] == 4
    assert given[names.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT] == 1
    assert not hasattr(kernel, "launch")  # numba's own
    compiler.prepare(kernel, early=True)
    assert kernel.launch.func is compiler.packed.launch and kernel.launch.args == (kernel, True)


@pytest.mark.needs("numba-cuda")
def test_numba_is_told_nothing_of_clusters_and_early_launches(monkeypatch):
    from labkit import compiler, cuda  # noqa: F401 - kernels are bound to it

    def compiled(dispatcher, signature):
        assert not {"cluster", "early", "cooperative"} & dispatcher.targetoptions.keys()
        return signature

    prepared = []
    monkeypatch.setattr(compiler.CUDADispatcher, "compile", compiled)
    monkeypatch.setattr(compiler, "prepare", lambda kernel, **options: prepared.append((kernel, options)))
    made = compiler.jit(cluster=2, early=True, cooperative=True, max_registers=64)(lambda x: None)
    made.compile("a signature")
    assert prepared == [("a signature", {"cluster": 2, "early": True, "cooperative": True})]
    assert made.targetoptions["cluster"] == 2 and made.targetoptions["max_registers"] == 64


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
