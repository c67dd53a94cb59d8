"""The first call of its kind: it checks everything, and makes a route for later calls."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields

from labkit.arrays.driver import current_device, stream_handle
from labkit.arrays.operands import check_array
from labkit.arrays.owners import owner_of
from labkit.calls.devices import device_of, use_device
from labkit.calls.host_arrays import run_with_copies
from labkit.calls.operation import Operation
from labkit.calls.plan import prepare
from labkit.calls.route import NewOutput, Route, new_array, routes


def first_call(call: Callable, kind: type[Operation], options: tuple, arrays, key, stream):
    """Run an operation and cache its route; `call` runs it again on plain device arrays."""
    operation = kind(*options)
    handle = None if stream is None else stream_handle(stream)
    given = operation.select(dict(zip(operation.arrays, arrays, strict=True)))
    for name, X in given.items():
        check_array(name, X, name in operation.written)
    owners = {name: owner_of(X) for name, X in given.items()}

    def call_with(given, stream=stream):
        options = tuple(getattr(operation, field.name) for field in fields(operation))
        return call(type(operation), [given.get(name) for name in operation.arrays], options, stream)

    resolved = {}
    for name, X in given.items():
        owner = owners[name]
        with nullcontext() if handle is None or owner.is_on_host(X) else owner.on_stream(X, handle):
            resolved[name] = owner.resolve(X)
    if any(resolved[name] is not given[name] for name in given):
        return call_with(resolved)
    adopted = {name: owners[name].adopt(X) for name, X in given.items()}
    operation.check(adopted)
    if any(owners[name].is_on_host(X) for name, X in given.items()):
        operation = operation.declared(adopted)
        with use_device(device_of(given)):
            return run_with_copies(call_with, operation, given, adopted, stream)
    route, whole = _make_route(operation, given, adopted), list(arrays)
    addresses = [None if X is None else owner_of(X).signature(X)[1] for X in whole]
    outputs = route.run(whole, addresses, handle, current_device())
    if key is not None and not operation.varies:
        routes.store(key, route)
    return outputs


def _make_route(operation, given, adopted) -> Route:
    """Return the route for valid device arrays."""
    names, device = operation.arrays, device_of(given)
    owners = {name: owner_of(X) for name, X in given.items()}
    new = [
        NewOutput(names.index(name), names.index(result.like), owners[result.like], result)
        for name, result in operation.new_results(adopted).items()
    ]
    with use_device(device):
        whole = adopted | {names[one.number]: new_array(one.owner, given[one.result.like], one.result) for one in new}
        ready = prepare(operation.declared(adopted), {name: whole[name] for name in names if name in whole})
    allocators = [names.index(name) for name, owner in owners.items() if owner.allocates_workspace]
    others = [
        names.index(name) for name, owner in owners.items() if owner.has_streams and not owner.allocates_workspace
    ]
    return Route(
        ready,
        device,
        tuple(new),
        tuple(names.index(name) for name in operation.written if name in given),
        tuple(names.index(name) for name in operation.outputs),
        allocators[0] if allocators else None,
        (*allocators[:1], *others),  # torch has one current stream for all of its tensors
    )
