"""Fields of a row that are computed from its other fields when it is loaded, and that files leave out."""

from collections.abc import Callable
from typing import Any

Row = dict[str, Any]
# A field, the fields that it is computed from, and how.
COMPUTED_FIELDS: tuple[tuple[str, tuple[str, ...], Callable[..., float]], ...] = (
    ("tflops", ("flops", "time_ms"), lambda flops, time_ms: flops / time_ms / 1e9),
    ("gb_s", ("min_bytes", "time_ms"), lambda min_bytes, time_ms: min_bytes / time_ms / 1e6),
    (
        "baseline_gflops",
        ("gflops", "time_ms", "baseline_time_ms"),
        lambda gflops, time_ms, baseline_ms: gflops * time_ms / baseline_ms,
    ),
    ("ratio", ("baseline_time_ms", "time_ms"), lambda other_ms, time_ms: other_ms / time_ms),
    ("ratio", ("numba_ms", "labkit_ms"), lambda numba_ms, labkit_ms: numba_ms / labkit_ms),
    ("ns_per_lane_operation", ("labkit_ms", "lane_operations"), lambda time_ms, count: time_ms * 1e6 / count),
)


def add_computed(row: Row) -> Row:
    """Return the row with every field that follows from its others."""
    return {**row, **_computed(row)}


def drop_computed(row: Row) -> Row:
    """Return the row without the fields that `add_computed` gives back exactly."""
    computed = _computed(row)
    return {name: value for name, value in row.items() if name not in computed or computed[name] != value}


def _computed(row: Row) -> Row:
    return {
        name: compute(*(row[source] for source in sources))
        for name, sources, compute in COMPUTED_FIELDS
        if all(row.get(source) is not None for source in sources)
    }
