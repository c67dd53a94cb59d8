"""numba's host API without a GPU: arrays that only kernels touch, streams, events and the device."""

import numpy as np
import pytest

from labkit import cuda, simulate
from labkit.simulator import host
from labkit.simulator.errors import LaunchError

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_a_device_array_is_a_copy_and_comes_back_as_one():
    d = host.to_device(X)
    assert (d.shape, d.strides, d.dtype, d.ndim, d.size, d.nbytes, len(d)) == (
        (3, 4),
        (16, 4),
        X.dtype,
        2,
        12,
        48,
        3,
    )
    back = d.copy_to_host()
    back[:] = -1
    assert (d.copy_to_host() == X).all() and (X >= 0).all()
    assert host.to_device(d) is d, "what is on the device stays there"


def test_copies_into_given_arrays_both_ways():
    d, target = host.to_device(X), np.zeros_like(X)
    assert d.copy_to_host(target) is target and (target == X).all()
    d.copy_to_device(2 * X)
    assert (d.copy_to_host() == 2 * X).all()
    d.copy_to_device(host.to_device(3 * X))
    assert (np.asarray(d) == 3 * X).all()


@pytest.mark.parametrize(
    "other", [np.zeros((4, 3), np.float32), np.zeros((3, 4)), [1.0]], ids=["shape", "dtype", "list"]
)
def test_copies_refuse_arrays_that_differ(other):
    d = host.to_device(X)
    with pytest.raises(LaunchError, match=r"the device array is float32 of shape \(3, 4\), the other is"):
        d.copy_to_device(other)
    with pytest.raises(LaunchError):
        d.copy_to_host(other)


def test_a_new_device_array_shows_what_was_never_written():
    assert np.isnan(host.device_array((2, 3)).copy_to_host()).all()
    like = host.device_array_like(X)
    assert (like.shape, like.dtype) == (X.shape, X.dtype) and np.isnan(like.copy_to_host()).all()
    assert host.device_array_like(np.asfortranarray(X)).is_f_contiguous()
    assert host.device_array(3, np.int32).dtype == np.int32


def test_slices_and_shapes_share_memory():
    d = host.to_device(X)
    d[1][2:4] = 9
    d.reshape(12)[0] = 7
    d.ravel()[1] = 8
    d.T[3, 2] = 5
    expected = X.copy()
    expected[1, 2:4], expected[0, 0], expected[0, 1], expected[2, 3] = 9, 7, 8, 5
    assert (d.copy_to_host() == expected).all()
    assert d[0, 0] == 7
    assert d.view(np.int32).dtype == np.int32


def test_arithmetic_on_the_host_is_refused_as_numba_refuses_it():
    with pytest.raises(TypeError):
        host.to_device(X) + 1
    with pytest.raises(ValueError, match="copy"):
        np.array(host.to_device(X), copy=False)


def test_pinned_and_mapped_arrays_are_shared_with_the_host():
    assert host.pinned_array((2, 2), np.int32).shape == host.mapped_array((2, 2), np.int32).shape == (2, 2)
    assert host.pinned_array_like(X).dtype == host.mapped_array_like(X).dtype == X.dtype
    x = X.copy()
    with host.pinned(x), host.mapped(x) as d:
        d[0, 0] = 42
    assert x[0, 0] == 42


def test_events_measure_the_hosts_clock():
    start, end = host.event(), host.event()
    start.record(host.stream())
    sum(range(100_000))
    end.record()
    end.synchronize()
    assert 0 < start.elapsed_time(end) == host.event_elapsed_time(start, end) < 10_000
    with pytest.raises(LaunchError, match="record"):
        host.event().elapsed_time(end)


def test_streams_are_always_done():
    stream = host.stream()
    with stream.auto_synchronize() as same:
        assert same is stream
    stream.synchronize()
    host.synchronize()


def test_the_device_says_what_it_is(capsys):
    assert host.is_available() is False and len(host.gpus) == len(host.list_devices()) == 0
    assert host.detect() is False
    assert "simulator of the GPU H100 SXM" in capsys.readouterr().out
    device = host.get_current_device()
    assert device.compute_capability == (9, 0) and device.WARP_SIZE == 32 and device.MULTIPROCESSOR_COUNT == 132
    assert "simulator" in device.name
    with pytest.raises(LaunchError, match="no device 1"):
        host.select_device(1)


def test_device_arrays_are_told_from_others():
    d = host.to_device(X)
    assert host.is_cuda_array(d) and not host.is_cuda_array(X)
    assert host.as_cuda_array(d) is d
    with pytest.raises(TypeError, match=r"cuda\.to_device"):
        host.as_cuda_array(X)


def test_every_name_is_there():
    assert all(hasattr(host, name) for name in host.__all__)


def test_other_shapes_share_the_memory():
    columns = host.to_device(np.asfortranarray(X))
    columns.reshape((6, 2), order="F")[1, 0] = 50
    assert columns[1, 0] == 50
    d = host.to_device(X)
    d.ravel(order="C")[1] = 60
    d.reshape(1, 12).squeeze()[2] = 70
    first, second, rest = d.ravel().split(5)
    second[0], rest[1] = 80, 90
    assert [part.size for part in (first, second, rest)] == [5, 5, 2]
    found = d.copy_to_host()
    assert {(0, 1): 60, (0, 2): 70, (2, 3): 90}.items() <= dict(np.ndenumerate(found)).items()
    for impossible in (lambda: d[:, 1:3].reshape(6), lambda: d.ravel(order="F")):
        with pytest.raises(LaunchError, match="to the host"):
            impossible()


@cuda.jit
def add_two(x):
    i = cuda.grid(1)
    x[i] += 2


of_the_simulator = pytest.mark.skipif(cuda.on_gpu(), reason="a GPU does not know what nobody has written")


def blanks_read(array):
    return [f.count for f in simulate(add_two, 1, 8, array).findings if f.kind == "uninitialised"]


@of_the_simulator
def test_a_new_array_is_blank_until_it_is_written():
    new = cuda.device_array((4, 8), np.float32)
    assert blanks_read(new[1]) == [8]
    new[1, 2:5] = 1
    assert blanks_read(new[1]) == [5]
    assert blanks_read(new.T[:, 1]) == [5]
    assert blanks_read(new.reshape(-1)[8:16]) == [5]
    new[1].copy_to_device(np.ones(8, np.float32))
    assert blanks_read(new[1]) == []
    with pytest.warns(cuda.FindingWarning, match="which nothing has written"):
        add_two[1, 8](new[0])
    assert blanks_read(new[0]) == []
    assert blanks_read(new[2]) == [8]
    assert blanks_read(cuda.to_device(np.ones(8, np.float32))) == []


@cuda.jit
def fill_half(x):
    i = cuda.grid(1)
    if 2 * i < x.size:
        x[i] = 1


@cuda.jit
def add_to_both(x, y):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1
        cuda.atomic.add(y, i, 1)


@of_the_simulator
def test_what_a_launch_leaves_unwritten_stays_blank():
    half = cuda.device_array((4, 8), np.int32)
    fill_half[1, 32](half.reshape(-1))
    assert blanks_read(half[1]) == []
    assert blanks_read(half[2]) == [8]
    assert list(simulate(fill_half, 1, 32, half.reshape(-1)[8:]).blank["x"]) == [False] * 12 + [True] * 12


def test_slices_that_overlap_are_blank_each_for_itself():
    new = host.device_array(40, np.int32)
    found = [f for f in simulate(add_to_both, 1, 32, new[:8], new[4:12]).findings if f.kind == "uninitialised"]
    assert {f.array: f.count for f in found} == {"x": 8, "y": 4}
