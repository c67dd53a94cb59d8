"""Reads what a cell defines without running it: functions, imports and constants; all else is passed over."""

import ast
import inspect
import linecache
import math
import operator
import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import numba
import numpy as np
from IPython.core.inputtransformer2 import TransformerManager

from labkit import cuda, ptx
from labkit.simulator.limits import MAX_ENTRIES

MODULES = {"math": math, "numba": numba, "numpy": np, "labkit.cuda": cuda, "labkit.ptx": ptx, "numba.cuda": cuda}
MAX_EXPONENT = 64  # of whole numbers: no kernel has use for more bits
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.USub: operator.neg,
}
_MATHEMATICS = ("ceil", "floor", "sqrt", "exp", "log", "log2", "gcd")
_NUMBERS = ("inf", "nan", "pi", "e")  # of `math` and of NumPy
_LIMITS = {"finfo": (np.finfo, ("min", "max", "eps", "tiny")), "iinfo": (np.iinfo, ("min", "max"))}
_FUNCTIONS = {"int": int, "float": float, "min": min, "max": max, "abs": abs}
_RUNS_ITS_CELL = re.compile(r"\A(\s*)%%(?=(capture|time)\b)")  # magics whose cell is Python all the same


class _NotConstant(Exception):
    """An expression that would have to be run to know its value."""


def definitions(text: str, name: str, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The namespace with what the text of a cell defines; `inspect.getsource` finds it under `name`.

    Nothing of the text runs: functions are compiled and never called, decorators are put there anew, and
    constants are computed from numbers. A text that does not parse raises a SyntaxError.
    """
    text = in_python(text)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    found = dict(namespace)
    for statement in ast.parse(text).body:
        match statement:
            case ast.FunctionDef():
                _define(statement, name, found)
            case ast.Import(names) | ast.ImportFrom(names=names):
                _import(getattr(statement, "module", None), names, found)
            case ast.Assign(targets, value):
                for target in targets:
                    _assign(target, value, found)
            case ast.AnnAssign(target, _, ast.expr() as value):
                _assign(target, value, found)
            case ast.AugAssign(ast.Name(variable) as target, sign, value):
                _assign(target, ast.BinOp(ast.Name(variable), sign, value), found)
            case _:  # a loop, a condition: who knows what it leaves behind
                found |= dict.fromkeys(_names_bound(statement))
    return found


def in_python(text: str) -> str:
    """The text of a cell without what IPython alone understands; its lines keep their numbers."""
    text = _RUNS_ITS_CELL.sub(lambda magic: f"{magic[1]}#", text)
    empty = takewhile(lambda line: not line.strip(), text.splitlines())  # which IPython takes away
    return "\n" * len(list(empty)) + TransformerManager().transform_cell(text)


def _names_bound(statement):
    """The names to which a statement gives a value."""
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def _define(function, filename, found):
    """The function with decorators of ours; its defaults and annotations would run as it is defined."""
    decorators = function.decorator_list
    parameters = [ast.arg(arg.arg) for arg in function.args.posonlyargs + function.args.args]
    function.args = ast.arguments([], parameters, None, [], [], None, [])
    function.decorator_list, function.returns = [], None
    exec(compile(ast.fix_missing_locations(ast.Module([function], [])), filename, "exec"), found)
    for decorator in reversed(decorators):
        found[function.name] = _jitted(decorator, found[function.name])


def _jitted(decorator, function):
    """The function as the decorator's name and `device=True` say; any other decorator leaves nothing to judge."""
    if not inspect.isfunction(function):
        return None
    call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
    match ast.unparse(call.func).split("."):
        case [*_, "cuda", "jit"]:
            device = any(keyword.arg == "device" and ast.unparse(keyword.value) == "True" for keyword in call.keywords)
            return cuda.jit(device=True)(function) if device else cuda.jit(function)
        case [*_, "njit" | "jit"]:
            return numba.njit(function)
    return None


def _is_jit(decorator):
    call = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(call).split(".")[-1] in ("jit", "njit")


def _import(module, names, found):
    for alias in names:
        if module is None:
            value = MODULES.get(alias.name)
        else:
            value = MODULES.get(f"{module}.{alias.name}") or getattr(MODULES.get(module), alias.name, None)
        bound = alias.asname or alias.name
        if value is not None and "." not in bound:
            found[bound] = value


def _assign(target, value, found):
    match value:
        case ast.Call(ast.Attribute() | ast.Name() | ast.Call() as decorator, [ast.Name(function)], []) if isinstance(
            target, ast.Name
        ) and _is_jit(decorator):  # `f = cuda.jit(f)`
            found[target.id] = _jitted(decorator, found.get(function))
            return
    try:
        constant = _constant(value, found)
    except (_NotConstant, ArithmeticError, RecursionError, TypeError, ValueError, LookupError):
        constant = None
    _bind(target, constant, found)


def _bind(target, constant, found):
    """Gives a name the constant, or the names of a tuple its entries; None where it is none, or has another length."""
    if isinstance(target, ast.Name):
        found[target.id] = constant
    elif isinstance(target, ast.Tuple | ast.List):
        fits = isinstance(constant, tuple) and len(constant) == len(target.elts)
        for name, item in zip(target.elts, constant if fits else [None] * len(target.elts), strict=True):
            _bind(name, item, found)


def _constant(node, found):
    match node:
        case ast.Constant(value):
            return _bounded(value)
        case ast.Name(name) if name in found:
            return found[name]
        case ast.Tuple(elements):
            return _short(tuple(_constant(element, found) for element in elements))
        case ast.UnaryOp(sign, operand) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_number(operand, found))
        case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
            return _computed(type(sign), _number(left, found), _number(right, found))
        case ast.Attribute(ast.Name(module), name) if name in _NUMBERS and found.get(module) in (np, math):
            return getattr(found[module], name)
        case ast.Attribute(ast.Call(function, [type_], []), name) if limits := _limits(function, name, found):
            return _limit(limits, name, _scalar_type(_constant(type_, found)))
        case ast.Attribute(ast.Name(module), name) if found.get(module) in (np, numba):
            return _scalar_type(getattr(found[module], name, None))
        case ast.Attribute(ast.Name(module), name) if found.get(module) is ptx:
            return _format(name)
        case ast.Call(ast.Name("len"), [argument], []) if "len" not in found:
            return len(_constant(argument, found))
        case ast.Call(ast.Name("float"), [ast.Constant("inf" | "-inf" | "nan" as written)], []) if "float" not in found:
            return float(written)
        case ast.Call(ast.Name(name), arguments, []) if name in _FUNCTIONS and name not in found:
            return _FUNCTIONS[name](*(_number(argument, found) for argument in arguments))
        case ast.Call(function, arguments, []) if (compute := _mathematics(function, found)) is not None:
            return _bounded(compute(*(_number(argument, found) for argument in arguments)))
        case ast.Subscript(value, index):
            return _constant(value, found)[_number(index, found)]
        case ast.Call(function, [argument], []):
            return _converted(_constant(function, found), argument, found)
    raise _NotConstant


