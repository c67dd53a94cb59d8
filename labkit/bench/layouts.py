"""`labkit bench layouts`: conversions of images compared with torch, eager and compiled, and with copies."""

from functools import partial

from labkit import ladder, layouts
from labkit.bench import _harness, _torch


def convert(problem, format, x, y, _):
    """Return a plan of `layouts.convert`."""
    plan = layouts.plan(x, problem.source, problem.target, y=y, vector=problem.vector)
    return lambda stream: plan(stream=stream)


def torch_eager(problem, format, x, y, _):
    """Return the copy that `x.contiguous(memory_format=...)` makes, into existing memory."""
    x, y = _with_common_axes(problem, *_torch.tensors(format, x, y))
    return _torch.launch_on_stream(partial(y.copy_, x))


def torch_compiled(problem, format, x, y, _):
    """Return the same copy by torch.compile, for these sizes only."""
    import torch

    x, y = _with_common_axes(problem, *_torch.tensors(format, x, y))
    torch._dynamo.reset()  # else so many sizes count as too many, and it goes on as eager
    return _torch.launch_on_stream(partial(torch.compile(_copy, dynamic=False), x, y))


def copy(problem, format, x, y, _):
    """Return the driver's copy of the images' memory."""
    x, y = x.reshape(x.size), y.reshape(y.size)
    return lambda stream: y.copy_to_device(x, stream)


def baselines(problem, format):
    """Return the contenders from other libraries for these images."""
    if not _torch.is_installed() or problem.C % problem.vector and "NCHW_VECT_C" in (problem.source, problem.target):
        return {}
    return {"torch": torch_eager, "torch.compile": torch_compiled}


def _copy(x, y):
    y.copy_(x)


def _with_common_axes(problem, x, y):
    """Return the tensors with the same axes: N C H W, or N C H W and channels of a vector."""
    in_vectors = "NCHW_VECT_C" in (problem.source, problem.target)

    def to_common_axes(X, layout):
        if layout == "NCHW_VECT_C":
            return X
        X = X if layout == "NCHW" else X.permute(0, 3, 1, 2)
        return X.unflatten(1, (-1, problem.vector)).permute(0, 1, 3, 4, 2) if in_vectors else X

    return to_common_axes(x, problem.source), to_common_axes(y, problem.target)


CONTENDERS = {"ours": {"convert": convert}, "baselines": baselines, "yardsticks": {"cuMemcpy": copy}}
NUM_STEPS = len(layouts.ladder("transpose"))
TABLE = _harness.Benchmark(
    "layouts", "Layouts of images", ladder.ladders("layouts"), steps_in_other_formats=NUM_STEPS, **CONTENDERS
)
main = partial(_harness.run, TABLE)
