"""Elements of a new device array that no kernel wrote, when they are copied to the host."""

from dataclasses import dataclass
from math import prod

import numpy as np

from labkit.trace import Finding


@dataclass(frozen=True)
class LastStore:
    """The last launch that stored to an array: its number of stores, and the line of the first.

    A launch with errors counts, too, since they may be why it did not store.
    """

    kernel: str
    filename: str
    first_line: int
    line: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    stores: int
    is_on_one_axis: bool  # of the two that the kernel counts threads along
    skips: str  # what to do about a loop whose step leaves elements out, if it is in one
    has_errors: bool


def find_unwritten(blank: np.ndarray, store: LastStore | None) -> Finding | None:
    """Return the finding of a copy to the host of an array of whose elements nothing has written those in `blank`.

    It is an error if nothing has written any element, or if each thread of the last launch stored one element and
    there were too few threads. Otherwise it is advice: a kernel may fill as much of an array as it has results, and
    tell by a count how much that is. None for an array that a launch with errors left so.
    """
    if store is None and blank.all():
        cure = "launch a kernel that fills it first."
        message = f"the array is copied to the host before anything has written to it; {cure}"
        return Finding("unwritten", "error", message, 0, remedy=cure)
    if store is None or store.has_errors:
        return None
    position = np.unravel_index(int(blank.argmax()), blank.shape)
    first = f"[{', '.join(str(int(i)) for i in position)}]"
    fact = (
        f"{int(blank.sum()):,} of {blank.size:,} elements reach the host unwritten, {first} first; line "
        f"{store.line} of `{store.kernel}` stores to the array"
    )
    blocks, threads = prod(store.grid), prod(store.block)
    if store.stores != blocks * threads or blocks * threads >= blank.size:
        message = f"Line {store.line}: {fact}. {store.skips}".rstrip()
        return Finding("unwritten", "advice", message, store.line, remedy=store.skips)
    if store.skips:
        cure = store.skips
    elif store.is_on_one_axis:
        cure = "Give the grid and the block two axes, `kernel[(8, 8), (8, 8)]`, as the kernel's `grid(2)` has."
    else:
        cure = f"Launch {-(-blank.size // threads):,} blocks: divide by the threads of a block and round up."
    message = (
        f"Line {store.line}: {fact}, one element in each of {blocks:,} x {threads:,} = {blocks * threads:,} threads. "
        f"{cure}"
    )
    return Finding("unwritten", "error", message, store.line, remedy=cure)
