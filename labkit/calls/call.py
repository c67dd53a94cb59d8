"""The path of every call: a route that an earlier call has made is found by one look-up, else one is made.

What decides how a call runs is how its arrays lie, not where they are, and its options. All that may be refused is
refused when the route is made (`labkit.calls.first_call`).
"""

from collections.abc import Sequence

import numpy as np

from labkit.arrays.driver import current_device, handle_of
from labkit.arrays.owners import SIGNATURES, NotPlain, signature_of
from labkit.calls.dynamo import leave_alone, undisturbed
from labkit.calls.first_call import first_call
from labkit.calls.operation import Operation
from labkit.calls.route import routes

NAN = float("nan")  # in keys: another one is equal to none, and would not be found again


def call(operation: type[Operation], arrays: Sequence, options: tuple = (), stream=None):
    """Runs an operation on arrays, and gives its outputs: one array, or several as a tuple.

    Parameters
    ----------
    operation
        Its class.
    arrays
        In the order of `operation.arrays`, None for those that are not there.
    options
        What makes the operation, in the order of its fields.
    stream
        numba's, torch's or CuPy's, or 0 for the driver's default stream; None for the current one of torch's and CuPy's
        arrays.

    Raises
    ------
    TypeError, ValueError
        In a sentence: arrays or options are not as the operation takes them.
    """
    leave_alone()
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
    except (NotPlain, TypeError):  # arrays that are looked at more closely, or options that are none
        key = route = None
    if route is None:
        if any(map(_is_another_nan, options)):
            options = tuple(NAN if _is_another_nan(option) else option for option in options)
            return call(operation, arrays, options, stream)
        return undisturbed(first_call)(call, operation, options, arrays, key, stream)
    return route.run(list(arrays), addresses, None if stream is None else handle_of(stream), device)


def _is_another_nan(option) -> bool:
    return isinstance(option, float | np.floating) and option != option and option is not NAN


def forget(operation: type[Operation] | None = None) -> None:
    """Forgets how calls of an operation run, or of all operations."""
    routes.forget(operation)
