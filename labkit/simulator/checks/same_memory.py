"""Arrays in dynamic shared memory that are one and taken for two: each `cuda.shared.array(0, ...)` is all of it."""

import numpy as np

from labkit.trace import Finding

NOBODY = -1


def cure_of_same_memory(launch, name: str, other: str) -> str:
    """Return the fix where two such arrays of a function, given by their names, lie on one another; "" for others."""
    whole = {a.name: (place, a) for (place, *_), a in launch.program.allocations.items() if a.shape == 0}
    if name == other or not {name, other} <= whole.keys() or whole[name][0] is not whole[other][0]:
        return ""
    first, second = (n for n in whole if n in (name, other))
    parts = f"{second} = {first}[n:]"
    if whole[first][1].dtype != whole[second][1].dtype:
        parts = f"{second} = cuda.shared.array(0, ...)[n:]"
    return (
        f"{first} and {second} are the same memory, as every `cuda.shared.array(0, ...)` is: let one begin where "
        f"the other ends, `{parts}`, and give the launch the bytes of both."
    )


def lost_elements(launch):
    """Find reads of what was stored under another array's name, in a recorded block.

    Arrays of two dtypes or alignments are left out: there the bits of one are meant to be read as the other.
    """
    kinds = {a.name: (a.dtype, a.alignment) for a in launch.program.allocations.values() if a.shape == 0}
    if len(kinds) < 2:
        return
    told = set()
    last_store = {}  # by block: the site of each element's last store
    for block, site_number, _, elements in launch.sampled:
        site = launch.sites[site_number]
        if site_number < 0 or site.array not in kinds:
            continue
        shape = launch.dynamic_bytes // kinds[site.array][0].itemsize
        stores = last_store.setdefault((block, kinds[site.array]), np.full(shape, NOBODY))
        elements = elements[elements >= 0]
        if site.kind != "load":
            stores[elements] = site_number
            continue
        for number in np.setdiff1d(stores[elements], [NOBODY]):
            store = launch.sites[number]
            cure = cure_of_same_memory(launch, site.array, store.array)
            if cure and (site.array, store.array) not in told:
                told.add((site.array, store.array))
                message = (
                    f"Line {site.line}: `{site.text}` reads what line {store.line} stored as `{store.text}`. {cure}"
                )
                yield Finding(
                    "same-memory", "advice", message, site.line, site.column, site.array, other_line=store.line,
                    remedy=cure,
                )  # fmt: skip
