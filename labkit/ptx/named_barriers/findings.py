"""What goes wrong at a barrier of some warps, in a learner's words."""

import numpy as np

from labkit.trace import WARP_LANES


def check_barriers(barriers, number, slots, call):
    """Notes where the warps that open a barrier disagree on how many threads it waits for, or are too many."""
    chunk, (line, column, name) = barriers.chunk, call
    log = chunk.launch.log
    for slot in slots:
        warps = np.flatnonzero(barriers.threads[number, slot])
        threads = barriers.threads[number, slot, warps]
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


def check_arrivals(barriers, slots, warps, numbers, call):
    """Notes where a warp comes to a barrier that has not opened since it came there last."""
    again = barriers.threads[numbers, slots, warps] > 0
    if not again.any():
        return
    chunk, (line, column, name) = barriers.chunk, call
    log = chunk.launch.log
    key = ("barrier", line, column, "again")
    if log.known(key, int(again.sum())):
        return
    first = int(np.argmax(again))
    who = log.thread(int(chunk.blocks[slots[first]]), int(warps[first]) * WARP_LANES)
    cure = "Wait with `ptx.barrier_sync` for the others, at a barrier of another number, before you come again."
    log.add(
        key,
        int(again.sum()),
        kind="barrier",
        message=(
            f"Line {line}: {log.name(who)} comes to barrier {numbers[first]} of `{name}`, to which it has come before, "
            f"and which has not opened since: a GPU counts it twice, and opens before all have come. {cure}"
        ),
        remedy=cure,
        line=line,
        column=column,
        threads=(who,),
    )


def check_groups(barriers, slots, warps, numbers, call):
    """Notes where a warp comes to a barrier at which others waited before, and only by chance comes behind them."""
    waited = barriers.waited[numbers, slots]
    strangers = np.flatnonzero(waited.any(axis=1) & (waited[np.arange(len(warps)), warps] == 0))
    strangers = strangers[barriers.epochs[numbers, slots][strangers] == barriers.chunk.epochs[slots[strangers]]]
    if not len(strangers):
        return
    chunk, (line, column, name) = barriers.chunk, call
    clocks, log, blocks = chunk.launch.clocks, chunk.launch.log, np.array(chunk.blocks)[slots[strangers]]
    others = (waited[strangers] > 0).argmax(axis=1)  # of those who waited together each knows of all
    since = waited[strangers, others]
    unaware = ~clocks.know_times(clocks.of(blocks, warps[strangers]), clocks.of(blocks, others), since)
    key = ("barrier", line, column, "groups")
    if not unaware.any() or log.known(key, int(unaware.sum())):
        return
    first = int(np.argmax(unaware))
    who = [log.thread(int(blocks[first]), int(warp[first]) * WARP_LANES) for warp in (warps[strangers], others)]
    cure = "Give each group of warps a number of its own."
    log.add(
        key,
        int(unaware.sum()),
        kind="barrier",
        message=(
            f"Line {line}: {log.name(who[0])} comes to barrier {numbers[strangers[first]]} of `{name}`. "
            f"{log.name(who[1])} waited there before, and nothing makes the one come behind the other: on a GPU some "
            f"warps of both may open it together. {cure}"
        ),
        remedy=cure,
        line=line,
        column=column,
        threads=tuple(who),
    )
