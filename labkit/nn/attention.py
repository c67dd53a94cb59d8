"""Attention for torch: `torch.nn.functional.scaled_dot_product_attention`, by `labkit.attention`."""

from math import prod

import torch
from jaxtyping import Float
from torch import Tensor

from labkit import attention
from labkit.arrays.operands import shape_text
from labkit.nn.operators import check_tensor, check_tensors_and_call, refuse_second_derivative, to_autocast_dtype

torch_attention = torch.nn.functional.scaled_dot_product_attention


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
    """Compute softmax(scale Q K^T) V for each head, as torch's function of this name.

    Parameters
    ----------
    query, key, value
        Tensors of float32, float16 or bfloat16; in 16-bit types D is a multiple of 8. Transposed views and parts of a
        packed tensor are not copied. Axes before the heads broadcast.
    attn_mask, dropout_p
        None and 0: other masks, and dropout, are not supported.
    is_causal
        Whether query i attends to keys 0 to i only, whatever the number of keys.
    scale
        Factor of the scores; None means 1 / sqrt(D).
    enable_gqa
        Whether neighbouring heads of the query share a head of key and value.
    window
        Query i attends to the keys j with `|i - j| < window`, which are 2 window - 1 and with `is_causal` the last
        `window`; None for all. It needs equal numbers of queries and keys. torch's function has no such option.

    Returns
    -------
    The result, with the query's order of axes in memory. Its gradients are the same bits in every run.

    Raises
    ------
    NotImplementedError
        The call has a mask or dropout; or the backward pass needs a second derivative.
    TypeError, ValueError
        Tensors do not fit, for the reasons of `labkit.attention.attend`.

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
    query, key, value = _broadcast_batch(query, key, value)
    if not query.numel() or not key.numel():  # nothing to compute
        return torch_attention(query, key, value, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
    queries, keys = query.shape[-2], key.shape[-2]  # attend aligns the causal mask bottom-right, torch top-left
    if window is not None and queries != keys:
        raise ValueError(f"window is not computed for {queries} queries and {keys} keys: give as many of both")
    if is_causal and queries < keys:  # no query attends to a later key
        key, value = key[..., :queries, :], value[..., :queries, :]
    elif is_causal and queries > keys:  # the last queries attend to all keys
        options = {"scale": scale, "enable_gqa": enable_gqa}
        first = scaled_dot_product_attention(query[..., :keys, :], key, value, is_causal=True, **options)
        return torch.cat((first, scaled_dot_product_attention(query[..., keys:, :], key, value, **options)), -2)
    heads = [
        _with_whole_rows(X.reshape(prod(X.shape[:-3]), *X.shape[-3:])) for X in to_autocast_dtype(query, key, value)
    ]
    out, _ = _attention(*heads, is_causal, scale, window)
    return out.reshape(query.shape)


@torch.library.custom_op("labkit::attention", mutates_args=())
def _attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float | None, window: int | None
) -> tuple[Tensor, Tensor]:
    o, lse = _empty_outputs(q, k, v, causal, scale, window)
    options = {"causal": causal, "scale": scale, "window": window}
    check_tensors_and_call(attention.attend, {"Q": q, "K": k, "V": v, "O": o, "lse": lse}, **options)
    return o, lse


@_attention.register_fake
def _empty_outputs(q, k, v, causal, scale, window):
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
    gradients = _empty_gradients(do, q, k, v, o, lse, causal, scale, window)
    tensors = {"dO": do, "Q": q, "K": k, "V": v, "O": o, "lse": lse, **dict(zip(("dQ", "dK", "dV"), gradients))}
    check_tensors_and_call(attention.attend_backward, tensors, causal=causal, scale=scale, window=window)
    return gradients


@_attention_backward.register_fake
def _empty_gradients(do, q, k, v, o, lse, causal, scale, window):
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:3], *output)
    ctx.options = inputs[3:]


def _backward(ctx, do, _):
    return *_attention_backward(_with_whole_rows(do), *ctx.saved_tensors, *ctx.options), None, None, None


_attention.register_autograd(_backward, setup_context=_save)
refuse_second_derivative(_attention_backward, "attention")


def _broadcast_batch(query, key, value):
    """Return the tensors with the same axes before those of heads."""
    tensors = query, key, value
    if query.shape[:-3] == key.shape[:-3] == value.shape[:-3]:
        return tensors  # torch's function below imports SymPy, which takes two seconds
    try:
        batch = torch.broadcast_shapes(*(X.shape[:-3] for X in tensors))
    except RuntimeError:
        shapes = f"query is {shape_text(query.shape)}, key {shape_text(key.shape)} and value {shape_text(value.shape)}"
        raise ValueError(f"{shapes}: expand them to the same axes before those of heads") from None
    return [X.expand(*batch, *X.shape[-3:]) for X in tensors]


def _with_whole_rows(X):
    """Return the tensor if its rows begin at multiples of the row length, which `attend` requires, else a copy."""
    *strides, step = X.stride()
    has_whole_rows = step == 1 and all(stride > 0 and stride % X.shape[-1] == 0 for stride in strides)
    return X if has_whole_rows else X.contiguous()
