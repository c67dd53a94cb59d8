"""An array and the box of it that one copy moves, as an argument of a kernel."""

from numbers import Integral

ROW_BYTES = 128
ALIGNMENT_BYTES = 16
MOST_AXES = 5
ELEMENT_BYTES = (1, 2, 4)


class BoxedArray:
    """A global array, and how many elements a box has along each of its axes, 128 bytes along the last.

    `to_tf32`: its float32 are rounded to TF32 as they are loaded.

    Raises
    ------
    TypeError
        The array is none, or holds what the copy engine does not move, or the box is no tuple of whole numbers.
    ValueError
        The array or the box is none that the copy engine takes.
    """

    def __init__(self, array, box: tuple[int, ...], to_tf32: bool = False):
        if not all(hasattr(array, field) for field in ("shape", "dtype", "strides")):
            raise TypeError(
                f"a tensor map describes an array, not a {type(array).__name__}: use np.array or cuda.to_device"
            )
        if not isinstance(box, tuple) or not all(isinstance(n, Integral) for n in box):
            raise TypeError(f"a box is a tuple of whole numbers, one for each axis of the array, not {box!r}")
        itemsize = array.dtype.itemsize
        if array.dtype.kind not in "iuf" or itemsize not in ELEMENT_BYTES:
            raise TypeError(f"the copy engine moves numbers of 1, 2 or 4 bytes here, and the array holds {array.dtype}")
        if 0 in array.shape or not 1 <= len(array.shape) <= MOST_AXES:
            raise ValueError(
                f"an array under a tensor map has 1 to {MOST_AXES} axes and no empty one, not the shape {array.shape}"
            )
        if len(box) != len(array.shape) or box[-1] * itemsize != ROW_BYTES or not 1 <= min(box) <= max(box) <= 256:
            raise ValueError(
                f"a box has at most 256 elements along each axis and {ROW_BYTES} bytes along the last, so that "
                f"{tuple(box)} of {array.dtype} is none for an array of {len(array.shape)} axes"
            )
        *strides, last = array.strides
        if any(stride < 0 for stride in array.strides):
            raise ValueError("an array under a tensor map does not run backwards: pass a copy of it")
        if last != itemsize or any(stride % ALIGNMENT_BYTES for stride in strides):
            raise ValueError("the rows of an array under a tensor map begin at multiples of 16 bytes: pad them")
        if to_tf32 and itemsize != 4:
            raise ValueError(
                f"TF32 is made of elements of 4 bytes, and the array holds {array.dtype}: leave `to_tf32` out"
            )
        self.array, self.box, self.to_tf32 = array, tuple(int(n) for n in box), to_tf32

    def of(self, array) -> "BoxedArray":
        """Boxes of the same size, of this array in their array's place."""
        boxed = object.__new__(BoxedArray)
        boxed.array, boxed.box, boxed.to_tf32 = array, self.box, self.to_tf32
        return boxed
