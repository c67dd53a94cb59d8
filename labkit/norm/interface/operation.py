"""What all calls of an operation share: arrays of any package, plans that are found again, arrays of the host.

An `Operation` is what is asked for, without the arrays: two calls that ask for the same, with arrays that lie alike,
have the same plan.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from inspect import signature
from typing import ClassVar

import numpy as np

from labkit import cuda
from labkit.arrays.addresses import check_own_memory
from labkit.arrays.operands import check_array, check_on_device, on_device, seen
from labkit.arrays.workspace import Workspace, current_device, handle_of, of_stream
from labkit.ladder import Launch
from labkit.norm.interface.images import new_in_order_of
from labkit.planned import Plan, Remembered

_remembered = Remembered()


class Operation(ABC):
    """What is asked for: a subclass is a frozen dataclass of options, which it checks when it is made."""

    arrays: ClassVar[tuple[str, ...]]  # their names, in the order in which a plan takes those that are given
    results: ClassVar[Mapping[str, str]]  # those that a call gives back; and of which other each has shape and type
    in_place: ClassVar[Mapping[str, str]]  # for some of these the array in whose place it may be written

    @property
    @abstractmethod
    def written(self) -> tuple[str, ...]:
        """The names of arrays that are written."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of arrays that must be there."""
        return ("x",)

    @property
    def is_asked_again(self) -> bool:
        """Whether another call may ask for the very same, so that its plan is worth remembering."""
        return True

    @abstractmethod
    def declared(self, given: Mapping[str, object]) -> "Operation":
        """The same, which says what arrays hold, as their types may do that too."""

    @abstractmethod
    def check(self, given: Mapping[str, object]) -> None:
        """Raises TypeError or ValueError, in a sentence, where arrays do not fit; results need not be there."""

    @abstractmethod
    def launches(self, given: Mapping[str, object], workspace: Workspace) -> list[Launch]:
        """What is launched for arrays of the device that fit."""


def called(operation: Operation, arrays: Mapping[str, object], stream=0):
    """Runs an operation on its arrays, by their names in its order, None for what is not there; gives its results."""
    key = known = None
    try:
        looks = [None if X is None else seen(X) for X in arrays.values()]
        key = operation, *(look and look[0] for look in looks), handle_of(stream), current_device()
        known = _remembered.get(key)
    except (AttributeError, TypeError, ValueError):  # no arrays of the device, or no stream: which, is told below
        pass
    given = {name: X for name, X in arrays.items() if X is not None}
    if known is not None:
        known.run(tuple(given.values()), [look[1] for look in looks if look])
        return _results(operation, given)
    if any(name not in given for name in operation.results) or any(isinstance(X, np.ndarray) for X in given.values()):
        return _with_copies(operation, given, stream)
    made = planned(operation, given, stream=stream, workspace=of_stream(stream), keep=False)
    made(*map(on_device, given.values()))
    if key is not None and operation.is_asked_again:
        _remembered.keep(key, made)
    return _results(operation, given)


def planned(operation: Operation, arrays: Mapping[str, object], **options) -> Plan:
    """A plan for arrays of the device; the options are those of `Plan`."""
    given = _checked(operation, {name: X for name, X in arrays.items() if X is not None})
    for name in operation.results:
        if name not in given:
            raise TypeError(f"{name} is None, and a plan allocates nothing: give an array to write to")
    for name, X in given.items():
        check_on_device(name, X)
    operation = operation.declared(given)  # views of memory do not say what their bits stand for

    def launches(*views, workspace):
        return operation.launches(dict(zip(given, views, strict=True)), workspace)

    outputs = [name for name in given if name in operation.written]
    return Plan(launches, given, outputs, in_place=operation.in_place, **options)


def planned_call(call, operations: Mapping, arrays: tuple, options: Mapping[str, object]) -> Plan:
    """A plan of a call as a user writes it; `operations` has the operation of each call that can be planned.

    Raises
    ------
    TypeError, ValueError
        It is none of these calls, or what it is given does not fit, or each of its runs would be another.
    """
    if not any(call is one for one in operations):
        known = ", ".join(f"{one.__module__.split('.')[1]}.{one.__name__}" for one in operations)
        raise TypeError(f"{call!r} is not planned: give {known}")
    bound = signature(call).bind(*arrays, **options)
    bound.apply_defaults()
    operation, given = operations[call], bound.arguments
    stream = given.pop("stream")
    asked = operation(**{name: given[name] for name in given if name not in operation.arrays})
    if not asked.is_asked_again:
        raise ValueError(
            "momentum is None, which counts each batch otherwise, and a plan counts all alike: give a number"
        )
    return planned(asked, {name: given[name] for name in operation.arrays}, stream=stream)


def forget() -> None:
    """Forgets the plans that calls remember."""
    _remembered.clear()


def _with_copies(operation, given, stream):
    """As `called`, where some results are not there, or arrays are the host's."""
    handle_of(stream)  # or it is none
    taken = _checked(operation, given)
    absent = {name: taken[like] for name, like in operation.results.items() if name not in given}
    if not any(isinstance(X, np.ndarray) for X in taken.values()):
        new = {name: new_in_order_of(like) for name, like in absent.items()}
        return called(operation, _in_order(operation, given | new), stream)
    operation = operation.declared(given)
    moved = {name: on_device(X, stream) for name, X in given.items()}
    for name, like in operation.results.items():
        if name in absent:
            moved[name] = cuda.device_array(absent[name].shape, moved[like].dtype)
    called(operation, _in_order(operation, moved), stream)
    back = {name: moved[name].copy_to_host(stream=stream) for name in operation.written if name in moved}
    if stream:
        stream.synchronize()
    for name, X in back.items():
        if name in given:
            given[name][...] = X.view(given[name].dtype)
    new = {name: back[name].view(like.dtype) for name, like in absent.items()}
    return _results(operation, given | new)


def _in_order(operation, given):
    return {name: given.get(name) for name in operation.arrays}


def _results(operation, given):
    """What a call gives back: an array, or several in the order of the operation."""
    found = [given[name] for name in operation.results]
    return found[0] if len(found) == 1 else tuple(found)


def _checked(operation, given):
    """The arrays in the order of the operation; raises where they do not fit it, or one another."""
    for name, X in given.items():
        check_array(name, X)
    for name in operation.needed:
        if name not in given:
            raise TypeError(f"{name} is None: give an array")
    on_host = {name: X for name, X in given.items() if isinstance(X, np.ndarray)}
    given = {
        name: on_host[name] if name in on_host else on_device(given[name]) for name in operation.arrays if name in given
    }
    operation.check(given)
    if on_host and len(on_host) < len(given):
        here, there = next(iter(on_host)), next(name for name in given if name not in on_host)
        raise TypeError(
            f"{here} is an array of the host, and {there} one of the device: take {here} there by cuda.to_device"
        )
    for name in filter(on_host.__contains__, operation.written):
        _check_host(operation, name, on_host)
    return given


def _check_host(operation, name, arrays):
    """Raises where the array of the host cannot be written, or another one would change with it."""
    X = arrays[name]
    if not X.flags.writeable:
        raise ValueError(f"{name} is read-only: pass an array that can be written to")
    check_own_memory(name, X)
    for other, Y in arrays.items():
        in_place = operation.in_place.get(name) == other and _is_same(X, Y)
        if other != name and not in_place and np.may_share_memory(X, Y):
            raise ValueError(f"{name} shares memory with {other}: give {name} memory of its own")


def _is_same(X, Y):
    return X.__array_interface__["data"] == Y.__array_interface__["data"] and X.strides == Y.strides
