"""`norm.batch_norm` compared with torch's: results, and the state that a layer keeps over several batches."""

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from sampling import WHOLE

from labkit import norm

pytestmark = [pytest.mark.needs("torch"), pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")]
SETTINGS = settings(max_examples=200 if WHOLE else 25, phases=[Phase.generate])


@st.composite
def calls(draw):
    """Images, values for each channel, and options, as both take them."""
    shape = [draw(st.integers(1, 6)) for _ in range(draw(st.integers(2, 5)))]
    training = draw(st.booleans())
    assume(not training or np.prod(shape) // shape[1] >= 4)
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    x = (rng.standard_normal(shape) * 3 + draw(st.sampled_from((0, 1, -20)))).astype(np.float32)
    given = {name: rng.standard_normal(shape[1]).astype(np.float32) for name in ("running_mean", "weight", "bias")}
    given["running_variance"] = rng.uniform(0.5, 2, shape[1]).astype(np.float32)
    if draw(st.booleans()):
        given["weight"] = given["bias"] = None
    if training and draw(st.booleans()):
        given["running_mean"] = given["running_variance"] = None
    return x, given, training, draw(st.floats(0, 1)), draw(st.sampled_from((1e-5, 1e-3, 1e-12)))


def test_results_and_running_statistics_are_those_of_torch():
    import torch

    @SETTINGS
    @given(call=calls())
    def check(call):
        x, given, training, momentum, eps = call
        theirs = {name: None if X is None else torch.from_numpy(X.copy()) for name, X in given.items()}
        running = theirs["running_mean"], theirs["running_variance"]
        options = training, momentum, eps
        expected = torch.nn.functional.batch_norm(
            torch.from_numpy(x), *running, theirs["weight"], theirs["bias"], *options
        )
        ours = {name: None if X is None else X.copy() for name, X in given.items()}
        y = norm.batch_norm(x, **ours, training=training, momentum=momentum, eps=eps)
        assert np.allclose(y, expected.numpy(), rtol=1e-4, atol=2e-4)
        for name, X in ours.items():
            assert X is None or np.allclose(X, theirs[name].numpy(), rtol=1e-5, atol=1e-5), name

    check()


@pytest.mark.parametrize("momentum", [0.1, None])
def test_the_state_of_a_layer_over_several_batches_is_that_of_torch(momentum):
    import torch

    layer = torch.nn.BatchNorm2d(3, momentum=momentum)
    running = {"running_mean": np.zeros(3, np.float32), "running_variance": np.ones(3, np.float32)}
    weights = {name: getattr(layer, name).detach().numpy() for name in ("weight", "bias")}
    rng = np.random.default_rng(0)
    for batch in range(5):
        x = (rng.standard_normal((4 + batch, 3, 5, 5)) + batch).astype(np.float32)
        before = int(layer.num_batches_tracked)
        expected = layer(torch.from_numpy(x)).detach().numpy()
        y = norm.batch_norm(x, **weights, **running, momentum=momentum, batches=before)
        assert np.allclose(y, expected, atol=1e-5)
        assert np.allclose(running["running_mean"], layer.running_mean.numpy(), atol=1e-6)
        assert np.allclose(running["running_variance"], layer.running_var.numpy(), atol=1e-5)
    layer.eval()
    y = norm.batch_norm(x, **weights, **running, training=False)
    assert np.allclose(y, layer(torch.from_numpy(x)).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 3), (1, 3, 1, 1)])
def test_one_value_a_channel_is_refused_by_both_in_training_alone(shape):
    import torch

    x = np.ones(shape, np.float32)
    running = np.zeros(3, np.float32), np.ones(3, np.float32)
    with pytest.raises(ValueError, match="one value"):
        norm.batch_norm(x)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        torch.nn.functional.batch_norm(torch.from_numpy(x), None, None, training=True)
    y = norm.batch_norm(x, running_mean=running[0], running_variance=running[1], training=False)
    expected = torch.nn.functional.batch_norm(torch.from_numpy(x), *map(torch.from_numpy, running))
    assert np.allclose(y, expected.numpy())


# --- tensors on a GPU ----------------------------------------------------------------------------


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("training", [True, False])
def test_tensors_are_taken_as_they_lie_and_a_new_one_lies_alike(name, channels_last, training):
    import torch

    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(6, 40, 7, 9, device="cuda").to(getattr(torch, name)).contiguous(memory_format=memory_format)
    weight, bias = torch.randn(2, 40, device="cuda")
    running = [torch.randn(40, device="cuda"), torch.rand(40, device="cuda") + 0.5]
    ours = [X.clone() for X in running]
    expected = torch.relu(torch.nn.functional.batch_norm(x.double(), *(X.double() for X in running), weight.double(),
                                                         bias.double(), training))  # fmt: skip
    torch.nn.functional.batch_norm(x, *running, weight, bias, training)
    options = {"running_mean": ours[0], "running_variance": ours[1], "training": training, "relu": True}
    y = norm.batch_norm(x, weight, bias, **options)
    assert isinstance(y, torch.Tensor) and y.dtype == x.dtype and y.stride() == x.stride()
    near = {"float32": 1e-5, "bfloat16": 2e-2}[name]
    assert torch.allclose(y.double(), expected, rtol=near, atol=near)
    assert all(torch.allclose(X, other, atol=1e-5) for X, other in zip(ours, running, strict=True))
    if not training:
        assert norm.batch_norm(x, weight, bias, y=x, **options) is x and torch.equal(x, y)


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("channels_last", [False, True])
def test_a_plan_is_captured_by_a_graph_of_torch(channels_last):
    import torch

    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    x = torch.randn(6, 40, 7, 9, device="cuda").contiguous(memory_format=memory_format)
    y, (weight, bias) = torch.empty_like(x), torch.randn(2, 40, device="cuda")
    plan = norm.plan(norm.batch_norm, x, weight, bias, y=y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan(stream=torch.cuda.current_stream())
    x.copy_(torch.randn_like(x) * 2 + 1)
    graph.replay()
    torch.cuda.synchronize()
    expected = torch.nn.functional.batch_norm(x, None, None, weight, bias, True)
    assert torch.allclose(y, expected, atol=1e-5)


@pytest.mark.needs("gpu")
def test_layers_that_are_folded_on_the_gpu_compute_the_same():
    import torch

    layer, after = torch.nn.Conv2d(8, 12, 3, groups=2).cuda(), torch.nn.BatchNorm2d(12).cuda()
    for X in (after.running_mean, after.weight.data, after.bias.data):
        X.normal_()
    after.running_var.uniform_(0.5, 2)
    layer.eval(), after.eval()
    x = torch.randn(3, 8, 9, 10, device="cuda")
    with torch.no_grad(), torch.backends.cudnn.flags(allow_tf32=False):
        expected = after(layer(x))
        layer.weight.data, layer.bias.data = norm.fold(
            layer.weight.data, layer.bias.data, after.running_mean, after.running_var, after.weight.data,
            after.bias.data, after.eps,
        )  # fmt: skip
        assert torch.allclose(layer(x), expected, atol=1e-5)
