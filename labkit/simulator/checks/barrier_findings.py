"""What goes wrong at a barrier of some warps, in a learner's words."""

import numpy as np

from labkit.trace import WARP_LANES


def check_barriers(barriers, number, slots, call):
    """Notes where the warps that open a barrier disagree on how many threads it waits for, or are too many."""
    chunk, (line, column, name) = barriers.chunk, call
    log = chunk.launch.log
    for slot in slots:
        warps = np.flatnonzero(barriers.number[slot] == number)
        threads = barriers.threads[slot, warps]
        if len(set(threads)) == 1 and threads[0] == WARP_LANES * len(warps):
            continue
        key = ("barrier", line, column, "named")
        if log.known(key):
            continue
        one, other = (warps[int(np.argmin(threads))], warps[int(np.argmax(threads))])
        if one == other:
            other = warps[-1]
        who = [log.thread(int(chunk.blocks[slot]), int(warp) * WARP_LANES) for warp in (one, other)]
        what = (
            f"{log.name(who[0])} waits there for {threads.min()} threads and {log.name(who[1])} for {threads.max()}"
            if len(set(threads)) > 1
            else f"{WARP_LANES * len(warps)} threads come to it together, and it waits for {threads[0]}"
        )
        cure = "Give each group of warps a number of its own, and the number of threads of the whole group."
        log.add(
            key,
            kind="barrier",
            message=(
                f"Line {line}: of barrier {number} of `{name}`, {what}. On a GPU it can open before all have come, or "
                f"never. {cure}"
            ),
            remedy=cure,
            line=line,
            column=column,
            threads=tuple(who),
        )
