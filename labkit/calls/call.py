"""The path of every call: one look-up finds the route that an earlier call made; the first call makes it.

A route depends on the options and on the arrays' layouts, not on their addresses. All checks of layouts and options run
when the route is made (`labkit.calls.first_call`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from labkit import cuda
from labkit.arrays import pool
from labkit.arrays.driver import current_device, stream_handle
from labkit.arrays.owners import SIGNATURES, NeedsPreparation, signature_of
from labkit.calls.dynamo import exclude_from_compile, without_tracing
from labkit.calls.first_call import first_call
from labkit.calls.operation import Operation
from labkit.calls.route import routes

NAN = float("nan")  # in keys of routes: one object for all, since a NaN equals only itself


def run_operation(operation: type[Operation], arrays: Sequence, options: tuple = (), stream=None) -> Any:
    """Run an operation on arrays, and return its outputs.

    Parameters
    ----------
    operation
        The operation's class.
    arrays
        Arrays in the order of `operation.arrays`; None for each missing array.
    options
        Options of the operation, in the order of its fields.
    stream
        A stream of numba, torch or CuPy, or 0 for the driver's default stream. None means the current stream of torch
        or CuPy arrays.

    Returns
    -------
    One array, or several as a tuple.

    Raises
    ------
    TypeError, ValueError
        The operation refuses the arrays or options; the message is one sentence.
    """
    exclude_from_compile()
    try:
        device = current_device()
        key, addresses = [operation, device, options, *map(type, options)], []
        for X in arrays:
            if X is None:
                key.append(None)
                addresses.append(None)
            else:
                signature, address = (SIGNATURES.get(X.__class__) or signature_of(X))(X)
                key.append(signature)
                addresses.append(address)
        route = routes.get(key := tuple(key))
    except (NeedsPreparation, TypeError):  # arrays that need closer checks, or invalid options
        key = route = None
    if route is None:
        if any(map(_is_another_nan, options)):
            options = tuple(NAN if _is_another_nan(option) else option for option in options)
            return run_operation(operation, arrays, options, stream)
        return without_tracing(first_call)(run_operation, operation, options, arrays, key, stream)
    return route.run(list(arrays), addresses, None if stream is None else stream_handle(stream), device)


def _is_another_nan(option) -> bool:
    return isinstance(option, float | np.floating) and option != option and option is not NAN


def forget(operation: type[Operation] | None = None) -> None:
    """Delete the routes of an operation, or of all operations."""
    routes.forget(operation)


def free() -> None:
    """Return all memory that is cached for later calls to the driver, after waiting for the GPU.

    Memory of your plans and of captured graphs stays, as do compiled kernels. For torch's own cache, call
    `torch.cuda.empty_cache()`.

    Examples
    --------
    >>> labkit.free()
    """
    forget()
    if cuda.on_gpu():
        pool.trim()
        cuda.current_context().deallocations.clear()
