"""Arrays as callers give them: what they hold, where they begin, and what lies alike."""

import numpy as np
import pytest

from labkit import cuda
from labkit.arrays import operands
from labkit.formats import BF16, E4M3, FP16, FP32


class Tensor:
    """An array as torch has it on a GPU, but for its memory."""

    def __init__(self, array, dtype=None, is_cuda=True):
        self._array, self.shape, self.is_cuda = array, array.shape, is_cuda
        self.dtype = f"torch.{dtype or array.dtype}"  # of which only the words count

    def data_ptr(self):
        return self._array.ctypes.data

    def element_size(self):
        return self._array.dtype.itemsize

    def stride(self):
        return tuple(n // self._array.dtype.itemsize for n in self._array.strides)


BITS16, BITS8 = np.arange(32, dtype=np.uint16).reshape(4, 8), np.zeros((4, 16), np.uint8)
WHOLE = np.arange(32, dtype=np.float32).reshape(4, 8)


@pytest.mark.parametrize(
    ("of", "format"),
    [
        (WHOLE, FP32),
        (WHOLE.astype(np.float16), FP16),
        (Tensor(BITS16, "bfloat16"), BF16),
        (Tensor(BITS8, "float8_e4m3fn"), E4M3),
        (Tensor(WHOLE), FP32),
    ],
)
def test_a_type_declares_its_format(of, format):
    assert operands.format_of(of, of) is format


@pytest.mark.parametrize(
    ("of", "format"), [(BITS16, "bfloat16"), (BITS8, "float8_e4m3"), (WHOLE, "tf32"), (Tensor(BITS16), "bfloat16")]
)
def test_a_format_is_named_where_the_type_does_not_declare_it(of, format):
    assert operands.format_of(of, of, format).name == format


def test_what_nobody_declared_is_refused_and_so_is_what_cannot_be_meant():
    with pytest.raises(TypeError, match='may be bits of anything: say format="float8_e4m3"'):
        operands.format_of(BITS8, BITS8)
    with pytest.raises(TypeError, match='say format="bfloat16"'):
        operands.format_of(Tensor(BITS16), Tensor(BITS16))
    with pytest.raises(TypeError, match="A holds float8_e4m3fn"):
        operands.format_of(Tensor(BITS8, "float8_e4m3fn"), Tensor(BITS8, "float8_e4m3fn"), "bfloat16")
    with pytest.raises(TypeError, match="A holds float8_e5m2"):
        operands.format_of(Tensor(BITS8, "float8_e5m2"), Tensor(BITS8, "float8_e5m2"))
    with pytest.raises(TypeError, match="A holds bfloat16 and B float32"):
        operands.format_of(Tensor(BITS16, "bfloat16"), WHOLE)
    with pytest.raises(TypeError, match="B is a tensor of the host"):
        operands.check_array("B", Tensor(WHOLE, is_cuda=False))
    with pytest.raises(TypeError, match="B is a list, not an array"):
        operands.check_array("B", [1.0])
    with pytest.raises(TypeError, match="A is an array of the host"):
        operands.check_on_device("A", WHOLE)


def test_a_tensor_is_taken_as_the_memory_that_it_is():
    view = operands.taken(Tensor(BITS16[1:, ::2], "bfloat16"))
    assert (view.shape, view.strides, view.dtype) == ((3, 4), (16, 4), np.uint16)
    assert view.address == BITS16.ctypes.data + 16
    assert operands.layout(Tensor(BITS16[1:, ::2], "bfloat16"))[:3] == ((3, 4), (16, 4), np.dtype(np.uint16))


def test_what_lies_alike_is_known_by_the_same_and_nothing_else_is():
    X = cuda.to_device(np.zeros((6, 8), np.float32))
    known, address = operands.seen(X[:4])
    other, further = operands.seen(X[2:])
    assert known == other and further == address + 64
    for differs in (X[:4, :7], X[:3], X[:4, 1:], cuda.to_device(np.zeros((4, 8), np.int32))):
        assert operands.seen(differs)[0] != known
    of_tensors = {operands.seen(Tensor(part))[0] for part in (WHOLE, WHOLE.copy(), WHOLE.T)}
    assert len(of_tensors) == 2
