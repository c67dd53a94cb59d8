"""Batch norm for torch, by `labkit.norm`, of contiguous or `channels_last` tensors."""

import torch
from jaxtyping import Float
from torch import Tensor

from labkit import norm
from labkit.arrays.operands import shape_text
from labkit.nn.operators import check_tensor, check_tensors_and_call, refuse_second_derivative


class BatchNorm2d(torch.nn.BatchNorm2d):
    """y = (x - mean) / sqrt(variance + eps) * weight + bias for each channel, as `torch.nn.BatchNorm2d`.

    Images are float32, bfloat16 or float16. Statistics are always float32.

    Examples
    --------
    >>> layer = nn.BatchNorm2d(64).cuda()
    """

    def forward(self, input: Float[Tensor, "N C H W"]) -> Float[Tensor, "N C H W"]:
        """Return the normalised images; in training, update the running statistics."""
        check_tensor("input", input)
        self._check_input_dim(input)
        if input.shape[1] != self.num_features:
            raise ValueError(
                f"input is {shape_text(input.shape)}: give it {self.num_features} channels along its second axis"
            )
        if not input.numel():  # nothing to compute
            return super().forward(input)
        running_mean, running_var = self.running_mean, self.running_var
        if (running_mean is None) != (running_var is None):
            raise ValueError("only one of running_mean and running_var is there: keep both, or set both to None")
        x = input if _is_dense(input) else input.contiguous()
        weight, bias = (None if X is None else X.float() for X in (self.weight, self.bias))
        if not self.training and running_mean is not None and running_var is not None:
            return _inference(x, weight, bias, running_mean.float(), running_var.float(), self.eps)
        y, mean, variance = _batch_norm(x, weight, bias, self.eps)
        if self.training and self.track_running_stats and running_mean is not None:
            self._update_running_stats(mean, variance, input.numel() // input.shape[1])
        return y

    @torch.no_grad()
    def _update_running_stats(self, mean, variance, values):
        """Update the running statistics; their variance is the unbiased one."""
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        momentum = self.momentum
        if momentum is None:  # the average of all batches, if they are counted
            momentum = 0.0 if self.num_batches_tracked is None else 1.0 / self.num_batches_tracked
        self.running_mean += momentum * (mean - self.running_mean)
        self.running_var += momentum * (variance * (values / (values - 1)) - self.running_var)


@torch.library.custom_op("labkit::batch_norm", mutates_args=())
def _batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    y, mean, variance = _empty_outputs(x, weight, bias, eps)
    tensors = {"x": x, "weight": weight, "bias": bias, "y": y, "mean": mean, "variance": variance}
    check_tensors_and_call(norm.batch_norm, tensors, eps=eps)
    return y, mean, variance


@_batch_norm.register_fake
def _empty_outputs(x, weight, bias, eps):
    return torch.empty_like(x), *(x.new_empty(x.shape[1], dtype=torch.float32) for _ in range(2))


@torch.library.custom_op("labkit::batch_norm_backward", mutates_args=())
def _batch_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dx, dweight, dbias = _empty_outputs(x, weight, bias, eps)
    tensors = {"dy": dy, "x": x, "weight": weight, "bias": bias, "mean": mean, "variance": variance}
    check_tensors_and_call(norm.batch_norm_backward, {**tensors, "dx": dx, "dweight": dweight, "dbias": dbias}, eps=eps)
    return dx, dweight, dbias


@_batch_norm_backward.register_fake
def _empty_gradients(dy, x, weight, bias, mean, variance, eps):
    return _empty_outputs(x, weight, bias, eps)


def _save(ctx, inputs, output):
    *tensors, ctx.eps = inputs
    ctx.save_for_backward(*tensors, *output[1:])


def _backward(ctx, dy, *_):
    x, *others = ctx.saved_tensors
    dx, dweight, dbias = _batch_norm_backward(_in_memory_format_of(x, dy), x, *others, ctx.eps)
    _, weight, bias, _ = ctx.needs_input_grad
    return dx, dweight if weight else None, dbias if bias else None, None


_batch_norm.register_autograd(_backward, setup_context=_save)
refuse_second_derivative(_batch_norm_backward, "batch norm")


@torch.library.custom_op("labkit::batch_norm_inference", mutates_args=())
def _inference(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, variance: Tensor, eps: float
) -> Tensor:
    y = torch.empty_like(x)
    tensors = {"x": x, "weight": weight, "bias": bias, "y": y, "running_mean": mean, "running_variance": variance}
    check_tensors_and_call(norm.batch_norm, tensors, eps=eps, training=False)
    return y


@_inference.register_fake
def _empty_images(x, *others):
    return torch.empty_like(x)


def _save_inference(ctx, inputs, output):
    x, weight, _, mean, variance, eps = inputs
    # training may change mean and variance before the backward pass
    ctx.save_for_backward(x, weight, mean.clone(), torch.rsqrt(variance + eps))


def _inference_backward(ctx, dy):
    """Return the gradients of inference, whose statistics do not depend on x."""
    x, weight, mean, rstd = ctx.saved_tensors
    factor = rstd if weight is None else weight * rstd
    _, needs_dweight, needs_dbias, *_ = ctx.needs_input_grad
    dx = (dy * factor[:, None, None]).to(x.dtype)
    normalised = (x - mean[:, None, None]) * rstd[:, None, None]
    dweight = (dy * normalised).sum((0, 2, 3), dtype=torch.float32) if needs_dweight else None
    dbias = dy.sum((0, 2, 3), dtype=torch.float32) if needs_dbias else None
    return dx, dweight, dbias, None, None, None


_inference.register_autograd(_inference_backward, setup_context=_save_inference)


def _is_dense(x):
    return x.is_contiguous() or x.is_contiguous(memory_format=torch.channels_last)


def _in_memory_format_of(x, dy):
    return dy.contiguous() if x.is_contiguous() else dy.contiguous(memory_format=torch.channels_last)
