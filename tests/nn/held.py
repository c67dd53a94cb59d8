"""Our layers compared with torch's, with a float64 copy as reference."""

from copy import deepcopy

import torch

from labkit import cuda

BACKEND = "inductor" if cuda.on_gpu() else "aot_eager"  # the first one needs a compiler of C++ without a GPU
ROUNDING = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3.2e-2}  # four steps of the 16-bit types


def assert_close(found, right, of_each, name):
    """Within some roundings of each value, and of the largest."""
    atol = of_each * float(right.detach().abs().max()) if right.numel() else 0
    torch.testing.assert_close(found.double(), right, rtol=of_each, atol=atol, msg=lambda why: f"{name}: {why}")


def weights_of(y):
    """Weights of a sum of outputs, whose gradients are asked for: neighbours differ, or norms had gradients near 0."""
    return torch.sin(1.7 * torch.arange(y.numel(), dtype=torch.float64)).reshape(y.shape).to(y) + 0.3


def assert_alike(ours, theirs, *tensors):
    """`ours(*tensors)` and the gradients of the tensors are those of `theirs`, computed in float64."""
    of_each = ROUNDING[tensors[0].dtype]
    tensors = [X.detach().requires_grad_() for X in tensors]
    twins = [X.detach().double().requires_grad_() for X in tensors]
    y, right_y = ours(*tensors), theirs(*twins)
    assert (y.shape, y.dtype) == (right_y.shape, tensors[0].dtype)
    assert_close(y, right_y, of_each, "result")
    result = torch.autograd.grad(y, tensors, weights_of(y))
    right = torch.autograd.grad(right_y, twins, weights_of(y).double())
    for number, (X, of_ours, of_theirs) in enumerate(zip(tensors, result, right, strict=True)):
        assert (of_ours.shape, of_ours.dtype) == (X.shape, X.dtype)
        assert_close(of_ours, of_theirs, of_each, f"gradient {number}")


def assert_layers_alike(ours, theirs, x):
    """A layer with the parameters of torch's gives what that does, the gradients of x and of all of them, and buffers.

    x may be a view, which is taken as it lies.
    """
    ours.load_state_dict(theirs.state_dict())
    twin, of_each = deepcopy(theirs).double(), ROUNDING[x.dtype]
    x = x.detach().requires_grad_()
    x_ = x.detach().double().requires_grad_()
    y, right_y = ours(x), twin(x_)
    assert (y.shape, y.dtype) == (right_y.shape, x.dtype)
    assert y.stride() == right_y.stride() or cuda.on_gpu()  # where torch's float64 does not keep channels last
    assert_close(y, right_y, of_each, "result")
    y.backward(weights_of(y))
    right_y.backward(weights_of(y).double())
    assert_close(x.grad, x_.grad, of_each, "gradient of the input")
    for (name, parameter), right in zip(ours.named_parameters(), twin.parameters(), strict=True):
        assert_close(parameter.grad, right.grad, of_each, f"gradient of {name}")
    for (name, buffer), right in zip(ours.named_buffers(), twin.buffers(), strict=True):
        assert_close(buffer, right.double(), of_each, name)


def assert_compiled(model, *tensors):
    """torch.compile takes the whole as one graph, forward and backward, and it gives what the model does."""
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend=BACKEND)
    result, right = (call(*tensors) for call in (compiled, model))
    torch.testing.assert_close(result, right)
    wanted = [X for X in tensors if X.requires_grad]
    for one, other in zip(*(torch.autograd.grad(y.sum(), wanted) for y in (result, right)), strict=True):
        torch.testing.assert_close(one, other)
