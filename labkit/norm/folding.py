"""The call `fold`: a batch norm in inference folded into the filters and biases of the convolution before it."""

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
REQUIRED = "running_mean", "running_variance"


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
    """Return the filters and biases of one convolution that replaces a convolution and the batch norm after it.

    Batch norm in inference multiplies each channel by a number and adds another. A convolution does the same if the
    filter of that channel is multiplied:

        scale = weight / sqrt(running_variance + eps)
        filters = w * scale
        biases = (bias - running_mean) * scale + beta

    Parameters
    ----------
    w
        Filters, KCRS or KRSC with K output channels, of any number of groups, in float32, float16 or bfloat16. All
        arrays may be on the host (of NumPy or torch) or on the device.
    bias
        Summand of the convolution per channel; None means 0.
    running_mean, running_variance
        Running statistics of the batch norm.
    weight, beta
        Factor and summand of the batch norm per channel; None means 1 and 0.
    eps
        Summand of the variance.
    format
        Format of bits: "bfloat16" (uint16). None means the format of the arrays' type.

    Returns
    -------
    The filters, of the type of w, and the biases, in float32. Both are computed in float64 and rounded once. They are
    of the kind of the first array on the device, else of that of w.

    Raises
    ------
    TypeError
        An argument is no array, or has the wrong type; or there are no running statistics: a batch norm by the
        statistics of each batch depends on all images, and no filter does.
    ValueError
        Shapes do not fit, variance + eps is not above 0, or filters become too large for their type.

    Notes
    -----
    Filters of a transposed convolution have their outputs along the second axis: fold `w.swapaxes(0, 1)`, group by
    group. A batch norm before a convolution cannot be folded, since it does not keep the zeros around images. No other
    operation, such as ReLU, may be between the two.

    `conv.forward` adds no biases. One more pass in place adds them, rounds once, and applies ReLU:

    >>> zeros, ones = np.zeros_like(biases), np.ones_like(biases)
    >>> norm.batch_norm(y, None, biases, y=y, running_mean=zeros, running_variance=ones, eps=0, training=False)

    It costs as much as the batch norm in inference. Folding saves time if the convolution adds biases itself.
    (Jacob and others, Quantization and Training of Neural Networks, 2018, section 3.2, equation 14.)

    Examples
    --------
    >>> filters, biases = norm.fold(w, None, running_mean, running_variance, weight, beta)
    """
    arrays = {"w": w, "bias": bias, "running_mean": running_mean, "running_variance": running_variance}
    arrays |= {"weight": weight, "beta": beta}
    check_array("w", w)
    for name in REQUIRED:
        if arrays[name] is None:
            raise TypeError(
                f"{name} is None: a batch norm that takes the statistics of each batch depends on all its images, and "
                "cannot be folded: give running statistics"
            )
    format, values = _check_and_decode(arrays, eps, format)
    zero, one = np.zeros(values["w"].shape[0]), np.ones(values["w"].shape[0])
    scale = values.get("weight", one) / np.sqrt(values["running_variance"] + eps)
    filters = values["w"] * scale.reshape(-1, *[1] * (values["w"].ndim - 1))
    biases = (values.get("bias", zero) - values["running_mean"]) * scale + values.get("beta", zero)
    with np.errstate(over="ignore"):
        filters, biases = format.encode(filters), FP32.encode(biases)
    for name, result, kind in (("filters", filters, format), ("biases", biases, FP32)):
        if not np.isfinite(kind.decode(result)).all():
            raise ValueError(f"folded {name} are too large for {kind}, or no numbers: keep this batch norm by itself")
    like = next((X for X in arrays.values() if X is not None and not owner_of(X).is_on_host(X)), w)
    return _copy_like(like, filters, type_name(w)), _copy_like(like, biases, "float32")


def _check_and_decode(arrays, eps, format) -> tuple[Format, dict[str, Float64[np.ndarray, "..."]]]:
    """Return the format of filters, and the values of all arrays in float64; raise if arrays do not fit."""
    arrays = {name: X for name, X in arrays.items() if X is not None}
    for name, X in arrays.items():
        check_array(name, X)
    format, w = operand_format("w", arrays["w"], format, FORMATS), arrays["w"]
    if len(w.shape) < 2 or 0 in w.shape:
        raise ValueError(f"w is of shape {tuple(w.shape)}: give filters, K x C x taps")
    K, values = w.shape[0], {}
    for name, X in arrays.items():
        held = format if name == "w" or type_name(X) == type_name(w) else FP32
        if not can_hold(X, held):
            raise TypeError(f"{name} holds {type_name(X)}: convert it to float32")
        if name != "w" and tuple(X.shape) != (K,):
            raise ValueError(f"{name} is {shape_text(X.shape)}, and there are {K} filters: give a value for each")
        values[name] = held.decode(_copy_to_host(X))
    if not isinstance(eps, Real) or isinstance(eps, bool) or not eps >= 0:
        raise ValueError(f"eps is {eps!r}: give a number that is not below 0")
    for name in REQUIRED:
        if not np.isfinite(values[name]).all():
            raise ValueError(f"{name} is not finite everywhere: train with finite images before this is folded")
    if not (values["running_variance"] >= 0).all() or not (values["running_variance"] + eps > 0).all():
        raise ValueError("running_variance and eps are not above 0 everywhere: by their root each channel is divided")
    return format, values


def _copy_to_host(X):
    """Return an array as a NumPy array of a type that NumPy has."""
    owner = owner_of(X)
    X = owner.resolve(X)
    if owner.is_on_host(X):
        return owner.as_numpy(X)
    if cuda.on_gpu():
        synchronize(stream_of([X]))  # the stream may still write to X
    return as_view(X).copy_to_host()


def _copy_like(like, values, type_name):
    """Copy values to a new array of the kind of another array, and of an element type."""
    owner = owner_of(like)
    new = owner.empty(like, values.shape, type_name)
    if owner.is_on_host(like):
        owner.as_numpy(new)[...] = values
    else:
        cuda.as_cuda_array(as_view(new)).copy_to_device(values.view(dtype_of(new)))
    return new
