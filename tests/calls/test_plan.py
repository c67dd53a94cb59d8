"""Plans: run again, also for other operands that lie alike, and in graphs; refused for all others in a sentence."""

import numpy as np
import pytest
from gemm_calls import CALLS, operands_of

import labkit
from calls.every_call import CALLS as EVERY_CALL
from labkit import cuda, gemm, norm
from labkit.arrays.views import as_strided

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")


def on_device(*arrays):
    return [cuda.to_device(X) for X in arrays]


def right(C, *factors):
    return np.allclose(C.copy_to_host(), np.matmul(*(X.copy_to_host() for X in factors)), rtol=1e-4, atol=1e-4)


def random(*shape, dtype=np.float32):
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def test_a_plan_runs_for_what_its_operands_hold_then():
    A, B, C = on_device(random(9, 12), random(12, 8), np.zeros((9, 8), np.float32))
    plan = gemm.plan(A, B, C=C)
    assert (C.copy_to_host() == 0).all()
    plan()
    assert right(C, A, B)
    A.copy_to_device(random(9, 12) + 1)
    plan()
    assert right(C, A, B)


@pytest.mark.parametrize("options", [{}, {"alpha": 2.0, "beta": 1.0}], ids=["one launch", "several"])
def test_a_plan_runs_for_other_operands_that_lie_alike(options):
    """Parts of larger arrays, whose offsets differ."""
    A, B, C = on_device(random(40, 16), random(16, 12), np.zeros((40, 12), np.float32))
    plan = gemm.plan(A[:9], B, C=C[:9], **options)
    for top in (20, 0, 31):
        before = C.copy_to_host()
        plan(A[top : top + 9], B, C[top : top + 9])
        expected = options.get("alpha", 1) * (A.copy_to_host()[top : top + 9] @ B.copy_to_host())
        expected += options.get("beta", 0) * before[top : top + 9]
        assert np.allclose(C.copy_to_host()[top : top + 9], expected, rtol=1e-4, atol=1e-4)
        changed = (C.copy_to_host() != before).any(axis=1)
        assert changed[top : top + 9].all() and changed.sum() == 9
    A[31:40].copy_to_device(random(9, 16))
    plan()  # the last ones again
    assert options or right(C[31:40], A[31:40], B)


def test_a_plan_keeps_its_operands_alive():
    A, B, C = random(4, 4), random(4, 4), cuda.to_device(np.zeros((4, 4), np.float32))
    plan = gemm.plan(cuda.to_device(A), cuda.to_device(B), C=C)
    others = on_device(*(np.full((4, 4), np.nan, np.float32) for _ in range(8)))  # where freed ones would have been
    plan()
    assert len(others) == 8 and np.allclose(C.copy_to_host(), A @ B, atol=1e-5)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda X: X[:7], "A is of shape (7, 16), and the plan is for (8, 16)"),
        (lambda X: X[::2], "A has strides (128, 4), and the plan is for (64, 4)"),
        (lambda X: cuda.to_device(np.zeros((8, 16), np.int32)), "A holds int32, and the plan is for float32"),
        (lambda X: as_strided(X, (8, 16), (64, 4), begin_byte=4), "A begins 4 bytes after a multiple of 16"),
        (lambda X: np.zeros((8, 16), np.float32), "A is an array of the host"),
        (lambda X: [1.0], "A is a list, not an array"),
    ],
)
def test_operands_that_lie_in_another_way_are_refused_in_a_sentence(other, words):
    X, B, C = on_device(random(16, 16), random(16, 4), np.zeros((8, 4), np.float32))
    plan = gemm.plan(X[:8], B, C=C)
    plan(X[4:12], B, C)
    with pytest.raises((TypeError, ValueError)) as raised:
        plan(other(X), B, C)
    assert words in str(raised.value) and "\n" not in str(raised.value)
    with pytest.raises(TypeError, match="takes A, B, C, or nothing, and got 1"):
        plan(X)
    plan()
    assert right(C, X[4:12], B)


