"""A batch norm in inference folded into the convolution before it: its filters and its summands, once and for all."""

from numbers import Real

import numpy as np
from jaxtyping import Float32, Float64, Shaped

from labkit import cuda
from labkit.arrays.driver import synchronize
from labkit.arrays.element_types import dtype_of, type_name
from labkit.arrays.operands import as_view, can_hold, check_array, operand_format, shape_text
from labkit.arrays.owners import owner_of
from labkit.calls.streams import stream_of
from labkit.formats import BF16, FP16, FP32, Format

FORMATS = FP32, FP16, BF16  # of convolutions
NEEDED = "running_mean", "running_variance"


def fold(
    w: Shaped[np.ndarray, "K *taps"],
    bias: Float32[np.ndarray, " K"] | None,
    running_mean: Float32[np.ndarray, " K"],
    running_variance: Float32[np.ndarray, " K"],
    weight: Float32[np.ndarray, " K"] | None = None,
    beta: Float32[np.ndarray, " K"] | None = None,
    eps: float = 1e-5,
    *,
    format: str | Format | None = None,
) -> tuple[Shaped[np.ndarray, "K *taps"], Float32[np.ndarray, " K"]]:
    """Filters and summands of a convolution that gives what the convolution with w and bias, and then batch norm, gave.

    Batch norm in inference multiplies each channel by a number and adds one. So does a convolution whose filter for
    that channel is as many times as large:

        scale = weight / sqrt(running_variance + eps)
        filters = w * scale
        summands = (bias - running_mean) * scale + beta

    Parameters
    ----------
    w
        Filters, an output channel along the first axis: KCRS or KRSC, of any number of groups. They hold float32,
        float16 or bfloat16. NumPy arrays and tensors of the host, or arrays of the device; here, too, they may be
        mixed.
    bias
        What the convolution adds to each channel; None for nothing.
    running_mean, running_variance
        The running statistics of the batch norm.
    weight, beta
        Its factor and summand for each channel; None for 1 and 0.
    eps
        What it adds to the variance.
    format
        What an array of bits holds: "bfloat16" (uint16). Otherwise its type says it.

    Returns
    -------
    The filters, of the type of w, and the summands, which hold float32. Both are computed in float64 and rounded once.
    They are of the kind of the first array of the device, or else of that of w.

    Raises
    ------
    TypeError
        An argument is no array, or holds what it should not; or there are no running statistics: a batch norm that
        takes those of each batch depends on all images, and no filter does.
    ValueError
        Shapes do not fit, a variance and eps are not above 0 together, or filters become too large for their type.

    Notes
    -----
    Filters of a transposed convolution have their outputs along the second axis: fold `w.swapaxes(0, 1)`, group by
    group. A batch norm before a convolution is another matter, since it does not turn the zeros around images into
    zeros. Nothing may stand between the two, ReLU neither.

    `conv.forward` adds no summands. y + summands, rounded once and with ReLU, is one more pass in place:

    >>> zeros, ones = np.zeros_like(summands), np.ones_like(summands)
    >>> norm.batch_norm(y, None, summands, y=y, running_mean=zeros, running_variance=ones, eps=0, training=False)

    This costs what the batch norm in inference costs. Folding saves time where the convolution adds what it is given.
    (Jacob and others, Quantization and Training of Neural Networks, 2018, section 3.2, equation 14.)

    Examples
    --------
    >>> filters, summands = norm.fold(w, None, running_mean, running_variance, weight, beta)
    """
    given = {"w": w, "bias": bias, "running_mean": running_mean, "running_variance": running_variance}
    given |= {"weight": weight, "beta": beta}
    check_array("w", w)
    for name in NEEDED:
        if given[name] is None:
            raise TypeError(
                f"{name} is None: a batch norm that takes the statistics of each batch depends on all its images, and "
                "cannot be folded: give running statistics"
            )
    format, of = _checked(given, eps, format)
    zero, one = np.zeros(of["w"].shape[0]), np.ones(of["w"].shape[0])
    scale = of.get("weight", one) / np.sqrt(of["running_variance"] + eps)
    filters = of["w"] * scale.reshape(-1, *[1] * (of["w"].ndim - 1))
    summands = (of.get("bias", zero) - of["running_mean"]) * scale + of.get("beta", zero)
    with np.errstate(over="ignore"):
        filters, summands = format.encode(filters), FP32.encode(summands)
    for name, found, kind in (("filters", filters, format), ("summands", summands, FP32)):
        if not np.isfinite(kind.decode(found)).all():
            raise ValueError(f"folded {name} are too large for {kind}, or no numbers: keep this batch norm by itself")
    beside = next((X for X in given.values() if X is not None and not owner_of(X).is_on_host(X)), w)
    return _like(beside, filters, type_name(w)), _like(beside, summands, "float32")


def _checked(given, eps, format) -> tuple[Format, dict[str, Float64[np.ndarray, "..."]]]:
    """What filters hold, and all arrays in float64; raises where they do not fit."""
    given = {name: X for name, X in given.items() if X is not None}
    for name, X in given.items():
        check_array(name, X)
    format = operand_format("w", given["w"], format, FORMATS)
    if len(given["w"].shape) < 2 or 0 in given["w"].shape:
        raise ValueError(f"w is of shape {tuple(given['w'].shape)}: give filters, K x C x taps")
    K, of = given["w"].shape[0], {}
    for name, X in given.items():
        held = format if name == "w" or type_name(X) == type_name(given["w"]) else FP32
        if not can_hold(X, held):
            raise TypeError(f"{name} holds {type_name(X)}: convert it to float32")
        if name != "w" and tuple(X.shape) != (K,):
            raise ValueError(f"{name} is {shape_text(X.shape)}, and there are {K} filters: give a value for each")
        of[name] = held.decode(_on_host(X))
    if not isinstance(eps, Real) or isinstance(eps, bool) or not eps >= 0:
        raise ValueError(f"eps is {eps!r}: give a number that is not below 0")
    for name in NEEDED:
        if not np.isfinite(of[name]).all():
            raise ValueError(f"{name} is not finite everywhere: train with finite images before this is folded")
    if not (of["running_variance"] >= 0).all() or not (of["running_variance"] + eps > 0).all():
        raise ValueError("running_variance and eps are not above 0 everywhere: by their root each channel is divided")
    return format, of


def _on_host(X):
    """What an array holds, as a NumPy array of a type that NumPy has."""
    owner = owner_of(X)
    X = owner.resolve(X)
    if owner.is_on_host(X):
        return owner.as_numpy(X)
    if cuda.on_gpu():
        synchronize(stream_of([X]))  # which may write to it
    return as_view(X).copy_to_host()


def _like(X, found, type_name):
    """What was found, as an array of the kind of X and of a type."""
    owner = owner_of(X)
    new = owner.empty(X, found.shape, type_name)
    if owner.is_on_host(X):
        owner.as_numpy(new)[...] = found
    else:
        cuda.as_cuda_array(as_view(new)).copy_to_device(found.view(dtype_of(new)))
    return new
