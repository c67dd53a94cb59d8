"""Errors in warp collectives, in a learner's words: wrong masks, and lanes that do not take part.

`w` has the warps that ran the call named `call`, `position` is its line and column. The log has a finding per key;
`count_repeat` says if it has one for this key already, and counts it again.
A chunk is the blocks of a launch that run together.
"""

import ast

import numpy as np


def report_unnamed_lane(w, position, call, lane, named):
    """Report a lane that makes a collective call with a mask that does not name it."""
    log, (line, column) = w.chunk.launch.log, position
    key = ("mask", *position, "unnamed")
    if log.count_repeat(key):
        return
    thread, number = log.lane(w, lane), int(w.lane[lane])
    cure = f"Every thread that makes the call must be in its own mask: set bit {number}, or keep it out by an `if`."
    message = (
        f"Line {line}: {log.name(thread)} is lane {number} of its warp and calls `cuda.{call}` with the mask "
        f"{named:#x}, in which bit {number} is not set. What the call does then is undefined. {cure}"
    )
    log.add(key, kind="mask", message=message, remedy=cure, line=line, column=column, threads=(thread,))


def report_absent_lane(w, position, call, lane, other):
    """Report a mask that names `other`, a lane of the warp that does not make the call with this mask."""
    log, (line, column) = w.chunk.launch.log, position
    key = ("mask", *position, "absent")
    if log.count_repeat(key):
        return
    thread, absent = log.lane(w, lane), log.lane(w, int(w.first_lane[lane]) + other)
    cure = "Make the call where all named lanes reach it, before the `if` or loop that splits them"
    if not call.startswith("shfl"):  # a lane that a shuffle reads from may be in another branch
        cure += (
            ", or name only those that do: `mask = cuda.ballot_sync(0xffffffff, condition)` ahead of an `if condition:`"
        )
    elif alike := _lines_of_shuffles(w):
        cure = (
            f"Make the shuffles of lines {alike} in all lanes, before the `if` that splits them, and choose behind them"
        )
    cure += "."
    message = (
        f"Line {line}: the mask that {log.name(thread)} gives to `cuda.{call}` names lane {other} of its warp, "
        f"but {log.name(absent)}, which is that lane, does not make this call with the same mask. On a GPU the "
        f"result is undefined, or the warp waits forever. {cure}"
    )
    log.add(key, kind="mask", message=message, remedy=cure, line=line, column=column, threads=(thread, absent))


def _lines_of_shuffles(w):
    """Return the lines of shuffles that stand in the branches of one `if`; "" if there are no two."""
    for node in ast.walk(w.chunk.launch.source.tree):
        if isinstance(node, ast.If) and node.orelse:
            branches = [_shuffles_in(node.body), _shuffles_in(node.orelse)]
            if all(branches):
                lines = sorted({line for found in branches for line in found})
                return f"{', '.join(map(str, lines[:-1]))} and {lines[-1]}"
    return ""


def _shuffles_in(body):
    calls = [n for part in body for n in ast.walk(part) if isinstance(n, ast.Call)]
    return [call.lineno for call in calls if ast.unparse(call.func).startswith("cuda.shfl")]


def report_silent_source(w, position, mask, call, lane, source, count):
    """Report a lane that reads the value of lane `source` of its warp, which does not take part in the shuffle."""
    log, (line, column) = w.chunk.launch.log, position
    key = ("shuffle", *position)
    if log.count_repeat(key, count):
        return
    thread, number = log.lane(w, lane), int(w.lane[lane])
    other = int(w.first_lane[lane]) + source
    if other >= w.lanes or w.first_lane[other] != w.first_lane[lane]:
        lanes = int(np.sum(w.first_lane == w.first_lane[lane]))
        why = f"which does not exist: the block's last warp has only {lanes} threads"
        cure = "Make the number of threads in a block a multiple of 32, or read only from lanes that exist."
    else:
        cure = "Let that lane make the call too, named in the mask, or read only from lanes that do."
        if w.exited is not False and w.active(w.exited)[other]:
            why = "which has returned from the kernel"
            cure = f"Let it stay until the shuffle, with a value that does no harm{_harmless(w, line)}."
        elif w.active(mask)[other]:
            why = "which is not in its mask"
        else:
            why = "which does not make this call"
    message = (
        f"Line {line}: {log.name(thread)}, lane {number} of its warp, reads by `cuda.{call}` the value of lane "
        f"{source}, {why}. What it gets is undefined, and the result of the kernel depends on it. {cure}"
    )
    log.add(key, count, "shuffle", message, remedy=cure, line=line, column=column, threads=(thread,))


def _harmless(w, line):
    """Return an example of a value that does not change what the statement in a line computes."""
    calls = [n for n in ast.walk(w.chunk.launch.source.tree) if isinstance(n, ast.Call) and n.lineno == line]
    called = {ast.unparse(call.func) for call in calls}
    if called & {"max", "min"}:
        return ", such as -inf in a maximum" if "max" in called else ", such as inf in a minimum"
    return ", such as 0 in a sum"


def report_partial_warps(w, call, active, partial_warps):
    """Report warps that make a call with some of their lanes; `call` is its line, column and name."""
    log, (line, column, name) = w.chunk.launch.log, call
    key = ("mask", line, column, "partial")
    if log.count_repeat(key, int(partial_warps.sum())):
        return
    row = int(np.argmax(partial_warps))
    lanes = np.flatnonzero(w.row == row)
    present, absent = lanes[active[lanes]], lanes[~active[lanes]]
    threads = [log.lane(w, int(present[0]))]
    missing, cure = f"its warp has only {len(lanes)} threads", "Make the number of threads in a block a multiple of 32."
    if len(absent):
        threads.append(log.lane(w, int(absent[0])))
        missing = f"{log.name(threads[1])}, of the same warp, does not"
        cure = "Move the call out of the `if` or the loop that splits the warp."
    message = (
        f"Line {line}: {log.name(threads[0])} calls `{name}`, but {missing}. All 32 lanes of a warp must make this "
        f"call together, or the result is undefined. {cure}"
    )
    log.add(
        key, int(partial_warps.sum()), "mask", message, remedy=cure, line=line, column=column, threads=tuple(threads)
    )
