"""e4m3 numbers and scales of Q, K and V, as the ladder "fp8" takes them."""

import numpy as np
from jaxtyping import Shaped

from labkit import cuda
from labkit.arrays.operands import check_array, format_of, on_device, sides, taken
from labkit.attention.fp8 import quantise as kernels
from labkit.attention.fp8.problem import AttentionFP8
from labkit.attention.operands import check_begin, check_rows
from labkit.formats import BF16, E4M3, FP16, FP32, Format

FORMATS = BF16, FP16, FP32


def quantise(
    Q: Shaped[np.ndarray, "B H S D"],
    K: Shaped[np.ndarray, "B G T D"],
    V: Shaped[np.ndarray, "B G T D"],
    *,
    format: str | Format | None = None,
    stream=0,
) -> tuple:
    """Q, K and V as e4m3, with a scale for each 128 positions of a head.

    Parameters
    ----------
    Q, K, V
        Arrays of the device in C order, or NumPy arrays, which are copied there: bfloat16, float16 or float32, with
        the axes batch, heads, positions and head_dim, a multiple of 16.
    format
        What an array of bits holds: "bfloat16" (uint16). Otherwise its type says it.
    stream
        A stream of `cuda.stream()`, or another one with `__cuda_stream__`.

    Returns
    -------
    Q, K, V, q_scale, k_scale, v_scale, as `AttentionFP8` describes them: arrays of the device, or NumPy arrays if those
    were such.

    Raises
    ------
    TypeError
        They are no arrays, or hold something else, or not all the same.
    ValueError
        Shapes do not fit, head_dim is no multiple of 16, or an array of the device has gaps or begins between pieces of
        16 bytes.

    Examples
    --------
    >>> *codes, q_scale, k_scale, v_scale = attention.quantise(Q, K, V)
    >>> problem = attention.AttentionFP8(batch, heads, queries, head_dim)
    >>> attention.ladder("fp8").step("block_scaled").launch(*codes, q_scale, k_scale, v_scale, O, lse, problem)
    """
    arrays = {"Q": Q, "K": K, "V": V}
    for name, X in arrays.items():
        check_array(name, X)
        if len(X.shape) != 4:
            raise ValueError(f"{name} is {sides(X.shape)}: give it 4 axes, batch, heads, positions and head_dim")
    for name in "KV":
        chosen = format_of(Q, arrays[name], format, f"Q{name}", FORMATS)
    if tuple(K.shape) != tuple(V.shape) or (Q.shape[0], Q.shape[3]) != (K.shape[0], K.shape[3]):
        of_q, of_k, of_v = (sides(X.shape) for X in arrays.values())
        raise ValueError(f"Q is {of_q}, K is {of_k} and V is {of_v}: they do not fit together")
    batch, heads, queries, head_dim = map(int, Q.shape)
    check_rows(head_dim, E4M3.itemsize)
    problem = AttentionFP8(batch, heads, queries, head_dim, int(K.shape[2]), int(K.shape[1]))
    on_host = isinstance(Q, np.ndarray)
    given = [taken(on_device(X, stream)) for X in arrays.values()]
    for name, X in zip("QKV", given):
        check_begin(name, X)
    names = "Q", "K", "V", "q_scale", "k_scale", "v_scale"
    made = {
        name: cuda.device_array(problem.shapes[name], np.float32 if name in problem.in_float32 else E4M3.dtype)
        for name in names
    }
    for name, X in zip("QKV", given):
        kernels.launch(X, made[name], made[f"{name.lower()}_scale"], chosen, transposed=name == "V").run(stream)
    found = tuple(made.values())
    return tuple(X.copy_to_host(stream=stream) for X in found) if on_host else found
