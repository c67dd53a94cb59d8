"""`layouts.convert`: right for any strides, by the kernel that suits them, and refused in a sentence otherwise."""

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import cuda, layouts
from labkit.arrays.views import as_strided
from labkit.arrays.workspace import Workspace
from labkit.calls import plan as plans
from labkit.calls.call import forget
from labkit.layouts import Conversion
from labkit.layouts.interface.conversion import Convert
from layouts.some_conversions import any_alignment

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
EXAMPLES = 1000 if WHOLE else 100
UNTOUCHED = 0x5A
GAPS = st.sampled_from((0, 0, 0, 1, 4, 8))


@st.composite
def strided(draw, shape, dtype):
    """An array within a larger one: between gaps, with its axes in another order, or backwards; and that one."""
    axes = len(shape)
    in_order, plain = st.just(list(range(axes))), st.just([0] * axes)
    order = draw(in_order | st.permutations(range(axes)))  # from the slowest axis to the fastest
    before, after = (draw(plain | st.lists(GAPS, min_size=axes, max_size=axes)) for _ in range(2))
    step = draw(st.sampled_from((1, 1, 2)))  # of the fastest
    turns = draw(st.just([1] * axes) | st.lists(st.sampled_from((1, -1)), min_size=axes, max_size=axes))
    sizes = [shape[axis] + low + high for axis, low, high in zip(order, before, after, strict=True)]
    sizes[-1] *= step
    whole = np.full(sizes, UNTOUCHED, dtype)
    part = whole[..., ::step]
    part = part[tuple(slice(low, size - high) for low, high, size in zip(before, after, part.shape, strict=True))]
    return whole, part[tuple(slice(None, None, turn) for turn in turns)].transpose(np.argsort(order))


def on_device(whole, part):
    """Both on the device, the second a view of the first."""
    memory = cuda.to_device(whole)
    begin = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return memory, as_strided(memory, part.shape, part.strides, begin_byte=begin)


@settings(max_examples=EXAMPLES)
@given(data=st.data(), problem=any_alignment(), itemsize=st.sampled_from((1, 2, 2, 4, 4, 8)))
def test_images_of_any_strides_are_converted_and_nothing_else_is_touched(data, problem, itemsize):
    dtype = np.dtype(f"u{itemsize}")
    x_whole, x = data.draw(strided(problem.shape(problem.source), dtype))
    y_whole, y = data.draw(strided(problem.shape(problem.target), dtype))
    rng = np.random.default_rng(problem.C)
    x[...] = Conversion(*problem.sizes, "NCHW", problem.source, problem.vector).oracle(
        rng.integers(1, 200, problem.shape("NCHW")).astype(dtype)
    )
    (_, on_x), (memory, on_y) = on_device(x_whole, x), on_device(y_whole, y)
    channels = problem.C if problem.source == "NCHW_VECT_C" else None
    found = layouts.convert(on_x, problem.source, problem.target, y=on_y, vector=problem.vector, channels=channels)
    assert found is on_y
    y[...] = problem.oracle(x)
    assert (memory.copy_to_host() == y_whole).all()


def test_a_row_of_two_elements_that_lie_apart_is_no_vector():
    x = np.arange(2 * 3 * 5 * 2, dtype=np.float32).reshape(2, 3, 5, 2)
    memory = cuda.to_device(np.full((2, 3, 5, 4), UNTOUCHED, np.float32))
    layouts.convert(cuda.to_device(x), "NCHW", "NCHW", y=as_strided(memory, x.shape, (240, 80, 16, 8)))
    found = memory.copy_to_host()
    assert (found[..., ::2] == x).all() and (found[..., 1::2] == UNTOUCHED).all()


@pytest.mark.parametrize("C", [3, 40])
@pytest.mark.parametrize("source", ["NCHW", "NHWC"])
def test_vectors_that_lie_slowest_end_in_zeros_too(C, source):
    problem = Conversion(2, C, 5, 6, source, "NCHW_VECT_C", 32)
    x, y, _ = problem.operands()
    memory = cuda.to_device(np.ascontiguousarray(y.transpose(4, 0, 1, 2, 3)))
    layouts.convert(
        cuda.to_device(x), source, "NCHW_VECT_C", y=as_strided(memory, y.shape, _turned(memory.strides)), vector=32
    )
    assert (memory.copy_to_host() == problem.oracle(x).transpose(4, 0, 1, 2, 3)).all()


