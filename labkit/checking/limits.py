"""Numbers in a learner's code that may be limits: an answer that is right up to 512 alone must run beyond 512."""

import ast
import inspect
from collections.abc import Callable, Iterator
from numbers import Integral

from labkit.checking.source import python_function, read_function

STEPS = 1024  # the greatest step that a number of rounds is multiplied by
GREATEST = 2**16  # of limits that a simulated run has time to exceed
_NARROW = {"int8": 127, "uint8": 255, "int16": 2**15 - 1, "uint16": 2**16 - 1}  # types, and the greatest number of each


def list_limits(function: Callable) -> tuple[set[int], set[int]]:
    """Return the whole numbers in a function and in the helpers of its cell, greatest ones of its narrow types, too.

    The second set has the products of rounds and steps.
    """
    functions = list(_own_functions(function, seen=set()))
    trees = [tree for own in functions if (tree := read_function(own))]
    numbers = {value for tree in trees for node in ast.walk(tree) if (value := _read_number(node)) is not None}
    numbers |= {_NARROW[name] for tree in trees for node in ast.walk(tree) if (name := _read_type(node)) in _NARROW}
    for own in functions:
        values = (own.__globals__.get(name) for name in own.__code__.co_names)
        numbers |= {int(value) for value in values if isinstance(value, Integral)}
    rounds = {value for tree in trees for node in ast.walk(tree) for value in _read_rounds(node)}
    products = {n * step for n in rounds for step in numbers if step <= STEPS}
    return _keep_sizes(numbers), _keep_sizes(products)


def _keep_sizes(numbers):
    return {number for number in numbers if 1 < number <= GREATEST}


def _own_functions(function, seen) -> Iterator[Callable]:
    """Yield a function and what it calls of the same cell."""
    function = python_function(function)
    if not inspect.isfunction(function) or function in seen:
        return
    seen.add(function)
    yield function
    for name in function.__code__.co_names:
        helper = python_function(function.__globals__.get(name))
        if inspect.isfunction(helper) and helper.__code__.co_filename == function.__code__.co_filename:
            yield from _own_functions(helper, seen)


def _read_number(node):
    """Return the value of a whole number or of one computed from whole numbers, such as `2 * 256`; else None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _read_number(node.left), _read_number(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.LShift) and 0 <= right < 64:
        return left << right
    if isinstance(node.op, ast.Pow) and 0 <= right < 64 and abs(left) <= 1024:
        return left**right
    return None


def _read_type(node):
    """Return the last name of `np.uint16` or `uint16`, "" of anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _read_rounds(node):
    """Yield the numbers that may end a loop: those of `range`, `min` and the condition of `while`."""
    calls = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("range", "min")
    parts = node.args if calls else [node.test] if isinstance(node, ast.While) else []
    for part in parts:
        yield from (value for inner in ast.walk(part) if (value := _read_number(inner)) is not None)
