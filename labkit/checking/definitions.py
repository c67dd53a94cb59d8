"""Definitions in the text of a cell, read without running it: functions, imports and constants; nothing else."""

import ast
import inspect
import linecache
import math
import operator
import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import numpy as np
from IPython.core.inputtransformer2 import TransformerManager

from labkit import cuda, ptx
from labkit.rebinding import names_in
from labkit.simulator.limits import MAX_ENTRIES
from labkit.simulator.seam import package as numba

MODULES = {"math": math, "numba": numba, "numpy": np, "labkit.cuda": cuda, "labkit.ptx": ptx, "numba.cuda": cuda}
MAX_MAGICS = 50  # lines of a cell that only IPython understands: it goes through the cell once per such line
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
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.USub: operator.neg,
}
_MATH_FUNCTIONS = {math.ceil, math.floor, math.sqrt, math.exp, math.log, math.log2, math.gcd}
_MATH_CONSTANTS = ("inf", "nan", "pi", "e")  # of `math` and of NumPy
_TYPE_LIMITS = {np.finfo: ("min", "max", "eps", "tiny"), np.iinfo: ("min", "max")}
_FUNCTIONS = {"int": int, "float": float, "min": min, "max": max, "abs": abs}
_MAGIC = re.compile(r"^[ \t]*[%!?]|\?[ \t]*$", re.MULTILINE)
_RUNS_ITS_CELL = re.compile(r"\A(\s*)%%(?=(capture|time)\b)")  # magics whose cell is Python all the same


class _NotConstant(Exception):
    """The value of an expression is known only if it runs."""


