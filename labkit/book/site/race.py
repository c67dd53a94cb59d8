"""The race of the first chapter as the picture of the first page: three kernels to switch between."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

import labkit
from labkit import cuda
from labkit.book.site.chapters import STILLS
from labkit.views import schedule
from labkit.views.shared_page import mount_point
from labkit.views.stored_still import write_still

_THREADS = 64
_ROUNDS = 2


@cuda.jit
def right(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = x[me]
    cuda.syncthreads()
    for _ in range(rounds):
        taken = hand[(me + 1) % 64]
        cuda.syncthreads()
        hand[me] = taken
        cuda.syncthreads()
    out[me] = hand[me]


@cuda.jit
def no_first_barrier(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = x[me]
    cuda.syncthreads()
    for _ in range(rounds):
        taken = hand[(me + 1) % 64]
        hand[me] = taken
        cuda.syncthreads()
    out[me] = hand[me]


@cuda.jit
def no_second_barrier(x, out, rounds):
    hand = cuda.shared.array(64, np.float32)
    me = cuda.threadIdx.x
    hand[me] = x[me]
    cuda.syncthreads()
    for _ in range(rounds):
        taken = hand[(me + 1) % 64]
        cuda.syncthreads()
        hand[me] = taken
    out[me] = hand[me]


KERNELS: dict[str, Callable] = {
    "no barrier between read and write": no_first_barrier,
    "no barrier after the write": no_second_barrier,
    "both barriers": right,
}


def race(stills: Path) -> str:
    """Return the HTML of a menu of kernels and of the schedule of the one that is chosen.

    Still pictures are written to `stills`, in the site's folder STILLS.
    """
    options = "".join(f'<option value="{i}">{name}</option>' for i, name in enumerate(KERNELS))
    x = np.arange(_THREADS, dtype=np.float32)
    views = [schedule(labkit.explore(kernel, 1, _THREADS, x, np.zeros_like(x), _ROUNDS)) for kernel in KERNELS.values()]
    shown = [(view.script, view.page_data()) for view in views]
    hosts = "".join(mount_point(*each, f"{STILLS}/{write_still(*each, stills)}") for each in shown)
    return (
        f'<div class="labkit-switch"><label>The kernel has <select>{options}</select></label><div>{hosts}</div></div>\n'
    )
