"""`norm.plan`: the same results as the call, for other arrays too, with memory that it takes once, and in graphs."""

import numpy as np
import pytest

from labkit import cuda, norm
from labkit.calls.plan import Plan
from labkit.formats import BF16, FP32

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")
PROBLEMS = [
    norm.BatchForward(3, 5, 4, 8),
    norm.BatchForward(3, 5, 8, 8, relu=False),
    norm.BatchForward(2, 3, 7, 7, relu=False),
    norm.BatchForward(3, 8, 4, 6, layout="NHWC"),
    norm.BatchForward(3, 5, 4, 6, layout="NHWC"),
    norm.BatchForward(1, 1, 8 * 226, 257),
    norm.BatchInference(3, 5, 4, 6),
    norm.BatchInference(3, 5, 4, 6, relu=False, layout="NHWC"),
]


def options_of(one, format):
    options = {"relu": one.relu, "layout": one.layout, "format": str(format)}
    return options | {"training": isinstance(one, norm.BatchForward)}


def arrays_of(one, format, seed=0):
    """Operands on the host by their names, and those on the device."""
    before = dict(zip(one.arrays, one.operands(format, seed)))
    return before, {name: cuda.to_device(X) for name, X in before.items()}


def is_right(one, before, after, format):
    result = [X.copy_to_host() for X in after.values()]
    return one.is_right((*before.values(), one), (*result, one), format)


@pytest.mark.parametrize("format", [FP32, BF16], ids=str)
@pytest.mark.parametrize("one", PROBLEMS, ids=str)
def test_a_plan_runs_for_what_its_arrays_hold_and_for_others_that_lie_alike(one, format):
    before, arrays = arrays_of(one, format)
    others_before, others = arrays_of(one, format, seed=1)
    plan = norm.plan(norm.batch_norm, **arrays, **options_of(one, format))
    assert isinstance(plan, Plan)
    assert all(np.array_equal(X.copy_to_host(), before[name], equal_nan=True) for name, X in arrays.items())
    plan()
    assert is_right(one, before, arrays, format)
    held = plan.workspace_bytes
    plan(*others.values())
    assert is_right(one, others_before, others, format)
    again = {name: X.copy_to_host() for name, X in others.items()}
    plan()
    assert plan.workspace_bytes == held
    moved = {name: X.copy_to_host() for name, X in others.items()}
    assert (moved["y"] == again["y"]).all()
    counts_again = isinstance(one, norm.BatchForward)  # the batch that was counted is counted again
    assert (moved["running_mean"] != again["running_mean"]).any() == counts_again


def test_a_plan_takes_the_arrays_that_it_was_made_with_and_no_others():
    one = norm.BatchForward(3, 5, 4, 6)
    _, arrays = arrays_of(one, FP32)
    few = {name: arrays[name] for name in ("x", "y", "running_mean", "running_variance")}
    plan = norm.plan(norm.batch_norm, **few)
    plan(*few.values())
    with pytest.raises(TypeError, match="takes x, y, running_mean, running_variance, or nothing, and got 8 operands"):
        plan(*arrays.values())
    with pytest.raises(ValueError, match=r"y is of shape \(5,\), and the plan is for \(3, 5, 4, 6\): make a plan"):
        plan(arrays["x"], arrays["mean"], arrays["running_mean"], arrays["running_variance"])


def test_a_plan_writes_over_its_images_where_that_is_asked_for_and_not_beside_them():
    one = norm.BatchForward(3, 5, 4, 6, relu=False)
    before, arrays = arrays_of(one, FP32)
    plan = norm.plan(norm.batch_norm, arrays["x"], arrays["weight"], arrays["bias"], y=arrays["x"])
    plan()
    expected = one.expected((*before.values(), one))[one.arrays.index("y")]
    assert expected.holds(arrays["x"].copy_to_host())
    whole = cuda.to_device(np.zeros(2 * before["x"].size, np.float32))
    first, second = (whole[begin : begin + before["x"].size].reshape(before["x"].shape) for begin in (0, 4))
    with pytest.raises(ValueError, match="y shares memory with x, which is read while y is written"):
        plan(first, arrays["weight"], arrays["bias"], second)
    plan(first, arrays["weight"], arrays["bias"], first)


# --- on a GPU ------------------------------------------------------------------------------------


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("one", [*PROBLEMS, norm.BatchForward(16, 96, 28, 28)], ids=str)
def test_a_plan_gives_the_same_bits_in_a_graph_of_another_stream_and_after_many_runs(one):
    from labkit.calls.timing import capture_launches

    before, arrays = arrays_of(one, FP32)
    plan = norm.plan(norm.batch_norm, **arrays, **options_of(one, FP32))
    plan()
    cuda.synchronize()
    expected = arrays["y"].copy_to_host()
    assert is_right(one, before, arrays, FP32)
    for _ in range(20):
        plan()
    stream = cuda.stream()
    arrays["y"].copy_to_device(before["y"])
    replay = capture_launches(stream, [lambda stream: plan(stream=stream)])
    for _ in range(2):
        replay()
    stream.synchronize()
    assert (arrays["y"].copy_to_host() == expected).all()


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("one", PROBLEMS, ids=str)
def test_a_call_is_captured_from_a_stream_that_it_never_ran_on(one):
    from labkit.calls.timing import capture_launches

    before, arrays = arrays_of(one, FP32)
    given = {name: X for name, X in arrays.items() if name not in ("weight", "bias", "mean", "variance")}
    norm.batch_norm(**given, **options_of(one, FP32))
    cuda.synchronize()
    expected = arrays["y"].copy_to_host()
    for name, X in given.items():
        X.copy_to_device(before[name])
    stream = cuda.stream()
    replay = capture_launches(stream, [lambda stream: norm.batch_norm(**given, **options_of(one, FP32), stream=stream)])
    replay()
    stream.synchronize()
    assert (arrays["y"].copy_to_host() == expected).all()
