"""Attention forward of users' arrays, by the fastest kernel that takes them."""

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.attention.interface.heads import HeadsOperation
from labkit.attention.problem import ARRAYS, AttentionForward, Layout
from labkit.calls.call import run_operation
from labkit.calls.operation import call_of
from labkit.calls.plan import Plan, make_plan
from labkit.formats import Format


class AttentionOperation(HeadsOperation):
    """See `attend`."""

    problem = AttentionForward
    arrays, outputs, written, required = ARRAYS, ("O",), ("O", "lse"), ("Q", "K", "V")


@call_of(AttentionOperation)
def attend(
    Q: Shaped[np.ndarray, "B H S D"],
    K: Shaped[np.ndarray, "B G T D"],
    V: Shaped[np.ndarray, "B G T D"],
    *,
    O: Shaped[np.ndarray, "B H S D"] | None = None,
    lse: Float32[np.ndarray, "B H S"] | None = None,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    layout: Layout = "BHSD",
    format: str | Format | None = None,
    stream=None,
) -> Shaped[np.ndarray, "B H S D"]:
    """Compute O = softmax(scale Q K^T) V per head, without storing the matrix of scores.

    Parameters
    ----------
    Q, K, V
        Device arrays (numba's, torch's, or any with `__cuda_array_interface__`), or host arrays (NumPy's or torch's),
        which are copied to the device, of float32, float16 or bfloat16. A row has at most 256 elements, in 16-bit types
        a multiple of 8. On the device a row is contiguous, and strides are multiples of it: transposed views and parts
        of a tensor with Q, K and V are accepted. Q may have a multiple of the heads of K and V; neighbours share one.
    O
        Output; None for a new array of Q's kind.
    causal
        Whether keys past a query's position, i + keys - queries for query i, are masked: the last query sees all keys.
        O is 0 for a query that sees no key.
    window
        Query i, at position p = i + keys - queries, sees the keys j with `|p - j| < window`, which are 2 window - 1 and
        with `causal` the last `window`; None for all.
    scale
        Factor of the scores; None for 1 / sqrt(head_dim).
    lse
        Output for log-sum-exp of each query's scores, or None; minus infinity for a query that sees no key.
    layout
        Order of the axes: "BHSD" or "BSHD", for batch, heads, positions and head_dim.
    format
        Format of an array of bits: "bfloat16" (uint16). Otherwise its type says it.
    stream
        numba's, torch's or CuPy's, or 0 for the driver's default stream; None for the current one of torch's and CuPy's
        arrays.

    Returns
    -------
    O. The same call returns the same bits each time.

    Raises
    ------
    TypeError
        An operand is no array, or has a wrong element type.
    ValueError
        Shapes do not fit, strides are not supported, or O shares memory with another array.

    Notes
    -----
    The kernels are those of `attention.ladder("forward")`. Plans are cached by the layout of the operands.
    (Dao, FlashAttention-2, 2023, algorithm 1.)

    Examples
    --------
    >>> O = attention.attend(Q, K, V, causal=True)
    """
    return run_operation(AttentionOperation, (Q, K, V, O, lse), (causal, window, scale, layout, format), stream)


def plan(Q, K, V, *, O, lse=None, stream=None, **options) -> Plan:
    """Prepare a call of `attend`, to run many times: `plan()`, or `plan(Q, K, V, O)` for other arrays.

    A run costs a few microseconds of host time, allocates nothing, and can be captured in a CUDA graph on any stream.

    Parameters
    ----------
    Q, K, V, O, lse
        Device arrays, as in `attend`. A run for others gets all arrays that the plan has, in this order.
    stream, options
        Those of `attend`.

    Raises
    ------
    TypeError, ValueError
        Those of `attend`.

    Examples
    --------
    >>> plan = attention.plan(Q, K, V, O=O, causal=True)
    >>> plan()
    """
    arrays = dict(zip(ARRAYS, (Q, K, V, O, lse), strict=True))
    return make_plan(AttentionOperation(**options), arrays, stream=stream)
