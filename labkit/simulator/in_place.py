"""`simulate_in_place`: `simulate`, after which arrays hold what the kernel wrote, as after a launch."""

import inspect
from collections.abc import Callable
from threading import Lock

import numpy as np

from labkit.simulator import host
from labkit.simulator.arguments import flatten_arguments
from labkit.simulator.checks.scope import scope_of
from labkit.simulator.checks.strides import cure_of_skipped_elements
from labkit.simulator.run import simulate
from labkit.simulator.unwritten import LastStore
from labkit.trace import Trace

# One launch at a time, as on a GPU's default stream: of two at once, the later would write back the arrays' old values.
_launch_lock = Lock()


def simulate_in_place(kernel, grid, block, *args, by: Callable[..., Trace] = simulate, **options) -> Trace:
    """Run one launch in the simulator; the arguments and the options are those of `simulate`, or what runs it, `by`.

    Arguments wrapped in `cuda.In` stay as they are; after a sample of the blocks all do.
    """
    with _launch_lock:
        values = [a.value if isinstance(a, host.InOut) else a for a in args]
        trace = by(kernel, grid, block, *values, **options)
        if trace.counters.sample:
            return trace
        names = list(inspect.signature(kernel.py_func).parameters)
        read_only = {name for name, argument in zip(names, args) if isinstance(argument, host.In)}
        outputs = flatten_arguments(names, trace.outputs)
        for name, value in flatten_arguments(names, values).items():
            if name in trace.blank:
                value.fill_blank(~trace.blank[name])
                value.note_store(_last_store(trace, name))
            array = host.unwrap(value)
            if isinstance(array, np.ndarray) and array.flags.writeable and name not in read_only:
                np.copyto(array, outputs[name])
            elif isinstance(value, np.void) and name not in read_only:
                for field in value.dtype.names:
                    value[field] = outputs[name][field]
        return trace


def _last_store(trace: Trace, array: str) -> LastStore | None:
    """Return what there is to tell of a launch; None if it did not store to the array, and had no error."""
    sites = [c for c in trace.sites if c.site.array == array and c.site.kind != "load" and c.accesses]
    if not sites and not trace.errors:
        return None
    return LastStore(
        trace.kernel,
        trace.filename,
        trace.first_line,
        sites[0].site.line if sites else trace.first_line,
        trace.grid,
        trace.block,
        sum(counters.accesses for counters in sites),
        any(finding.kind == "one-axis" for finding in trace.findings),
        cure_of_skipped_elements(scope_of(trace), sites[0].site) if sites else "",
        bool(trace.errors),
    )
