"""Arrays of the host, alone and beside those of the device: copied there and back, and refused where they overlap."""

import numpy as np
import pytest

from calls.every_call import CALLS
from labkit import cuda, gemm, layouts, norm, softmax

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
EVERY = pytest.mark.parametrize("call", CALLS, ids=str)


def on_host(X):
    return X if isinstance(X, np.ndarray) else X.copy_to_host()


def whole(call):
    """The inputs of a call, and zeros for all that it writes."""
    arrays = call.arrays()
    outputs = dict(zip(call.outputs, map(np.zeros_like, call.run(arrays)), strict=True))
    return arrays, outputs | {name: np.ones(shape, np.float32) for name, shape in call.written.items()}


@EVERY
@pytest.mark.parametrize("others", [np.copy, cuda.to_device], ids=["one of the device", "one of the host"])
@pytest.mark.sample(10)
def test_arrays_of_the_host_and_of_the_device_are_mixed(call, others):
    """The results are right, and new ones of the device."""
    arrays, outputs = whole(call)
    expected_arrays = {**arrays, **{name: X.copy() for name, X in outputs.items()}}
    call.run(expected_arrays)
    one = cuda.to_device if others is np.copy else np.copy
    for odd in (*arrays, *outputs):
        mixed = {name: (one if name == odd else others)(X) for name, X in {**arrays, **outputs}.items()}
        found = call.run(mixed)
        assert all(X is mixed[name] for name, X in zip(call.outputs, found))
        for name, X in mixed.items():
            np.testing.assert_array_equal(on_host(X), expected_arrays[name], f"{name} beside {odd}")
        if odd == next(iter(arrays)) and len(arrays) > 1:
            found = call.run({name: mixed[name] for name in arrays})
            assert not any(isinstance(X, np.ndarray) for X in found)
            assert all(np.array_equal(on_host(X), expected_arrays[name]) for name, X in zip(call.outputs, found))


@EVERY
def test_what_is_written_may_have_any_strides(call):
    arrays, outputs = whole(call)
    rooms = {name: np.zeros((*X.shape, 3), X.dtype) for name, X in outputs.items()}
    parts = {name: room[..., 1][(slice(None, None, -1),) * (room.ndim - 1)] for name, room in rooms.items()}
    for name in call.written:
        outputs[name][...] = parts[name][...] = 1
    call.run({**arrays, **outputs})
    call.run({**arrays, **parts})
    for name, X in outputs.items():
        np.testing.assert_array_equal(parts[name], X, name)
        assert not rooms[name][..., 0].any() and not rooms[name][..., 2].any()


@EVERY
@pytest.mark.parametrize("dtype", ["its own", "torch"])
def test_what_overlaps_is_refused(call, dtype):
    """Each array that is written, with each other one: both within the same memory, one four bytes further."""
    if dtype == "torch":
        torch = pytest.importorskip("torch")
    arrays, outputs = whole(call)
    everything = {**arrays, **outputs}
    for written, Y in outputs.items():
        for other, X in everything.items():
            if other == written:
                continue
            memory = np.zeros(max(X.nbytes, Y.nbytes) + 4, np.uint8)
            overlapping = {
                written: memory[: Y.nbytes].view(Y.dtype).reshape(Y.shape),
                other: memory[4 : 4 + X.nbytes].view(X.dtype).reshape(X.shape),
            }
            given = {**everything, **overlapping}
            if dtype == "torch":
                given = {name: torch.from_numpy(X) for name, X in given.items()}
                codes = [name for name in given if name.endswith("_codes")]
                given |= {name: given[name].view(torch.float8_e4m3fn) for name in codes}
            with pytest.raises(ValueError, match="shares memory with .*: give .* memory of its own") as raised:
                call.run(given)
            assert {written, other} <= set(str(raised.value).replace(":", "").split())


@EVERY
def test_elements_that_share_their_memory_are_not_written(call):
    arrays, outputs = whole(call)
    for name, X in outputs.items():
        repeated = np.lib.stride_tricks.as_strided(X, X.shape, (0,) * X.ndim)
        if X.size > 1:
            with pytest.raises(ValueError, match=f"^elements of {name} share their memory"):
                call.run({**arrays, **outputs, name: repeated})
        read_only = X.copy()
        read_only.flags.writeable = False
        with pytest.raises(ValueError, match=f"^{name} is read-only: pass an array that can be written to"):
            call.run({**arrays, **outputs, name: read_only})


@EVERY
def test_what_is_written_in_the_place_of_an_operand_is_right(call):
    arrays = call.arrays()
    expected = dict(zip(call.outputs, call.run(arrays)))
    for output, name in call.operation.in_place.items():
        x = arrays[name].copy()
        found = dict(zip(call.outputs, call.run({**arrays, name: x, output: x})))
        assert found[output] is x
        for each, X in expected.items():
            np.testing.assert_array_equal(found[each], X)


def test_arrays_that_alternate_in_memory_share_none():
    memory = np.ones((4, 16), np.float32)
    x, out = memory[:, ::2], memory[:, 1::2]
    assert softmax.softmax(x, out=out) is out
    assert (out == 1 / 8).all() and (x == 1).all()
    rows = np.ones((8, 6), np.float32)
    gemm.multiply(rows[::2, :4], np.ones((4, 6), np.float32), C=rows[1::2])
    assert (rows[1::2] == 4).all() and (rows[::2] == 1).all()


@pytest.mark.parametrize("kind", ["bool", "i1", "u2", "f2", "i4", ">f4", "f8", ">i8", "c8", "M8[s]", "S4"])
def test_elements_of_any_type_of_numpy_are_moved(kind):
    x = np.arange(24).astype("u1" if kind == "bool" else kind.replace("M8[s]", "i8")).astype(kind).reshape(1, 2, 3, 4)
    y = layouts.convert(x, "NCHW", "NHWC")
    assert y.dtype == x.dtype and (y == x.transpose(0, 2, 3, 1)).all()
    out = np.zeros_like(y)
    assert layouts.convert(x, "NCHW", "NHWC", y=out) is out and (out == y).all()


def test_types_of_ml_dtypes_say_what_they_hold():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    A, B = (np.ones((3, 16), ml_dtypes.bfloat16) for _ in range(2))
    C = gemm.multiply(A, B, transpose_b=True)
    assert C.dtype == A.dtype and (C == 16).all()
    out = np.zeros((3, 3), ml_dtypes.bfloat16)
    assert gemm.multiply(A, B, C=out, transpose_b=True) is out and (out == 16).all()
    codes = A.astype(ml_dtypes.float8_e4m3fn)
    assert (gemm.multiply(codes, codes, transpose_b=True, C=out) == 16).all()
    assert (softmax.softmax(A, out=A) == 1 / 16).all()


def test_running_statistics_of_the_host_are_moved_beside_images_of_the_device():
    x = np.random.default_rng(0).standard_normal((4, 2, 3, 3)).astype(np.float32)
    mean, variance = np.ones(2, np.float32), np.ones(2, np.float32)
    expected = mean.copy(), variance.copy()
    norm.batch_norm(x, running_mean=expected[0], running_variance=expected[1])
    norm.batch_norm(cuda.to_device(x), running_mean=mean, running_variance=variance)
    np.testing.assert_array_equal((mean, variance), expected)
    assert (mean != 1).all()
