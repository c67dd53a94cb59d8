"""torch.compile runs calls as they are, and compiles what is around them."""

import subprocess
import sys
from textwrap import dedent

import pytest

from labkit import gemm, norm, softmax
from labkit.calls.call import forget

torch = pytest.importorskip("torch")

MOST_FRAMES = 12  # of this file: parts of the function between calls


@pytest.fixture
def compiled():
    """Compiles a function, and keeps where the code comes from that is compiled."""
    from torch._dynamo import reset
    from torch._dynamo.convert_frame import register_bytecode_hook

    reset()
    forget()
    files = []
    hook = register_bytecode_hook(lambda code, new: files.append(code.co_filename))
    yield lambda function: (torch.compile(function, backend="eager"), files)
    hook.remove()
    reset()


def layer(x, weight, B):
    """A norm and a product, with work of torch's before, between and behind."""
    y = norm.layer_norm(x + 1, weight)
    z = gemm.multiply(torch.relu(y), B)
    return softmax.softmax(z) * 2


def arguments(rows):
    rng = torch.Generator().manual_seed(rows)
    return torch.randn(rows, 8, generator=rng), torch.ones(8), torch.randn(8, 5, generator=rng)


@pytest.mark.filterwarnings("ignore:.*torch.compile with aot_autograd")
def test_a_function_with_calls_is_compiled_around_them(compiled):
    function, files = compiled(layer)
    for rows in (3, 3, 4, 3):
        found, expected = function(*arguments(rows)), layer(*arguments(rows))
        assert torch.equal(found, expected)
    assert set(files) == {__file__}, "labkit's own code was compiled"
    assert len(files) < MOST_FRAMES


def test_calls_of_a_compiled_function_write_what_they_are_given(compiled):
    def into(x, out):
        softmax.softmax(x, out=out)
        return out + 1

    function, _ = compiled(into)
    x, out = torch.ones(2, 4), torch.zeros(2, 4)
    assert (function(x, out) == 1.25).all() and (out == 0.25).all()


def test_refusals_come_through(compiled):
    function, _ = compiled(layer)
    x, weight, B = arguments(3)
    with pytest.raises(ValueError, match="weight is 7, but 8 beside x of 3 x 8"):
        function(x, weight[:7], B)
    with pytest.raises(TypeError, match="weight requires a gradient, and this call records none"):
        function(x, weight.requires_grad_(), B)


def test_kernels_are_compiled_as_if_torch_were_not_there(compiled):
    """numba's and our own Python, which runs where a call is the first of its kind, takes no detour."""
    from torch._dynamo.utils import counters

    counters.clear()
    function, _ = compiled(layer)
    function(*arguments(6))
    assert counters["frames"]["total"] < MOST_FRAMES


@pytest.mark.parametrize("before", ["import torch", ""], ids=["torch comes first", "torch comes later"])
def test_torch_may_be_imported_before_labkit_or_after_it(before):
    program = f"""
        {before}
        import numpy as np
        from labkit import norm
        norm.layer_norm(np.ones((2, 4), np.float32))
        import torch
        from torch._dynamo.convert_frame import register_bytecode_hook

        files = []
        register_bytecode_hook(lambda code, new: files.append(code.co_filename))
        function = torch.compile(lambda x: norm.layer_norm(x + 1) * 2, backend="eager")
        x = torch.arange(8.0).reshape(2, 4)
        assert np.allclose(function(x), 2 * torch.nn.functional.layer_norm(x, (4,)), atol=1e-4)
        assert set(files) == {{"<string>"}}, files
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
