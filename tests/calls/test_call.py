"""What holds for every call: it finds what an earlier one has made ready, and only for arrays that lie so."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import labkit
from calls.every_call import CALLS, every_operation
from labkit import attention, cuda, gemm, norm, softmax
from labkit.arrays.views import as_strided
from labkit.calls import plan as plans
from labkit.calls import route
from labkit.calls.call import forget

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")


@pytest.fixture
def made(monkeypatch):
    """The operations that are made ready, of a process that begins."""
    forget()
    found, prepared = [], plans.Prepared
    monkeypatch.setattr(
        plans, "Prepared", lambda operation, operands: found.append(operation) or prepared(operation, operands)
    )
    yield found
    forget()


def on_device(*arrays):
    return [cuda.to_device(X) for X in arrays]


def random(*shape, dtype=np.float32):
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def right(C, *factors):
    return np.allclose(C.copy_to_host(), np.matmul(*(X.copy_to_host() for X in factors)), rtol=1e-4, atol=1e-4)


def test_the_table_has_every_call():
    assert {call.operation for call in CALLS} == every_operation(), "add it to the table in every_call.py"


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.sample(10)
def test_a_call_of_arrays_that_lie_alike_is_made_ready_once(call, made):
    for seed in (1, 2, 3):
        arrays = call.arrays(seed=seed)
        found = call.run({name: cuda.to_device(X) for name, X in arrays.items()})
    assert len(made) == 1
    for _ in range(2):
        expected = call.run(arrays)  # which are copied to the device
        assert len(made) == 2 and all(np.array_equal(X.copy_to_host(), Y) for X, Y in zip(found, expected))
    outputs = dict(zip(call.outputs, found))
    call.run({**arrays, **outputs})  # of the host and of the device
    ready = len(made)
    for seed in (1, 2):
        again = call.run({**call.arrays(seed=seed), **outputs})
        assert len(made) == ready and all(X is Y for X, Y in zip(again, found))


def test_a_call_is_made_ready_for_each_way_in_which_arrays_lie(made):
    A, B, C = on_device(random(20, 8), random(8, 8), np.zeros((10, 8), np.float32))
    for top in (0, 10, 0):
        gemm.multiply(A[top : top + 10], B, C=C)
        assert right(C, A[top : top + 10], B)
    assert len(made) == 1
    by_columns = cuda.to_device(np.asfortranarray(random(10, 8)))
    for count, other in enumerate((A[::2], as_strided(A, (10, 8), (32, 4), begin_byte=4), by_columns), 2):
        gemm.multiply(other, B, C=C)
        assert len(made) == count and right(C, cuda.as_cuda_array(other), B)
    for options in ({"alpha": 2.0}, {"transpose_b": True}, {"format": "tf32"}, {"alpha": 2.0}, {}):
        gemm.multiply(A[:10], B, C=C, **options)
    assert len(made) == 7


def test_so_many_calls_are_remembered(made, monkeypatch):
    A, B, C = on_device(random(10, 8), random(8, 8), np.zeros((10, 8), np.float32))
    monkeypatch.setattr(route.routes, "limit", 3)
    for rows in (10, 4, 5, 10, 6):  # the one of four rows was not asked for the longest
        gemm.multiply(A[:rows], B, C=C[:rows])
    assert len(made) == 4 and len(route.routes) == 3
    for rows, count in ((10, 4), (4, 5)):
        gemm.multiply(A[:rows], B, C=C[:rows])
        assert len(made) == count and right(C[:rows], A[:rows], B)


def test_what_is_forgotten_is_made_ready_again(made):
    (x,) = on_device(random(3, 8))
    for forgets in (labkit.free, forget, lambda: forget(softmax.softmax.operation)):
        softmax.softmax(x), norm.rms_norm(x)
        made.clear()
        forgets()
        softmax.softmax(x)
        assert len(made) == 1
    norm.rms_norm(x)
    assert len(made) == 1  # which was not forgotten the last time


def test_a_factor_that_is_no_number_is_found_again(made):
    A, B, C = on_device(random(8, 8), random(8, 8), np.zeros((8, 8), np.float32))
    for nan in (float("nan"), float("nan"), np.float64("nan")):
        gemm.multiply(A, B, C=C, alpha=nan)
        assert np.isnan(C.copy_to_host()).all()
    assert len(made) == 1 and len(route.routes) == 1
    gemm.multiply(A, B, C=C, beta=float("nan"))
    assert len(made) == 2 and np.isnan(C.copy_to_host()).all()
    gemm.multiply(A, B, C=C)
    assert len(made) == 3 and right(C, A, B)


def test_a_factor_that_only_equals_one_is_still_refused():
    A, B, C = on_device(random(4, 4), random(4, 4), np.zeros((4, 4), np.float32))
    gemm.multiply(A, B, C=C)
    with pytest.raises(TypeError, match="alpha is a complex"):
        gemm.multiply(A, B, C=C, alpha=1 + 0j)
    norm.batch_norm(*on_device(random(2, 3, 4)), relu=True)
    with pytest.raises(TypeError, match="relu is 1: say True or False"):
        norm.batch_norm(*on_device(random(2, 3, 4)), relu=1)


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.sample(10)
def test_what_is_refused_is_refused_each_time(call):
    """Also where an earlier call with arrays that lie alike was right."""
    arrays = {name: cuda.to_device(X) for name, X in call.arrays().items()}
    outputs = dict(zip(call.outputs, call.run(arrays)))
    call.run({**arrays, **outputs})
    for name, X in arrays.items():
        (output, Y), *_ = outputs.items()
        allowed = call.operation.in_place.get(output) == name
        if allowed or X.dtype != Y.dtype or X.shape != Y.shape:
            continue
        for _ in range(2):
            with pytest.raises(ValueError, match=f"{output} shares memory with .*: give {output} memory of its own"):
                call.run({**arrays, **outputs, output: X})


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_operands_that_are_none_are_refused_in_a_sentence(call):
    arrays = call.arrays()
    operation = call.operation(**call.options)
    for name in call.inputs:
        if name in operation.required:
            with pytest.raises(TypeError, match=f"^{name} is None: give an array$"):
                call.run({**arrays, name: None})
    for name in (*call.inputs, *call.outputs, *call.written):
        with pytest.raises(TypeError, match=f"^{name} is a list, not an array: make it one with np.array"):
            call.run({**arrays, name: [1.0, 2.0]})
        with pytest.raises(TypeError, match=f"^{name} is a masked array, and no mask is looked at: pass {name}.filled"):
            call.run({**arrays, name: np.ma.zeros((2, 3))})


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("on", [np.asarray, cuda.to_device], ids=["host", "device"])
@pytest.mark.sample(20)
def test_what_is_no_stream_is_refused(call, on):
    arrays = {name: on(X) for name, X in call.arrays().items()}
    for stream in ("s", 3, True):
        with pytest.raises(TypeError, match=f"^{stream!r} is not a stream: give one of cuda.stream"):
            call.run(arrays, stream=stream)
    for stream in (0, cuda.stream()):
        call.run(arrays, stream=stream)


def test_calls_are_made_from_threads(made):
    Q, K, V = on_device(*(random(1, 2, 16, 16) for _ in range(3)))
    expected = attention.attend(Q, K, V).copy_to_host()
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: attention.attend(Q, K, V).copy_to_host(), range(12)))
    assert all((expected == X).all() for X in found) and len(made) == 1
