"""The first call of its kind: it checks everything, and makes a route for later calls."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields

from labkit.arrays.driver import current_device, stream_handle
from labkit.arrays.operands import check_array
from labkit.arrays.owners import owner_of
from labkit.calls.devices import device_of, using
from labkit.calls.host_arrays import run_with_copies
from labkit.calls.operation import Operation
from labkit.calls.plan import prepared
from labkit.calls.route import New, Route, new_array, routes


def first_call(call: Callable, kind: type[Operation], options: tuple, arrays, key, stream):
    """Run an operation and cache its route; `call` runs it again on plain device arrays."""
    operation = kind(*options)
    handle = None if stream is None else stream_handle(stream)
    given = {name: X for name, X in zip(operation.arrays, arrays, strict=True) if X is not None}
    for name in operation.needed:
        if name not in given:
            raise TypeError(f"{name} is None: give an array")
    for name, X in given.items():
        check_array(name, X, name in operation.written)
    owners = {name: owner_of(X) for name, X in given.items()}

    def again(given, stream=stream):
        options = tuple(getattr(operation, field.name) for field in fields(operation))
        return call(type(operation), [given.get(name) for name in operation.arrays], options, stream)

    resolved = {}
    for name, X in given.items():
        owner = owners[name]
        with nullcontext() if handle is None or owner.is_on_host(X) else owner.on_stream(X, handle):
            resolved[name] = owner.resolve(X)
    if any(resolved[name] is not given[name] for name in given):
        return again(resolved)
    adopted = {name: owners[name].adopt(X) for name, X in given.items()}
    operation.check(adopted)
    if any(owners[name].is_on_host(X) for name, X in given.items()):
        operation = operation.declared(adopted)
        with using(device_of(given)):
            return run_with_copies(again, operation, given, stream)
    route, full = _route(operation, given, adopted), list(arrays)
    addresses = [None if X is None else owner_of(X).signature(X)[1] for X in full]
    found = route.run(full, addresses, handle, current_device())
    if key is not None and not operation.varies:
        routes.keep(key, route)
    return found


def _route(operation, given, adopted) -> Route:
    """Return the route for valid device arrays."""
    names, device = operation.arrays, device_of(given)
    owners = {name: owner_of(X) for name, X in given.items()}
    new = []
    for name in operation.outputs:
        if name not in given:
            result = operation.result(name, adopted)
            new.append(New(names.index(name), names.index(result.like), owners[result.like], result))
    with using(device):
        whole = adopted | {names[one.place]: new_array(one.owner, given[one.result.like], one.result) for one in new}
        ready = prepared(operation.declared(adopted), {name: whole[name] for name in names if name in whole})
    keepers = [names.index(name) for name, owner in owners.items() if owner.allocates_workspace]
    others = [
        names.index(name) for name, owner in owners.items() if owner.has_streams and not owner.allocates_workspace
    ]
    return Route(
        ready,
        device,
        tuple(new),
        tuple(names.index(name) for name in operation.written if name in given),
        tuple(names.index(name) for name in operation.outputs),
        keepers[0] if keepers else None,
        (*keepers[:1], *others),  # torch has one current stream for all of its tensors
    )
