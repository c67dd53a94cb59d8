"""The first call of its kind: it checks everything, and makes a route for later calls.

Host arrays are copied to the device, and copied back if they are written; such calls have no route. An array's owner is
our adapter of its package: NumPy, torch, CuPy or numba.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from labkit import cuda
from labkit.arrays import pool
from labkit.arrays.addresses import check_own_memory, share_memory
from labkit.arrays.driver import current_device, is_capturing, stream_handle, synchronize
from labkit.arrays.element_types import type_name
from labkit.arrays.operands import check_array
from labkit.arrays.owners import owner_of
from labkit.calls.operation import Operation
from labkit.calls.plan import prepare
from labkit.calls.route import NewOutput, Route, new_array, routes
from labkit.calls.streams import device_of, stream_of, use_device


def first_call(run_again: Callable, kind: type[Operation], options: tuple, arrays, key, stream):
    """Run an operation and cache its route under `key`; `run_again` is `run_operation`, for arrays on the device."""
    operation = kind(*options)
    handle = None if stream is None else stream_handle(stream)
    operands = operation.select(dict(zip(operation.arrays, arrays, strict=True)))
    for name, X in operands.items():
        check_array(name, X, name in operation.written)
    owners = {name: owner_of(X) for name, X in operands.items()}

    def call_with(operands, stream=stream):
        options = tuple(getattr(operation, field.name) for field in fields(operation))
        return run_again(type(operation), [operands.get(name) for name in operation.arrays], options, stream)

    resolved = {}
    for name, X in operands.items():
        owner = owners[name]
        with nullcontext() if handle is None or owner.is_on_host(X) else owner.on_stream(X, handle):
            resolved[name] = owner.resolve(X)
    if any(resolved[name] is not operands[name] for name in operands):
        return call_with(resolved)
    views = {name: owners[name].as_array(X) for name, X in operands.items()}
    operation.check(views)
    if any(owners[name].is_on_host(X) for name, X in operands.items()):
        operation = operation.with_format(views)
        with use_device(device_of(operands)):
            return _run_with_copies(call_with, operation, operands, views, stream)
    route = _make_route(operation, operands, views)
    addresses = [X if X is None else owner_of(X).signature(X)[1] for X in arrays]
    outputs = route.run(list(arrays), addresses, handle, current_device())
    if key is not None and not operation.varies:
        routes.store(key, route)
    return outputs


def _make_route(operation, operands, views) -> Route:
    """Return the route for valid device arrays."""
    names, device = operation.arrays, device_of(operands)
    owners = {name: owner_of(X) for name, X in operands.items()}
    new = [
        NewOutput(names.index(name), like_number=names.index(result.like), owner=owners[result.like], result=result)
        for name, result in operation.new_results(views).items()
    ]
    with use_device(device):
        outputs = {names[out.number]: new_array(out.owner, operands[out.result.like], out.result) for out in new}
        arrays = views | outputs
        prepared = prepare(operation.with_format(views), {name: arrays[name] for name in names if name in arrays})
    allocators = [names.index(name) for name, owner in owners.items() if owner.allocates_workspace]
    others = [names.index(name) for name, o in owners.items() if o.has_streams and not o.allocates_workspace]
    return Route(
        prepared,
        device,
        new=tuple(new),
        written=tuple(names.index(name) for name in operation.written if name in operands),
        outputs=tuple(names.index(name) for name in operation.outputs),
        allocator=allocators[0] if allocators else None,
        with_streams=(*allocators[:1], *others),  # torch has one current stream for all of its tensors
    )


# --- host arrays ---------------------------------------------------------------------------------


def _run_with_copies(run: Callable, operation: Operation, operands: dict[str, Any], views: dict[str, Any], stream):
    """Run an operation on valid arrays by `run(arrays, stream)`, which accepts device arrays.

    New outputs have the kind of the first device array; without one, the kind that the operation declares.
    """
    on_host = {name: X for name, X in operands.items() if owner_of(X).is_on_host(X)}
    _check_host(operation, on_host)
    on_device = [X for name, X in operands.items() if name not in on_host]
    handle = stream_of(on_device, stream)
    if cuda.on_gpu() and is_capturing(handle):
        raise ValueError(
            f"{next(iter(on_host))} is an array of the host, whose copy no graph can capture: move it to the GPU first"
        )
    staged = {name: _copy_to_device(operation, name, X, handle) for name, X in on_host.items()}
    if cuda.on_gpu():
        synchronize(handle)  # copies of pinned memory are not done when they return
    new, copied_back = {}, {name: X for name, X in on_host.items() if name in operation.written}
    for name, result in operation.new_results(views).items():
        like = views[result.like]
        result = result._replace(type_name=result.type_name or type_name(like))
        if on_device:
            if result.like in on_host:  # its copy is in C order
                result = result._replace(axes=None)
            new[name] = new_array(owner_of(on_device[0]), on_device[0], result, handle)
        else:
            new[name] = copied_back[name] = new_array(owner_of(like), like, result)
            staged[name] = _device_array(result.shape, owner_of(like).as_numpy(new[name]).dtype)
    run({**operands, **new, **staged}, _numba_stream(handle))
    for name, X in copied_back.items():
        _copy_back(staged[name], X, handle)
        owner_of(X).mark_written(X)
    outputs = [(operands | new)[name] for name in operation.outputs]
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _device_array(shape, dtype):
    """Return a new device array."""
    allocate = partial(cuda.device_array, shape, dtype)
    return pool.retry_when_full(allocate) if cuda.on_gpu() else allocate()


def _copy_to_device(operation, name, X, stream):
    """Return a device copy of a host array, in C order; if it is only written, uninitialised memory of its size."""
    values = owner_of(X).as_numpy(X)
    array = _device_array(values.shape, values.dtype)
    if name not in operation.written or name in operation.read:
        array.copy_to_device(np.ascontiguousarray(values).reshape(values.shape), stream=_numba_stream(stream))
    return array


def _copy_back(array, X, stream):
    values = owner_of(X).as_numpy(X)
    result = array.copy_to_host(stream=_numba_stream(stream))
    if cuda.on_gpu():
        synchronize(stream)
    values[...] = result.view(values.dtype)


def _numba_stream(stream: int):
    return cuda.external_stream(stream) if stream else 0


def _check_host(operation, arrays) -> None:
    """Raise ValueError if writing a host array would change another one."""
    memory = {name: owner_of(X).as_numpy(X) for name, X in arrays.items()}
    for name in [name for name in operation.written if name in memory]:
        X = memory[name]
        check_own_memory(name, X)
        for other, Y in memory.items():
            is_same = X.__array_interface__["data"] == Y.__array_interface__["data"] and X.strides == Y.strides
            in_place = operation.in_place.get(name) == other and is_same
            if other != name and not in_place and share_memory(X, Y):
                raise ValueError(f"{name} shares memory with {other}: give {name} memory of its own")
