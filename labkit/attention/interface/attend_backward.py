"""Gradients of attention of users' arrays, by the fastest kernel that takes them."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Shaped

from labkit.attention.backward.problem import AttentionBackward
from labkit.attention.interface.heads import HeadsOperation
from labkit.attention.problem import Layout
from labkit.calls.call import run_operation
from labkit.calls.operation import call_of
from labkit.formats import Format


@dataclass(frozen=True)
class AttentionGradients(HeadsOperation):
    """See `attend_backward`."""

    deterministic: bool = True

    problem = AttentionBackward
    arrays, outputs = AttentionBackward.ARRAYS, ("dQ", "dK", "dV")
    required = arrays[:6]

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.deterministic, bool | np.bool_):
            raise TypeError(f"deterministic is {self.deterministic!r}: say True or False")


@call_of(AttentionGradients)
def attend_backward(
    dO: Shaped[np.ndarray, "B H S D"],
    Q: Shaped[np.ndarray, "B H S D"],
    K: Shaped[np.ndarray, "B G T D"],
    V: Shaped[np.ndarray, "B G T D"],
    O: Shaped[np.ndarray, "B H S D"],
    lse: Float32[np.ndarray, "B H S"],
    *,
    dQ: Shaped[np.ndarray, "B H S D"] | None = None,
    dK: Shaped[np.ndarray, "B G T D"] | None = None,
    dV: Shaped[np.ndarray, "B G T D"] | None = None,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    layout: Layout = "BHSD",
    format: str | Format | None = None,
    deterministic: bool = True,
    stream=None,
) -> tuple[Shaped[np.ndarray, "B H S D"], Shaped[np.ndarray, "B G T D"], Shaped[np.ndarray, "B G T D"]]:
    """Compute the gradients of Q, K and V from dO, the gradient of what `attend` returned.

    Parameters
    ----------
    dO
        Gradient of O.
    Q, K, V
        Inputs of `attend`; see there.
    O, lse
        Outputs of `attend`.
    dQ, dK, dV
        Outputs; None for new arrays.
    causal, window, scale, layout, format, stream
        Options of that call of `attend`.
    deterministic
        Whether the same call returns the same bits each time. Otherwise blocks may add to dQ in any order, if faster.

    Returns
    -------
    dQ, dK and dV. Heads of Q that share a head of K and V add up their gradients of it.

    Raises
    ------
    TypeError, ValueError
        Those of `attend`.

    Notes
    -----
    The kernels are those of `attention.ladder("backward")`.
    (Dao, FlashAttention-2, 2023, algorithm 2.)

    Examples
    --------
    >>> O = attention.attend(Q, K, V, lse=lse, causal=True)
    >>> dQ, dK, dV = attention.attend_backward(dO, Q, K, V, O, lse, causal=True)
    """
    arrays = Q, K, V, O, lse, dO, dQ, dK, dV
    return run_operation(AttentionGradients, arrays, (causal, window, scale, layout, format, deterministic), stream)
