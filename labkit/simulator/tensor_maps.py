"""An array and the box of it that one copy moves, as an argument of a kernel."""

ROW_BYTES = 128


class BoxedArray:
    """A global array, and how many elements a box has along each of its axes, 128 bytes along the last.

    `to_tf32`: its float32 are rounded to TF32 as they are loaded.

    Raises
    ------
    ValueError
        The array or the box is none that the copy engine takes.
    """

    def __init__(self, array, box: tuple[int, ...], to_tf32: bool = False):
        itemsize = array.dtype.itemsize
        if len(box) != len(array.shape) or box[-1] * itemsize != ROW_BYTES or not 1 <= min(box) <= max(box) <= 256:
            raise ValueError(
                f"a box has at most 256 elements along each axis and {ROW_BYTES} bytes along the last, so that "
                f"{tuple(box)} of {array.dtype} is none for an array of {len(array.shape)} axes"
            )
        *strides, last = array.strides
        if last != itemsize or any(stride % 16 or stride < 0 for stride in strides):
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
