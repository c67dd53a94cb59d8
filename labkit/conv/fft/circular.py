"""Whole planes of circular correlations, with the points that wrap around and that overlap-save discards.

No step stores these. The launches are those of `s02_tiled`; then its inverse runs once more, for all of each tile.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32

from labkit.arrays.workspace import Workspace
from labkit.conv.fft.problem import SpectralForward
from labkit.conv.fft.s02_tiled import choose_tiles, make_inverse
from labkit.conv.fft.s02_tiled import launches as tiled_launches
from labkit.ladder import Launch
from labkit.simulator.in_place import simulate_in_place


@dataclass(frozen=True)
class Circular:
    """Tiles of an image, correlated circularly with filters.

    Attributes
    ----------
    x, w
        The image and the filters. Filters smaller than the largest are padded with zeros at the end.
    planes
        Result for each filter and each tile, all T x T points of it.
    step
        Rows and columns from one tile to the next, equal to those kept of each.
    y
        Kept outputs: tiles side by side.
    """

    x: Float32[np.ndarray, "H W"]
    w: Float32[np.ndarray, "K R S"]
    planes: Float32[np.ndarray, "K tiles_h tiles_w T T"]
    step: tuple[int, int]
    y: Float32[np.ndarray, "K P Q"]

    def taps(self, k: int) -> tuple[int, int]:
        """Return rows and columns of a filter; with several filters, without the zeros at its end."""
        if len(self.w) == 1:
            return self.w.shape[1:]
        rows, columns = np.nonzero(self.w[k])
        return int(rows.max(initial=0)) + 1, int(columns.max(initial=0)) + 1

    def stained(self) -> Bool[np.ndarray, "K tiles_h tiles_w T T"]:
        """Mark the points that differ from the correlation with zeros around the image; matching NaN are right."""
        (K, R, S), (_, tiles_h, tiles_w, T, _) = self.w.shape, self.planes.shape
        sides = (tiles_h - 1) * self.step[0] + T, (tiles_w - 1) * self.step[1] + T
        padded = np.zeros((sides[0] + R - 1, sides[1] + S - 1))
        padded[: self.x.shape[0], : self.x.shape[1]] = self.x
        problem = SpectralForward(1, 1, *padded.shape, K, R, S)
        filters = self.w[:, None]
        (true,) = problem.expected((padded[None, None], filters, None, problem)).values()
        # a bound holds norms of the whole image, which one NaN would spoil
        (finite,) = problem.expected((np.nan_to_num(padded)[None, None], filters, None, problem)).values()
        wrong = np.empty(self.planes.shape, bool)
        for i, j in np.ndindex(tiles_h, tiles_w):
            window = np.s_[0, :, i * self.step[0] :, j * self.step[1] :]
            value, bound = true.value[window][:, :T, :T], finite.bound[window][:, :T, :T]
            plane = self.planes[:, i, j]
            wrong[:, i, j] = ~((np.abs(plane - value) <= bound) | (np.isnan(plane) & np.isnan(value)))
        return wrong


def circular(x: Float32[np.ndarray, "H W"], w: Float32[np.ndarray, "K R S"], side: int = 16) -> Circular:
    """Run the kernels in the simulator, with tiles of side x side."""
    return simulate_circular(x, w, side)[1]


def simulate_circular(x, w, side) -> tuple[list[Launch], Circular]:
    """Return the launches, whose arguments hold the spectra, and what they gave."""
    problem = SpectralForward(1, 1, *x.shape, *w.shape)
    y = np.full(problem.shapes["y"], np.nan, np.float32)
    x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
    launches = tiled_launches(x[None, None], w[:, None], y, problem, Workspace(), side)
    _, step, (tiles_h, tiles_w) = choose_tiles(problem, side)
    planes = np.full((tiles_h * tiles_w, problem.K, side, side), np.nan, np.float32)
    spectra = launches[-1].arguments[0]
    launches.append(make_inverse(spectra, planes, side, step=(side, side)))
    for launch in launches:
        simulate_in_place(launch.kernel, launch.grid, launch.block, *launch.arguments, shared_bytes=launch.shared_bytes)
    planes = planes.reshape(tiles_h, tiles_w, problem.K, side, side).transpose(2, 0, 1, 3, 4)
    return launches, Circular(x, w, planes, step, y[0])
