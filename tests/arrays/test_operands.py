"""Arrays as callers give them: what they hold, where they begin, and what lies alike."""

import numpy as np
import pytest

from labkit import cuda
from labkit.arrays import operands
from labkit.formats import BF16, E4M3, E5M2, FP16, FP32, INT8


class Tensor:
    """As much of one of torch's as says what it holds."""

    def __init__(self, array, dtype=None):
        self._array, self.shape = array, array.shape
        self.dtype = f"torch.{dtype or array.dtype}"  # of which only the words count

    def element_size(self):
        return self._array.dtype.itemsize


BITS16, BITS8 = np.arange(32, dtype=np.uint16).reshape(4, 8), np.zeros((4, 16), np.uint8)
WHOLE = np.arange(32, dtype=np.float32).reshape(4, 8)


@pytest.mark.parametrize(
    ("of", "format"),
    [
        (WHOLE, FP32),
        (WHOLE.astype(np.float16), FP16),
        (Tensor(BITS16, "bfloat16"), BF16),
        (Tensor(BITS8, "float8_e4m3fn"), E4M3),
        (Tensor(BITS8, "float8_e5m2"), E5M2),
        (WHOLE.astype(np.int8), INT8),
        (Tensor(WHOLE), FP32),
    ],
)
def test_a_type_declares_its_format(of, format):
    assert operands.common_format(of, of) is format


@pytest.mark.parametrize(
    ("of", "format"), [(BITS16, "bfloat16"), (BITS8, "float8_e4m3"), (WHOLE, "tf32"), (Tensor(BITS16), "bfloat16")]
)
def test_a_format_is_named_where_the_type_does_not_declare_it(of, format):
    assert operands.common_format(of, of, format).name == format


def test_what_nobody_declared_is_refused_and_so_is_what_cannot_be_meant():
    with pytest.raises(TypeError, match='may be bits of anything: say format="float8_e4m3"'):
        operands.common_format(BITS8, BITS8)
    with pytest.raises(TypeError, match='say format="bfloat16"'):
        operands.common_format(Tensor(BITS16), Tensor(BITS16))
    with pytest.raises(TypeError, match="A holds float8_e4m3fn"):
        operands.common_format(Tensor(BITS8, "float8_e4m3fn"), Tensor(BITS8, "float8_e4m3fn"), "bfloat16")
    e5m2 = Tensor(BITS8, "float8_e5m2")
    with pytest.raises(
        TypeError, match="^A holds float8_e5m2 and B float8_e5m2: convert both to float32 or float8_e4m3fn$"
    ):
        operands.common_format(e5m2, e5m2, formats=(FP32, E4M3))
    with pytest.raises(TypeError, match="A holds float8_e5m2 and B float8_e5m2, but float8_e4m3 is held by arrays of"):
        operands.common_format(e5m2, e5m2, "float8_e4m3")
    with pytest.raises(TypeError, match="^x holds float8_e5m2: give float32 or float8_e4m3$"):  # no bits of that
        operands.operand_format("x", e5m2, None, (FP32, E4M3))
    with pytest.raises(TypeError, match='^x holds uint8: give float32 or float8_e4m3, or say format="float8_e4m3" if'):
        operands.operand_format("x", BITS8, None, (FP32, E4M3))
    with pytest.raises(TypeError, match="A holds bfloat16 and B float32"):
        operands.common_format(Tensor(BITS16, "bfloat16"), WHOLE)


def test_arrays_of_two_formats_of_one_size_are_not_alike():
    e4m3, e5m2, bits = Tensor(BITS8, "float8_e4m3fn"), Tensor(BITS8, "float8_e5m2"), BITS8
    operands.check_same_type({"x": e4m3, "y": bits, "z": e4m3}, "x")
    with pytest.raises(TypeError, match="x holds float8_e4m3fn and y float8_e5m2: make them alike"):
        operands.check_same_type({"x": e4m3, "y": e5m2}, "x")


def test_the_cure_for_float64_is_told():
    wide = WHOLE.astype(np.float64)
    with pytest.raises(TypeError, match=r"A holds float64 and B float32: .*, as A.astype\(np.float32\) is"):
        operands.common_format(wide, WHOLE)
    with pytest.raises(TypeError, match=r"A holds float32 and B float64: .*, as B.astype\(np.float32\) is"):
        operands.common_format(WHOLE, wide)
    with pytest.raises(TypeError, match=r"x holds float64: give float32 or bfloat16, as x.astype\(np.float32\) is"):
        operands.operand_format("x", wide, None, (FP32, BF16))
    with pytest.raises(TypeError, match="x holds int32: give float32 or bfloat16$"):
        operands.operand_format("x", WHOLE.astype(np.int32), None, (FP32, BF16))


def test_a_plan_takes_arrays_of_the_device_alone():
    x = cuda.to_device(WHOLE)
    assert operands.as_device_array("A", x, True) is x
    with pytest.raises(TypeError, match=r"A is an array of the host, .*: take cuda.to_device\(A\)"):
        operands.as_device_array("A", WHOLE)
    with pytest.raises(TypeError, match="B is a list, not an array"):
        operands.as_device_array("B", [1.0])
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"A is an array of the host, .*: take A.cuda\(\)$"):
        operands.as_device_array("A", torch.ones(2))


def test_an_array_is_seen_as_the_memory_that_it_is():
    torch = pytest.importorskip("torch")
    X = torch.from_numpy(BITS16.view(np.int16)).view(torch.bfloat16)[1:, ::2]
    view = operands.as_view(X, "stands for it")
    assert (view.shape, view.strides, view.dtype) == ((3, 4), (16, 4), np.uint16)
    assert view.address == BITS16.ctypes.data + 16 and view.owner == "stands for it"
    assert operands.as_view(X).owner is X
    assert operands.layout(X) == ((3, 4), (16, 4), np.dtype(np.uint16), view.address % 16)


def test_the_order_of_axes_is_that_of_their_strides():
    x = np.zeros((2, 3, 4))
    assert operands.order_of_axes(x) is None
    for axes in ((0, 2, 1), (2, 1, 0), (1, 2, 0)):
        turned = x.transpose(np.argsort(axes))
        assert operands.order_of_axes(turned) == axes
