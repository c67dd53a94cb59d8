"""What norms of rows have in common: rows of the last axes of a tensor, and a weight for each column."""

from math import prod

import torch
from torch import Tensor

from labkit.arrays.operands import shape_text


def as_rows(input: Tensor, shape: tuple[int, ...], weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """A matrix whose rows have the last axes of the input, of this shape; and a weight for each column, 1 if None.

    Raises
    ------
    ValueError
        The input has other last axes.
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
