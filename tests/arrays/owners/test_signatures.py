"""What is known of an array at once: the same for arrays that lie alike, however they were made, and for no others."""

import ctypes
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

from labkit.arrays.owners import NeedsPreparation, owner_of
from labkit.arrays.owners.cupy_arrays import CuPyArrays
from labkit.arrays.owners.labkit_arrays import SimulatedArrays, Views
from labkit.arrays.owners.numba_arrays import NumbaArrays
from labkit.arrays.owners.others import Others
from labkit.arrays.owners.torch_tensors import TorchTensors
from labkit.arrays.views import View
from labkit.simulator import host

WHOLE = np.arange(96, dtype=np.float32).reshape(6, 16)


class OfNumba:
    """An array as numba has it on a GPU, but for its memory."""

    def __init__(self, array):
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
        self.device_ctypes_pointer = ctypes.c_size_t(array.ctypes.data)


class OfCuPy:
    """As CuPy has it."""

    def __init__(self, array, device=0):
        self.shape, self.strides, self.dtype = array.shape, array.strides, array.dtype
        self.data, self.device = SimpleNamespace(ptr=array.ctypes.data), SimpleNamespace(id=device)


class OfAnother:
    """As any other package has it."""

    def __init__(self, array, stream=None):
        described = array.__array_interface__
        self.__cuda_array_interface__ = {**described, "strides": array.strides, "stream": stream, "version": 3}


@cache
def class_of_tensors():
    torch = pytest.importorskip("torch")

    class OnGpu(torch.Tensor):
        is_cuda, device_id = True, 0

        def get_device(self):
            return self.device_id

    return OnGpu


def tensor(array, device=0):
    """As torch has it."""
    found = pytest.importorskip("torch").from_numpy(array).as_subclass(class_of_tensors())
    found.device_id = device
    return found


def view(array):
    return View(array, array.shape, array.strides, array.dtype, array.ctypes.data)


MADE = {
    "numba": (NumbaArrays, OfNumba),
    "CuPy": (CuPyArrays, OfCuPy),
    "another": (Others, OfAnother),
    "torch": (TorchTensors, tensor),
    "simulator": (SimulatedArrays, host.DeviceArray),
    "view": (Views, view),
}


@pytest.fixture(params=MADE)
def signature(request):
    owner, made = MADE[request.param]
    return lambda array: owner().signature(made(array))


def test_arrays_that_lie_alike_have_one_signature(signature):
    known, address = signature(WHOLE[:4])
    assert address == WHOLE.ctypes.data
    for alike in (WHOLE[:4], WHOLE[2:], WHOLE.copy()[1:5], WHOLE[:4] + 1):
        found, begin = signature(alike)
        if (begin - address) % 16 == 0:
            assert found == known and hash(found) == hash(known)
    assert signature(WHOLE[2:])[1] == address + 128


@pytest.mark.parametrize(
    "other",
    [
        *(WHOLE[:3], WHOLE[:4, :15], WHOLE[None, :4], WHOLE[:4].view(np.int32)),
        *(np.zeros((4, 32), np.float32)[:, ::2], np.asfortranarray(WHOLE[:4]), np.zeros((8, 16), np.float32)[::2]),
    ],
    ids=["rows", "columns", "axes", "type", "apart", "turned", "rows apart"],
)
def test_arrays_that_lie_otherwise_have_another(other, signature):
    (found, begin), (known, address) = signature(other), signature(WHOLE[:4])
    assert found != known and begin % 16 == address % 16


def test_where_an_array_begins_beside_16_bytes_is_a_part_of_its_signature(signature):
    (known, address), (aligned, further), (other, _) = (signature(WHOLE[:, n : n + 2]) for n in (0, 4, 1))
    assert known == aligned != other and further - address == 16


def test_arrays_of_two_gpus_have_two_signatures():
    for owner, made in (MADE["torch"], MADE["CuPy"]):
        assert owner().signature(made(WHOLE, 0)) != owner().signature(made(WHOLE, 1))
        assert [owner().device_of(made(WHOLE, device)) for device in (0, 1)] == [0, 1]


def test_an_array_without_elements_has_a_signature(signature):
    assert signature(WHOLE[:0])[0] != signature(WHOLE[:, :0])[0]


def test_what_is_of_the_host_or_means_something_else_has_none():
    torch = pytest.importorskip("torch")
    with pytest.raises(NeedsPreparation):
        owner_of(WHOLE).signature(WHOLE)
    x = tensor(WHOLE)
    for X in (torch.from_numpy(WHOLE), torch._neg_view(x), x.clone().requires_grad_(), x.to(torch.complex64).conj()):
        with pytest.raises(NeedsPreparation):
            owner_of(X).signature(X)
    with torch.no_grad():
        assert owner_of(x).signature(x.clone().requires_grad_())


def test_an_array_may_name_the_stream_on_which_it_is_made():
    assert [Others().current_stream(OfAnother(WHOLE, stream)) for stream in (None, 1, 2, 4096)] == [None, 0, 2, 4096]


def test_the_class_of_an_array_says_whose_it_is():
    assert owner_of(WHOLE).name == owner_of(np.ma.array(WHOLE)).name == "NumPy"
    assert owner_of(host.DeviceArray(WHOLE)).name == "the simulator"
    assert owner_of(OfNumba(WHOLE)).name == "numba"
    assert owner_of(view(WHOLE)).name == "labkit"
    for X, named in (
        ([1.0], "list"),
        (3, "int"),
        (None, "NoneType"),
        (np.float32(1), "float32"),
    ):
        with pytest.raises(TypeError, match=rf"^a \w*{named}\w*, not an array: make it one with np.array"):
            owner_of(X)
