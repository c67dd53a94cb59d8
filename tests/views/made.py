"""Traces made by hand, so that a view's test says which accesses it draws."""

import numpy as np

from labkit.layout import c_strides
from labkit.trace import ArrayInfo, Counters, Samples, Site, SiteCounters, Trace


def trace(accesses, arrays, *, findings=(), source="", counters=None, **changes):
    """A trace of `accesses`: rows of (line, array, lanes' flat indices), all of block 0, warp 0.

    arrays: name -> (shape, base address), float32.
    """
    infos = tuple(
        ArrayInfo(name, "global", shape, "float32", 4, tuple(4 * s for s in c_strides(shape)), base)
        for name, (shape, base) in arrays.items()
    )
    keys = list(dict.fromkeys((line, array) for line, array, _ in accesses))
    sites = tuple(
        SiteCounters(Site(line, 8, array, "load", "global", "float32", f"{array}[i]")) for line, array in keys
    )
    index = np.full((len(accesses), 32), -1, np.int64)
    for row, (_, _, lanes) in zip(index, accesses, strict=True):
        row[: len(lanes)] = lanes
    column = lambda values: np.array(list(values), np.int64)  # noqa: E731
    samples = Samples(
        blocks=((0, 0, 0),),
        block=column(0 for _ in accesses),
        site=column(keys.index((line, array)) for line, array, _ in accesses),
        warp=column(0 for _ in accesses),
        line=column(line for line, _, _ in accesses),
        index=index,
    )
    fields = {
        "kernel": "k", "source": source, "filename": "k.py", "first_line": 1,
        "grid": (1, 1, 1), "block": (32, 1, 1),
        "gpu": "H100 SXM", "shared_bytes": 0, "outputs": (), "arrays": infos, "sites": sites,
        "counters": counters or Counters(), "findings": tuple(findings), "samples": samples,
    }  # fmt: skip
    return Trace(**fields | changes)
