"""The problem of the kernels that convert layouts: the same images in another order of their elements.

N images of C channels and H x W pixels have one of three layouts, named by their axes, the fastest last:

    NCHW            plane after plane, one per channel
    NHWC            pixel after pixel, with all of its channels ("channels last")
    NCHW_VECT_C     planes of vectors: 4 or 32 channels of a pixel are contiguous, in a fifth axis

(cuDNN's API reference, `cudnnTensorFormat_t`, has vectors of 4 or 32 channels of 8 bits; here elements may have any
size.) If C is not a multiple of the vector's length, the last vector of a pixel ends in zeros.
"""

from dataclasses import dataclass, replace
from math import prod
from numbers import Integral
from typing import ClassVar, Literal

import numpy as np
from jaxtyping import Shaped

from labkit import ladder
from labkit.arrays.addresses import has_c_order
from labkit.arrays.element_types import have_same_type
from labkit.arrays.operands import check_array, shape_text
from labkit.arrays.views import as_bits, reshape
from labkit.formats import FP32, Format

Layout = Literal["NCHW", "NHWC", "NCHW_VECT_C"]
LAYOUTS: tuple[Layout, ...] = "NCHW", "NHWC", "NCHW_VECT_C"
VECTORS = 4, 32  # channels in the innermost axis of NCHW_VECT_C
MAX_SIZE = 2**31
LARGE = 2**24  # elements, above which only the first and the last image are checked


