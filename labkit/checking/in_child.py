"""Work in a forked child with limits on CPU time and memory, so that it costs its caller neither.

Windows has no fork: there the work is done in this process, and what counts it is its only limit.
"""

import json
import os
import select
import signal
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_MEMORY_BYTES = 256 << 20  # beyond what the child begins with
WALL_FACTOR = 20  # a busy machine gives a child a small share of its time
CONTAINERS = {kind.__name__: kind for kind in (tuple, list, dict, set, frozenset)}


@dataclass
class Allowance:
    """The CPU time that is left to all children of a check together."""

    cpu_s: float = 5


class TooMuch(Exception):
    """The work needs more CPU time or memory than it may have; the message is the object of a sentence."""


def run_in_child(work: Callable[[], Any], allowance: Allowance) -> Any:
    """Return what the work returns, made of None, numbers, texts, and containers of them.

    Raises
    ------
    TooMuch
        The child was stopped, or ended without an answer.
    """
    if not hasattr(os, "fork"):
        return work()
    cpu_s = max(allowance.cpu_s, 0.01)  # 0 would be no limit
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: the child runs Python alone
        child = os.fork()
    if not child:
        _answer(work, reading, writing, cpu_s)
    os.close(writing)
    try:
        text = _read(reading, WALL_FACTOR * cpu_s)
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
    allowance.cpu_s -= usage.ru_utime + usage.ru_stime
    if text is None or os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
        raise TooMuch("more computing time than all its answers may take together")
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        raise TooMuch("a deeper nesting than Python's stack holds")
    if not text.endswith("\n"):
        raise TooMuch(f"more than {MAX_MEMORY_BYTES >> 20} MB of memory")
    return _decode(json.loads(text))


def _answer(work, reading, writing, cpu_s):
    """Do the work in the child, write what it returns, and end."""
    try:
        os.close(reading)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        _limit_memory()
        with open(writing, "w", encoding="ascii") as pipe:
            pipe.write(json.dumps(_encode(work())) + "\n")
    finally:
        os._exit(0)  # whatever happens, a second copy of this process must not run on


def _limit_memory():
    if sys.platform == "linux":
        import resource

        data_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = data_pages * resource.getpagesize() + MAX_MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (limit if hard < 0 else min(limit, hard), hard))


def _read(pipe, seconds):
    """Return what a child writes until it ends, None if that takes too long."""
    text = b""
    while select.select([pipe], [], [], seconds)[0]:
        part = os.read(pipe, 1 << 16)
        if not part:
            return text.decode("ascii")
        text += part
    return None


def _encode(value):
    for name, kind in CONTAINERS.items():
        if isinstance(value, kind):
            return [name, *map(_encode, value.items() if isinstance(value, dict) else value)]
    return value


def _decode(value):
    if not isinstance(value, list):
        return value
    name, *parts = value
    return CONTAINERS[name](map(_decode, parts))
