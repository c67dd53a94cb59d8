"""Memory beside operands on a GPU: whose it is, what is kept of it, and what happens where there is none left."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import labkit
from labkit import attention, conv, cuda, gemm, norm
from labkit.arrays import pool

pytestmark = pytest.mark.needs("gpu")

PARTS = 64, 65536  # rows of both operands of a product, and its depth: it is cut into parts along that


def random(*shape):
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def cut_product():
    A, B = random(*PARTS), random(*reversed(PARTS))
    C = cuda.device_array((PARTS[0], PARTS[0]), np.float32)
    return cuda.to_device(A), cuda.to_device(B), C


def is_right(C, A, B, **tolerance):
    expected = A.copy_to_host().astype(np.float64) @ B.copy_to_host()
    return np.allclose(C.copy_to_host(), expected, rtol=1e-3, atol=1e-2, **tolerance)


def captured(stream, run):
    """A function that replays what `run` launches on the stream, captured as numba's and the driver's users do it."""
    from numba.cuda.cudadrv.driver import binding, driver

    handle = binding.CUstream(int(stream))
    driver.cuStreamBeginCapture(handle, binding.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
    try:
        run()
    finally:
        graph = driver.cuStreamEndCapture(handle)
    executable = driver.cuGraphInstantiate(graph, 0)
    return lambda on: driver.cuGraphLaunch(executable, binding.CUstream(int(on)))


def test_calls_are_captured_in_graphs_of_the_driver_that_share_no_workspace():
    sets, streams = [cut_product() for _ in range(2)], [cuda.stream() for _ in range(2)]
    for A, B, C in sets:
        gemm.multiply(A, B, C=C)
    capturing = cuda.stream()
    replays = [captured(capturing, lambda of=of: gemm.multiply(of[0], of[1], C=of[2], stream=capturing)) for of in sets]
    expected = [C.copy_to_host() for _, _, C in sets]
    for _ in range(100):
        for _, _, C in sets:
            C.copy_to_device(np.full(C.shape, np.nan, np.float32))
        cuda.synchronize()
        for replay, stream in zip(replays, streams):
            replay(stream)
        cuda.synchronize()
        assert all(np.array_equal(C.copy_to_host(), right) for (_, _, C), right in zip(sets, expected))


def test_a_plan_runs_in_turn_on_the_streams_of_several_threads():
    sets = [cut_product() for _ in range(4)]
    A, B, C = sets[0]
    plan = gemm.plan(A, B, C=C)
    assert plan.workspace_bytes
    for of in sets:
        gemm.multiply(of[0], of[1], C=of[2])
    cuda.synchronize()
    expected = [C.copy_to_host() for _, _, C in sets]

    def work(number):
        stream, (A, B, C), wrong = cuda.stream(), sets[number], 0
        for _ in range(100):
            plan(A, B, C, stream=stream)
            wrong += not np.array_equal(C.copy_to_host(stream=stream), expected[number])
        return wrong

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(work, range(4))) == 0


def test_threads_on_their_default_streams_share_no_workspace():
    """These have the same handle in all threads."""
    sets = [cut_product() for _ in range(4)]
    for A, B, C in sets:
        gemm.multiply(A, B, C=C)
    cuda.synchronize()
    expected = [C.copy_to_host() for _, _, C in sets]

    def work(number):
        stream, (A, B, C), wrong = cuda.per_thread_default_stream(), sets[number], 0
        for _ in range(75):
            gemm.multiply(A, B, C=C, stream=stream)
            stream.synchronize()
            wrong += not np.array_equal(C.copy_to_host(stream=stream), expected[number])
        return wrong

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(work, range(4))) == 0


def test_a_plan_is_captured_in_a_graph():
    A, B, C = cut_product()
    plan, stream = gemm.plan(A, B, C=C), cuda.stream()
    plan()
    cuda.synchronize()
    replay = captured(stream, lambda: plan(stream=stream))
    for _ in range(3):
        C.copy_to_device(np.full(C.shape, np.nan, np.float32))
        replay(stream)
        stream.synchronize()
        assert is_right(C, A, B)


def test_what_is_kept_between_calls_is_bounded_and_can_be_given_back():
    labkit.free()
    for size in range(24, 43):
        x, w = random(16, 64, size, size), random(64, 64, 5, 5)
        x, w, y = cuda.to_device(x), cuda.to_device(w), cuda.device_array((16, 64, size, size), np.float32)
        conv.forward(x, w, y=y, padding=2)
        cuda.synchronize()
    assert pool.reserved_bytes() <= labkit.workspace_limit()
    labkit.free()
    assert pool.reserved_bytes() == 0


def test_a_limit_holds_from_when_it_is_set():
    before = labkit.workspace_limit()
    try:
        assert labkit.workspace_limit(0) == 0
        A, B, C = cut_product()
        gemm.multiply(A, B, C=C)
        cuda.synchronize()
        assert pool.reserved_bytes() == 0
        with pytest.raises(ValueError, match="size_bytes is -1: give a whole number of bytes, 0 or more"):
            labkit.workspace_limit(-1)
    finally:
        labkit.workspace_limit(before)


def test_torchs_tensors_get_torchs_memory():
    torch = pytest.importorskip("torch")
    labkit.free()
    A, B = (torch.randn(*shape, device="cuda") for shape in (PARTS, PARTS[::-1]))
    C = torch.empty(PARTS[0], PARTS[0], device="cuda")
    gemm.multiply(A, B, C=C)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    gemm.multiply(A, B, C=C)
    assert torch.cuda.max_memory_allocated() > before == torch.cuda.memory_allocated()
    assert pool.reserved_bytes() == 0


def test_there_is_room_beside_what_torch_keeps_but_does_not_use():
    torch = pytest.importorskip("torch")
    free, _ = torch.cuda.mem_get_info()
    kept = torch.empty(free - 2**30, dtype=torch.uint8, device="cuda")
    del kept
    A, B = random(16384, 16384), random(16384, 16384)  # 1 GiB each
    C = gemm.multiply(A, B[:, :8])
    assert C.shape == (16384, 8)
    torch.cuda.empty_cache()


def test_calls_follow_the_current_stream_of_cupy():
    cupy = pytest.importorskip("cupy")
    x, stream = cupy.zeros((2048, 2048), cupy.float32), cupy.cuda.Stream(non_blocking=True)
    norm.layer_norm(x)
    for _ in range(10):
        new = cupy.asarray(random(2048, 2048))
        expected = norm.layer_norm(new).get()
        cupy.cuda.Device().synchronize()
        with stream:
            for _ in range(30):
                x[...] = new @ new
            x[...] = new
            y = norm.layer_norm(x)
        stream.synchronize()
        assert isinstance(y, cupy.ndarray)
        assert np.array_equal(y.get(), expected)


def test_arrays_of_two_packages_wait_for_each_other():
    torch, cupy = pytest.importorskip("torch"), pytest.importorskip("cupy")
    stream = torch.cuda.Stream()
    A, B = torch.randn(512, 512, device="cuda"), cupy.zeros((512, 512), cupy.float32)
    gemm.multiply(A, B)
    for _ in range(10):
        new = cupy.asarray(random(512, 512))
        torch.cuda.synchronize()
        for _ in range(30):
            B[...] = new @ new
        B[...] = new
        with torch.cuda.stream(stream):
            C = gemm.multiply(A, B)
        torch.cuda.synchronize()
        assert np.allclose(C.cpu().numpy(), A.cpu().numpy() @ new.get(), rtol=1e-3, atol=1e-2)


def test_cached_attention_without_lengths_keeps_few_bytes_however_many_shapes_there_are():
    torch = pytest.importorskip("torch")
    labkit.free()
    for keys in range(64, 80):
        Q, K = (torch.randn(2, 4, n, 64, device="cuda").half() for n in (1, keys))
        O = attention.attend_cached(Q, K, K)
        expected = torch.nn.functional.scaled_dot_product_attention(Q, K, K)
        assert torch.allclose(O, expected, atol=2e-3)
    assert pool.reserved_bytes() <= 2**22
