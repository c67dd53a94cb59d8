"""What `norm.batch_norm` and `norm.plan` refuse, in a sentence, before anything is written."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from labkit import cuda, norm
from labkit.arrays.views import as_strided

X = np.random.default_rng(0).standard_normal((3, 4, 5, 2)).astype(np.float32)
C = np.ones(4, np.float32)
RUNNING = {"running_mean": 0 * C, "running_variance": C}


def call(x=X, *arrays, **options):
    return lambda: norm.batch_norm(x, *arrays, **options)


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def device(X):
    return cuda.to_device(X)


def on_device(x=X, weight=C, bias=C, y=X, **options):
    """A call with arrays of the device, some of which are given as functions of what they would be."""

    def made():
        arrays = {"x": x, "weight": weight, "bias": bias, "y": y}
        arrays = {name: device(X.copy()) if isinstance(X, np.ndarray) else X for name, X in arrays.items()}
        others = {name: device(X.copy()) if isinstance(X, np.ndarray) else X for name, X in options.items()}
        return norm.batch_norm(**arrays, **others)

    return made


def shared(first, second, options=RUNNING):
    """A call in which two arrays of the device are the same."""

    def made():
        given = {"x": X, "weight": C, "bias": C, "y": X, "mean": C, "variance": C, **options}
        given = {name: device(array.copy()) for name, array in given.items()}
        given[second] = given[first]
        return norm.batch_norm(**given)

    return made


def overlapping(shift):
    """x and y as parts of one array."""
    whole = device(np.ones(2 * X.size, np.float32))
    return norm.batch_norm(whole[: X.size].reshape(X.shape), y=whole[shift : shift + X.size].reshape(X.shape))


def planned(*arrays, **options):
    return lambda: norm.plan(norm.batch_norm, *arrays, **options)


def lying(strides):
    """A call with images of other strides."""
    whole = device(np.ones(4 * X.size, np.float32))
    return lambda: norm.batch_norm(as_strided(whole, X.shape, tuple(4 * n for n in strides)), y=None)


REFUSED = {
    # x
    "nothing": (call(None), "x is None: give an array"),
    "a list": (call([[1.0, 2.0]]), "x is a list, not an array"),
    "a number": (call(3.0), "x is a float, not an array"),
    "a masked array": (call(np.ma.array(X)), "x is a masked array, and no mask is looked at"),
    "what only looks like a tensor": (
        call(SimpleNamespace(data_ptr=None, is_cuda=False)),
        "x is a SimpleNamespace, not",
    ),
    "one axis": (call(C), "x is of shape (4,): give images, N x C x pixels or N x pixels x C"),
    "no axis": (call(np.array(1, np.float32)), "x is of shape ()"),
    "float64": (call(X.astype(float)), "x holds float64: give float32 or bfloat16 or float16"),
    "whole numbers": (call(X.astype(int)), "x holds int64: give float32 or bfloat16 or float16"),
    "complex numbers": (call(X.astype(complex)), "x holds complex128: give float32 or bfloat16 or float16"),
    "truths": (call(X > 0), "x holds bool: give float32 or bfloat16 or float16"),
    "bits": (
        call(X.astype(np.uint16)),
        'x holds uint16: give float32 or bfloat16 or float16, or say format="bfloat16" if these',
    ),
    "no images": (call(X[:0]), "N is 0, but it must be at least 1"),
    "no channels": (call(X[:, :0]), "C is 0, but it must be at least 1"),
    "no pixels": (call(X[..., :0]), "W is 0, but it must be at least 1"),
    "one value a channel": (call(X[:1, :, :1, :1]), "each channel has one value, which has no unbiased variance"),
    "one value a channel, two axes": (call(X[:1, :, 0, 0]), "each channel has one value"),
    # y
    "y of another shape": (call(y=X[:2]), "y is 2 x 4 x 5 x 2, but 3 x 4 x 5 x 2 for these images: change it"),
    "y of another type": (call(y=X.astype(float)), "x holds float32 and y float64: make them alike"),
    "y that is read-only": (call(y=read_only(X)), "y is read-only: pass an array that can be written to"),
    "y of which elements are the same": (
        call(y=np.lib.stride_tricks.as_strided(X.copy(), X.shape, (0, 40, 8, 4), writeable=True)),
        "elements of y share their memory",
    ),
    # values for each channel
    "weights of another shape": (call(X, C[:3]), "weight is 3, but 4 for these images: change it"),
    "weights of two axes": (call(X, C[:, None]), "weight is 4 x 1, but 4 for these images"),
    "a weight": (call(X, np.array(1, np.float32)), "weight is a number, but 4 for these images"),
    "weights of the other layout": (call(X, C, layout="NHWC"), "weight is 4, but 2 for these images"),
    "weights of float64": (
        call(X, C.astype(float)),
        "weight holds float64, but beside images of float32 it is float32",
    ),
    "biases of bfloat16": (call(X, C, C.astype(np.uint16)), "bias holds uint16, but beside images of float32"),
    "weights in a list": (call(X, [1.0] * 4), "weight is a list, not an array"),
    "running statistics of another shape": (
        call(running_mean=C[:1], running_variance=C),
        "running_mean is 1, but 4 for these images",
    ),
    "running statistics that are read-only": (
        call(running_mean=read_only(C), running_variance=C.copy()),
        "running_mean is read-only",
    ),
    "one running statistic": (call(running_mean=C), "running_mean stands alone: give both running statistics, or none"),
    "the other one": (call(running_variance=C, training=False), "running_variance stands alone: give both"),
    "no running statistics": (
        call(training=False),
        "running_mean and running_variance are None, and inference normalises by them: give both",
    ),
    "statistics of a batch in inference": (
        call(training=False, mean=C, **RUNNING),
        "mean is not measured in inference: leave it out, or say training=True",
    ),
    "whole numbers as statistics": (call(mean=np.ones(4, int)), "mean holds int64, but beside images of float32"),
    # options
    "eps below 0": (call(eps=-1e-5), "eps is -1e-05: give a number that is not below 0"),
    "eps that is no number": (call(eps=float("nan")), "eps is nan: give a number that is not below 0"),
    "eps that is endless": (call(eps=float("inf")), "eps is inf: give"),
    "eps in a word": (call(eps="small"), "eps is 'small': give"),
    "eps that is too large": (call(eps=10**400), "give a number that is not below 0"),
    "eps as a truth": (call(eps=True), "eps is True: give"),
    "complex eps": (call(eps=1e-5 + 0j), "eps is (1e-05+0j): give"),
    "momentum in a word": (call(momentum="average"), "momentum is 'average': give a number, or None for an average"),
    "momentum that is no number": (call(momentum=float("nan")), "momentum is nan: give a number, or None"),
    "no momentum, and no number of batches": (
        call(momentum=None),
        "momentum is None, which takes the average of all batches: say how many there were before this one, as batches",
    ),
    "fewer batches than none": (call(momentum=None, batches=-1), "batches is -1: give how many there were before"),
    "half a batch": (call(momentum=None, batches=0.5), "batches is 0.5: give how many there were before this one"),
    "batches as a truth": (call(momentum=None, batches=True), "batches is True: give"),
    "endless batches": (
        call(momentum=None, batches=2**31),
        "batches is 2147483648, but it must be at least 0 and below",
    ),
    "training as a number": (call(training=1), "training is 1: say True or False"),
    "ReLU in a word": (call(relu="leaky"), "relu is 'leaky': say True or False"),
    "another layout": (call(layout="CHWN"), "there is no layout 'CHWN': say NCHW or NHWC"),
    "no layout": (call(layout=None), "there is no layout None: say NCHW or NHWC"),
    "another format": (call(format="fp8"), "there is no format 'fp8'"),
    "a format that is not computed": (
        call(format="float8_e4m3"),
        "float8_e4m3 is not computed here: give float32 or bfloat16 or float16",
    ),
    "a format that x does not hold": (
        call(format="bfloat16"),
        "x holds float32, but bfloat16 is held by arrays of uint16",
    ),
    "no stream": (call(stream=3), "3 is not a stream: give one of cuda.stream(), torch's or CuPy's, or 0"),
    "no stream on the device": (on_device(stream="default"), "'default' is not a stream"),
    # how they lie
    "gaps between rows": (lying((160, 40, 8, 1)), "x has gaps in memory, or axes in an order that is neither NCHW nor"),
    "gaps between pixels": (lying((80, 20, 4, 2)), "x has gaps in memory"),
    "axes in another order": (lying((1, 3, 12, 60)), "x has gaps in memory, or axes in an order that is neither"),
    "rows backwards": (
        lambda: norm.batch_norm(as_strided(device(X), X.shape, (160, 40, -8, 4), begin_byte=32)),
        "x has gaps",
    ),
    "one image many times": (lying((0, 10, 2, 1)), "x has gaps in memory"),
    "gaps between weights": (
        lambda: norm.batch_norm(device(X), device(np.ones(8, np.float32))[::2]),
        "elements of weight lie",
    ),
    "x and y in different orders": (
        lambda: norm.batch_norm(device(X), y=as_strided(device(X), X.shape, (160, 4, 32, 16))),
        "x and y lie in different orders, some in that of NCHW and some in that of NHWC",
    ),
    # memory that is shared
    "y that begins a value behind x": (
        lambda: overlapping(1),
        "y shares memory with x, which is read while y is written",
    ),
    "y that begins in the last value of x": (lambda: overlapping(X.size - 1), "y shares memory with x"),
    "mean and variance": (
        shared("mean", "variance"),
        "mean shares memory with variance, which is written too: give mean",
    ),
    "mean and running mean": (
        shared("running_mean", "mean"),
        "mean shares memory with running_mean, which is written too",
    ),
    "running statistics": (
        shared("running_mean", "running_variance"),
        "running_mean shares memory with running_variance",
    ),
    "weights that are moved": (
        shared("weight", "running_variance"),
        "running_variance shares memory with weight, which is",
    ),
    "y in the middle of x, of the host": (
        lambda: on_host_overlapping(),
        "y shares memory with x: give y memory of its own",
    ),
    "statistics of the host": (
        call(running_mean=C, running_variance=C),
        "running_mean shares memory with running_variance",
    ),
    # plans
    "a plan of another function": (
        lambda: norm.plan(np.mean, X),
        "is not planned: give a call of an operation, such as norm.layer_norm",
    ),
    "a plan without a result": (
        planned(device(X)),
        "y is None, and a plan allocates nothing: give an array to write to",
    ),
    "a plan for arrays of the host": (
        planned(X, y=X.copy()),
        "x is an array of the host, and a plan is for arrays of the",
    ),
    "a plan without images": (planned(), "missing a required argument: 'x'"),
    "a plan with another option": (planned(X, speed=2), "got an unexpected keyword argument 'speed'"),
    "a plan of an average": (
        planned(device(X), y=device(X), momentum=None, batches=3),
        "momentum is None, which counts each batch otherwise, and a plan counts all alike: give a number",
    ),
}


def on_host_overlapping():
    whole = np.ones(2 * X.size, np.float32)
    return norm.batch_norm(whole[: X.size].reshape(X.shape), y=whole[7 : 7 + X.size].reshape(X.shape))


@pytest.mark.parametrize(("refused", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_normalised_is_refused_in_a_sentence(refused, words):
    state = [X.copy(), C.copy()]
    with pytest.raises((TypeError, ValueError), match=re.escape(words)) as raised:
        refused()
    assert "\n" not in str(raised.value)
    assert (state[0] == X).all() and (state[1] == C).all()


def test_what_is_refused_once_is_refused_again_after_a_call_that_is_equal():
    """1 equals True, and 0.1 of another kind equals 0.1."""
    x, y = device(X), device(X)
    for _ in range(2):
        norm.batch_norm(x, y=y, relu=True, momentum=1)
        for options in ({"relu": 1}, {"momentum": True}, {"training": 1.0}):
            with pytest.raises((TypeError, ValueError)):
                norm.batch_norm(x, y=y, **options)
