"""Attention for torch: as `torch.nn.functional.scaled_dot_product_attention`, by the ladders of `labkit.attention`."""

from math import prod

import torch
from jaxtyping import Float
from torch import Tensor

from labkit import attention
from labkit.arrays.operands import shape_text
from labkit.nn.operators import check_tensor, compute, in_one_type, refuse_second_derivative

of_torch = torch.nn.functional.scaled_dot_product_attention


def scaled_dot_product_attention(
    query: Float[Tensor, "*B H S D"],
    key: Float[Tensor, "*B G T D"],
    value: Float[Tensor, "*B G T D"],
    attn_mask: None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    window: int | None = None,
) -> Float[Tensor, "*B H S D"]:
    """softmax(scale Q K^T) V for each head, as torch's function of this name.

    Parameters
    ----------
    query, key, value
        Tensors of float32, float16 or bfloat16, of 16-bit types with a multiple of 8 for D. Transposed views and parts
        of a packed tensor are taken where they lie. Axes before those of heads may be missing or 1 where another tensor
        has more.
    attn_mask, dropout_p
        None and 0: other masks than these, and dropout, are not computed.
    is_causal
        Whether query i sees keys 0 to i alone, also where there are more keys than queries, or fewer.
    scale
        Of the scores; 1 / sqrt(D), if it is None.
    enable_gqa
        Whether neighbouring heads of the query share a head of key and value.
    window
        How far a query sees, its own place counted; None for all. There are then as many keys as queries. torch's
        function has no such option.

    Returns
    -------
    The result, in the order of the query's axes in memory. Its gradients are the same bits each time.

    Raises
    ------
    NotImplementedError
        A mask or dropout is asked for; or, in the backward pass, a second derivative.
    TypeError, ValueError
        As `labkit.attention.attend`.

    Examples
    --------
    >>> O = nn.scaled_dot_product_attention(Q, K, V, is_causal=True)
    """
    if attn_mask is not None:
        raise NotImplementedError("attn_mask is not computed here: use is_causal or window, or torch's own function")
    if dropout_p:
        raise NotImplementedError("dropout_p is not computed here: give 0, or use torch's own function")
    for name, X in {"query": query, "key": key, "value": value}.items():
        check_tensor(name, X)
        if X.ndim < 3:
            raise ValueError(
                f"{name} is {shape_text(X.shape)}: give it the axes of batches, if any, heads, positions and D"
            )
    if query.shape[-3] != key.shape[-3] and not enable_gqa:
        raise ValueError(
            f"query has {query.shape[-3]} heads and key {key.shape[-3]}: say enable_gqa=True if heads share keys"
        )
    query, key, value = _in_one_batch(query, key, value)
    if not query.numel() or not key.numel():  # no kernel has anything to do
        return of_torch(query, key, value, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
    queries, keys = query.shape[-2], key.shape[-2]
    if window is not None and queries != keys:
        raise ValueError(f"window is not computed for {queries} queries and {keys} keys: give as many of both")
    if is_causal and queries < keys:  # none sees a later key
        key, value = key[..., :queries, :], value[..., :queries, :]
    elif is_causal and queries > keys:  # the last ones see all keys
        options = {"scale": scale, "enable_gqa": enable_gqa}
        first = scaled_dot_product_attention(query[..., :keys, :], key, value, is_causal=True, **options)
        return torch.cat((first, scaled_dot_product_attention(query[..., keys:, :], key, value, **options)), -2)
    heads = [_in_rows(X.reshape(prod(X.shape[:-3]), *X.shape[-3:])) for X in in_one_type(query, key, value)]
    found, _ = _attention(*heads, is_causal, scale, window)
    return found.reshape(query.shape)


@torch.library.custom_op("labkit::attention", mutates_args=())
def _attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float | None, window: int | None
) -> tuple[Tensor, Tensor]:
    o, lse = _blank(q, k, v, causal, scale, window)
    asked = {"causal": causal, "scale": scale, "window": window}
    compute(attention.attend, {"Q": q, "K": k, "V": v, "O": o, "lse": lse}, **asked)
    return o, lse


@_attention.register_fake
def _blank(q, k, v, causal, scale, window):
    return torch.empty_like(q), q.new_empty(q.shape[:-1], dtype=torch.float32)


@torch.library.custom_op("labkit::attention_backward", mutates_args=())
def _attention_backward(
    do: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Tensor,
    causal: bool,
    scale: float | None,
    window: int | None,
) -> tuple[Tensor, Tensor, Tensor]:
    found = _blank_gradients(do, q, k, v, o, lse, causal, scale, window)
    given = {"dO": do, "Q": q, "K": k, "V": v, "O": o, "lse": lse, **dict(zip(("dQ", "dK", "dV"), found))}
    compute(attention.attend_backward, given, causal=causal, scale=scale, window=window)
    return found


@_attention_backward.register_fake
def _blank_gradients(do, q, k, v, o, lse, causal, scale, window):
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


def _keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:3], *output)
    ctx.asked = inputs[3:]


def _gradients(ctx, do, _):
    return *_attention_backward(_in_rows(do), *ctx.saved_tensors, *ctx.asked), None, None, None


_attention.register_autograd(_gradients, setup_context=_keep)
refuse_second_derivative(_attention_backward, "attention")


def _in_one_batch(query, key, value):
    """The tensors, each with all axes before those of heads that one of them has."""
    tensors = query, key, value
    try:
        batch = torch.broadcast_shapes(*(X.shape[:-3] for X in tensors))
    except RuntimeError:
        shapes = f"query is {shape_text(query.shape)}, key {shape_text(key.shape)} and value {shape_text(value.shape)}"
        raise ValueError(f"{shapes}: expand them to the same axes before those of heads") from None
    return [X.expand(*batch, *X.shape[-3:]) for X in tensors]


def _in_rows(X):
    """The tensor, or a copy where its rows do not lie at multiples of a row."""
    *apart, step = X.stride()
    lies = step == 1 and all(each > 0 and each % X.shape[-1] == 0 for each in apart)
    return X if lies else X.contiguous()
