"""Convolution for torch, by `labkit.conv`, of contiguous or `channels_last` tensors."""

from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from labkit import conv
from labkit.arrays.operands import shape_text
from labkit.nn.operators import check_tensor, check_tensors_and_call, refuse_second_derivative, to_autocast_dtype

PIXELS_LAST = 0, 2, 3, 1  # the axes of NCHW in the order of NHWC


class Conv2d(torch.nn.Conv2d):
    """2D convolution, as `torch.nn.Conv2d`, of float32, float16 or bfloat16.

    `labkit.conv` chooses the algorithm that it predicts, or has measured, to be the fastest. Kernels read contiguous
    float32 images, and `channels_last` images of 16-bit types; others are copied. Grouped convolutions of 16-bit types,
    and gradients of these types on GPUs before Hopper, are computed in float32 by CUDA cores.

    Examples
    --------
    >>> layer = nn.Conv2d(64, 128, 3, padding=1).cuda().to(memory_format=torch.channels_last)
    """

    def _conv_forward(self, input: Float[Tensor, "N C H W"], weight, bias) -> Float[Tensor, "N K P Q"]:
        check_tensor("input", input)
        if input.ndim not in (3, 4):
            raise ValueError(f"input is {shape_text(input.shape)}: give it the axes N, C, H and W, or C, H and W")
        if not input.numel():  # nothing to compute
            return super()._conv_forward(input, weight, bias)
        images = input if input.ndim == 4 else input[None]  # torch takes a single image as well
        max_padding = [dilation * (taps - 1) for taps, dilation in zip(self.kernel_size, self.dilation)]
        padding = _four_sides(self.padding, max_padding)
        if self.padding_mode != "zeros":
            images = torch.nn.functional.pad(images, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = [0] * 4
        x, filters = to_autocast_dtype(images, weight)
        dtype = x.dtype
        if 1 < self.groups < self.in_channels:  # grouped, but not depthwise
            x, filters = x.float(), filters.float()
        if any(n > max_padding[side // 2] for side, n in enumerate(padding)):  # kernels accept no window of only zeros
            top, bottom, left, right = padding
            x, padding = torch.nn.functional.pad(x, (left, right, top, bottom)), [0] * 4
        x = x.contiguous(memory_format=_memory_format(x.dtype))
        y = _convolution(x, filters, list(self.stride), padding, list(self.dilation), self.groups).to(dtype)
        y = y if bias is None else y + bias.to(y.dtype)[:, None, None]
        if images.is_contiguous():
            y = y.contiguous()
        elif images.is_contiguous(memory_format=torch.channels_last):
            y = y.contiguous(memory_format=torch.channels_last)
        return y if input.ndim == 4 else y[0]


@torch.library.custom_op("labkit::convolution", mutates_args=())
def _convolution(
    x: Tensor, w: Tensor, stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> Tensor:
    y = _empty_outputs(x, w, stride, padding, dilation, groups)
    _compute(conv.forward, {"x": x, "w": w, "y": y}, stride, padding, dilation, groups)
    return y


@_convolution.register_fake
def _empty_outputs(x, w, stride, padding, dilation, groups):
    sizes = zip(x.shape[2:], w.shape[2:], stride, padding[::2], padding[1::2], dilation)
    shape = x.shape[0], w.shape[0], *(max(0, conv.output_size(*size)) for size in sizes)  # the call refuses 0
    return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=_memory_format(x.dtype))


@torch.library.custom_op("labkit::convolution_of_images", mutates_args=())
def _backward_data(
    w: Tensor, dy: Tensor, sides: list[int], stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> Tensor:
    """Return the gradient of images of a height and width."""
    dx = _empty_images(w, dy, sides, stride, padding, dilation, groups)
    _compute(conv.backward_data, {"w": w, "y": dy, "x": dx}, stride, padding, dilation, groups)
    return dx


@_backward_data.register_fake
def _empty_images(w, dy, sides, stride, padding, dilation, groups):
    return _empty_like(dy, dy.shape[0], w.shape[1] * groups, *sides)


@torch.library.custom_op("labkit::convolution_of_filters", mutates_args=())
def _backward_filter(
    x: Tensor, dy: Tensor, taps: list[int], stride: list[int], padding: list[int], dilation: list[int], groups: int
) -> Tensor:
    """Return the gradient of filters of a height and width."""
    dw = _empty_filters(x, dy, taps, stride, padding, dilation, groups)
    _compute(conv.backward_filter, {"x": x, "y": dy, "w": dw}, stride, padding, dilation, groups)
    return dw


@_backward_filter.register_fake
def _empty_filters(x, dy, taps, stride, padding, dilation, groups):
    return _empty_like(x, dy.shape[1], x.shape[1] // groups, *taps)


def _empty_like(X, *shape):
    """Return a new tensor of the type and device of X, in the memory format of its type."""
    return torch.empty(shape, dtype=X.dtype, device=X.device, memory_format=_memory_format(X.dtype))


def _save(ctx, inputs, output):
    x, w, *ctx.options = inputs
    ctx.save_for_backward(x, w)


def _backward(ctx, dy):
    (x, w), needs, options = ctx.saved_tensors, ctx.needs_input_grad, ctx.options
    dx = dw = None
    if needs[0]:
        kind = _gradient_type(conv.BackwardData, x.shape, w.shape, options, dy.dtype)
        dx = _backward_data(w.to(kind), _in_order(dy, kind), list(x.shape[2:]), *options).to(dy.dtype)
    if needs[1]:
        kind = _gradient_type(conv.BackwardFilter, x.shape, w.shape, options, dy.dtype)
        dw = _backward_filter(_in_order(x, kind), _in_order(dy, kind), list(w.shape[2:]), *options).to(dy.dtype)
    return dx, dw, None, None, None, None


def _in_order(X, dtype):
    """Return images converted to a type, in the memory format that its kernels read."""
    return X.to(dtype).contiguous(memory_format=_memory_format(dtype))


def _gradient_type(kind, x_shape, w_shape, options, dtype):
    """Return the type in which a gradient of these images and filters is computed: their own, or else float32."""
    *steps, groups = options  # lists: stride, padding and dilation
    sizes = *x_shape, w_shape[0], *w_shape[2:], *(size for one in steps for size in one), groups
    has_kernels = dtype == torch.float32 or _has_kernels(kind, tuple(int(size) for size in sizes), dtype)
    return dtype if has_kernels else torch.float32


@lru_cache(1024)  # layers
def _has_kernels(kind, sizes, dtype):
    """Return whether this GPU has kernels for a gradient in a 16-bit type."""
    problem = kind(*sizes, layout="NHWC")
    return bool(conv.heuristic(problem, str(dtype).removeprefix("torch.")).candidates)


_convolution.register_autograd(_backward, setup_context=_save)
refuse_second_derivative(_backward_data, "a convolution")
refuse_second_derivative(_backward_filter, "a convolution")


def _compute(call, tensors, stride, padding, dilation, groups):
    """Run a call on tensors in the memory format of their type."""
    layout = "NCHW"
    if _memory_format(next(iter(tensors.values())).dtype) == torch.channels_last:
        layout, tensors = "NHWC", {name: X.permute(PIXELS_LAST) for name, X in tensors.items()}
    sizes = {"stride": tuple(stride), "padding": tuple(padding), "dilation": tuple(dilation), "groups": groups}
    check_tensors_and_call(call, tensors, layout=layout, **sizes)


def _memory_format(dtype):
    """Return the memory format of images that kernels read."""
    return torch.contiguous_format if dtype.itemsize == 4 else torch.channels_last


def _four_sides(padding, same):
    """Return the padding above, below, left and right; `same` has the sum per axis of padding="same"."""
    if isinstance(padding, str):
        return [n * (padding == "same") for total in same for n in (total // 2, total - total // 2)]
    rows, columns = padding
    return [rows, rows, columns, columns]
