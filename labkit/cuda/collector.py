"""Python's garbage collector, paused while a kernel compiles: it takes a fifth of that time and finds little."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector, unless it is off already; of several threads, the one that paused it lets it go on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
