"""torch's tensors in every call: read as torch means them, refused where they have no memory, given back as tensors.

They are the host's, which are copied to the simulator: what is asked of them is the same as on a GPU.
"""

from functools import cache
from inspect import signature

import numpy as np
import pytest
from calls.every_call import CALLS, INT32

from labkit import cuda, gemm, layouts, norm, softmax
from labkit.arrays.owners import owner_of

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning"),
    pytest.mark.filterwarnings("ignore:.*(nested tensors|Sparse CSR|quantize_per_tensor|ComplexHalf|torch.jit).*"),
]
EVERY = pytest.mark.parametrize("call", CALLS, ids=str)
BITS = {torch.bfloat16: torch.uint16, torch.float8_e4m3fn: torch.uint8}


def tensors_of(call, dtype=None):
    """The inputs of a call."""
    arrays = {name: torch.from_numpy(X) for name, X in call.arrays().items()}
    same = [name for name in arrays if name not in INT32 and not call.is_float32(name)]
    return {**arrays, **{name: arrays[name].to(dtype or arrays[name].dtype) for name in same}}


@cache
def expected_of(call):
    return call.run(tensors_of(call))


def written_by(call):
    """Tensors for all that a call writes."""
    outputs = dict(zip(call.outputs, map(torch.zeros_like, expected_of(call)), strict=True))
    return outputs | {name: torch.ones(shape) for name, shape in call.written.items()}


def together(call, name, X):
    """The inputs of a call, of which this is one, or beside this one that it writes."""
    beside = {"running_mean": "running_variance", "running_variance": "running_mean"}  # which go together
    others = {beside[name]: torch.ones(2)} if name in beside else {}
    return {**tensors_of(call), **others, name: X}


def as_numpy(X):
    return X.view(BITS.get(X.dtype, X.dtype)).numpy()


def declared(call, dtype):
    """What a call is told of bits."""
    has_format = "format" in signature(call.function).parameters
    return {"format": "bfloat16"} if has_format and dtype == torch.bfloat16 else {}


def bits(X):
    """A tensor's bits as NumPy's array."""
    return X.view(getattr(torch, f"uint{8 * X.element_size()}")).numpy()


def same(found, expected):
    return all(np.array_equal(bits(X), bits(Y)) for X, Y in zip(found, expected, strict=True))


def refused(call, error, arrays, words=None):
    """The sentence in which a call is refused."""
    with pytest.raises(error, match=words) as raised:
        call.run(arrays)
    assert "\n" not in str(raised.value)
    return str(raised.value)


# --- what comes back -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "dtype"), [pytest.param(call, name, id=f"{call} {name}") for call in CALLS for name in call.types]
)
@pytest.mark.sample(8)
def test_tensors_come_back_of_the_same_type(call, dtype):
    dtype = getattr(torch, dtype)
    tensors = tensors_of(call, dtype)
    found = call.run(tensors)
    for X, (name, shape) in zip(found, call.outputs.items(), strict=True):
        codes = name.endswith("_codes")
        assert type(X) is torch.Tensor and X.device.type == "cpu" and tuple(X.shape) == shape
        assert X.dtype == (torch.float8_e4m3fn if codes else torch.float32 if call.is_float32(name) else dtype)
    expected = call.run({name: as_numpy(X) for name, X in tensors.items()}, **declared(call, dtype))
    assert all(np.array_equal(bits(X), Y.view(bits(X).dtype)) for X, Y in zip(found, expected, strict=True))


def test_products_of_e4m3_are_bfloat16():
    A, B = (torch.ones(3, 16).to(torch.float8_e4m3fn) for _ in range(2))
    C = gemm.multiply(A, B, transpose_b=True)
    assert C.dtype == torch.bfloat16 and (C == 16).all()
    out = torch.zeros(3, 3, dtype=torch.bfloat16)
    assert gemm.multiply(A, B, C=out, transpose_b=True) is out and (out == 16).all()


@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.bool, torch.uint8, torch.int8, torch.float8_e4m3fn, torch.float8_e5m2, torch.int16, torch.uint16),
        *(torch.bfloat16, torch.float16, torch.int32, torch.complex32, torch.int64, torch.float64, torch.complex64),
    ],
    ids=str,
)
def test_elements_of_any_type_are_moved(dtype):
    x = torch.arange(1 * 2 * 3 * 4).reshape(1, 2, 3, 4).to(dtype)
    y = layouts.convert(x, "NCHW", "NHWC")
    assert y.dtype == dtype and (y == x.permute(0, 2, 3, 1)).all()
    out = torch.zeros_like(y)
    assert layouts.convert(x, "NCHW", "NHWC", y=out) is out and (out == y).all()


