"""Checks of a problem's sizes."""

from numbers import Integral

COUNT_LIMIT = 2**31  # sizes are below this, so that 32 bits count them


def check_sizes(problem, **lowest: int) -> None:
    """Raise TypeError or ValueError, with one sentence, if a size is not a whole number in its range.

    `lowest` has the lowest value of each checked size; all are below `COUNT_LIMIT`. Sizes of NumPy's types become int,
    which does not wrap.
    """
    for name, least in lowest.items():
        size = getattr(problem, name)
        if not isinstance(size, Integral) or isinstance(size, bool):
            raise TypeError(f"{name} is {size!r}, but it must be a whole number")
        if not least <= int(size) < COUNT_LIMIT:
            raise ValueError(f"{name} is {size}, but it must be at least {least} and below {COUNT_LIMIT}")
        object.__setattr__(problem, name, int(size))
