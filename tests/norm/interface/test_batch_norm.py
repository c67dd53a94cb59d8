"""`norm.batch_norm`: right for images in either order, for state as torch keeps it, and by the step that suits them."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import cuda, norm
from labkit.arrays.workspace import Workspace
from labkit.calls.call import forget
from labkit.calls.route import routes
from labkit.formats import BF16, FP32
from labkit.ladder import ladder
from labkit.norm import inference, problem
from labkit.norm.interface import batch_norm
from norm.interface.some_images import on_host, turned

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
SETTINGS = settings(max_examples=200 if WHOLE else 20, phases=[Phase.generate])
LEFT_OUT = {"weight": 1, "bias": 0}


@pytest.fixture(autouse=True)
def as_a_new_process():
    forget()
    yield
    forget()


@st.composite
def problems(draw, kind):
    sizes = [draw(st.integers(1, most)) for most in (5, 6, 7, 7)]
    assume(sizes[0] * sizes[2] * sizes[3] >= (8 if kind is norm.BatchForward else 1))
    others = {"relu": draw(st.booleans()), "layout": draw(st.sampled_from(("NCHW", "NHWC")))}
    others["eps"] = draw(st.sampled_from((1e-5, 1e-3)))
    if kind is norm.BatchForward:
        others |= {"momentum": draw(st.none() | st.floats(0, 1)), "batches": draw(st.integers(0, 5))}
    return kind(*sizes, **others)


def options_of(one):
    """The options of a call that computes a problem."""
    options = {"relu": one.relu, "layout": one.layout, "eps": one.eps}
    if isinstance(one, norm.BatchInference):
        return options | {"training": False}
    return options | {"momentum": one.momentum, "batches": one.batches}


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize("kind", [norm.BatchForward, norm.BatchInference], ids=["training", "inference"])
def test_results_and_state_are_right_on_random_problems(kind, format):
    """Of images in the order of either layout, with weights, statistics and y there or left out."""

    @SETTINGS
    @given(
        one=problems(kind),
        seed=st.integers(0, 2**16),
        left_out=st.sets(st.sampled_from(("weight", "bias", "mean", "variance", "running", "y"))),
        way=st.sampled_from(("host", "device", "turned", "in place")),
    )
    def check(one, seed, left_out, way):
        before = dict(zip(one.arrays, one.operands(format, seed)))
        before |= {name: np.full(one.C, value, np.float32) for name, value in LEFT_OUT.items() if name in left_out}
        gone = {name for name in one.arrays if name in left_out}
        if "running" in left_out and kind is norm.BatchForward:
            gone |= {"running_mean", "running_variance"}
        if way == "in place":
            gone -= {"y"}
        take = {"host": np.copy, "turned": lambda X: turned(X, one.layout) if X.ndim == 4 else cuda.to_device(X)}
        taken = {name: take.get(way, cuda.to_device)(X) for name, X in before.items()}
        if way == "in place":
            taken["y"] = taken["x"]
        given = {name: None if name in gone else X for name, X in taken.items()}
        y = norm.batch_norm(**given, **options_of(one), format=str(format))
        assert "y" in gone or y is taken["y"]
        assert isinstance(y, np.ndarray) == (way == "host") and y.shape == before["x"].shape
        expected = one.expected((*before.values(), one), format)
        result = {name: on_host(X) for name, X in (taken | {"y": y}).items()}
        for index, right in expected.items():
            name = one.arrays[index]
            decoded = (format if name == "y" else FP32).decode(result[name])
            assert right.holds(decoded) or (name in gone and name != "y"), name
        assert way == "in place" or (result["x"] == before["x"]).all()
        for name in gone - {"y"}:
            assert np.array_equal(result[name], before[name], equal_nan=True), name

    check()


def test_a_new_array_lies_as_the_images_do():
    x = np.random.default_rng(0).standard_normal((3, 5, 4, 2)).astype(np.float32)
    expected = norm.batch_norm(x, relu=True)
    for images in (cuda.to_device(x), turned(x)):
        y = norm.batch_norm(images, relu=True)
        assert y.strides == images.strides and np.allclose(on_host(y), expected, atol=1e-6)


def test_arrays_of_the_host_and_of_the_device_may_be_mixed():
    """What is written is written where it is; a new result is of the device."""
    x, C = np.random.default_rng(0).standard_normal((3, 4, 5, 2)).astype(np.float32), np.ones(4, np.float32)
    running = {"running_mean": 0 * C, "running_variance": C}
    expected = norm.batch_norm(x, 2 * C, **(after := {name: X.copy() for name, X in running.items()}))
    for way in ("x", "weight", "running_mean", "running_variance", "y"):
        given = {"x": x, "weight": 2 * C} | {name: X.copy() for name, X in running.items()}
        given |= {"y": np.zeros_like(x)} if way == "y" else {way: cuda.to_device(given[way])}
        given |= {"x": cuda.to_device(x)} if way == "y" else {}
        y = norm.batch_norm(**given)
        assert y is given["y"] if way == "y" else cuda.is_cuda_array(y)
        assert (on_host(y) == expected).all(), way
        assert all((on_host(given[name]) == after[name]).all() for name in running), way


@pytest.mark.parametrize("shape", [(6, 4), (3, 4, 5), (2, 4, 3, 2, 2)], ids=str)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_images_may_have_any_axes_of_pixels(shape, layout):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    axes = tuple(axis for axis in range(len(shape)) if axis != 1)
    centred = x - x.mean(axes, keepdims=True)
    expected = centred / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    given, back = (np.moveaxis(x, 1, -1), (-1, 1)) if layout == "NHWC" else (x, (1, 1))
    for y in (norm.batch_norm(given, layout=layout), norm.batch_norm(cuda.to_device(given.copy()), layout=layout)):
        assert np.allclose(np.moveaxis(on_host(y), *back), expected, atol=1e-5)


def test_images_that_begin_at_no_multiple_of_16_bytes_are_taken():
    x = np.random.default_rng(0).standard_normal(2 * 3 * 4 * 4 + 1).astype(np.float32)
    expected = norm.batch_norm(x[1:].reshape(2, 3, 4, 4))
    for training, running in ((True, {}), (False, {"running_mean": np.zeros(3), "running_variance": np.ones(3)})):
        running = {name: cuda.to_device(X.astype(np.float32)) for name, X in running.items()}
        shifted = cuda.to_device(x)[1:].reshape(2, 3, 4, 4)
        y = norm.batch_norm(shifted, training=training, eps=0 if running else 1e-5, **running)
        assert np.allclose(on_host(y), x[1:].reshape(2, 3, 4, 4) if running else expected, atol=1e-6)


def test_statistics_are_right_where_the_mean_is_many_spreads_from_zero():
    for layout in ("NCHW", "NHWC"):
        one = norm.BatchForward(8, 3, 20, 10, layout=layout, hard=True)
        before = dict(zip(one.arrays, one.operands()))
        after = {name: X.copy() for name, X in before.items()}
        norm.batch_norm(**after, **options_of(one))
        assert one.is_right((*before.values(), one), (*after.values(), one))


def test_state_over_several_batches_is_that_of_all_values_seen():
    """A momentum of None averages the batches; the variance is the unbiased one."""
    rng = np.random.default_rng(1)
    batches = [rng.standard_normal((4, 3, 5, 5)).astype(np.float32) * 3 + n for n in range(4)]
    running = {"running_mean": np.zeros(3, np.float32), "running_variance": np.ones(3, np.float32)}
    for n, x in enumerate(batches):
        norm.batch_norm(x, **running, momentum=None, batches=n)
    means, variances = zip(*((x.mean((0, 2, 3)), x.var((0, 2, 3), ddof=1)) for x in batches))
    assert np.allclose(running["running_mean"], np.mean(means, 0), atol=1e-5)
    assert np.allclose(running["running_variance"], np.mean(variances, 0), rtol=1e-5)
    known = len(routes)
    on_device = {name: cuda.to_device(X) for name, X in running.items()}
    for n, x in enumerate(batches):
        norm.batch_norm(cuda.to_device(x), y=cuda.to_device(x), **on_device, momentum=None, batches=n)
    assert len(routes) == known  # no plan is kept that nobody asks for again


# --- the step ------------------------------------------------------------------------------------


def kernels(one, format=FP32):
    """The names of the kernels that a call for a problem launches."""
    given = dict(zip(one.arrays, map(cuda.to_device, one.operands(format)[:-1])))
    options = options_of(one)
    asked = batch_norm.BatchNorm(**options, format=str(format))
    return [launch.kernel.__name__ for launch in asked.launches(given, Workspace())]


@pytest.mark.parametrize(
    ("one", "names"),
    [
        (norm.BatchForward(2, 66, 4, 8), ["in_registers"]),
        (norm.BatchForward(2, 9000, 4, 8), ["overlapped"]),  # not all channels at once
        (norm.BatchForward(64, 4, 32, 32), ["overlapped"]),  # more than registers keep
        (norm.BatchForward(64, 4, 23, 23), ["one_read"]),  # planes are no rows of 128 bytes
        (norm.BatchForward(1, 2, 8 * 226, 257), ["channel_statistics", "last_first"]),  # more than a cluster keeps
        (norm.BatchForward(2, 264, 4, 4, layout="NHWC"), ["in_registers"]),
        (norm.BatchForward(64, 8, 32, 32, layout="NHWC"), ["first_kept"]),
        (norm.BatchForward(64, 3, 32, 32, layout="NHWC"), ["columns", "fused"]),  # no pixels of 16 bytes
        (norm.BatchForward(8200, 3, 1, 1), ["columns", "fused"]),  # images of one pixel lie in either order
        (norm.BatchInference(2, 3, 4, 4), ["planes"]),
        (norm.BatchInference(2, 3, 4, 4, layout="NHWC"), ["pixels"]),
    ],
    ids=str,
)
def test_the_step_is_the_one_for_such_images(one, names):
    assert kernels(one) == names


@pytest.mark.parametrize(
    ("capability", "sms", "shared_kib", "layout", "names"),
    [
        ((8, 9), 142, 99, "NCHW", ["channel_statistics", "last_first"]),
        ((8, 9), 142, 99, "NHWC", ["columns", "fused"]),
        ((9, 0), 114, 227, "NCHW", ["overlapped"]),
        ((9, 0), 114, 227, "NHWC", ["first_kept"]),
    ],
    ids=str,
)
def test_another_gpu_takes_a_step_that_runs_there(capability, sms, shared_kib, layout, names, monkeypatch):
    gpu = SimpleNamespace(
        name="another GPU",
        compute_capability=capability,
        MULTIPROCESSOR_COUNT=sms,
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=shared_kib * 1024,
    )
    monkeypatch.setattr(cuda, "get_current_device", lambda: gpu)
    assert kernels(norm.BatchForward(64, 8, 32, 32, layout=layout)) == names


def test_images_that_tma_cannot_load_are_normalised_by_another_step():
    one = norm.BatchForward(16, 8, 24, 24)
    before = dict(zip(one.arrays, one.operands()))
    for layout in ("NCHW", "NHWC"):
        whole = cuda.to_device(np.concatenate([[0], before["x"].ravel()]).astype(np.float32))
        y = norm.batch_norm(whole[1:].reshape(before["x"].shape), layout=layout)
        assert np.allclose(on_host(y), norm.batch_norm(before["x"], layout=layout), atol=1e-5)


def test_images_that_no_step_takes_are_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr(ladder("norm", "batch_inference").step("planes").module, "VALUE_LIMIT", 4)
    with pytest.raises(ValueError, match=r"48 values, and this step counts them below 4\): take fewer images or chan"):
        kernels(norm.BatchInference(2, 3, 4, 4))


# --- plans that are found again ------------------------------------------------------------------


@pytest.fixture
def made(monkeypatch):
    """Calls that are worked out: their arrays are checked, which those of a plan that is found again are not."""
    found, check = [], batch_norm.BatchNorm.check
    monkeypatch.setattr(batch_norm.BatchNorm, "check", lambda *of: found.append(of) or check(*of))
    return found


def test_a_call_finds_the_plan_of_a_call_before_and_only_of_one_that_asked_for_the_same(made):
    one = norm.BatchForward(2, 3, 4, 5)
    arrays = dict(zip(one.arrays, map(cuda.to_device, one.operands()[:-1])))
    other = dict(zip(one.arrays, map(cuda.to_device, one.operands(seed=1)[:-1])))
    norm.batch_norm(**arrays)
    norm.batch_norm(**other)
    assert len(made) == 1
    without_relu = norm.BatchForward(2, 3, 4, 5, relu=False)
    before, result = one.operands(seed=1)[:-1], [X.copy_to_host() for X in other.values()]
    assert without_relu.is_right((*before, without_relu), (*result, without_relu))
    without = {name: X for name, X in arrays.items() if name not in ("mean", "variance")}
    for count, (options, which) in enumerate(
        [
            ({"relu": True}, arrays),
            ({"momentum": 0.2}, arrays),
            ({"eps": 1e-3}, arrays),
            ({}, without),
            ({"training": False}, without),
            ({"layout": "NHWC"}, {"x": arrays["x"], "y": arrays["y"]}),
        ],
        start=2,
    ):
        norm.batch_norm(**which, **options)
        norm.batch_norm(**which, **options)
        assert len(made) == count, options


def test_the_names_of_arrays_are_those_of_the_problems():
    assert batch_norm.BatchNorm.arrays == problem.ARRAYS and set(inference.ARRAYS) < set(problem.ARRAYS)