def _limits(node, name, found):
    """`np.finfo` or `np.iinfo`, where a call names it and `name` is a limit that it knows."""
    for function, (limits, names) in _LIMITS.items():
        match node:
            case ast.Attribute(ast.Name(module), attribute):
                called = attribute == function and found.get(module) is np
            case ast.Name(bound):
                called = found.get(bound) is limits
            case _:
                called = False
        if called and name in names:
            return limits
    return None


def _limit(limits, name, type_):
    """A limit of a type of NumPy's, as NumPy has it: of float32 a float32, of an integer a whole number."""
    return getattr(limits(type_), name)


def _mathematics(node, found):
    """The function of `math` that a call names, if it is one of those that make constants."""
    match node:
        case ast.Attribute(ast.Name(module), name) if found.get(module) is math and name in _MATHEMATICS:
            return getattr(math, name)
        case ast.Name(name) if any(found.get(name) is getattr(math, known) for known in _MATHEMATICS):
            return found[name]
    return None


def _computed(sign, left, right):
    """The result of an operator; whole numbers that fit no dtype, and might take for ever to compute, are refused."""
    whole = isinstance(left, int) and isinstance(right, int)
    if whole and sign in (ast.Pow, ast.LShift) and right > MAX_EXPONENT:
        raise _NotConstant
    return _bounded(_OPERATORS[sign](left, right))


def _bounded(result):
    """The number, if a dtype can hold it."""
    if isinstance(result, int) and not -(2**63) <= result < 2**64:
        raise _NotConstant
    return result


def _short(value):
    """The tuple, if it has no more numbers in it than one in a kernel may have."""
    if _entries(value) > MAX_ENTRIES:
        raise _NotConstant
    return value


def _entries(value) -> int:
    return sum(map(_entries, value)) if isinstance(value, tuple) else 1


def _number(node, found):
    value = _constant(node, found)
    if not isinstance(value, int | float | np.number):
        raise _NotConstant
    return value


def _scalar_type(value) -> Any:
    if isinstance(value, numba.types.Number) or (isinstance(value, type) and issubclass(value, np.number)):
        return value
    raise _NotConstant


def _format(name):
    """The number of a format of the tensor cores, such as `ptx.BF16`."""
    value = getattr(ptx, name, None)
    if type(value) is not int:
        raise _NotConstant
    return value


def _converted(type_, argument, found):
    return _scalar_type(type_)(_number(argument, found))
