"""`norm.fold`: a convolution with folded filters is the convolution and its batch norm, and what cannot be folded."""

import re

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import conv, cuda, norm
from labkit.formats import BF16, FP16, FP32

SETTINGS = settings(max_examples=200 if WHOLE else 30, phases=[Phase.generate])
LEFT_OUT = "bias", "weight", "beta"
EPS = {FP32: 2.0**-24, FP16: 2.0**-11, BF16: 2.0**-8}  # of rounding to nearest


@st.composite
def convolutions(draw):
    groups, layout = draw(st.sampled_from((1, 2, 3))), draw(st.sampled_from(("NCHW", "NHWC")))
    sides = {"N": 2, "C": 6, "H": draw(st.integers(4, 8)), "W": draw(st.integers(4, 8)), "K": 12, "groups": groups}
    taps = {"R": draw(st.integers(1, 3)), "S": draw(st.integers(1, 3))}
    return conv.Forward(**sides, **taps, stride_h=draw(st.integers(1, 2)), top=taps["R"] - 1, layout=layout)


def layer(K, seed):
    """Summands of the convolution, and the batch norm behind it."""
    rng = np.random.default_rng(seed)
    of = {name: rng.standard_normal(K).astype(np.float32) for name in ("bias", "running_mean", "weight", "beta")}
    return of | {"running_variance": rng.uniform(0.01, 3, K).astype(np.float32)}


@pytest.mark.parametrize("format", EPS, ids=str)
def test_folded_filters_give_what_convolution_and_batch_norm_give(format):
    @SETTINGS
    @given(
        one=convolutions(), seed=st.integers(0, 2**16), left_out=st.sets(st.sampled_from(("bias", "weight", "beta")))
    )
    def check(one, seed, left_out):
        x, w, _, _ = one.operands(format, seed)
        given = {name: None if name in left_out else X for name, X in layer(one.K, seed).items()}
        filters, biases = norm.fold(w, **given, eps=1e-3, format=str(format))
        assert filters.dtype == w.dtype and biases.dtype == np.float32
        decoded, shape = format.decode(x), (-1, 1, 1) if one.layout == "NCHW" else (-1,)
        of = {name: X.astype(float).reshape(shape) for name, X in given.items() if X is not None}
        y = one.oracle(decoded, format.decode(w)) + of.get("bias", 0)
        scale = of.get("weight", 1) / np.sqrt(of["running_variance"] + 1e-3)
        expected = (y - of["running_mean"]) * scale + of.get("beta", 0)
        result = one.oracle(decoded, format.decode(filters)) + biases.astype(float).reshape(shape)
        size = one.oracle(np.abs(decoded), np.abs(format.decode(w))) * np.abs(scale)  # each filter is rounded once
        assert (
            np.abs(result - expected) <= 1.1 * EPS[format] * size + 2e-7 * (np.abs(biases).reshape(shape) + 1)
        ).all()

    check()


def test_arrays_of_the_device_give_arrays_of_the_device():
    w = np.random.default_rng(0).standard_normal((5, 3, 2, 2)).astype(np.float32)
    of = layer(5, 1)
    expected = norm.fold(w, **of)
    result = norm.fold(cuda.to_device(w), **{name: cuda.to_device(X) for name, X in of.items()})
    assert all(
        cuda.is_cuda_array(X) and (X.copy_to_host() == right).all() for X, right in zip(result, expected, strict=True)
    )


def test_arrays_of_the_host_and_of_the_device_give_arrays_of_the_device():
    expected = norm.fold(W, **OF)
    for name in ("w", "running_mean", "beta"):
        given = {"w": W} | OF
        result = norm.fold(**given | {name: cuda.to_device(given[name])})
        assert all(
            cuda.is_cuda_array(X) and (X.copy_to_host() == right).all()
            for X, right in zip(result, expected, strict=True)
        )


