"""A convolution for torch, by `labkit.conv`, in the order of NCHW or in torch's `channels_last`."""

import torch
from jaxtyping import Float
from torch import Tensor

from labkit import conv
from labkit.arrays.operands import shape_text
from labkit.nn.operators import check_tensor, compute, in_one_type, refuse_second_derivative

PIXELS_LAST = 0, 2, 3, 1  # the axes of NCHW in the order of NHWC


class Conv2d(torch.nn.Conv2d):
    """The outputs of images and filters, as `torch.nn.Conv2d`, of float32, float16 or bfloat16.

    The algorithm is the one that `labkit.conv` predicts to be the fastest, or has found to be. It takes images of
    float32 in the order of NCHW, and of 16-bit types in that of NHWC, torch's `channels_last`; others are copied.
    Gradients are computed in float32, by CUDA cores, also those of 16-bit types, and so are convolutions in groups.

    Examples
    --------
    >>> layer = nn.Conv2d(64, 128, 3, padding=1).cuda().to(memory_format=torch.channels_last)
    """

    def _conv_forward(self, input: Float[Tensor, "N C H W"], weight, bias) -> Float[Tensor, "N K P Q"]:
        check_tensor("input", input)
        if input.ndim not in (3, 4):
            raise ValueError(f"input is {shape_text(input.shape)}: give it the axes N, C, H and W, or C, H and W")
        if not input.numel():  # no kernel has anything to do
            return super()._conv_forward(input, weight, bias)
        whole = input if input.ndim == 4 else input[None]  # torch takes a single image as well
        widest = [hole * (taps - 1) for taps, hole in zip(self.kernel_size, self.dilation)]
        zeros = _four(self.padding, widest)
        if self.padding_mode != "zeros":
            whole = torch.nn.functional.pad(whole, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            zeros = [0] * 4
        x, filters = in_one_type(whole, weight)
        dtype = x.dtype
        if self.groups > 1:
            x, filters = x.float(), filters.float()
        if any(each > widest[side // 2] for side, each in enumerate(zeros)):  # kernels take no window of zeros alone
            top, bottom, left, right = zeros
            x, zeros = torch.nn.functional.pad(x, (left, right, top, bottom)), [0] * 4
        x = x.contiguous(memory_format=_order_of(x.dtype))
        y = _convolution(x, filters, list(self.stride), zeros, list(self.dilation), self.groups).to(dtype)
        y = y if bias is None else y + bias.to(y.dtype)[:, None, None]
        if whole.is_contiguous():
            y = y.contiguous()
        elif whole.is_contiguous(memory_format=torch.channels_last):
            y = y.contiguous(memory_format=torch.channels_last)
        return y if input.ndim == 4 else y[0]


@torch.library.custom_op("labkit::convolution", mutates_args=())
def _convolution(
    x: Tensor, w: Tensor, stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> Tensor:
    y = _blank(x, w, stride, padding, dilation, groups)
    _compute(conv.forward, {"x": x, "w": w, "y": y}, stride, padding, dilation, groups)
    return y


@_convolution.register_fake
def _blank(x, w, stride, padding, dilation, groups):
    sizes = zip(x.shape[2:], w.shape[2:], stride, padding[::2], padding[1::2], dilation)
    shape = x.shape[0], w.shape[0], *(max(0, conv.output_size(*size)) for size in sizes)  # 0 is refused by the call
    return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=_order_of(x.dtype))


@torch.library.custom_op("labkit::convolution_of_images", mutates_args=())
def _of_images(
    w: Tensor, dy: Tensor, sides: list[int], stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> Tensor:
    """The gradient of images of so many rows and columns."""
    dx = _blank_images(w, dy, sides, stride, padding, dilation, groups)
    _compute(conv.backward_data, {"w": w, "y": dy, "x": dx}, stride, padding, dilation, groups)
    return dx


@_of_images.register_fake
def _blank_images(w, dy, sides, stride, padding, dilation, groups):
    return dy.new_empty(dy.shape[0], w.shape[1] * groups, *sides)


@torch.library.custom_op("labkit::convolution_of_filters", mutates_args=())
def _of_filters(
    x: Tensor, dy: Tensor, taps: list[int], stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> Tensor:
    """The gradient of filters of so many rows and columns."""
    dw = _blank_filters(x, dy, taps, stride, padding, dilation, groups)
    _compute(conv.backward_filter, {"x": x, "y": dy, "w": dw}, stride, padding, dilation, groups)
    return dw


@_of_filters.register_fake
def _blank_filters(x, dy, taps, stride, padding, dilation, groups):
    return x.new_empty(dy.shape[1], x.shape[1] // groups, *taps)


def _keep(ctx, inputs, output):
    x, w, *ctx.asked = inputs
    ctx.save_for_backward(x, w)


def _gradients(ctx, dy):
    dtype = dy.dtype
    x, w, dy = (X.float().contiguous() for X in (*ctx.saved_tensors, dy))
    of_x, of_w, *_ = ctx.needs_input_grad
    dx = _of_images(w, dy, list(x.shape[2:]), *ctx.asked).to(dtype) if of_x else None
    dw = _of_filters(x, dy, list(w.shape[2:]), *ctx.asked).to(dtype) if of_w else None
    return dx, dw, None, None, None, None


_convolution.register_autograd(_gradients, setup_context=_keep)
refuse_second_derivative(_of_images, "a convolution")
refuse_second_derivative(_of_filters, "a convolution")


def _compute(call, tensors, stride, padding, dilation, groups):
    """The call on tensors that lie in the order of their type."""
    layout = "NCHW"
    if _order_of(next(iter(tensors.values())).dtype) == torch.channels_last:
        layout, tensors = "NHWC", {name: X.permute(PIXELS_LAST) for name, X in tensors.items()}
    sizes = {"stride": tuple(stride), "padding": tuple(padding), "dilation": tuple(dilation), "groups": groups}
    compute(call, tensors, layout=layout, **sizes)


def _order_of(dtype):
    """In which order kernels take images."""
    return torch.contiguous_format if dtype.itemsize == 4 else torch.channels_last


def _four(padding, widest):
    """Zeros above, below, left and right; `widest` has both of an axis where the result is as large as the image."""
    if isinstance(padding, str):
        return [each * (padding == "same") for most in widest for each in (most // 2, most - most // 2)]
    rows, columns = padding
    return [rows, rows, columns, columns]