def read_definitions(text: str, name: str, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the namespace with what the text of a cell defines; `inspect.getsource` finds it under `name`.

    Nothing of the text runs: functions are compiled and never called, decorators are replaced by ours, and
    constants are computed from numbers. A name whose value is known only if the cell runs is None.

    Raises
    ------
    SyntaxError
        The text does not parse.
    """
    text = convert_to_python(text)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    scope = dict(namespace)
    for statement in ast.parse(text).body:
        match statement:
            case ast.FunctionDef():
                _define(statement, name, scope)
            case ast.Import(names) | ast.ImportFrom(names=names):
                _import(getattr(statement, "module", None), names, scope)
            case ast.Assign(targets, value):
                for target in targets:
                    _assign(target, value, scope)
            case ast.AnnAssign(target, _, ast.expr() as value):
                _assign(target, value, scope)
            case ast.AugAssign(ast.Name(variable) as target, sign, value):
                _assign(target, ast.BinOp(ast.Name(variable), sign, value), scope)
            case _:  # a loop, a condition: its results are not known
                scope |= dict.fromkeys(names_in(statement, ast.Store))
    return scope


def convert_to_python(text: str) -> str:
    """Replace what only IPython understands in the text of a cell; lines keep their numbers."""
    text = _RUNS_ITS_CELL.sub(lambda magic: f"{magic[1]}#", text)
    magics = len(_MAGIC.findall(text))
    if magics > MAX_MAGICS:
        raise SyntaxError(f"the cell has {magics:,} lines of magics, and {MAX_MAGICS} are read: leave them out")
    empty = takewhile(lambda line: not line.strip(), text.splitlines())  # which IPython removes
    return "\n" * len(list(empty)) + TransformerManager().transform_cell(text)


def _define(function, filename, scope):
    """Define the function with our decorators, and without defaults and annotations, which would run."""
    decorators = function.decorator_list
    parameters = [ast.arg(arg.arg) for arg in function.args.posonlyargs + function.args.args]
    function.args = ast.arguments([], parameters, None, [], [], None, [])
    function.decorator_list, function.returns = [], None
    exec(compile(ast.fix_missing_locations(ast.Module([function], [])), filename, "exec"), scope)
    for decorator in reversed(decorators):
        scope[function.name] = _apply_decorator(decorator, scope[function.name])


def _apply_decorator(decorator, function):
    """Compile the function as the decorator's name and `device=True` say; None for any other decorator."""
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


def _import(module, names, scope):
    for alias in names:
        if module is None:
            value = MODULES.get(alias.name)
        else:
            value = MODULES.get(f"{module}.{alias.name}") or getattr(MODULES.get(module), alias.name, None)
        bound = alias.asname or alias.name
        if value is not None and "." not in bound:
            scope[bound] = value


def _assign(target, value, scope):
    match value:
        case ast.Call(ast.Attribute() | ast.Name() | ast.Call() as decorator, [ast.Name(function)], []) if isinstance(
            target, ast.Name
        ) and _is_jit(decorator):  # `f = cuda.jit(f)`
            scope[target.id] = _apply_decorator(decorator, scope.get(function))
            return
    try:
        constant = _evaluate(value, scope)
    except (_NotConstant, ArithmeticError, RecursionError, TypeError, ValueError, LookupError):
        constant = None
    _bind(target, constant, scope)


def _bind(target, constant, scope):
    """Give a name the constant, or the names of a tuple its entries; None if unknown or of another length."""
    if isinstance(target, ast.Name):
        scope[target.id] = constant
    elif isinstance(target, ast.Tuple | ast.List):
        fits = isinstance(constant, tuple) and len(constant) == len(target.elts)
        for name, item in zip(target.elts, constant if fits else [None] * len(target.elts), strict=True):
            _bind(name, item, scope)


def _evaluate(node, scope):
    match node:
        case ast.Constant(value):
            return _check_range(value)
        case ast.Name(name) if name in scope:
            return scope[name]
        case ast.Tuple(elements):
            return _check_length(tuple(_evaluate(element, scope) for element in elements))
        case ast.UnaryOp(sign, operand) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_evaluate_number(operand, scope))
        case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
            return _apply_operator(type(sign), _evaluate_number(left, scope), _evaluate_number(right, scope))
        case ast.Attribute(ast.Name(module), name) if name in _MATH_CONSTANTS and scope.get(module) in (np, math):
            return getattr(scope[module], name)
        case ast.Attribute(ast.Call(limits, [type_], []), name) if name in _TYPE_LIMITS.get(
            _look_up(limits, scope), ()
        ):
            return getattr(_look_up(limits, scope)(_check_scalar_type(_evaluate(type_, scope))), name)
        case ast.Attribute(ast.Name(module), name) if scope.get(module) in (np, numba):
            return _check_scalar_type(getattr(scope[module], name, None))
        case ast.Attribute(ast.Name(module), name) if scope.get(module) is ptx and type(getattr(ptx, name, 0.0)) is int:
            return getattr(ptx, name)  # a tensor core format, such as `ptx.BF16`
        case ast.Call(ast.Name("len"), [argument], []) if "len" not in scope:
            return len(_evaluate(argument, scope))
        case ast.Call(ast.Name("float"), [ast.Constant("inf" | "-inf" | "nan" as text)], []) if "float" not in scope:
            return float(text)
        case ast.Call(ast.Name(name), arguments, []) if name in _FUNCTIONS and name not in scope:
            return _FUNCTIONS[name](*(_evaluate_number(argument, scope) for argument in arguments))
        case ast.Call(function, arguments, []) if _look_up(function, scope) in _MATH_FUNCTIONS:
            return _check_range(
                _look_up(function, scope)(*(_evaluate_number(argument, scope) for argument in arguments))
            )
        case ast.Subscript(value, index):
            return _evaluate(value, scope)[_evaluate_number(index, scope)]
        case ast.Call(function, [argument], []):
            return _check_scalar_type(_evaluate(function, scope))(_evaluate_number(argument, scope))
    raise _NotConstant


def _look_up(node, scope) -> Any:
    """Return the value of a name, or of an attribute of `math` or NumPy; None for any other expression."""
    match node:
        case ast.Attribute(ast.Name(module), name) if scope.get(module) in (np, math):
            return getattr(scope[module], name, None)
        case ast.Name(name):
            return scope.get(name)
    return None


def _apply_operator(sign, left, right):
    """Apply an operator; integers that fit no dtype, and might take forever to compute, are refused."""
    whole = isinstance(left, int) and isinstance(right, int)
    if whole and sign in (ast.Pow, ast.LShift) and right > MAX_EXPONENT:
        raise _NotConstant
    return _check_range(_OPERATORS[sign](left, right))


def _check_range(result):
    """Return the number if a dtype can hold it."""
    if isinstance(result, int) and not -(2**63) <= result < 2**64:
        raise _NotConstant
    return result


def _check_length(value):
    """Return the tuple if it has no more numbers than a tuple in a kernel may have."""
    if _count_entries(value) > MAX_ENTRIES:
        raise _NotConstant
    return value


def _count_entries(value) -> int:
    return sum(map(_count_entries, value)) if isinstance(value, tuple) else 1


def _evaluate_number(node, scope):
    value = _evaluate(node, scope)
    if not isinstance(value, int | float | np.number):
        raise _NotConstant
    return value


def _check_scalar_type(value) -> Any:
    if isinstance(value, numba.types.Number) or (isinstance(value, type) and issubclass(value, np.number)):
        return value
    raise _NotConstant
