"""Findings of named barriers. A chunk is the blocks of a launch that run together, a slot the number of one in it."""

import numpy as np

from labkit.ptx.finding import log_error
from labkit.trace import WARP_LANES


def check_thread_counts(barriers, number, slots, call):
    """Note where the warps that open a barrier disagree on its number of threads, or are too many."""
    chunk, (line, column, name) = barriers.chunk, call
    log = chunk.launch.log
    for slot in slots:
        warps = np.flatnonzero(barriers.threads[number, slot])
        threads = barriers.threads[number, slot, warps]
        if len(set(threads)) == 1 and threads[0] == WARP_LANES * len(warps):
            continue
        fewest, most = warps[int(np.argmin(threads))], warps[int(np.argmax(threads))]
        pair = fewest, warps[-1] if fewest == most else most
        who = [log.thread(int(chunk.blocks[slot]), int(warp) * WARP_LANES) for warp in pair]
        mismatch = (
            f"{log.name(who[0])} waits there for {threads.min()} threads and {log.name(who[1])} for {threads.max()}"
            if len(set(threads)) > 1
            else f"{WARP_LANES * len(warps)} threads come to it together, and it waits for {threads[0]}"
        )
        what = f"of barrier {number} of `{name}`, {mismatch}. On a GPU it can open before all have come, or never"
        cure = "Give each group of warps a number of its own, and the number of threads of the whole group."
        log_error(log, ("barrier", line, column, "named"), call, "barrier", what, cure, threads=tuple(who))


def check_arrivals(barriers, slots, warps, numbers, call):
    """Note where a warp arrives at a barrier that has not opened since its last arrival there."""
    again = barriers.threads[numbers, slots, warps] > 0
    if not again.any():
        return
    chunk, (line, column, name) = barriers.chunk, call
    log = chunk.launch.log
    first = int(np.argmax(again))
    who = log.thread(int(chunk.blocks[slots[first]]), int(warps[first]) * WARP_LANES)
    what = (
        f"{log.name(who)} comes to barrier {numbers[first]} of `{name}`, to which it has come before, and which has "
        "not opened since: a GPU counts it twice, and opens before all have come"
    )
    cure = "Wait with `ptx.barrier_sync` for the others, at a barrier of another number, before you come again."
    key = ("barrier", line, column, "again")
    log_error(log, key, call, "barrier", what, cure, int(again.sum()), threads=(who,))


def check_groups(barriers, slots, warps, numbers, call):
    """Note where a warp arrives at a barrier that other warps used before, without being ordered after them."""
    waited = barriers.waited[numbers, slots]
    strangers = np.flatnonzero(waited.any(axis=1) & (waited[np.arange(len(warps)), warps] == 0))
    strangers = strangers[
        barriers.barriers_passed[numbers, slots][strangers] == barriers.chunk.barriers_passed[slots[strangers]]
    ]
    if not len(strangers):
        return
    chunk, (line, column, name) = barriers.chunk, call
    clocks, log, blocks = chunk.launch.clocks, chunk.launch.log, np.array(chunk.blocks)[slots[strangers]]
    others = (waited[strangers] > 0).argmax(axis=1)  # any of the warps that waited together knows of all of them
    since = waited[strangers, others]
    unaware = ~clocks.have_heard_of(clocks.of(blocks, warps[strangers]), clocks.of(blocks, others), since)
    if not unaware.any():
        return
    first = int(np.argmax(unaware))
    who = [log.thread(int(blocks[first]), int(warp[first]) * WARP_LANES) for warp in (warps[strangers], others)]
    what = (
        f"{log.name(who[0])} comes to barrier {numbers[strangers[first]]} of `{name}`. {log.name(who[1])} waited "
        "there before, and nothing makes the one come behind the other: on a GPU some warps of both may open it "
        "together"
    )
    cure = "Give each group of warps a number of its own."
    key = ("barrier", line, column, "groups")
    log_error(log, key, call, "barrier", what, cure, int(unaware.sum()), threads=tuple(who))
