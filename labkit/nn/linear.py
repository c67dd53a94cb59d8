"""A fully connected layer for torch, by `labkit.gemm`."""

from math import prod

import torch
from jaxtyping import Float
from torch import Tensor

from labkit import gemm
from labkit.arrays.operands import shape_text
from labkit.nn.operators import check_tensor, check_tensors_and_call, to_autocast_dtype


class Linear(torch.nn.Linear):
    """y = x W^T + b, as `torch.nn.Linear`, of float32, float16 or bfloat16.

    GEMMs of float32 have full precision, on CUDA cores.

    Examples
    --------
    >>> layer = nn.Linear(512, 2048).cuda().bfloat16()
    """

    def forward(self, input: Float[Tensor, "*rows in_features"]) -> Float[Tensor, "*rows out_features"]:
        """Return y."""
        check_tensor("input", input)
        if input.ndim == 0 or input.shape[-1] != self.in_features:
            features = f"{self.in_features} feature{'s' * (self.in_features != 1)}"
            raise ValueError(f"input is {shape_text(input.shape)}: give it {features} along its last axis")
        x, weight, *bias = to_autocast_dtype(input, self.weight, *(() if self.bias is None else (self.bias,)))
        y = _gemm(x.reshape(prod(x.shape[:-1]), self.in_features), weight, *(bias or [None]), False, True)
        return y.reshape(*input.shape[:-1], self.out_features)


@torch.library.custom_op("labkit::product", mutates_args=())
def _gemm(a: Tensor, b: Tensor, bias: Tensor | None, transpose_a: bool, transpose_b: bool) -> Tensor:
    c = _empty_output(a, b, bias, transpose_a, transpose_b)
    tensors = {"A": a, "B": b, "C": c, "bias": bias}
    check_tensors_and_call(gemm.multiply, tensors, transpose_a=transpose_a, transpose_b=transpose_b)
    return c


@_gemm.register_fake
def _empty_output(a, b, bias, transpose_a, transpose_b):
    return a.new_empty(a.shape[1 if transpose_a else 0], b.shape[0 if transpose_b else 1])


def _save(ctx, inputs, output):
    a, b, _, *ctx.transposed = inputs
    ctx.save_for_backward(a, b)


def _backward(ctx, dc):
    """Return the gradients by the same operator, so that they have gradients too."""
    (a, b), (transpose_a, transpose_b) = ctx.saved_tensors, ctx.transposed
    needs_da, needs_db, needs_dbias, *_ = ctx.needs_input_grad
    da = db = None
    if needs_da:
        da = _gemm(b, dc, None, transpose_b, True) if transpose_a else _gemm(dc, b, None, False, not transpose_b)
    if needs_db:
        db = _gemm(dc, a, None, True, transpose_a) if transpose_b else _gemm(a, dc, None, not transpose_a, False)
    return da, db, dc.sum(0) if needs_dbias else None, None, None


_gemm.register_autograd(_backward, setup_context=_save)
