"""What every step of a ladder of layouts computes: the same images in another order of their elements.

N images of C channels and H x W pixels lie in one of three layouts, named by their axes, the fastest last:

    NCHW            plane after plane, a channel each
    NHWC            pixel after pixel, with all of its channels ("channels last")
    NCHW_VECT_C     planes of vectors: 4 or 32 channels of a pixel lie together, in a fifth axis

(cuDNN's API reference, `cudnnTensorFormat_t`, has vectors of 4 or 32 channels of 8 bits; here elements may be of any
size.) Where C is no multiple of the vector's length, the last vector of a pixel ends in zeros.
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
MOST = 2**31
LARGE = 2**24  # elements, above which the first and the last image tell the error


@dataclass(frozen=True)
class Conversion(ladder.Problem):
    """Images from one layout into another; each element is moved as it is, bit by bit.

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
        A size or a layout is none; the message says which, and what to do.
    """

    N: int
    C: int
    H: int
    W: int
    source: Layout = "NCHW"
    target: Layout = "NHWC"
    vector: int = 4

    least: ClassVar[int] = 1  # of each size

    def __post_init__(self):
        for name in ("N", "C", "H", "W", "vector"):
            size = getattr(self, name)
            if not isinstance(size, Integral) or isinstance(size, bool):
                raise TypeError(f"{name} is {size!r}, but it must be a whole number")
            if not self.least <= size < MOST:
                raise ValueError(
                    f"{name} is {size}, but it must be at least {self.least} and below {MOST}: give other sizes"
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
        """None: elements are moved."""
        return 0

    def min_bytes(self, format: Format = FP32) -> int:
        """Each element of the source read once, and each of the target written once."""
        return format.itemsize * sum(prod(self.shape(layout)) for layout in (self.source, self.target))

    def shape(self, layout: Layout) -> tuple[int, ...]:
        """The shape of the images in a layout."""
        vectors = -(-self.C // self.vector)
        return {
            "NCHW": (self.N, self.C, self.H, self.W),
            "NHWC": (self.N, self.H, self.W, self.C),
            "NCHW_VECT_C": (self.N, vectors, self.H, self.W, self.vector),
        }[layout]

    def cpp_sizes(self, format: Format = FP32) -> tuple[int, ...]:
        """Rows and columns of the matrices."""
        return self.matrices()[1:]

    def operands(self, format: Format = FP32, seed: int = 0) -> tuple:
        """Images of random bits, all of them finite numbers; NaN, which stay where nothing is written; the problem."""
        rng = np.random.default_rng([seed, self.N, self.C, self.H, self.W])
        bits = np.dtype(f"u{format.itemsize}")
        below_2 = ~bits.type(1 << format.bits - 2)  # without the highest bit of the exponent
        x = rng.integers(0, 1 << format.bits, self.shape("NCHW"), bits) & below_2
        y = np.full(self.shape(self.target), format.encode(np.nan), format.dtype)
        return self._from_nchw(x, self.source).view(format.dtype), y, self

    def expected(self, operands: tuple, format: Format = FP32) -> dict[int, ladder.Expected]:
        """The images in the target's layout, exactly."""
        x, *_, problem = operands  # which may be a part of this one
        y = format.decode(problem.oracle(x))
        return {1: ladder.Expected(y, np.broadcast_to(0.0, y.shape))}

    def part(self, operands: tuple) -> tuple:
        """The first and the last image, where all together are large."""
        x, y, problem = operands
        if prod(problem.shape("NCHW")) <= LARGE or problem.N <= 2:
            return operands
        return x[:: problem.N - 1], y[:: problem.N - 1], replace(problem, N=2)

    def oracle(self, x: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
        """The images x of the source's layout in the target's."""
        return self._from_nchw(self._to_nchw(x, self.source), self.target)

    def matrices(self) -> tuple[int, int, int] | None:
        """So many matrices, with their rows and columns, whose transposes the conversion is; None if it is no such."""
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
        """The arrays as batches of matrices of bits: of the second, each is the transpose of one of the first.

        Raises
        ------
        TypeError
            One of them is no array, or they hold different things.
        ValueError
            One of them has another shape or gaps in memory, or the conversion transposes no matrices.
        """
        self.check(x, y)
        if (sizes := self.matrices()) is None:
            raise ValueError(f"{self} transposes no matrices, as this step does: use layouts.convert")
        batch, rows, cols = sizes
        return reshape(as_bits(x), batch, rows, cols), reshape(as_bits(y), batch, cols, rows)

    def check(self, x, y) -> None:
        """Raises as `as_matrices` does where an array is not as the problem has it."""
        for name, X, layout in (("x", x, self.source), ("y", y, self.target)):
            check_array(name, X)
            if tuple(X.shape) != self.shape(layout):
                found, needed = map(shape_text, (X.shape, self.shape(layout)))
                raise ValueError(
                    f"{name} is {found}, but {layout} of this conversion is {needed}: "
                    "give it that shape, or state other sizes"
                )
            if not has_c_order(X):
                raise ValueError(
                    f"{name} is not in C order, as steps take it: use layouts.convert, which takes any strides"
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
    """Raises ValueError where there is no such layout."""
    if layout not in LAYOUTS:
        raise ValueError(f"there is no layout {layout!r}: say NCHW, NHWC or NCHW_VECT_C")