@dataclass(frozen=True)
class Conversion(ladder.Problem):
    """A conversion of images from one layout to another; the bits of each element stay unchanged.

    Attributes
    ----------
    N, C, H, W
        Images, channels, rows and columns of pixels.
    source, target
        The layouts.
    vector
        Channels in the innermost axis of NCHW_VECT_C: 4 or 32.

    Raises
    ------
    TypeError, ValueError
        A size or a layout is invalid; the message says which, and what to do.
    """

    N: int
    C: int
    H: int
    W: int
    source: Layout = "NCHW"
    target: Layout = "NHWC"
    vector: int = 4

    min_size: ClassVar[int] = 1  # of N, C, H and W; `layouts.convert` lowers it to 0 in a subclass

    def __post_init__(self):
        for name in ("N", "C", "H", "W", "vector"):
            size = getattr(self, name)
            if not isinstance(size, Integral) or isinstance(size, bool):
                raise TypeError(f"{name} is {size!r}, but it must be a whole number")
            if not self.min_size <= size < MAX_SIZE:
                raise ValueError(
                    f"{name} is {size}, but it must be at least {self.min_size} and below {MAX_SIZE}: give other sizes"
                )
            object.__setattr__(self, name, int(size))  # NumPy's would wrap
        for name in ("source", "target"):
            check_layout(getattr(self, name))
        if self.vector not in VECTORS:
            raise ValueError(f"vector is {self.vector}, but NCHW_VECT_C has vectors of 4 or 32 channels: say which")

    def __str__(self):
        names = (f"{layout}{self.vector if 'VECT' in layout else ''}" for layout in (self.source, self.target))
        return f"{self.N}x{self.C}x{self.H}x{self.W} {' to '.join(names)}"

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """N, C, H, W."""
        return self.N, self.C, self.H, self.W

    @property
    def flops(self) -> int:
        """Zero: elements are only moved."""
        return 0

    def min_bytes(self, format: Format = FP32) -> int:
        """Return the bytes of the source, read once, and of the target, written once."""
        return format.itemsize * sum(prod(self.shape(layout)) for layout in (self.source, self.target))

    def shape(self, layout: Layout) -> tuple[int, ...]:
        """Return the shape of the images in a layout."""
        vectors = -(-self.C // self.vector)
        return {
            "NCHW": (self.N, self.C, self.H, self.W),
            "NHWC": (self.N, self.H, self.W, self.C),
            "NCHW_VECT_C": (self.N, vectors, self.H, self.W, self.vector),
        }[layout]

    def cpp_sizes(self, format: Format = FP32) -> tuple[int, ...]:
        """Return what the CUDA C++ version of a step takes after its arrays: rows and columns of the matrices."""
        return self.matrices()[1:]

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Return x, y and the problem: images of random finite numbers, and NaN to show unwritten elements."""
        rng = np.random.default_rng([seed, self.N, self.C, self.H, self.W])
        bits = np.dtype(f"u{format.itemsize}")
        finite = ~bits.type(1 << format.bits - 2)  # clears the highest bit of the exponent
        x = rng.integers(0, 1 << format.bits, self.shape("NCHW"), bits) & finite
        y = np.full(self.shape(self.target), format.encode(np.nan), format.dtype)
        return self._from_nchw(x, self.source).view(format.dtype), y, self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """Return the images in the target's layout, exactly."""
        x, *_, problem = operands  # the problem may be smaller than this one (`checked_part`)
        y = format.decode(problem.oracle(x))
        return {1: ladder.Expected(y, bound=np.broadcast_to(0.0, y.shape))}  # operand 1 is y

    def checked_part(self, operands: tuple) -> tuple:
        """Return the first and the last image of a large problem."""
        x, y, problem = operands
        if prod(problem.shape("NCHW")) <= LARGE or problem.N <= 2:
            return operands
        return x[:: problem.N - 1], y[:: problem.N - 1], replace(problem, N=2)

    def oracle(self, x: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
        """Convert the images x from the source's layout to the target's."""
        return self._from_nchw(self._to_nchw(x, self.source), self.target)

    def matrices(self) -> tuple[int, int, int] | None:
        """Return the batch, rows and columns of the matrices that the conversion transposes; None without any."""
        pixels, (vectors, rest) = self.H * self.W, divmod(self.C, self.vector)
        match self.source, self.target:
            case "NCHW", "NHWC":
                return self.N, self.C, pixels
            case "NHWC", "NCHW":
                return self.N, pixels, self.C
            case "NCHW", "NCHW_VECT_C" if not rest:
                return self.N * vectors, self.vector, pixels
            case "NCHW_VECT_C", "NCHW" if not rest:
                return self.N * vectors, pixels, self.vector
        return None

    def as_matrices(self, x, y) -> tuple:
        """View the arrays as batches of matrices of bits; each of y's is the transpose of one of x's.

        Raise TypeError or ValueError if `check` does, or if the conversion is no transpose.
        """
        self.check(x, y)
        if (sizes := self.matrices()) is None:
            raise ValueError(f"this step transposes matrices, but {self} does not: use layouts.convert")
        batch, rows, cols = sizes
        return reshape(as_bits(x), batch, rows, cols), reshape(as_bits(y), batch, cols, rows)

    def check(self, x, y) -> None:
        """Raise TypeError or ValueError if an array has another shape, gaps in memory, or another type."""
        for name, X, layout in (("x", x, self.source), ("y", y, self.target)):
            check_array(name, X)
            if tuple(X.shape) != self.shape(layout):
                raise ValueError(
                    f"{name} is {shape_text(X.shape)}, but {layout} of this conversion is "
                    f"{shape_text(self.shape(layout))}: give it that shape, or state other sizes"
                )
            if not has_c_order(X):
                raise ValueError(
                    f"steps take arrays in C order, but {name} is not: use layouts.convert, which takes any strides"
                )
        if not have_same_type(x, y):
            raise TypeError(f"x holds {x.dtype} and y {y.dtype}, but elements are moved as they are: make them alike")

    def _to_nchw(self, X, layout):
        if layout == "NCHW":
            return X
        if layout == "NHWC":
            return X.transpose(0, 3, 1, 2)
        planes = X.transpose(0, 1, 4, 2, 3).reshape(self.N, -1, self.H, self.W)
        return planes[:, : self.C]

    def _from_nchw(self, X, layout):
        if layout == "NHWC":
            X = X.transpose(0, 2, 3, 1)
        if layout == "NCHW_VECT_C":
            X = np.pad(X, ((0, 0), (0, -self.C % self.vector), (0, 0), (0, 0)))
            X = X.reshape(self.N, -1, self.vector, self.H, self.W).transpose(0, 1, 3, 4, 2)
        return np.ascontiguousarray(X)


def check_layout(layout) -> None:
    """Raise ValueError if the layout is unknown."""
    if layout not in LAYOUTS:
        raise ValueError(f"there is no layout {layout!r}: say NCHW, NHWC or NCHW_VECT_C")
