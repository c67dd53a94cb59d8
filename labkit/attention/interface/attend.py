"""Attention of arrays as they lie, by the step of the ladder that suits them."""

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.attention.interface.of_heads import OfHeads
from labkit.attention.problem import ARRAYS, AttentionForward, Layout
from labkit.calls.call import call
from labkit.calls.operation import calls
from labkit.calls.plan import Plan, make_plan
from labkit.formats import Format


class AttentionOperation(OfHeads):
    """See `attend`."""

    problem = AttentionForward
    arrays, outputs, written, required = ARRAYS, ("O",), ("O", "lse"), ("Q", "K", "V")


@calls(AttentionOperation)
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
    """O = softmax(scale Q K^T) V for each head; the matrix of scores is never stored.

    Parameters
    ----------
    Q, K, V
        Arrays of the device (numba's, torch's, or any with `__cuda_array_interface__`), or of the host (NumPy's or
        torch's), which are copied there. They hold float32, float16 or bfloat16; rows of 16-bit types have a multiple
        of 8 elements, and none has more than 256. On the device the elements of a row follow one another, and rows lie
        at multiples of a row: a transposed view will do, and so will a part of a tensor that holds Q, K and V. Q may
        have a multiple of the heads of K and V, which neighbours of it share.
    O
        Where the result goes. If it is None, a new array of the kind that Q is.
    causal
        Whether a query sees no key behind its position, which is i + keys - queries for query i: the last query sees
        all keys. A query that sees no key gives 0.
    window
        How far a query sees, its own position counted; None for all.
    scale
        Of the scores; 1 / sqrt(head_dim), if it is None.
    lse
        Where log-sum-exp of the scores of each query goes, if it is wanted; minus infinity where there are none.
    layout
        The order of the axes: "BHSD" or "BSHD", for batch, heads, positions and head_dim.
    format
        What an array of bits holds: "bfloat16" (uint16). Otherwise its type says it.
    stream
        numba's, torch's or CuPy's, or 0 for the driver's default stream; None for the current one of torch's and CuPy's
        arrays.

    Returns
    -------
    O. The same call gives the same bits each time.

    Raises
    ------
    TypeError
        An operand is no array, or holds what it should not.
    ValueError
        Shapes do not fit, rows lie where kernels do not find them, or O shares memory with another array.

    Notes
    -----
    The kernels are those of `attention.ladder("forward")`. The first call makes a plan, which later ones find again by
    how their operands lie.
    (Dao, FlashAttention-2, 2023, algorithm 1.)

    Examples
    --------
    >>> O = attention.attend(Q, K, V, causal=True)
    """
    return call(AttentionOperation, (Q, K, V, O, lse), (causal, window, scale, layout, format), stream)


def plan(Q, K, V, *, O, lse=None, stream=None, **options) -> Plan:
    """A call of `attend` worked out once, to be run many times: `plan()`, or `plan(Q, K, V, O)` for other arrays.

    A plan costs the host a few microseconds a run, allocates nothing then, and can be captured in a CUDA graph on any
    stream.

    Parameters
    ----------
    Q, K, V, O, lse
        Arrays of the device, as `attend` takes them. To run for others it is given all that it was made with, in this
        order.
    stream, options
        Those of `attend`.

    Raises
    ------
    TypeError, ValueError
        As `attend`.

    Examples
    --------
    >>> plan = attention.plan(Q, K, V, O=O, causal=True)
    >>> plan()
    """
    arrays = dict(zip(ARRAYS, (Q, K, V, O, lse), strict=True))
    return make_plan(AttentionOperation(**options), arrays, stream=stream)
