"""RMS norm for torch, by `labkit.norm`."""

import torch
from jaxtyping import Float
from torch import Tensor

from labkit import norm
from labkit.nn.operators import check_tensor, check_tensors_and_call, refuse_second_derivative
from labkit.nn.rows import as_matrix_and_weight

EPS = torch.finfo(torch.float32).eps  # default: as in torch, of the accumulator's type, not of the rows'


class RMSNorm(torch.nn.RMSNorm):
    """y = x / sqrt(mean square + eps) * weight for each row, as `torch.nn.RMSNorm`.

    Rows are float32, bfloat16 or float16. Statistics are always float32.

    Examples
    --------
    >>> layer = nn.RMSNorm(768, eps=1e-6).cuda()
    """

    def forward(self, input: Float[Tensor, "*rows columns"]) -> Float[Tensor, "*rows columns"]:
        """Return the normalised rows."""
        check_tensor("input", input)
        if not input.numel():  # nothing to compute
            return super().forward(input)
        x, weight = as_matrix_and_weight(input, self.normalized_shape, self.weight)
        return _rms_norm(x, weight, EPS if self.eps is None else self.eps)[0].reshape(input.shape)


@torch.library.custom_op("labkit::rms_norm", mutates_args=())
def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    y, rstd = _empty_outputs(x, weight, eps)
    check_tensors_and_call(norm.rms_norm, {"x": x, "weight": weight, "y": y, "rstd": rstd}, eps=eps)
    return y, rstd


@_rms_norm.register_fake
def _empty_outputs(x, weight, eps):
    return torch.empty_like(x), x.new_empty(x.shape[0], dtype=torch.float32)


@torch.library.custom_op("labkit::rms_norm_backward", mutates_args=())
def _rms_norm_backward(dy: Tensor, x: Tensor, weight: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    dx, dweight = _empty_gradients(dy, x, weight, rstd)
    check_tensors_and_call(
        norm.rms_norm_backward, {"dy": dy, "x": x, "weight": weight, "rstd": rstd, "dx": dx, "dweight": dweight}
    )
    return dx, dweight


@_rms_norm_backward.register_fake
def _empty_gradients(dy, x, weight, rstd):
    return torch.empty_like(x), torch.empty_like(weight)


def _save(ctx, inputs, output):
    x, weight, _ = inputs
    ctx.save_for_backward(x, weight, output[1])


def _backward(ctx, dy, _):
    return *_rms_norm_backward(dy.contiguous(), *ctx.saved_tensors), None


_rms_norm.register_autograd(_backward, setup_context=_save)
refuse_second_derivative(_rms_norm_backward, "RMS norm")
