"""`labkit bench conv`: every kernel (step) of a convolution compared with torch and with cuDNN's own search."""

from functools import partial

from labkit import conv
from labkit.bench import _cudnn, _harness, _torch
from labkit.formats import FP32
from labkit.ladder import ladders


def torch_chosen(problem, format, x, w, y, _, allow_tf32=False):
    """Return a launch of the algorithm of cuDNN that torch chooses in benchmark mode.

    torch's own default for convolutions of float32 is to allow TF32.
    """
    import torch

    x, w, y = _torch.tensors(format, x, w, y)
    if problem.layout == "NHWC":
        x, w, y = (X.permute(0, 3, 1, 2) for X in (x, w, y))
    padding, stride = [problem.top, problem.left], [problem.stride_h, problem.stride_w]
    sizes = padding, stride, [problem.dilation_h, problem.dilation_w], problem.groups
    benchmark, deterministic = True, False
    switches = benchmark, deterministic, allow_tf32
    return _torch.launch_on_stream(partial(torch.ops.aten.cudnn_convolution.out, x, w, *sizes, *switches, out=y))


def torch_gradient(problem, format, x, w, y, _):
    """Return a launch of torch's gradient of images or filters, by the algorithm of cuDNN that it chooses.

    torch allocates the result; after the first call it is copied to the operands.
    """
    import torch

    x, w, y = _torch.tensors(format, x, w, y)
    if problem.layout == "NHWC":
        x, w, y = (X.permute(0, 3, 1, 2) for X in (x, w, y))
    index = "xw".index(problem.result)
    wanted = [index == 0, index == 1, False]  # gradients of images, filters and biases
    sizes = [problem.stride_h, problem.stride_w], [problem.top, problem.left], [problem.dilation_h, problem.dilation_w]

    def call():
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False):
            return torch.ops.aten.convolution_backward(y, x, w, None, *sizes, False, [0, 0], problem.groups, wanted)

    return _torch.launch_on_stream(call, lambda gradients: (x, w)[index].copy_(gradients[index]))


def torch_fft(problem, format, x, w, y, _):
    """Return a launch of three lines of `torch.fft` and of the copy of their result to y."""
    import torch

    x, w, y = _torch.tensors(format, x, w, y)
    size = [problem.H, problem.W]

    def call():
        spectra = torch.fft.rfft2(x), torch.fft.rfft2(w, s=size).conj()
        whole = torch.fft.irfft2(torch.einsum("nchw,kchw->nkhw", *spectra), s=size)
        y.copy_(whole[:, :, : problem.P, : problem.Q])

    return _torch.launch_on_stream(call)


def baselines(problem, format):
    """Return the baselines from other libraries by name: functions that return a launch of this problem."""
    if not (_torch.is_installed() and _cudnn.supports(problem)):
        return {}
    contenders = {"cuDNN's search": _cudnn.contender}
    if isinstance(problem, conv.Forward) and not problem.flipped:
        contenders["torch"] = torch_chosen
        is_plain = (problem.stride_h, problem.stride_w, problem.top, problem.left, problem.groups) == (1, 1, 0, 0, 1)
        if is_plain and (problem.dilation_h, problem.dilation_w, problem.layout) == (1, 1, "NCHW") and format == FP32:
            contenders["torch.fft"] = torch_fft
    elif not isinstance(problem, conv.Forward) and not problem.flipped and format != FP32:
        contenders["torch"] = torch_gradient
    return contenders


TABLES = [
    _harness.Benchmark(name=ladder.record, title=f"Convolution, {ladder.name}", ladders=(ladder,), baselines=baselines)
    for ladder in ladders("conv")
]
main = partial(_harness.run_all, TABLES)
