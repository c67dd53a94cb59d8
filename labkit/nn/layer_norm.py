"""Layer norm for torch, by `labkit.norm`."""

import torch
from jaxtyping import Float
from torch import Tensor

from labkit import norm
from labkit.nn.operators import check_tensor, check_tensors_and_call, refuse_second_derivative
from labkit.nn.rows import as_matrix_and_weight


class LayerNorm(torch.nn.LayerNorm):
    """y = (x - mean) / sqrt(variance + eps) * weight + bias for each row, as `torch.nn.LayerNorm`.

    Rows are float32, bfloat16 or float16. Statistics are always float32.

    Examples
    --------
    >>> layer = nn.LayerNorm(768).cuda()
    """

    def forward(self, input: Float[Tensor, "*rows columns"]) -> Float[Tensor, "*rows columns"]:
        """Return the normalised rows; under `torch.autocast` on a GPU they are float32, as torch's."""
        check_tensor("input", input)
        if not input.numel():  # nothing to compute
            return super().forward(input)
        if input.is_cuda and torch.is_autocast_enabled("cuda"):
            input = input.float()
        x, weight = as_matrix_and_weight(input, self.normalized_shape, self.weight)
        bias = None if self.bias is None else self.bias.float().reshape(-1)
        return _layer_norm(x, weight, bias, self.eps)[0].reshape(input.shape)


@torch.library.custom_op("labkit::layer_norm", mutates_args=())
def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    y, mean, rstd = _empty_outputs(x, weight, bias, eps)
    check_tensors_and_call(
        norm.layer_norm, {"x": x, "weight": weight, "bias": bias, "y": y, "mean": mean, "rstd": rstd}, eps=eps
    )
    return y, mean, rstd


@_layer_norm.register_fake
def _empty_outputs(x, weight, bias, eps):
    return torch.empty_like(x), *(x.new_empty(x.shape[0], dtype=torch.float32) for _ in range(2))


@torch.library.custom_op("labkit::layer_norm_backward", mutates_args=())
def _layer_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    dx, dweight, dbias = _empty_gradients(dy, x, weight, mean, rstd)
    tensors = {"dy": dy, "x": x, "weight": weight, "mean": mean, "rstd": rstd}
    check_tensors_and_call(norm.layer_norm_backward, {**tensors, "dx": dx, "dweight": dweight, "dbias": dbias})
    return dx, dweight, dbias


@_layer_norm_backward.register_fake
def _empty_gradients(dy, x, weight, mean, rstd):
    return torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)


def _save(ctx, inputs, output):
    x, weight, *_ = inputs
    ctx.save_for_backward(x, weight, *output[1:])


def _backward(ctx, dy, *_):
    dx, dweight, dbias = _layer_norm_backward(dy.contiguous(), *ctx.saved_tensors)
    return dx, dweight, dbias if ctx.needs_input_grad[2] else None, None


_layer_norm.register_autograd(_backward, setup_context=_save)
refuse_second_derivative(_layer_norm_backward, "layer norm")
