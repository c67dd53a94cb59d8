"""A small GPT and a small CNN, of torch's layers or of labkit's, to compare their training."""

from types import SimpleNamespace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from labkit import nn

LABKIT = SimpleNamespace(**{name: getattr(nn, name) for name in nn.__all__})
TORCH = SimpleNamespace(
    BatchNorm2d=torch.nn.BatchNorm2d,
    Conv2d=torch.nn.Conv2d,
    LayerNorm=torch.nn.LayerNorm,
    Linear=torch.nn.Linear,
    RMSNorm=torch.nn.RMSNorm,
    scaled_dot_product_attention=functional.scaled_dot_product_attention,
)


class GPT(torch.nn.Module):
    """A decoder that predicts the next token at each position; `layers` is `LABKIT` or `TORCH`.

    (Radford and others, Language Models are Unsupervised Multitask Learners, 2019, section 2.3.)
    """

    def __init__(self, layers, tokens: int = 256, length: int = 256, width: int = 256, heads: int = 4, depth: int = 4):
        super().__init__()
        self.token_embedding = torch.nn.Embedding(tokens, width)
        self.position_embedding = torch.nn.Embedding(length, width)
        self.blocks = torch.nn.Sequential(*(Block(layers, width, heads) for _ in range(depth)))
        self.norm, self.head = layers.LayerNorm(width), layers.Linear(width, tokens, bias=False)

    def forward(self, text: Int[Tensor, "B S"]) -> Float[Tensor, "B S tokens"]:
        """Return the logits of the next token at each position."""
        x = self.token_embedding(text) + self.position_embedding(torch.arange(text.shape[1], device=text.device))
        return self.head(self.norm(self.blocks(x)))


class Block(torch.nn.Module):
    """Attention and a feed-forward layer, each with a residual connection."""

    def __init__(self, layers, width: int, heads: int):
        super().__init__()
        self.heads, self.attend = heads, layers.scaled_dot_product_attention
        self.attention_norm, self.mlp_norm = layers.LayerNorm(width), layers.RMSNorm(width)
        self.qkv_projection, self.out_projection = layers.Linear(width, 3 * width), layers.Linear(width, width)
        self.up_projection, self.down_projection = layers.Linear(width, 4 * width), layers.Linear(4 * width, width)

    def forward(self, x: Float[Tensor, "B S width"]) -> Float[Tensor, "B S width"]:
        """Return x plus the outputs of both layers."""
        sizes = *x.shape[:2], 3, self.heads, x.shape[2] // self.heads
        q, k, v = self.qkv_projection(self.attention_norm(x)).reshape(sizes).permute(2, 0, 3, 1, 4)
        x = x + self.out_projection(self.attend(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))
        return x + self.down_projection(functional.gelu(self.up_projection(self.mlp_norm(x))))


class CNN(torch.nn.Module):
    """A classifier of images, of convolutions with batch norm; `layers` is `LABKIT` or `TORCH`."""

    def __init__(self, layers, classes: int = 10, channels: int = 32):
        super().__init__()
        wide = 2 * channels
        self.features = torch.nn.Sequential(  # 3 x 3 filters: channels in and out, then stride and padding
            *(layers.Conv2d(3, channels, 3, padding=1, bias=False), layers.BatchNorm2d(channels), torch.nn.ReLU()),
            *(layers.Conv2d(channels, wide, 3, 2, 1, bias=False), layers.BatchNorm2d(wide), torch.nn.ReLU()),
            *(layers.Conv2d(wide, wide, 3, padding=1, bias=False), layers.BatchNorm2d(wide), torch.nn.ReLU()),
        )
        self.head = layers.Linear(wide, classes)

    def forward(self, images: Float[Tensor, "N 3 H W"]) -> Float[Tensor, "N classes"]:
        """Return the logits of the classes."""
        return self.head(self.features(images).mean((2, 3)))
