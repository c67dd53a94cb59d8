"""Batch norm for torch, by `labkit.norm`, in the order of NCHW or in torch's `channels_last`."""

import torch
from jaxtyping import Float
from torch import Tensor

from labkit import norm
from labkit.arrays.operands import shape_text
from labkit.nn.operators import check_tensor, compute, in_float32, refuse_second_derivative


class BatchNorm2d(torch.nn.BatchNorm2d):
    """y = (x - mean) / sqrt(variance + eps) * weight + bias for each channel, as `torch.nn.BatchNorm2d`.

    Images hold float32, bfloat16, or float16, which is computed as float32; statistics are float32 in any case.

    Examples
    --------
    >>> layer = nn.BatchNorm2d(64).cuda()
    """

    def forward(self, input: Float[Tensor, "N C H W"]) -> Float[Tensor, "N C H W"]:
        """The normalised images; in training the running statistics move."""
        check_tensor("input", input)
        self._check_input_dim(input)
        if input.shape[1] != self.num_features:
            raise ValueError(
                f"input is {shape_text(input.shape)}: give it {self.num_features} channels along its second axis"
            )
        if not input.numel():  # no kernel has anything to do
            return super().forward(input)
        running_mean, running_var = self.running_mean, self.running_var
        if (running_mean is None) != (running_var is None):
            raise ValueError("only one of running_mean and running_var is there: keep both, or set both to None")
        x = in_float32(input if _is_dense(input) else input.contiguous())
        weight, bias = (None if X is None else X.float() for X in (self.weight, self.bias))
        if not self.training and running_mean is not None and running_var is not None:
            return _inference(x, weight, bias, running_mean.float(), running_var.float(), self.eps).to(input.dtype)
        y, mean, variance = _batch_norm(x, weight, bias, self.eps)
        if self.training and self.track_running_stats and running_mean is not None:
            self._move(mean, variance, input.numel() // input.shape[1])
        return y.to(input.dtype)

    @torch.no_grad()
    def _move(self, mean, variance, values):
        """Moves the running statistics; their variance is the unbiased one."""
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        share = self.momentum
        if share is None:  # of all batches, if they are counted
            share = 0.0 if self.num_batches_tracked is None else 1.0 / self.num_batches_tracked
        self.running_mean += share * (mean - self.running_mean)
        self.running_var += share * (variance * (values / (values - 1)) - self.running_var)


@torch.library.custom_op("labkit::batch_norm", mutates_args=())
def _batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    y, mean, variance = _blank(x, weight, bias, eps)
    compute(
        norm.batch_norm, {"x": x, "weight": weight, "bias": bias, "y": y, "mean": mean, "variance": variance}, eps=eps
    )
    return y, mean, variance


@_batch_norm.register_fake
def _blank(x, weight, bias, eps):
    return torch.empty_like(x), *(x.new_empty(x.shape[1], dtype=torch.float32) for _ in range(2))


@torch.library.custom_op("labkit::batch_norm_backward", mutates_args=())
def _batch_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dx, dweight, dbias = _blank(x, weight, bias, eps)
    given = {"dy": dy, "x": x, "weight": weight, "bias": bias, "mean": mean, "variance": variance}
    compute(norm.batch_norm_backward, {**given, "dx": dx, "dweight": dweight, "dbias": dbias}, eps=eps)
    return dx, dweight, dbias


@_batch_norm_backward.register_fake
def _blank_gradients(dy, x, weight, bias, mean, variance, eps):
    return _blank(x, weight, bias, eps)


def _keep(ctx, inputs, output):
    *given, ctx.eps = inputs
    ctx.save_for_backward(*given, *output[1:])


def _gradients(ctx, dy, *_):
    x, *others = ctx.saved_tensors
    dx, dweight, dbias = _batch_norm_backward(_in_order_of(x, dy), x, *others, ctx.eps)
    _, weight, bias, _ = ctx.needs_input_grad
    return dx, dweight if weight else None, dbias if bias else None, None


_batch_norm.register_autograd(_gradients, setup_context=_keep)
refuse_second_derivative(_batch_norm_backward, "batch norm")


@torch.library.custom_op("labkit::batch_norm_inference", mutates_args=())
def _inference(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor, eps: float
) -> Tensor:
    y = torch.empty_like(x)
    given = {"x": x, "weight": weight, "bias": bias, "y": y, "running_mean": mean, "running_variance": variance}
    compute(norm.batch_norm, given, eps=eps, training=False)
    return y


@_inference.register_fake
def _like_images(x, *given):
    return torch.empty_like(x)


def _keep_inference(ctx, inputs, output):
    x, weight, _, mean, variance, eps = inputs
    ctx.save_for_backward(x, weight, mean.clone(), torch.rsqrt(variance + eps))  # training may move both before


def _gradients_of_inference(ctx, dy):
    """Statistics do not depend on x there."""
    x, weight, mean, rstd = ctx.saved_tensors
    factor = rstd if weight is None else weight * rstd
    _, of_weight, of_bias, *_ = ctx.needs_input_grad
    dx = (dy * factor[:, None, None]).to(x.dtype)
    normalised = (x - mean[:, None, None]) * rstd[:, None, None]
    dweight = (dy * normalised).sum((0, 2, 3), dtype=torch.float32) if of_weight else None
    dbias = dy.sum((0, 2, 3), dtype=torch.float32) if of_bias else None
    return dx, dweight, dbias, None, None, None


_inference.register_autograd(_gradients_of_inference, setup_context=_keep_inference)


def _is_dense(x):
    return x.is_contiguous() or x.is_contiguous(memory_format=torch.channels_last)


def _in_order_of(x, dy):
    return dy.contiguous() if x.is_contiguous() else dy.contiguous(memory_format=torch.channels_last)
