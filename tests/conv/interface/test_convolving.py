"""`conv.forward` and its gradients: right for any problem and kind of array, and a sentence for what cannot be."""

import re

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from random_convolutions import convolutions
from sampling import WHOLE

from labkit import conv, cuda
from labkit.arrays.views import as_strided
from labkit.calls import tuning
from labkit.calls.call import forget
from labkit.calls.plan import Plan
from labkit.calls.route import routes
from labkit.conv.interface import choices, convolution
from labkit.conv.interface.algorithms import algorithms
from labkit.formats import FP32
from labkit.layout import c_strides

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
KINDS = conv.Forward, conv.BackwardData, conv.BackwardFilter
SETTINGS = settings(max_examples=60 if WHOLE else 4, phases=[Phase.generate])
SMALL = {"C": 6, "K": 6, "pixels": 6}
X, W = np.ones((2, 4, 9, 8), np.float32), np.ones((6, 4, 3, 3), np.float32)


@pytest.fixture(autouse=True)
def as_a_new_process(monkeypatch, tmp_path):
    monkeypatch.setattr(tuning, "user_cache_path", lambda name: tmp_path / name)
    tuning._stored_choices.cache_clear()
    forget()
    yield
    tuning._stored_choices.cache_clear()
    forget()


def call(problem, x, w, y, given=None, **options):
    """Call the public function for a problem's direction."""
    options = {
        "stride": (problem.stride_h, problem.stride_w),
        "padding": (problem.top, problem.bottom, problem.left, problem.right),
        "dilation": (problem.dilation_h, problem.dilation_w),
        "groups": problem.groups,
        "flipped": problem.flipped,
        "layout": problem.layout,
        **options,
    }
    if problem.result == "y":
        return conv.forward(x, w, y=given, **options)
    if problem.result == "x":
        sizes = {} if given is not None else {"H": problem.H, "W": problem.W}
        return conv.backward_data(w, y, x=given, **sizes, **options)
    sizes = {} if given is not None else {"R": problem.R, "S": problem.S}
    return conv.backward_filter(x, y, w=given, **sizes, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_right_on_random_problems(kind):
    """By the algorithm that is chosen, whose own bound holds."""

    @SETTINGS
    @given(problem=convolutions(kind, {"layout": ("NCHW",)}, SMALL), limit=st.none() | st.just(2**16))
    def check(problem, limit):
        *arrays, _ = problem.operands()
        found = call(problem, *arrays, workspace_limit_bytes=limit)
        algorithm = choices.choose(problem, FP32, limit)
        bounded = algorithm.step.problem(**problem.fields)
        place = "xwy".index(problem.result)
        after = [found if n == place else X for n, X in enumerate(arrays)]
        assert bounded.is_right((*arrays, bounded), (*after, bounded)), algorithm
        assert (call(problem, *arrays, workspace_limit_bytes=limit) == found).all()  # the very bits

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_chosen_applies_and_keeps_to_the_limit(kind, monkeypatch):
    """For every problem, limit and format; else it says that there is nothing."""

    @settings(max_examples=300 if WHOLE else 60, phases=[Phase.generate])
    @given(
        problem=convolutions(kind),
        limit=st.none() | st.integers(0, 2**18),
        name=st.sampled_from(["float32"] * 3 + ["bfloat16", "float16"]),
    )
    def check(problem, limit, name):
        ranking = conv.heuristic(problem, name, limit)
        assert {row.algorithm for row in ranking} == {*algorithms(problem.result)}
        for row in ranking:
            planned = row.algorithm.dry_run(problem, ranking.format, limit)
            fits = not planned.misfit and (limit is None or planned.workspace_bytes <= limit)
            assert fits == (not row.reason) == (row.time_ms is not None)
        if ranking.candidates:
            assert choices.choose(problem, ranking.format, limit) in ranking.candidates
            assert ranking.best == ranking[0].algorithm
        else:
            with pytest.raises(ValueError, match="nothing here computes"):
                choices.choose(problem, ranking.format, limit)

    check()


@pytest.mark.parametrize("kind", [conv.Forward, conv.BackwardFilter])
def test_without_any_workspace_there_is_always_an_algorithm(kind):
    @settings(max_examples=40, phases=[Phase.generate])
    @given(problem=convolutions(kind, {"layout": ("NCHW",)}))
    def check(problem):
        assert conv.heuristic(problem, workspace_limit_bytes=0).candidates

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_the_device_are_written_in_place_and_the_plan_is_found_again(kind, monkeypatch):
    made, check = [], convolution.ConvOperation.check
    monkeypatch.setattr(convolution.ConvOperation, "check", lambda *of: made.append(of) or check(*of))
    problem = kind(1, 2, 4, 5, 3, 2, 2, 1, 1, 1, 0, 1, 0)
    *arrays, _ = problem.operands()
    place = "xwy".index(problem.result)
    inputs = [X for n, X in enumerate(arrays) if n != place]
    expected = problem.oracle(*inputs)
    on_device = list(map(cuda.to_device, arrays))
    for stride in ((1, 1), [1, 1], 1):
        assert call(problem, *on_device, on_device[place], stride=stride) is on_device[place]
        assert np.allclose(on_device[place].copy_to_host(), expected, atol=1e-4)
    assert len(made) == 2  # (1, 1) and [1, 1] are one
    monkeypatch.setattr(routes, "limit", 1)
    call(problem, *on_device, on_device[place], workspace_limit_bytes=2**20)
    assert len(made) == 3 and len(routes) == 1


def test_host_arrays_in_host_array_out_and_device_arrays_likewise():
    problem = conv.Forward(2, 4, 9, 8, 6, 3, 3)
    x, w, y, _ = problem.operands()
    expected = problem.oracle(x, w)
    for found in (conv.forward(x, w), conv.forward(x, w, y=y)):
        assert type(found) is np.ndarray and np.allclose(found, expected, atol=1e-4)
    assert np.allclose(y, expected, atol=1e-4)
    on_device = conv.forward(cuda.to_device(x), cuda.to_device(w))
    assert cuda.is_cuda_array(on_device) and np.allclose(on_device.copy_to_host(), expected, atol=1e-4)
    for mixed in (conv.forward(x, cuda.to_device(w)), conv.forward(cuda.to_device(x), w)):
        assert cuda.is_cuda_array(mixed) and np.allclose(mixed.copy_to_host(), expected, atol=1e-4)
    into = cuda.to_device(y * 0)
    assert conv.forward(x, w, y=into) is into and np.allclose(into.copy_to_host(), expected, atol=1e-4)
    y[:] = 0
    assert conv.forward(cuda.to_device(x), cuda.to_device(w), y=y) is y and np.allclose(y, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("padding", "stride", "sides"),
    [
        ("valid", 1, (7, 6)),
        ("same", 1, (9, 8)),
        ("same", 2, (5, 4)),
        ("full", 1, (11, 10)),
        (1, 1, (9, 8)),
        ((0, 1), 1, (7, 8)),
        ((2, 1, 0, 1), (1, 2), (10, 4)),
    ],
)
def test_padding_in_words_and_numbers(padding, stride, sides):
    assert conv.forward(X, W, padding=padding, stride=stride).shape == (2, 6, *sides)


def laid_out(array, order):
    """An array of the device with these elements, which lie otherwise than in C order at a multiple of 16 bytes."""
    if order == "channels last":
        whole = cuda.to_device(np.ascontiguousarray(array.transpose(0, 2, 3, 1)))
        _, C, H, W = array.shape
        size = array.itemsize
        return as_strided(whole, array.shape, (H * W * C * size, size, W * C * size, C * size)), whole
    if order == "shifted":
        host = np.zeros(array.size + 1, array.dtype)
        host[1:] = array.ravel()
        whole = cuda.to_device(host)
        strides = tuple(stride * array.itemsize for stride in c_strides(array.shape))
        return as_strided(whole, array.shape, strides, begin_byte=array.itemsize), whole
    host = np.zeros(tuple(2 * side for side in array.shape), array.dtype)
    host[1::2, ::2, 1::2, ::2] = array
    whole = cuda.to_device(host)
    strides = tuple(2 * stride for stride in host.strides)
    return as_strided(whole, array.shape, strides, begin_byte=host.strides[0] + host.strides[2]), whole


@pytest.mark.parametrize("order", ["channels last", "shifted", "apart"])
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_may_lie_in_any_order(kind, order):
    problem = kind(2, 3, 5, 4, 4, 2, 3)
    *arrays, _ = problem.operands()
    place = "xwy".index(problem.result)
    expected = problem.oracle(*(X for n, X in enumerate(arrays) if n != place))
    views, wholes = zip(*(laid_out(X, order) for X in arrays))
    before = wholes[place].copy_to_host()
    assert call(problem, *views, views[place]) is views[place]
    found = wholes[place].copy_to_host()
    assert np.allclose(cuda.as_cuda_array(views[place]).copy_to_host(), expected, atol=1e-4)
    assert (found == before)[before == 0].all()  # between the results, which were NaN, nothing was written


# --- plans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_algorithm_can_be_planned_and_planned_once_it_allocates_nothing(kind, monkeypatch):
    problem = kind(1, 2, 5, 4, 2, 3, 3, 1, 1, 1, 1, 0, 0)
    *arrays, _ = problem.operands()
    place = "xwy".index(problem.result)
    on_device = list(map(cuda.to_device, arrays))
    expected = problem.oracle(*(X for n, X in enumerate(arrays) if n != place))
    ranking = conv.heuristic(problem)
    assert len(ranking.candidates) >= 2
    for row in ranking[: len(ranking.candidates)]:
        on_device[place].copy_to_device(arrays[place])
        plan = conv.plan(problem, *on_device, algorithm=str(row.algorithm))
        held = plan.workspace_bytes
        assert isinstance(plan, Plan) and held == row.workspace_bytes
        plan(), plan()
        assert plan.workspace_bytes == held
        assert np.allclose(on_device[place].copy_to_host(), expected, atol=1e-4), row.algorithm
    chosen = choices.choose(problem, FP32)
    assert conv.plan(problem, *on_device).workspace_bytes == chosen.workspace_bytes(problem, FP32)


def test_a_plan_runs_for_other_arrays_that_lie_alike():
    problem = conv.Forward(2, 4, 9, 8, 6, 3, 3)
    first, second = problem.operands(seed=0)[:3], problem.operands(seed=1)[:3]
    plan = conv.plan(problem, *map(cuda.to_device, first))
    others = list(map(cuda.to_device, second))
    plan(*others)
    assert np.allclose(others[2].copy_to_host(), problem.oracle(*second[:2]), atol=1e-4)


def test_a_plan_that_cannot_be_is_refused():
    problem = conv.Forward(2, 4, 9, 8, 6, 3, 3)
    arrays = list(map(cuda.to_device, problem.operands()[:3]))
    with pytest.raises(ValueError, match="no algorithm 'fast' for this: there is .*direct/registers"):
        conv.plan(problem, *arrays, algorithm="fast")
    with pytest.raises(ValueError, match=r"winograd/f4x4 cannot be taken, since it needs [\d,]+ bytes of workspace"):
        conv.plan(problem, *arrays, algorithm="winograd/f4x4", workspace_limit_bytes=100)
    assert conv.plan(problem, *arrays, workspace_limit_bytes=0).workspace_bytes == 0
    halves = [cuda.to_device(X.copy_to_host().astype(np.float16)) for X in arrays]
    with pytest.raises(ValueError, match="nothing here computes forward 2x4x9x8 6x3x3 in float16"):
        conv.plan(problem, *halves)
    with pytest.raises(TypeError, match="y is an array of the host, and a plan is for arrays of the device"):
        conv.plan(problem, *arrays[:2], problem.operands()[2])


# --- what cannot be convolved --------------------------------------------------------------------


def device(*shape, dtype=np.float32):
    return cuda.to_device(np.ones(shape, dtype))


REFUSED = {
    "channels": (lambda: conv.forward(X, np.ones((6, 3, 3, 3), np.float32)), "x has 4 channels, but filters of 3"),
    "channels of groups": (lambda: conv.forward(X, W, groups=2), "filters of 4 channels in 2 group(s) take 8"),
    "groups": (
        lambda: conv.forward(X, np.ones((5, 2, 3, 3), np.float32), groups=2),
        "K is 5, which 2 groups do not divide",
    ),
    "padding beyond the filter": (lambda: conv.forward(X, W, padding=3), "top is 3 rows or columns of zeros"),
    "padding in another word": (lambda: conv.forward(X, W, padding="some"), "there is no padding 'some'"),
    "padding of three": (
        lambda: conv.forward(X, W, padding=(1, 1, 1)),
        "padding is (1, 1, 1): give one, two or four whole numbers from 0 on",
    ),
    "padding below 0": (lambda: conv.forward(X, W, padding=-1), "padding is -1: give"),
    "half a pixel": (lambda: conv.forward(X, W, padding=0.5), "padding is 0.5: give"),
    "no output": (lambda: conv.forward(X, np.ones((6, 4, 10, 3), np.float32)), "does not fit into the image of 9 x 8"),
    "no image": (lambda: conv.forward(X[:0], W), "N is 0, but it must be at least 1"),
    "stride 0": (lambda: conv.forward(X, W, stride=0), "stride is 0: give one or two whole numbers from 1 on"),
    "stride 0, same": (lambda: conv.forward(X, W, stride=0, padding="same"), "stride is 0: give"),
    "dilation 0": (lambda: conv.forward(X, W, dilation=(1, 0)), "dilation is (1, 0): give"),
    "groups 0": (lambda: conv.forward(X, W, groups=0), "groups is 0: give one whole number from 1 on"),
    "flipped": (lambda: conv.forward(X, W, flipped=2), "flipped is 2: say True or False"),
    "layout": (lambda: conv.forward(X, W, layout="CHWN"), "there is no layout 'CHWN': say NCHW or NHWC"),
    "mixed layouts": (
        lambda: conv.forward(X, W, layout="NHWC"),
        "x has 8 channels, but filters of 3 channels in 1 group(s) take 3",
    ),
    "mixed types": (lambda: conv.forward(X, W.astype(np.float16)), "x holds float32 and w float16: give two"),
    "float64": (
        lambda: conv.forward(X.astype(float), W.astype(float)),
        "x holds float64 and w float64: convert both to float32, float16 or bfloat16",
    ),
    "bytes": (
        lambda: conv.forward(X.astype(np.uint8), W.astype(np.uint8)),
        "x holds uint8 and w uint8: convert both to float32, float16 or bfloat16",
    ),
    "a format that nothing convolves": (
        lambda: conv.forward(X.astype(np.int8), W.astype(np.int8), format="int8"),
        "winograd/fused: this step takes float32, and the arrays hold int8",
    ),
    "a reason for many": (
        lambda: conv.forward(X, W, format="tf32"),
        "tensor/mma, tensor/boxes, tensor/im2col, tensor/persistent: this step takes bfloat16 or float16, and",
    ),
    "bits": (lambda: conv.forward(X.astype(np.uint16), W.astype(np.uint16)), 'say format="bfloat16"'),
    "y of another type": (
        lambda: conv.forward(X, W, y=np.ones((2, 6, 7, 6), np.float16)),
        "y holds float16, but a convolution of float32 gives float32",
    ),
    "y of another shape": (
        lambda: conv.forward(X, W, y=np.ones((2, 6, 7, 7), np.float32)),
        "y, the outputs, is 2 x 6 x 7 x 7, but 2 x 6 x 7 x 6, NCHW, in this convolution",
    ),
    "y for other images": (lambda: conv.forward(X, W, y=np.ones((3, 6, 7, 6), np.float32)), "N is 2 in x and 3 in y"),
    "no array": (lambda: conv.forward([1.0], W), "x is a list, not an array"),
    "nothing": (lambda: conv.forward(None, W), "x is None: give an array"),
    "three axes": (lambda: conv.forward(X[0], W), "x, the images, has 3 axes: give four, NCHW"),
    "y is x": (lambda: conv.forward(X, np.ones((4, 4, 1, 1), np.float32), y=X), "y shares memory with x"),
    "y is w": (lambda: same_memory(), "y shares memory with x"),
    "H is not known": (lambda: conv.backward_data(W, np.ones((2, 6, 7, 6), np.float32)), "H is not known"),
    "S is not known": (lambda: conv.backward_filter(X, np.ones((2, 6, 7, 6), np.float32), R=3), "S is not known"),
    "R is another": (
        lambda: conv.backward_filter(X, np.ones((2, 6, 7, 6), np.float32), w=W.copy(), R=2),
        "R is 2, but 3 in w",
    ),
    "H gives other outputs": (
        lambda: conv.backward_data(W, np.ones((2, 6, 7, 6), np.float32), H=8, W=8),
        "y, the outputs, is 2 x 6 x 7 x 6, but 2 x 6 x 6 x 6, NCHW, in this convolution",
    ),
    "limit": (lambda: conv.forward(X, W, workspace_limit_bytes=-1), "workspace_limit_bytes is -1: give"),
    "stream": (lambda: conv.forward(X, W, stream=3), "3 is not a stream"),
    "format": (lambda: conv.forward(X, W, format="fp8"), "fp8"),
    "no algorithm": (
        lambda: conv.forward(X.astype(np.float16), W.astype(np.float16), groups=1),
        "nothing here computes forward 2x4x9x8 6x3x3 in float16",
    ),
    "problem": (lambda: conv.heuristic(None), "the problem is None: give a conv.Forward"),
    "problem of a plan": (lambda: conv.plan(None, X, W, X), "the problem is None: give a conv.Forward"),
    "direction": (lambda: conv.find(conv.Convolution), "give a conv.Forward"),
    "format of a heuristic": (lambda: conv.heuristic(conv.Forward(1, 1, 1, 1, 1, 1, 1), "half"), "no format 'half'"),
}


def same_memory():
    """Outputs that begin in the midst of the images."""
    whole = device(2 * 4 * 9 * 8 + 2 * 4 * 9 * 8)
    x, y = whole[: 2 * 4 * 9 * 8].reshape(2, 4, 9, 8), whole[64 : 64 + 2 * 4 * 9 * 8].reshape(2, 4, 9, 8)
    return conv.forward(x, device(4, 4, 1, 1), y=y)


@pytest.mark.parametrize(("refused", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_convolved_is_refused_in_a_sentence(refused, words):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)) as raised:
        refused()
    assert "\n" not in str(raised.value)


def test_a_read_only_result_is_refused():
    y = np.zeros((2, 6, 7, 6), np.float32)
    y.flags.writeable = False
    with pytest.raises(ValueError, match="y is read-only"):
        conv.forward(X, W, y=y)


# --- on a GPU ------------------------------------------------------------------------------------


@pytest.mark.needs("torch")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.needs("gpu"))])
def test_torch_tensors_give_torch_tensors(device):
    import torch

    x, w = torch.randn(3, 4, 9, 8, device=device), torch.randn(6, 2, 3, 3, device=device)
    options = {"padding": (1, 2), "stride": 2, "groups": 2}
    y = conv.forward(x, w, **options)
    expected = torch.nn.functional.conv2d(x.double(), w.double(), **options)
    assert y.dtype == x.dtype and y.device == x.device and torch.allclose(y.double(), expected, atol=1e-4)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.needs("gpu"))])
