"""Calls as plans."""

from labkit.norm.interface.batch_norm import BatchNorm, batch_norm
from labkit.norm.interface.batch_norm_backward import BatchNormBackward, batch_norm_backward
from labkit.norm.interface.operation import planned_call
from labkit.norm.interface.row_norms import LayerNorm, RMSNorm, layer_norm, rms_norm
from labkit.norm.interface.row_norms_backward import (
    LayerNormBackward,
    RMSNormBackward,
    layer_norm_backward,
    rms_norm_backward,
)
from labkit.planned import Plan

OPERATIONS = {
    batch_norm: BatchNorm,
    batch_norm_backward: BatchNormBackward,
    layer_norm: LayerNorm,
    rms_norm: RMSNorm,
    layer_norm_backward: LayerNormBackward,
    rms_norm_backward: RMSNormBackward,
}


def plan(call, *arrays, **options) -> Plan:
    """A call worked out once, to be run many times by calling the plan: `plan()`, or `plan(x, ...)` for other arrays.

    A plan costs the host a few microseconds a run, allocates nothing then, and can be captured in a CUDA graph on any
    stream. Its arrays are of the device.

    Parameters
    ----------
    call
        `norm.batch_norm`, `norm.layer_norm`, `norm.rms_norm`, or the gradients of one, as `norm.batch_norm_backward`.
    arrays, options
        Those of the call. All results must be among them.

    Returns
    -------
    The plan. To run for other arrays it is given all that it was made with: those of `norm.batch_norm` in the order x,
    weight, bias, y, mean, variance, running_mean, running_variance, without those that were None; those of the
    others in the order of their arguments.

    Raises
    ------
    TypeError, ValueError
        As the call does; or momentum is None, which counts each batch otherwise, and a plan counts all alike.

    Examples
    --------
    >>> plan = norm.plan(norm.batch_norm, x, weight, bias, y, running_mean=mean, running_variance=variance)
    >>> plan()
    >>> plan(x2, weight, bias, y2, mean, variance)  # which lie as the first ones do
    """
    return planned_call(call, OPERATIONS, arrays, options)