def test_a_result_that_shares_memory_is_refused_each_time():
    whole, B = on_device(np.ones((8, 24), np.float32), np.ones((8, 8), np.float32))
    plan = gemm.plan(whole[:, :8], B, C=whole[:, 16:])
    plan(whole[:, 4:12], B, whole[:, 16:])
    with pytest.raises(ValueError, match="C shares memory with A"):
        plan(whole[:, 12:20], B, whole[:, 16:])
    for _ in range(2):
        with pytest.raises(ValueError, match="C shares memory with A"):
            gemm.multiply(whole[:, 12:20], B, C=whole[:, 16:])
        gemm.multiply(whole[:, 8:16], B, C=whole[:, 16:])


@pytest.mark.parametrize("call", EVERY_CALL, ids=str)
@pytest.mark.sample(10)
def test_every_call_is_planned(call):
    """With the same results, for other arrays too, given in the order of the operation's arrays."""
    arrays, others = call.arrays(seed=1), call.arrays(seed=2)
    expected = [call.run(of) for of in (arrays, others)]
    outputs = {name: cuda.to_device(np.zeros_like(X)) for name, X in zip(call.outputs, expected[0], strict=True)}
    on_device = {name: cuda.to_device(X) for name, X in arrays.items()}
    plan = labkit.plan(call.function, **on_device, **outputs, **call.options)
    assert plan() is None
    assert all(np.array_equal(outputs[name].copy_to_host(), X) for name, X in zip(call.outputs, expected[0]))
    whole = {**{name: cuda.to_device(X) for name, X in others.items()}, **outputs}
    plan(*(whole[name] for name in call.operation.arrays if name in whole))
    assert all(np.array_equal(outputs[name].copy_to_host(), X) for name, X in zip(call.outputs, expected[1]))


X, W = np.ones((3, 8), np.float32), np.ones(8, np.float32)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: labkit.plan(np.exp, X), TypeError, "<ufunc 'exp'> is not planned: give a call of an operation"),
        (lambda: labkit.plan(norm.layer_norm, X, y=X), TypeError, "x is an array of the host, and a plan is for"),
        (lambda: labkit.plan(norm.layer_norm, *on_device(X)), TypeError, "y is None, and a plan allocates nothing"),
        (lambda: labkit.plan(norm.layer_norm, None, y=X), TypeError, "x is None: give an array"),
        (lambda: labkit.plan(norm.layer_norm), TypeError, "missing a required argument: 'x'"),
        (lambda: labkit.plan(norm.layer_norm, X, speed=1), TypeError, "unexpected keyword argument 'speed'"),
        (
            lambda: labkit.plan(norm.layer_norm, *on_device(X, W[:7]), y=on_device(X)[0]),
            ValueError,
            "weight is 7, but 8 beside x of 3 x 8: change it",
        ),
        (lambda: gemm.plan(*on_device(X, X), C=on_device(X)[0], beta="1"), TypeError, "beta is a str, and a factor"),
        (lambda: gemm.plan(*on_device(X, X.T), C=[1.0]), TypeError, "C is a list, not an array"),
    ],
)
def test_what_is_not_planned_is_told_so(make, error, words):
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_a_plan_runs_in_place():
    (x,) = on_device(random(3, 8))
    expected = norm.rms_norm(x.copy_to_host())
    plan = labkit.plan(norm.rms_norm, x, y=x)
    plan()
    assert np.array_equal(x.copy_to_host(), expected)
    with pytest.raises(ValueError, match="y shares memory with x, which is read while y is written"):
        whole = cuda.to_device(np.zeros((4, 8), np.float32))
        plan(whole[:3], whole[1:])