def _turned(strides):
    return *strides[1:], strides[0]


def test_a_copy_of_vectors_ends_in_zeros_whatever_was_there():
    problem = Conversion(2, 5, 3, 4, "NCHW_VECT_C", "NCHW_VECT_C")
    clean = problem.operands()[0]
    x = clean.copy()
    x[:, -1, ..., 1:] = 7
    assert (layouts.convert(x, "NCHW_VECT_C", "NCHW_VECT_C", channels=5) == clean).all()


@pytest.mark.parametrize("sides", [(1, 1), (2, 2), (1, 4), (4, 2)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_images_of_few_pixels_get_vectors_too(sides, dtype):
    problem = Conversion(2, 3, *sides, "NCHW", "NCHW_VECT_C")
    x = np.arange(problem.min_bytes(), dtype=dtype)[: 6 * prod(sides)].reshape(problem.shape("NCHW"))
    assert (layouts.convert(x, "NCHW", "NCHW_VECT_C") == problem.oracle(x)).all()


def test_vectors_whose_channels_lie_as_planes_end_in_planes_of_zeros():
    problem = Conversion(2, 3, 1, 8, "NCHW", "NCHW_VECT_C")
    x, y, _ = problem.operands()
    memory = cuda.to_device(np.ascontiguousarray(y.transpose(0, 1, 4, 2, 3)))
    image, vector, channel, row, col = memory.strides
    layouts.convert(
        cuda.to_device(x), "NCHW", "NCHW_VECT_C", y=as_strided(memory, y.shape, (image, vector, row, col, channel))
    )
    assert (memory.copy_to_host() == problem.oracle(x).transpose(0, 1, 4, 2, 3)).all()


CUTS = {
    "rows backwards": np.s_[:, :, ::-1],
    "from the second pixel on": np.s_[..., 1:9],
    "every second image": np.s_[::2],
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_cut_of_images_is_copied_within_its_layout(cut):
    x = np.arange(2 * 3 * 4 * 12, dtype=np.float32).reshape(2, 3, 4, 12)
    _, on_x = on_device(x, x[cut])
    found = layouts.convert(on_x, "NCHW", "NCHW", y=cuda.to_device(np.zeros_like(x[cut])))
    assert (found.copy_to_host() == x[cut]).all()


def test_short_rows_with_gaps_are_no_run():
    problem = Conversion(2, 3, 4, 8)
    x, y, _ = problem.operands()
    memory = cuda.to_device(np.zeros((2, 4, 8, 4), np.float32))
    layouts.convert(cuda.to_device(x), "NCHW", "NHWC", y=as_strided(memory, y.shape, memory.strides))
    found = memory.copy_to_host()
    assert (found[..., :3] == problem.oracle(x)).all() and not found[..., 3].any()


def test_a_call_is_not_mistaken_for_another_of_the_same_arrays():
    x = np.arange(4**4, dtype=np.float32).reshape((4,) * 4)
    on_x, y = cuda.to_device(x), cuda.to_device(np.zeros_like(x))
    layouts.convert(on_x, "NCHW", "NHWC", y=y)
    layouts.convert(on_x, "NHWC", "NCHW", y=y)
    assert (y.copy_to_host() == x.transpose(0, 3, 1, 2)).all()


def kernels(problem, dtype=np.float32, alter=lambda X: X):
    """The kernels that a conversion of images without gaps launches."""
    x, y = (
        cuda.to_device(alter(np.zeros(problem.shape(layout), dtype))) for layout in (problem.source, problem.target)
    )
    channels = problem.C if "VECT" in problem.source else None
    operation = Convert(problem.source, problem.target, problem.vector, channels)
    return [launch.kernel.__name__ for launch in operation.launches({"x": x, "y": y}, Workspace())]


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (Conversion(2, 64, 8, 8), ["swizzled"]),
        (Conversion(2, 64, 7, 7), ["one_sided"]),
        (Conversion(2, 64, 7, 7, "NHWC", "NCHW"), ["spread"]),
        (Conversion(2, 63, 7, 7), ["transpose_tiles"]),
        (Conversion(2, 3, 8, 8), ["scatter"]),
        (Conversion(2, 3, 8, 8, "NHWC", "NCHW"), ["pieces"]),
        (Conversion(2, 64, 8, 8, "NCHW", "NCHW_VECT_C"), ["scatter"]),
        (Conversion(2, 64, 8, 8, "NHWC", "NCHW_VECT_C"), ["copy_vectors"]),
        (Conversion(2, 66, 8, 8, "NHWC", "NCHW_VECT_C"), ["copy_vectors", "copy_elements"]),
        (Conversion(2, 3, 8, 8, "NCHW", "NCHW_VECT_C"), ["scatter"]),
        (Conversion(2, 3, 8, 8, "NHWC", "NCHW_VECT_C"), ["copy_elements"]),
        (Conversion(2, 64, 8, 8, "NHWC", "NHWC"), ["copy_vectors"]),
    ],
    ids=str,
)
def test_the_kernel_is_the_one_for_such_images(problem, expected):
    assert kernels(problem) == expected


@pytest.mark.parametrize("C", [3, 40])
def test_what_the_host_has_comes_back_to_the_host(C):
    problem = Conversion(2, C, 5, 6, "NCHW", "NCHW_VECT_C", 32)
    x, y, _ = problem.operands()
    found = layouts.convert(x, "NCHW", "NCHW_VECT_C", vector=32)
    assert isinstance(found, np.ndarray) and (found == problem.oracle(x)).all()
    assert layouts.convert(x[:, ::-1], "NCHW", "NCHW_VECT_C", y=y, vector=32) is y
    assert (y == problem.oracle(x[:, ::-1])).all()
    assert (layouts.convert(found, "NCHW_VECT_C", "NCHW", vector=32, channels=C) == x).all()


def test_a_new_array_is_of_the_kind_of_the_images():
    x = np.arange(2 * 3 * 4 * 5, dtype=np.int16).reshape(2, 3, 4, 5)
    y = layouts.convert(cuda.to_device(x), "NCHW", "NHWC")
    assert not isinstance(y, np.ndarray) and y.dtype == np.int16
    assert (y.copy_to_host() == x.transpose(0, 2, 3, 1)).all()


def test_a_call_finds_the_plan_of_a_call_before(monkeypatch):
    problem = Conversion(2, 8, 5, 6)
    x, y, _ = problem.operands()
    on_x, on_y = cuda.to_device(x), cuda.to_device(y)
    forget(Convert)
    layouts.convert(on_x, "NCHW", "NHWC", y=on_y)
    monkeypatch.setattr(plans, "Prepared", None)
    other = cuda.to_device(-x)
    layouts.convert(other, "NCHW", "NHWC", y=on_y)
    assert (on_y.copy_to_host() == problem.oracle(-x)).all()


def test_a_plan_runs_for_other_arrays_that_lie_so():
    problem = Conversion(2, 66, 5, 6, "NHWC", "NCHW_VECT_C")
    x, y, _ = problem.operands()
    on_x, on_y = cuda.to_device(x), cuda.to_device(y)
    plan = layouts.plan(on_x, "NHWC", "NCHW_VECT_C", y=on_y)
    plan()
    assert (on_y.copy_to_host() == problem.oracle(x)).all()
    plan(cuda.to_device(-x), on_y)
    assert (on_y.copy_to_host() == problem.oracle(-x)).all()
    with pytest.raises(ValueError, match="x is of shape .*, and the plan is for .*: make a plan for such an array"):
        plan(cuda.to_device(x[:1]), on_y)


X, Y = np.zeros((2, 3, 4, 5), np.float32), np.zeros((2, 4, 5, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: layouts.convert([1.0], "NCHW", "NHWC"), TypeError, "x is a list, not an array"),
        (lambda: layouts.convert(X, "NCWH", "NHWC"), ValueError, "there is no layout 'NCWH': say NCHW, NHWC or"),
        (lambda: layouts.convert(X, "NCHW", 4), ValueError, "there is no layout 4"),
        (lambda: layouts.convert(X[0], "NCHW", "NHWC"), ValueError, "x has 3 axes: NCHW has 4, N x C x H x W"),
        (
            lambda: layouts.convert(X, "NCHW_VECT_C", "NHWC"),
            ValueError,
            "x has 4 axes: NCHW_VECT_C has 5, N x C/vector",
        ),
        (
            lambda: layouts.convert(np.zeros((1, 0, 3, 3, 4)), "NCHW_VECT_C", "NHWC", channels=-1),
            ValueError,
            "C is -1, but it must be at least 0",
        ),
        (
            lambda: layouts.convert(np.zeros((1, 1, 3, 3, 4)), "NCHW_VECT_C", "NHWC", channels=0),
            ValueError,
            "channels is 0, but x has room for 1 to 4",
        ),
        (lambda: layouts.convert(X, "NCHW", "NCHW_VECT_C", vector=8), ValueError, "vector is 8, but"),
        (lambda: layouts.convert(X[..., None], "NCHW_VECT_C", "NHWC"), ValueError, "vectors of x have 1 channels, but"),
        (
            lambda: layouts.convert(X, "NCHW", "NHWC", channels=4),
            ValueError,
            "channels is 4, but x has 3: leave it out",
        ),
        (
            lambda: layouts.convert(np.zeros((1, 2, 3, 3, 4)), "NCHW_VECT_C", "NHWC", channels=4),
            ValueError,
            "channels is 4, but x has room for 5 to 8: give one of these",
        ),
        (
            lambda: layouts.convert(X.astype(complex), "NCHW", "NHWC"),
            TypeError,
            "x holds complex128, but elements of 1",
        ),
        (
            lambda: layouts.convert(X, "NCHW", "NHWC", channels=np.array([3, 3])),
            TypeError,
            "channels is array.*, but it must be a whole number, or None for all",
        ),
        (
            lambda: layouts.convert(X.astype(object), "NCHW", "NHWC"),
            TypeError,
            "x holds Python objects, which no device can read: convert it to numbers",
        ),
        (
            lambda: layouts.convert(X, "NCHW", "NHWC", y=X),
            ValueError,
            "y is 2 x 3 x 4 x 5, but NHWC of these images is",
        ),
        (lambda: layouts.convert(X, "NCHW", "NHWC", y=Y.astype(int)), TypeError, "x holds float32 and y int64, but"),
        (lambda: layouts.convert(X, "NCHW", "NCHW", y=X), ValueError, "y shares memory with x"),
        (lambda: layouts.convert(X, "NCHW", "NHWC", y=np.broadcast_to(Y, Y.shape)), ValueError, "y is read-only"),
        (lambda: layouts.convert(X, "NCHW", "NHWC", stream="s"), TypeError, "'s' is not a stream"),
        (lambda: layouts.plan(X, "NCHW", "NHWC", y=Y), TypeError, "x is an array of the host, and a plan is for"),
        (lambda: layouts.plan(cuda.to_device(X), "NCHW", "NHWC", y=None), TypeError, "y is None, and a plan allocates"),
    ],
)
def test_what_cannot_be_converted_is_refused_in_a_sentence(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_memory_that_is_read_while_it_is_written_is_refused():
    memory = cuda.to_device(np.zeros(2 * 60, np.float32))
    x = as_strided(memory, (2, 3, 4, 5), (240, 80, 20, 4))
    y = as_strided(memory, (2, 4, 5, 3), (240, 60, 12, 4))
    with pytest.raises(ValueError, match="y shares memory with x, which is read while y is written"):
        layouts.convert(x, "NCHW", "NHWC", y=y)
    with pytest.raises(ValueError, match="elements of y share their memory"):
        layouts.convert(cuda.to_device(X), "NCHW", "NHWC", y=as_strided(memory, (2, 4, 5, 3), (0, 60, 12, 4)))
