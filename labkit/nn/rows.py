"""Helper of the norms of rows: a tensor as a matrix, and its weights."""

from math import prod

import torch
from torch import Tensor

from labkit.arrays.operands import shape_text


def as_matrix_and_weight(input: Tensor, shape: tuple[int, ...], weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the input as a matrix with one row per slice of its last axes, and a weight per column, 1 if None.

    Raise ValueError if the last axes of the input do not have this shape.
    """
    split = input.ndim - len(shape)
    if split < 0 or tuple(input.shape[split:]) != tuple(shape):
        raise ValueError(
            f"input is {shape_text(input.shape)}, but its last axes are to be {shape_text(shape)}: change it"
        )
    columns = prod(shape)
    x = input.reshape(prod(input.shape[:split]), columns).contiguous()
    if weight is None:
        return x, torch.ones(columns, dtype=torch.float32, device=x.device)
    return x, weight.float().reshape(-1)
