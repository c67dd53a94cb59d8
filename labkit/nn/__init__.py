"""Layers of torch that compute by labkit's kernels: they take the places of `torch.nn`'s, with the same parameters.

>>> from labkit import nn
>>> model = torch.nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), torch.nn.ReLU()).cuda()
>>> O = nn.scaled_dot_product_attention(Q, K, V, is_causal=True)

Tensors are taken where they lie, on torch's current stream, and torch.compile keeps the layers as they are. Gradients
come from the backward pass alone; `torch.func` is not served, and its forward mode finds 0. Tensors of the host are
computed on a GPU if there is one, else thread by thread in the simulator: that is for small shapes.
"""

try:
    import torch  # noqa: F401
except ImportError:
    raise ImportError("labkit.nn needs torch: pip install torch") from None

from labkit.nn.attention import scaled_dot_product_attention
from labkit.nn.batch_norm_2d import BatchNorm2d
from labkit.nn.conv_2d import Conv2d
from labkit.nn.layer_norm import LayerNorm
from labkit.nn.linear import Linear
from labkit.nn.rms_norm import RMSNorm

__all__ = ["BatchNorm2d", "Conv2d", "LayerNorm", "Linear", "RMSNorm", "scaled_dot_product_attention"]