@EVERY
@pytest.mark.sample(7)
def test_tensors_of_any_strides_are_written(call):
    for name, plain in written_by(call).items():
        apart = torch.zeros((*plain.shape, 2)).to(plain.dtype)[..., 0]
        apart.copy_(plain)
        for out in (plain, apart):
            found = call.run(together(call, name, out))
            assert name in call.written or any(X is out for X in found)
        assert same([plain], [apart])


def test_a_tensor_of_a_class_of_ones_own_is_one():
    class Mine(torch.Tensor):
        pass

    x = torch.ones(2, 4)
    for X in (x.as_subclass(Mine), torch.nn.Parameter(x, requires_grad=False)):
        assert isinstance(softmax.softmax(X), torch.Tensor)
        assert (softmax.softmax(X) == 0.25).all()


# --- what a tensor means -------------------------------------------------------------------------


def negated(X):
    """The tensor as the imaginary part of conjugated numbers, whose memory holds what is negated."""
    found = torch.complex(torch.zeros_like(X), -X).conj().imag
    assert found.is_neg() and (found == X).all()
    return found


@EVERY
def test_a_negated_view_is_read_as_what_it_means(call):
    tensors = tensors_of(call)
    for name in call.inputs.keys() - INT32:
        assert same(call.run({**tensors, name: negated(tensors[name])}), expected_of(call))


def test_a_conjugated_view_is_moved_as_what_it_means():
    z = torch.randn(1, 2, 3, 4, dtype=torch.complex64)
    assert (layouts.convert(z.conj(), "NCHW", "NHWC") == z.conj().permute(0, 2, 3, 1)).all()
    with pytest.raises(ValueError, match="y is a negated or conjugated view"):
        layouts.convert(z, "NCHW", "NHWC", y=torch.zeros(1, 3, 4, 2, dtype=torch.complex64).conj())


@EVERY
def test_a_negated_view_is_not_written(call):
    for name, X in written_by(call).items():
        words = f"^{name} is a negated or conjugated view"
        refused(call, ValueError, together(call, name, torch._neg_view(X)), words)


# --- gradients -----------------------------------------------------------------------------------


@EVERY
def test_torch_sees_what_is_written_and_nothing_else(call):
    """So that backward refuses a tensor that was saved before and changed since."""
    for name, out in written_by(call).items():
        tensors = together(call, name, out)
        versions = {name: X._version for name, X in tensors.items()}
        factor = torch.ones(out.shape, requires_grad=True)
        product = factor * (out.float() if out.dtype == torch.float8_e4m3fn else out)  # which saves what it reads
        call.run(tensors)
        changed = {name for name, X in tensors.items() if X._version > versions[name]}
        assert changed == tensors.keys() & {*call.outputs, *call.written}
        if out.dtype != torch.float8_e4m3fn:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                product.sum().backward()


@EVERY
def test_a_tensor_whose_gradient_torch_would_record_is_refused(call):
    everything = {**tensors_of(call), **written_by(call)}
    learned = {name: X.clone().requires_grad_() for name, X in everything.items() if name not in INT32}
    for name, X in learned.items():
        words = f"^{name} requires a gradient, .*: use labkit.nn, or torch.no_grad"
        refused(call, TypeError, together(call, name, X), words)
    with torch.no_grad():
        assert same([X.detach() for X in call.run({**everything, **learned})], expected_of(call))
        found = call.run({name: learned.get(name, X) for name, X in tensors_of(call).items()})
    assert not any(X.requires_grad for X in found)


def test_a_derivative_that_torch_takes_forward_is_refused():
    import torch.autograd.forward_ad as forward

    x = torch.ones(2, 4)
    with forward.dual_level():
        with pytest.raises(TypeError, match="^x has a tangent of forward differentiation, and this call records none"):
            softmax.softmax(forward.make_dual(x, x))
        assert (softmax.softmax(x) == 0.25).all()


