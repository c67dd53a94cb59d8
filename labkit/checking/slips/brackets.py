"""Changes of what an operation takes in: a bracket that holds too much or too little, a divisor that lacks a factor."""

import ast

from labkit.checking.mutants import slots
from labkit.checking.slips.change import HINTED, LIKELY, POSSIBLE, quote
from labkit.checking.slips.several import change

_TIMES = ast.Mult | ast.FloorDiv | ast.Mod
_FUNCTIONS = "sqrt", "exp", "exp2", "log", "log2", "abs", "int", "np.float32", "np.int32", "rsqrt"  # of one number


def change_brackets(function):
    """Yield the changes of a function."""
    yield from _open_brackets(function)
    yield from _move_into_call(function)
    yield from _round_up(function)
    yield from _double_divisor(function)


def _open_brackets(function):
    """Let a factor or a divisor be that of one term of a sum, in all brackets of a line that are alike, and in one."""
    for statement in [node for node in ast.walk(function) if isinstance(node, ast.Assign | ast.AugAssign)]:
        groups: dict[tuple[str, str], list] = {}
        for slot in slots(statement):
            for which, alone, new in _opened(slot[3]):
                groups.setdefault((which, type(slot[3].op).__name__), []).append((slot, alone, new))
        for found in groups.values():
            (_, _, node), alone, new = found[0][0][1:], found[0][1], found[0][2]
            said = f"{quote(node)} takes in {quote(alone)}, too, which belongs outside: write {quote(new)}"
            for _, _, other in found[1:]:
                said += f" and {quote(other)}"
            places = [(*slot, other) for slot, _, other in found]
            yield change(function, LIKELY, statement.lineno, f"{said}.", places)
            if len(found) > 1:
                for slot, alone, new in found:
                    said = f"{quote(slot[3])} takes in {quote(alone)}, too, which belongs outside: write {quote(new)}."
                    yield change(function, POSSIBLE, statement.lineno, said, [(*slot, new)])


def _opened(node):
    """Yield which term stays, the term that goes outside, and the new sum."""
    match node:
        case ast.BinOp(
            ast.BinOp(one, (ast.Add() | ast.Sub()) as sign, other),
            (ast.Mult() | ast.FloorDiv() | ast.Mod()) as times,
            factor,
        ):
            yield "first", other, ast.BinOp(ast.BinOp(one, times, factor), sign, other)
            yield "second", one, ast.BinOp(one, sign, ast.BinOp(other, times, factor))
        case ast.BinOp(factor, ast.Mult() as times, ast.BinOp(one, (ast.Add() | ast.Sub()) as sign, other)):
            yield "first", other, ast.BinOp(ast.BinOp(factor, times, one), sign, other)
            yield "second", one, ast.BinOp(one, sign, ast.BinOp(factor, times, other))


def _move_into_call(function):
    """Add, or multiply, before a function such as the root is taken, not after it; and the other way."""
    for slot in list(slots(function)):
        match slot[3]:
            case ast.BinOp(ast.Call(func, [argument], []) as call, sign, term) if _is_of_one(func):
                new = ast.Call(func, [ast.BinOp(argument, sign, term)], [])
            case ast.BinOp(term, sign, ast.Call(func, [argument], []) as call) if _is_of_one(func):
                new = ast.Call(func, [ast.BinOp(term, sign, argument)], [])
            case ast.Call(func, [ast.BinOp(one, sign, other)], []) as call if _is_of_one(func):
                new = ast.BinOp(ast.Call(func, [one], []), sign, other)
                said = f"{quote(other)} belongs behind the brackets of {quote(call)}: write {quote(new)}."
                yield change(function, POSSIBLE, call.lineno, said, [(*slot, new)])
                continue
            case _:
                continue
        if not isinstance(term, ast.Call):
            said = f"{quote(term)} belongs into the brackets of {quote(call)}: write {quote(new)}."
            yield change(function, LIKELY, call.lineno, said, [(*slot, new)])


def _is_of_one(func):
    return ast.unparse(func).removeprefix("math.") in _FUNCTIONS


def _round_up(function):
    """Round a quotient up where 1 was added to it, or what is added before the division is too little or too much."""
    for slot in list(slots(function)):
        match slot[3]:
            case ast.BinOp(ast.BinOp(whole, ast.FloorDiv(), part) as quotient, ast.Add(), ast.Constant(1)):
                new = _rounded_up(whole, part)
                said = f"{quote(quotient)} plus 1 is one too many where nothing is left over: write {quote(new)}."
                yield change(function, HINTED, quotient.lineno, said, [(*slot, new)])
            case ast.BinOp(ast.BinOp(whole, ast.Add(), added), ast.FloorDiv(), part) as quotient:
                if ast.unparse(added) == ast.unparse(part):
                    new = _rounded_up(whole, part)
                    said = f"{quote(quotient)} is one too many where nothing is left over: write {quote(new)}."
                    yield change(function, HINTED, quotient.lineno, said, [(*slot, new)])


def _rounded_up(whole, part):
    return ast.UnaryOp(ast.USub(), ast.BinOp(ast.UnaryOp(ast.USub(), whole), ast.FloorDiv(), part))


def _double_divisor(function):
    """Divide by twice as much, or by half."""
    for slot in list(slots(function)):
        match slot[3]:
            case ast.BinOp(_, ast.Div(), ast.Call(func, [number], [])) as quotient if _is_of_one(func):
                pass
            case ast.BinOp(_, ast.Div(), number) as quotient if isinstance(number, ast.Name | ast.BinOp):
                func = None
            case _:
                continue
        for new, words in ((ast.BinOp(ast.Constant(2), ast.Mult(), number), "twice"), (_half(number), "half")):
            if new is None or isinstance(number, ast.Constant):
                continue
            if func is None and words == "twice":
                new = ast.BinOp(number, ast.Add(), number)  # of the same type
            if func is None and words == "half":
                continue
            divisor = new if func is None else ast.Call(func, [new], [])
            whole = ast.BinOp(quotient.left, ast.Div(), divisor)
            said = f"{quote(quotient)} is to be divided by {words} as much: write {quote(whole)}."
            yield change(function, LIKELY if words == "twice" else POSSIBLE, quotient.lineno, said, [(*slot, whole)])


def _half(number):
    match number:
        case ast.BinOp(ast.Constant(2), ast.Mult(), rest) | ast.BinOp(rest, ast.Mult(), ast.Constant(2)):
            return rest
    return ast.BinOp(number, ast.FloorDiv(), ast.Constant(2))
