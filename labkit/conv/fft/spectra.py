"""Spectra of an image, of filters and of their products, as the kernels of `s02_tiled` leave them in memory."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex64, Float32

from labkit.arrays.workspace import Workspace
from labkit.conv.fft.circular import simulate_circular
from labkit.conv.fft.problem import SpectralForward
from labkit.conv.fft.s02_tiled import launches as tiled_launches
from labkit.simulator.in_place import simulate_in_place


@dataclass(frozen=True)
class Spectra:
    """A circular correlation of one tile, with all spectra.

    Attributes
    ----------
    x, w
        The image, T x T pixels, and the filters.
    X, W, Y
        Spectra of the image, the filters (conjugated) and the outputs, with all T x T frequencies.
    y
        Outputs, all T x T per filter.
    """

    x: Float32[np.ndarray, "T T"]
    w: Float32[np.ndarray, "K R S"]
    X: Complex64[np.ndarray, "T T"]
    W: Complex64[np.ndarray, "K T T"]
    Y: Complex64[np.ndarray, "K T T"]
    y: Float32[np.ndarray, "K T T"]


def spectra(x: Float32[np.ndarray, "T T"], w: Float32[np.ndarray, "K R S"]) -> Spectra:
    """Run the kernels in the simulator on one tile, whose side T is that of the image: 16, 32 or 64."""
    side = _check_side(x)
    launches, circle = simulate_circular(x, w, side)
    filters, images, outputs = (launches[i].arguments[place] for i, place in ((0, 3), (1, 3), (-1, 0)))
    X, W, Y = (_unfold(packed, side) for packed in (images, filters, outputs))
    return Spectra(circle.x, circle.w, X[0, 0], W[0, : len(w)], Y[:, 0], circle.planes[:, 0, 0])


def spectrum(x: Float32[np.ndarray, "T T"]) -> Complex64[np.ndarray, "T T"]:
    """Run only the image's transform in the simulator, for the `X` of `spectra`; T is 16, 32 or 64."""
    side = _check_side(x)
    problem = SpectralForward(1, 1, side, side, 1, 1, 1)
    _, w, y, _ = problem.operands()
    _, of_image, *_ = tiled_launches(np.ascontiguousarray(x)[None, None], w, y, problem, Workspace(), side)
    simulate_in_place(
        of_image.kernel, of_image.grid, of_image.block, *of_image.arguments, shared_bytes=of_image.shared_bytes
    )
    return _unfold(of_image.arguments[3], side)[0, 0]


def _check_side(x):
    side = len(x)
    if x.shape != (side, side) or side not in (16, 32, 64):
        raise ValueError(
            f"The image has {' x '.join(map(str, x.shape))} pixels, and tiles 16 x 16, 32 x 32 or 64 x 64."
        )
    return side


def _unfold(packed, side):
    """Return [row, column, frequency, frequency] of packed bins: the missing frequencies are conjugates of others."""
    half = side // 2
    bins = np.ascontiguousarray(np.moveaxis(packed, 0, -1).reshape(len(packed[0]), -1, 2, len(packed)))
    numbers = (bins[:, :, 0] + 1j * bins[:, :, 1]).astype(np.complex64)
    whole = np.empty((*numbers.shape[:2], side, side), np.complex64)
    for column, begin in ((0, 0), (half, half + 1)):
        whole[..., : half + 1, column] = numbers[..., begin : begin + half + 1]
        whole[..., half + 1 :, column] = whole[..., half - 1 : 0 : -1, column].conj()
    between = numbers[..., side + 2 :].reshape(*numbers.shape[:2], half - 1, side)
    whole[..., 1:half] = np.swapaxes(between, -1, -2)
    mirrored = np.roll(whole[..., ::-1, 1:half], 1, axis=-2)
    whole[..., half + 1 :] = mirrored[..., ::-1].conj()
    return whole
