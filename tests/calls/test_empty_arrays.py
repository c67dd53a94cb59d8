"""No rows, and images of nothing: what comes back is empty, and a sum of nothing is zero."""

from itertools import product

import numpy as np
import pytest

import labkit
from labkit import cuda, layouts, norm, softmax

KINDS = "host", "device", "torch"
ROWS = pytest.mark.parametrize("rows", [(0,), (2, 0), (0, 3)], ids=str)
ON = pytest.mark.parametrize("on", KINDS)


def made(on, *shape):
    """Ones of a kind."""
    if on == "torch":
        return pytest.importorskip("torch").ones(shape)
    return np.ones(shape, np.float32) if on == "host" else cuda.to_device(np.ones(shape, np.float32))


def values(X):
    return X.copy_to_host() if hasattr(X, "copy_to_host") else np.asarray(X)


def row_calls(on, rows, columns=8):
    """Calls of rows by their arrays, outputs last, with what they give."""
    x, of_rows, of_columns = (lambda: made(on, *rows, columns)), (lambda: made(on, *rows)), (lambda: made(on, columns))
    return [
        (softmax.softmax, {"x": x()}, {"out": x()}),
        (softmax.softmax_backward, {"dy": x(), "y": x()}, {"dx": x()}),
        (norm.layer_norm, {"x": x(), "weight": of_columns(), "bias": of_columns()}, {"y": x()}),
        (norm.layer_norm, {"x": x(), "mean": of_rows(), "rstd": of_rows()}, {"y": x()}),
        (norm.rms_norm, {"x": x(), "weight": of_columns()}, {"y": x()}),
        (
            norm.layer_norm_backward,
            {"dy": x(), "x": x(), "weight": of_columns(), "mean": of_rows(), "rstd": of_rows()},
            {"dx": x(), "dweight": of_columns(), "dbias": of_columns()},
        ),
        (
            norm.rms_norm_backward,
            {"dy": x(), "x": x(), "weight": of_columns(), "rstd": of_rows()},
            {"dx": x(), "dweight": of_columns()},
        ),
    ]


@ROWS
@ON
def test_no_rows_give_no_rows_and_gradients_of_zero(on, rows):
    for function, arrays, outputs in row_calls(on, rows):
        for given in ({}, outputs):
            found = function(**arrays, **given)
            for (name, like), X in zip(outputs.items(), found if isinstance(found, tuple) else (found,), strict=True):
                assert type(X) is type(like) and X.dtype == like.dtype and tuple(X.shape) == tuple(like.shape)
                assert not values(X).any()  # nothing, or zeros where ones were
                assert name not in given or X is like


def test_no_rows_are_planned():
    for function, arrays, outputs in row_calls("device", (0,)):
        plan = labkit.plan(function, **arrays, **outputs)
        plan()
        assert not any(values(X).any() for X in outputs.values())


def test_gradients_of_weights_of_several_axes_are_zero_too():
    x, weight = np.ones((0, 2, 3), np.float32), np.ones((2, 3), np.float32)
    statistics = np.ones(0, np.float32)
    dx, dweight, dbias = norm.layer_norm_backward(x, x, weight, statistics, statistics)
    assert dx.shape == x.shape and dweight.shape == dbias.shape == (2, 3)
    assert not dweight.any() and not dbias.any()


def test_what_does_not_fit_no_rows_is_refused_all_the_same():
    x = np.ones((0, 8), np.float32)
    for call, words in {
        lambda: softmax.softmax(x, out=np.ones((0, 7), np.float32)): "out is 0 x 7, but 0 x 8 beside x",
        lambda: norm.rms_norm(x, np.ones(7, np.float32)): "weight is 7, but 8 beside x of 0 x 8",
        lambda: norm.layer_norm(x, rstd=np.ones(1, np.float32)): "rstd is 1, but 0 beside x of 0 x 8",
        lambda: softmax.softmax(x[:, :0]): "columns is 0, but it must be at least 1",
        lambda: norm.layer_norm(x[:, :0]): "columns is 0, but it must be at least 1",
    }.items():
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="x holds float64"):
        softmax.softmax(x.astype(np.float64))


SIZES = [sizes for sizes in product((0, 2), (0, 3), (0, 4), (0, 5)) if 0 in sizes]


@ON
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_images_of_nothing_are_images_of_nothing_in_another_layout(sizes, on):
    N, C, H, W = sizes
    shapes = {"NCHW": (N, C, H, W), "NHWC": (N, H, W, C), "NCHW_VECT_C": (N, -(-C // 4), H, W, 4)}
    for source, target in product(shapes, shapes):
        x, out = made(on, *shapes[source]), made(on, *shapes[target])
        channels = C if source == "NCHW_VECT_C" else None
        y = layouts.convert(x, source, target, channels=channels)
        assert type(y) is type(x) and tuple(y.shape) == shapes[target] and y.dtype == x.dtype
        assert layouts.convert(x, source, target, channels=channels, y=out) is out
        if on == "device":
            layouts.plan(x, source, target, channels=channels, y=out)()