def test_biases_are_float32_where_statistics_are_of_the_type_of_the_filters():
    w, of = FP16.encode(W), {name: FP16.encode(X) for name, X in OF.items()}
    filters, biases = norm.fold(w, **of)
    assert filters.shape == w.shape and filters.dtype == np.float16
    assert biases.shape == (4,) and biases.dtype == np.float32
    assert np.allclose(biases, norm.fold(W, **{name: FP16.decode(X).astype(np.float32) for name, X in of.items()})[1])


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_tensors_of_the_host_give_tensors(name):
    import torch

    w, of = torch.from_numpy(W).to(getattr(torch, name)), {key: torch.from_numpy(X) for key, X in OF.items()}
    expected = norm.fold(W, **OF)  # ones, which both types hold
    filters, biases = norm.fold(w, **of)
    assert filters.dtype == w.dtype and biases.dtype == torch.float32
    assert np.allclose(filters.float(), expected[0], rtol=2**-7) and np.allclose(biases, expected[1])


def test_a_layer_of_a_matrix_is_folded_too():
    w, of = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32), layer(5, 1)
    filters, biases = norm.fold(w, **of)
    x = np.random.default_rng(1).standard_normal((4, 7)).astype(np.float32)
    y = x @ w.T + of["bias"]
    running = {name: of[name] for name in ("running_mean", "running_variance")}
    expected = norm.batch_norm(y, of["weight"], of["beta"], training=False, **running)
    assert np.allclose(x @ filters.T + biases, expected, atol=1e-5)


def test_biases_are_added_as_the_notes_say():
    y, biases = (
        np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32),
        np.arange(3, dtype=np.float32),
    )
    expected = np.maximum(y + biases[:, None, None], 0)
    zeros, ones = np.zeros_like(biases), np.ones_like(biases)
    options = {"running_mean": zeros, "running_variance": ones, "eps": 0, "training": False, "relu": True}
    assert norm.batch_norm(y, None, biases, y=y, **options) is y
    assert (y == expected).all()


W, OF = np.ones((4, 3, 2, 2), np.float32), layer(4, 0)


def changed(**others):
    return lambda: norm.fold(**({"w": W} | OF | others))


REFUSED = {
    "statistics of each batch": (
        changed(running_mean=None),
        "running_mean is None: a batch norm that takes the statistics of each batch depends on all its images",
    ),
    "no variance": (changed(running_variance=None), "running_variance is None: a batch norm that takes"),
    "no filters": (changed(w=None), "w is a NoneType, not an array"),
    "a list": (changed(bias=[1.0] * 4), "bias is a list, not an array"),
    "whole numbers": (changed(w=W.astype(int)), "w holds int64: give float32 or float16 or bfloat16"),
    "bits": (changed(w=W.astype(np.uint16)), 'say format="bfloat16" if these are bits of that'),
    "another format": (changed(format="float8_e4m3"), "float8_e4m3 is not computed here: give float32"),
    "other biases": (changed(bias=np.ones(4)), "bias holds float64: convert it to float32"),
    "fewer channels": (changed(weight=OF["weight"][:3]), "weight is 3, and there are 4 filters: give a value for each"),
    "filters of a transposed convolution": (changed(w=W.swapaxes(0, 1)), "bias is 4, and there are 3 filters"),
    "a vector": (changed(w=OF["bias"]), "w is of shape (4,): give filters, K x C x taps"),
    "no taps": (changed(w=W[..., :0]), "w is of shape (4, 3, 2, 0): give filters"),
    "eps below 0": (changed(eps=-1.0), "eps is -1.0: give a number that is not below 0"),
    "eps in a word": (changed(eps="1"), "eps is '1': give a number"),
    "a mean that is no number": (changed(running_mean=OF["bias"] * np.nan), "running_mean is not finite everywhere"),
    "an endless variance": (changed(running_variance=OF["bias"] * np.inf), "running_variance is not finite everywhere"),
    "a variance below 0": (
        changed(running_variance=-OF["running_variance"]),
        "running_variance and eps are not above 0",
    ),
    "nothing to divide by": (
        changed(running_variance=0 * OF["bias"], eps=0),
        "running_variance and eps are not above 0",
    ),
    "filters too large": (
        changed(w=np.full((4, 1, 1, 1), 6e4, np.float16), weight=np.full(4, 9, np.float32)),
        "folded filters are too large for float16, or no numbers: keep this batch norm by itself",
    ),
}


@pytest.mark.parametrize(("refused", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_folded_is_refused_in_a_sentence(refused, words):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)) as raised:
        refused()
    assert "\n" not in str(raised.value)
