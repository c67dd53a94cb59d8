"""Winograd convolutions of a line, for exercises: the arrays and the expected results."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64

from labkit.checking import unwritten_array
from labkit.exercises.problems import EPS, random_matrix
from labkit.ladder import Expected


@dataclass(frozen=True)
class Line:
    """Pixels x of C channels and a filter g, convolved in tiles by F(m, r) with the matrices A, G and B."""

    A: Float64[np.ndarray, "alpha m"]
    G: Float64[np.ndarray, "alpha r"]
    B: Float64[np.ndarray, "alpha alpha"]
    x: Float32[np.ndarray, "C W"]
    g: Float32[np.ndarray, "C r"]
    U_offset: Float64[np.ndarray, "alpha C"]  # difference of U from the transformed g
    step: int = 0  # pixels from one tile to the next, if it is not m

    @classmethod
    def draw(cls, rng: np.random.Generator, A, G, B, channels: int, outputs: int, offset: float = 0) -> "Line":
        """Draw pixels and taps. With an offset, no taps have this U, and only products of transforms are right."""
        taps = G.shape[1]
        arrays = random_matrix(rng, channels, outputs + taps - 1), random_matrix(rng, channels, taps)
        return cls(A, G, B, *arrays, offset * rng.standard_normal((len(G), channels)))

    @property
    def count(self) -> int:
        """The number of outputs."""
        return self.x.shape[1] - self.g.shape[1] + 1

    def cut_tiles(self) -> Float64[np.ndarray, "C tiles alpha"]:
        """Return the pixels of each tile, with zeros past the end."""
        alpha, m = self.A.shape
        first = (self.step or m) * np.arange(-(-self.count // m))[:, None]
        padded = np.pad(self.x.astype(float), ((0, 0), (0, first.max() + alpha)))
        return padded[:, first + np.arange(alpha)]

    def make_arrays(self):
        """Return x, U, V and y of a launch."""
        U = (self.G @ self.g.T.astype(float) + self.U_offset).astype(np.float32)
        return self.x, U, unwritten_array((len(U), *self.cut_tiles().shape[:2])), unwritten_array((self.count,))

    def expect_V(self, *channel: int) -> Expected:
        """Expect V, of all channels or of one."""
        B, d = self.B.T, self.cut_tiles()
        value, size = np.einsum("ik,ctk->ict", B, d), np.einsum("ik,ctk->ict", np.abs(B), np.abs(d))
        index = slice(None), *channel
        return Expected(value[index], len(B) * EPS * size[index])

    def expect_y(self) -> Expected:
        """Expect y within the roundings of the transforms, the products and the sum over channels."""
        windows = np.lib.stride_tricks.sliding_window_view(self.x.astype(float), self.g.shape[1], 1)
        value = np.einsum("cqs,cs->q", windows, self.g.astype(float))
        value += np.einsum("im,ic,ctk,ki->tm", self.A, self.U_offset, self.cut_tiles(), self.B).ravel()[: self.count]
        return Expected(value, self._bound_y())

    def multiply_transforms(self) -> Expected:
        """Expect what comes out of the transforms, whatever their matrices are."""
        U = self.G @ self.g.T.astype(float) + self.U_offset
        value = np.einsum("im,ic,ctk,ki->tm", self.A, U, self.cut_tiles(), self.B).ravel()[: self.count]
        return Expected(value, self._bound_y())

    def _bound_y(self):
        arrays = self.A, self.G, self.B, self.g, self.cut_tiles(), self.U_offset
        A, G, B, g, d, U_offset = map(np.abs, arrays)
        size = np.einsum("im,ci,ctk,ki->tm", A, g @ G.T + U_offset.T, d, B).ravel()[: self.count]
        roundings = len(self.x) + 3 * len(A) + 2
        return roundings * EPS * size