def test_tensors_of_bfloat16_give_tensors_of_bfloat16(device):
    import torch

    x, w = (torch.randn(*shape, device=device).bfloat16() for shape in ((1, 5, 4, 8), (8, 3, 3, 8)))
    y = conv.forward(x, w, layout="NHWC")
    x, w = (X.double().permute(0, 3, 1, 2) for X in (x, w))
    expected = torch.nn.functional.conv2d(x, w).permute(0, 2, 3, 1)
    assert y.dtype == torch.bfloat16 and torch.allclose(y.double(), expected, rtol=2e-2, atol=5e-2)


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_gives_the_same_bits_in_a_graph_of_another_stream(kind):
    from labkit.calls.timing import capture_launches

    problem = kind(16, 32, 17, 16, 48, 3, 3)
    *arrays, _ = problem.operands()
    place = "xwy".index(problem.result)
    on_device = list(map(cuda.to_device, arrays))
    for algorithm in conv.heuristic(problem).candidates:
        plan = conv.plan(problem, *on_device, algorithm=algorithm)
        plan()
        cuda.synchronize()
        expected = on_device[place].copy_to_host()
        on_device[place].copy_to_device(arrays[place])
        stream = cuda.stream()
        replay = capture_launches(stream, [lambda stream, plan=plan: plan(stream=stream)])
        for _ in range(2):
            replay()
        stream.synchronize()
        assert (on_device[place].copy_to_host() == expected).all()


@pytest.mark.needs("gpu")
def test_a_captured_call_keeps_its_memory_while_later_calls_on_its_stream_take_more():
    from labkit.calls.timing import capture_launches

    small, large = conv.Forward(8, 32, 17, 16, 48, 3, 3), conv.Forward(32, 64, 33, 34, 96, 3, 3)
    before, stream = small.operands()[:3], cuda.stream()
    x, w, y = map(cuda.to_device, before)
    conv.forward(x, w, y=y, stream=stream)
    stream.synchronize()
    expected = y.copy_to_host()
    assert np.allclose(expected, small.oracle(*before[:2]), atol=1e-3)
    replay = capture_launches(stream, [lambda stream: conv.forward(x, w, y=y, stream=stream)])
    others = dict(zip("xwy", map(cuda.to_device, large.operands()[:3])))
    conv.forward(**others, stream=stream)
    stream.synchronize()
    y.copy_to_device(before[2])
    replay()
    stream.synchronize()
    assert (y.copy_to_host() == expected).all()
