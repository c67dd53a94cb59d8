"""Ordinary writes to shared memory that TMA and the tensor cores may not see yet.

Both access memory through the *async proxy*. It sees what a thread wrote, or copied by `cp_async`, once the thread has
called `fence_async` (PTX ISA, "Memory Consistency Model: Proxies").
A chunk is the blocks of a launch that run together.
"""

import numpy as np

from labkit.ptx.finding import log_error
from labkit.simulator.family import SharedState


class Unfenced(SharedState):
    """For each unit the number + 1 of the thread that wrote it last without a fence since, or 0."""

    def __init__(self, units: int):
        self._writer = np.zeros(units, np.int16)

    def note_write(self, w, site, array, mask, flat):
        """Record that these threads wrote the elements `flat`."""
        threads = w.thread
        if mask is not None:
            flat, threads = flat[mask], threads[mask]
        for units in self.units(flat):
            self._writer[units] = threads + 1

    def drop(self, flat):
        """Record that asynchronous operations wrote the elements `flat`."""
        for units in self.units(flat):
            self._writer[units] = 0

    def fence(self, fenced):
        """Clear the writes of `fenced` threads: a mask of blocks and of threads, numbered from 1."""
        writer = self._writer.reshape(len(fenced), -1)
        writer[np.take_along_axis(fenced, writer, axis=1)] = 0

    def writers(self, flat) -> np.ndarray:
        """Return for each element the number + 1 of the thread that has not fenced its write; 0 for none."""
        return np.max([self._writer.take(units) for units in self.units(flat)], axis=0)


def fence(w, mask):
    """Run `fence_async`: TMA and the tensor cores see the earlier writes of these lanes."""
    chunk = w.chunk
    fenced = np.zeros((len(chunk.blocks), chunk.launch.threads_per_block + 1), np.bool_)
    lanes = w.active(mask)
    fenced[w.slot[lanes], w.thread[lanes] + 1] = True
    for array in chunk.shared:
        if array is not None and Unfenced in array.states:
            array.states[Unfenced].fence(fenced)


def check_read(w, site, array, flat, reader):
    """Note unfenced writes to the elements `flat`, which `reader`, TMA or the tensor cores, reads."""
    _check(w, site, array, flat, f"{reader} may read an old", "wrote or copied it, which they see only")


def check_write(w, site, array, flat):
    """Note unfenced writes to the elements `flat`, which TMA writes."""
    effect = "a copy and what a thread wrote can arrive in either order at"
    _check(w, site, array, flat, effect, "wrote there before, which TMA knows to come first only")


def _check(w, site_number, array, flat, effect, wrote):
    writers = array.states[Unfenced].writers(flat)
    if not writers.any():
        return
    launch = w.chunk.launch
    log, site = launch.log, launch.sites[site_number]
    n = int(np.argmax(writers > 0))
    block = w.chunk.blocks[int(flat[n]) // array.elements]
    writer = log.thread(block, int(writers[n]) - 1)
    element = array.position(array.c_order(int(flat[n]) % array.elements))
    what = f"{effect} {array.name}[{', '.join(map(str, element))}]: {log.name(writer)} {wrote} behind a fence"
    cure = (
        "Let each thread call `ptx.fence_async()` after it has written, or waited for its copies, and before the "
        "barrier that ends the writing."
    )
    key, count = ("proxy", site.line, site.column), int(np.count_nonzero(writers))
    log_error(log, key, site, "proxy", what, cure, count, array=array.name, index=element, threads=(writer,))
