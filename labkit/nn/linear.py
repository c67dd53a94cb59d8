"""A fully connected layer for torch, by `labkit.gemm`."""

from math import prod

import torch
from jaxtyping import Float
from torch import Tensor

from labkit import gemm
from labkit.arrays.operands import shape_text
from labkit.nn.operators import check_tensor, compute, in_one_type


class Linear(torch.nn.Linear):
    """y = x W^T + b, as `torch.nn.Linear`, of float32, float16 or bfloat16.

    Products of float32 are computed in full, by CUDA cores.

    Examples
    --------
    >>> layer = nn.Linear(512, 2048).cuda().bfloat16()
    """

    def forward(self, input: Float[Tensor, "*rows in_features"]) -> Float[Tensor, "*rows out_features"]:
        """The layer's outputs."""
        check_tensor("input", input)
        if input.ndim == 0 or input.shape[-1] != self.in_features:
            features = f"{self.in_features} feature{'s' * (self.in_features != 1)}"
            raise ValueError(f"input is {shape_text(input.shape)}: give it {features} along its last axis")
        x, weight, *bias = in_one_type(input, self.weight, *(() if self.bias is None else (self.bias,)))
        y = _product(x.reshape(prod(x.shape[:-1]), self.in_features), weight, *(bias or [None]), False, True)
        return y.reshape(*input.shape[:-1], self.out_features)


@torch.library.custom_op("labkit::product", mutates_args=())
def _product(a: Tensor, b: Tensor, bias: Tensor | None, transpose_a: bool, transpose_b: bool) -> Tensor:
    c = _blank(a, b, bias, transpose_a, transpose_b)
    given = {"A": a, "B": b, "C": c, "bias": bias}
    compute(gemm.multiply, given, transpose_a=transpose_a, transpose_b=transpose_b)
    return c


@_product.register_fake
def _blank(a, b, bias, transpose_a, transpose_b):
    return a.new_empty(a.shape[1 if transpose_a else 0], b.shape[0 if transpose_b else 1])


def _keep(ctx, inputs, output):
    a, b, _, *ctx.transposed = inputs
    ctx.save_for_backward(a, b)


def _gradients(ctx, dc):
    """Products again, so that they have gradients of their own."""
    (a, b), (of_a, of_b) = ctx.saved_tensors, ctx.transposed
    wanted_a, wanted_b, wanted_bias, *_ = ctx.needs_input_grad
    da = db = None
    if wanted_a:
        da = _product(b, dc, None, of_b, True) if of_a else _product(dc, b, None, False, not of_b)
    if wanted_b:
        db = _product(dc, a, None, True, of_a) if of_b else _product(a, dc, None, not of_a, False)
    return da, db, dc.sum(0) if wanted_bias else None, None, None


_product.register_autograd(_gradients, setup_context=_keep)
