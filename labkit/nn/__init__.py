"""Layers of torch that run labkit's kernels: drop-in replacements of `torch.nn`'s, with the same parameters.

>>> from labkit import nn
>>> model = torch.nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), torch.nn.ReLU()).cuda()
>>> O = nn.scaled_dot_product_attention(Q, K, V, is_causal=True)

Kernels read tensors in place, on torch's current stream, and torch.compile does not split the layers. Gradients exist
in the backward pass only: `torch.func` is not supported, and its forward mode returns 0. Tensors on the host are copied
to a GPU if there is one, else computed thread by thread in the simulator, which suits only small shapes.
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
