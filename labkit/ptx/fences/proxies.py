"""Ordinary writes to shared memory that the copy engine and the tensor cores may not see yet.

They reach memory by another way than threads do, the *async proxy*. What a thread wrote, or copied by `cp_async`, is
seen there once it has called `fence_async` (PTX ISA, "Memory Consistency Model: Proxies").
"""

import numpy as np

from labkit.simulator.family import SharedState


class Unfenced(SharedState):
    """The thread of its block that wrote each unit last, and has not fenced that: its number + 1."""

    def __init__(self, units: int):
        self._writer = np.zeros(units, np.int16)

    def note_write(self, w, site, array, mask, flat):
        """These threads wrote the elements `flat`."""
        threads = w.thread
        if mask is not None:
            flat, threads = flat[mask], threads[mask]
        for units in self.units(flat):
            self._writer[units] = threads + 1

    def drop(self, flat):
        """Others have written the elements `flat`."""
        for units in self.units(flat):
            self._writer[units] = 0

    def fence(self, fenced):
        """`fenced` says of each block's threads, numbered from 1 on, whether they fenced now."""
        writer = self._writer.reshape(len(fenced), -1)
        writer[np.take_along_axis(fenced, writer, axis=1)] = 0

    def writers(self, flat) -> np.ndarray:
        """The number + 1 of the thread that did not fence its write, for each of the elements; 0 for none."""
        return np.max([self._writer.take(units) for units in self.units(flat)], axis=0)


def fence(w, mask):
    """`fence_async`: the copy engine and the tensor cores see what these lanes wrote."""
    chunk = w.chunk
    fenced = np.zeros((len(chunk.blocks), chunk.launch.threads + 1), np.bool_)
    lanes = w.active(mask)
    fenced[w.slot[lanes], w.thread[lanes] + 1] = True
    for array in chunk.shared:
        if array is not None and Unfenced in array.states:
            array.states[Unfenced].fence(fenced)


def check_read(w, site, array, flat, reader):
    """`reader`, the copy engine or the tensor cores, reads the elements `flat`: all writes there must be fenced."""
    _check(w, site, array, flat, f"{reader} may read an old", "wrote or copied it, which they see only")


def check_write(w, site, array, flat):
    """The copy engine writes the elements `flat`: all writes that threads made there before must be fenced."""
    told = "a copy and what a thread wrote can arrive in either order at"
    _check(w, site, array, flat, told, "wrote there before, which the copy engine knows to come first only")


def _check(w, site_number, array, flat, told, wrote):
    writers = array.states[Unfenced].writers(flat)
    if not writers.any():
        return
    launch = w.chunk.launch
    log, site = launch.log, launch.sites[site_number]
    key = ("proxy", site.line, site.column)
    count = int(np.count_nonzero(writers))
    if log.known(key, count):
        return
    at = int(np.argmax(writers > 0))
    block = w.chunk.blocks[int(flat[at]) // array.elements]
    writer = log.thread(block, int(writers[at]) - 1)
    place = array.position(array.c_order(int(flat[at]) % array.elements))
    cure = (
        "Let each thread call `ptx.fence_async()` after it has written, or waited for its copies, and before the "
        "barrier that ends the writing."
    )
    log.add(
        key,
        count,
        kind="proxy",
        message=(
            f"Line {site.line}: {told} {array.name}[{', '.join(map(str, place))}]: "
            f"{log.name(writer)} {wrote} behind a fence. {cure}"
        ),
        remedy=cure,
        site=site,
        array=array.name,
        index=place,
        threads=(writer,),
    )