# --- on a GPU ------------------------------------------------------------------------------------


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_plan_gives_the_very_bits_of_multiply_also_for_other_operands_and_in_a_graph_of_another_stream(call):
    first, second = operands_of(call, seed=0), operands_of(call, seed=1)
    expected = []
    for A, B, C in (first, second):
        result = cuda.to_device(C)
        gemm.multiply(*on_device(A, B), C=result, **call.options)
        expected.append(result.copy_to_host())
    A, B, C = on_device(*first)
    plan = gemm.plan(A, B, C=C, **call.options)
    plan()
    cuda.synchronize()
    assert (C.copy_to_host() == expected[0]).all()
    others = on_device(*second)
    plan(*others)
    cuda.synchronize()
    assert (others[2].copy_to_host() == expected[1]).all()
    others[2].copy_to_device(second[2])
    stream = cuda.stream()
    replay = captured(stream, lambda: plan(stream=stream))
    assert (others[2].copy_to_host() == second[2]).all() or not call.options.get("beta")
    replay()
    stream.synchronize()
    assert (others[2].copy_to_host() == expected[1]).all()


@pytest.mark.needs("gpu")
def test_a_plan_that_was_recorded_gives_the_same_bits_elsewhere_and_while_it_is_captured():
    first, second = (list(map(np.asarray, operands_of(CALLS[10], seed))) for seed in (0, 1))
    expected = []
    for A, B, C in (first, second):
        result = cuda.to_device(C)
        gemm.multiply(*on_device(A, B), C=result, **{**CALLS[10].options, "beta": 0.0})
        expected.append(result.copy_to_host())
    one, other = on_device(*first), on_device(*second)
    A, B, C = one
    plan = gemm.plan(A, B, C=C, **{**CALLS[10].options, "beta": 0.0})
    for arrays, right_bits in ((one, expected[0]), (other, expected[1]), (one, expected[0])):
        for _ in range(30):
            plan(*arrays)
        cuda.synchronize()
        assert (arrays[2].copy_to_host() == right_bits).all()
    one[2].copy_to_device(first[2])
    stream = cuda.stream()
    replay = captured(stream, lambda: plan(stream=stream))
    replay()
    stream.synchronize()
    assert (one[2].copy_to_host() == expected[0]).all()


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_multiply_is_captured_from_a_stream_that_it_never_ran_on(call):
    A, B, C = operands_of(call, seed=2)
    result = cuda.to_device(C)
    gemm.multiply(*on_device(A, B), C=result, **call.options)
    expected = result.copy_to_host()
    (A, B, C), stream = on_device(A, B, C), cuda.stream()
    replay = captured(stream, lambda: gemm.multiply(A, B, C=C, **call.options, stream=stream))
    replay()
    stream.synchronize()
    assert (C.copy_to_host() == expected).all()


def captured(stream, launch):
    """A function that replays what was launched on the stream."""
    from numba.cuda.cudadrv.driver import binding, driver

    handle = binding.CUstream(int(stream.handle))
    driver.cuStreamBeginCapture(handle, binding.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
    launch()
    executable = driver.cuGraphInstantiate(driver.cuStreamEndCapture(handle), 0)
    return lambda: driver.cuGraphLaunch(executable, handle)


@pytest.mark.needs("gpu")
@pytest.mark.needs("torch")
def test_tensors_of_torch_are_taken_as_they_are():
    import torch

    A, B = (torch.randn(64, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    C = torch.empty(64, 64, device="cuda", dtype=torch.bfloat16)
    assert gemm.multiply(A, B, C=C, transpose_b=True) is C
    assert torch.allclose(C, A @ B.T, rtol=2e-2, atol=0.1)
    plan = gemm.plan(A, B, C=C, transpose_b=True)
    plan(2 * A, B, C)
    torch.cuda.synchronize()
    assert torch.allclose(C, 2 * A @ B.T, rtol=2e-2, atol=0.2)
    X, Y = (torch.randn(64, 64, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    gemm.multiply(X, Y, C=C, transpose_b=True)
    assert torch.allclose(C.float(), X.float() @ Y.float().T, rtol=2e-2, atol=0.1)
    with pytest.raises(TypeError, match="may be bits of anything"):
        gemm.multiply(X.view(torch.uint8), Y.view(torch.uint8), C=C)
