"""Changes of what an operation takes in: a bracket that holds too much or too little, a divisor that lacks a factor."""

import ast

from labkit.checking.mutants import slots
from labkit.checking.slips.change import HINTED, LIKELY, POSSIBLE, quote
from labkit.checking.slips.several import change, slots_within

_TIMES = ast.Mult | ast.FloorDiv | ast.Mod
_OTHERS = "range", "len", "min", "max", "float", "tuple", "list", "sum"


def change_brackets(function):
    """Yield the changes of a function."""
    yield from _open_brackets(function)
    yield from _move_into_call(function)
    yield from _round_up(function)
    yield from _double_divisor(function)


def _open_brackets(function):
    """Let a factor or a divisor be that of one term of a sum, in all brackets of a line that are alike, and in one."""
    for statement in [node for node in ast.walk(function) if isinstance(node, ast.Assign | ast.AugAssign)]:
        groups: dict[tuple[int, str], list] = {}
        for slot in slots_within(statement, statement.value):
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
    """Yield which terms keep the factor, the terms that go outside, and the new sum."""
    match node:
        case ast.BinOp(ast.BinOp() as whole, times, factor) if isinstance(times, _TIMES):
            is_first = False
        case ast.BinOp(factor, ast.Mult() as times, ast.BinOp() as whole):
            is_first = True
        case _:
            return
    terms = _signed_terms(whole)
    for place in range(len(terms)) if len(terms) > 1 else ():
        new = []
        for i, (sign, term) in enumerate(terms):
            product = (factor, term) if is_first else (term, factor)
            new.append((sign, ast.BinOp(product[0], times, product[1]) if i == place else term))
        outside = [term for i, (_, term) in enumerate(terms) if i != place]
        yield place, outside[-1], _sum_of(new)
    if len(terms) > 2:
        part = whole.left
        product = ast.BinOp(factor, times, part) if is_first else ast.BinOp(part, times, factor)
        yield -1, whole.right, ast.BinOp(product, whole.op, whole.right)


def _signed_terms(node):
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return [*_signed_terms(node.left), (node.op, node.right)]
    return [(ast.Add(), node)]


def _sum_of(terms):
    total = terms[0][1]
    for sign, term in terms[1:]:
        total = ast.BinOp(total, sign, term)
    return total


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
        if isinstance(call.args[0], ast.BinOp) and isinstance(sign, ast.Mult | ast.Div) and call is slot[3].left:
            first, *others = _signed_terms(call.args[0])
            new = ast.Call(func, [_sum_of([(first[0], ast.BinOp(first[1], sign, term)), *others])], [])
            said = f"{quote(term)} belongs into the brackets of {quote(call)}: write {quote(new)}."
            if others:
                yield change(function, LIKELY, call.lineno, said, [(*slot, new)])


def _is_of_one(func):
    """Tell whether a function is one of numbers: of `math`, a type, or a name alone."""
    text = ast.unparse(func)
    return text.startswith(("math.", "np.float", "np.int", "np.uint")) or ("." not in text and text not in _OTHERS)


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
            is_now = "half of" if words == "twice" else "twice"
            said = f"{quote(quotient)} divides by {is_now} what is needed: write {quote(whole)}."
            yield change(function, LIKELY if words == "twice" else POSSIBLE, quotient.lineno, said, [(*slot, whole)])


def _half(number):
    match number:
        case ast.BinOp(ast.Constant(2), ast.Mult(), rest) | ast.BinOp(rest, ast.Mult(), ast.Constant(2)):
            return rest
    return ast.BinOp(number, ast.FloorDiv(), ast.Constant(2))