def test_tensors_of_inference_mode_are_taken():
    with torch.inference_mode():
        x, out = torch.ones(2, 4), torch.empty(2, 4)
        assert softmax.softmax(x, out=out) is out and (out == 0.25).all()
    assert (softmax.softmax(x) == 0.25).all()


# --- tensors that kernels cannot read --------------------------------------------------------------


def fake(X):
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode() as mode:
        return mode.from_tensor(X)


UNREADABLE = {
    "sparse": (lambda X: X.to_sparse(), "layout torch.sparse_coo, .*: pass a copy by .to_dense"),
    "of rows": (lambda X: X.reshape(-1, X.shape[-1]).to_sparse_csr(), "layout torch.sparse_csr, .*: pass a copy by"),
    "nested": (lambda X: torch.nested.nested_tensor([X, X]), "nested tensor, .*: pass them one by one"),
    "jagged": (
        lambda X: torch.nested.nested_tensor([X, X], layout=torch.jagged),
        "nested tensor, .*: pass them one by one",
    ),
    "quantized": (lambda X: torch.quantize_per_tensor(X.float(), 0.1, 0, torch.qint8), "quantized tensor: pass a copy"),
    "meta": (lambda X: X.to("meta"), "on meta, and kernels run on an NVIDIA GPU"),
    "fake": (fake, "FakeTensor without memory of its own, .*: call this outside"),
    "zeros": (lambda X: torch._efficientzerotensor(X.shape, dtype=X.dtype), "Tensor without memory of its own"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
@EVERY
def test_a_tensor_without_plain_memory_is_refused(call, kind):
    made, words = UNREADABLE[kind]
    for name, X in {**tensors_of(call), **written_by(call)}.items():
        refused(call, TypeError, together(call, name, made(X.float())), f"^{name} (is|has) .*{words}")


TRANSFORMS = {
    "vmap": lambda f, X: torch.vmap(f)(torch.stack([X, X])),
    "grad": lambda f, X: torch.func.grad(lambda X: f(X)[0].sum())(X),
    "jvp": lambda f, X: torch.func.jvp(f, (X,), (X,)),
    "functionalize": lambda f, X: torch.func.functionalize(f)(X),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@EVERY
def test_what_torch_transforms_is_refused(call, transform):
    tensors = tensors_of(call)
    for name, X in tensors.items():
        if name in INT32:
            continue
        with pytest.raises(TypeError, match=f"^{name} is a Tensor without memory of its own, as torch.func"):
            TRANSFORMS[transform](lambda X, name=name: call.run({**tensors, name: X}), X)


@EVERY
def test_float64_is_refused_with_its_cure(call):
    if call.function is layouts.convert:
        pytest.skip("it moves elements of any type")
    of_torch = {name: X.double() if name not in INT32 else X for name, X in tensors_of(call).items()}
    assert ".float()" in refused(call, TypeError, of_torch)
    of_numpy = {name: X.numpy() for name, X in of_torch.items()}
    assert ".astype(np.float32)" in refused(call, TypeError, of_numpy)


# --- beside other arrays -----------------------------------------------------------------------------


@EVERY
@pytest.mark.sample(7)
def test_a_tensor_of_the_host_goes_with_arrays_of_the_device(call):
    dtype = getattr(torch, "bfloat16" if "bfloat16" in call.types else call.types[0])
    tensors = tensors_of(call, dtype)
    expected = call.run(tensors)
    arrays = {name: cuda.to_device(as_numpy(X)) for name, X in tensors.items()}
    for name in tensors if len(tensors) > 1 else ():
        found = call.run({**arrays, name: tensors[name]}, **declared(call, dtype))
        assert not any(isinstance(X, torch.Tensor) for X in found)
        assert all(np.array_equal(X.copy_to_host().view(bits(Y).dtype), bits(Y)) for X, Y in zip(found, expected))
    for place, (name, Y) in enumerate(zip(call.outputs, expected)):
        out = torch.zeros_like(Y)
        found = call.run({**arrays, name: out}, **declared(call, dtype))
        assert (found[place] if len(found) > 1 else found[0]) is out and same([out], [Y])


def test_the_owner_of_a_tensor_is_torch():
    assert owner_of(torch.ones(2)).name == "torch"
    x = torch.ones(4, 6)
    assert norm.layer_norm(x.t()).shape == (6, 4)  # of any strides, as the host's are copied
