"""Changes of one assignment: its operator, its start, its guard."""

import ast
from collections.abc import Iterator

from labkit.checking.slips.change import LAST, LIKELY, POSSIBLE, SIMPLE, UNLIKELY, exchanges, parse_expression, quote
from labkit.checking.slips.names import Names, is_start, pairs_of

LEAST, MOST = "np.float32(-3e38)", "np.float32(np.inf)"  # where a maximum begins, and a minimum


def fix_statement(node: ast.stmt, names: Names) -> Iterator[tuple[int, str, ast.stmt]]:
    match node:
        case ast.Assign([ast.Tuple(targets, context)], value) if all(isinstance(each, ast.Name) for each in targets):
            for other in exchanges(targets):
                new = ast.Assign([ast.Tuple(other, context)], value)
                said = f"the names are in the wrong order: write {quote(new)}."
                if ast.unparse(value) == "cuda.grid(2)":
                    said = f"`cuda.grid(2)` gives x, the column, first: write {quote(new)}."
                yield LIKELY, said, new
        case ast.Assign([ast.Name() | ast.Subscript() as target], value):
            new = ast.AugAssign(target, ast.Add(), value)
            yield LIKELY, f"`=` forgets what was there before: add to it, {quote(new)}.", new
        case ast.AugAssign(target, sign, value):
            new = ast.Assign([target], value)
            yield POSSIBLE, f"this adds to what was there before: write {quote(new)}.", new
            if isinstance(sign, ast.Add):
                new = ast.AugAssign(target, ast.Sub(), value)
                yield LAST, f"`+=` has the wrong sign: write {quote(new)}.", new
                for factor in names.factors:
                    scaled = ast.BinOp(_loaded(target), ast.Mult(), parse_expression(factor))
                    new = ast.Assign([target], ast.BinOp(scaled, ast.Add(), value))
                    said = f"what {quote(target)} held is not rescaled before this is added: multiply it by `{factor}`."
                    yield POSSIBLE, said, new
    if isinstance(node, ast.Break):
        yield POSSIBLE, "`break` ends the whole loop; `continue` leaves out this iteration alone.", ast.Continue()
    if isinstance(node, ast.Continue):
        yield UNLIKELY, "`continue` leaves out this iteration alone; `break` ends the loop.", ast.Break()
    if isinstance(node, ast.Assign):
        yield from _fix_start(node, names)
    if isinstance(node, ast.Assign | ast.AugAssign) and not isinstance(node.value, ast.Tuple):
        yield from _fix_value(node, names)
    if isinstance(node, SIMPLE):
        yield from _guard_line(node, names)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        for name in (*names.sums, *names.scalars):
            for sign, word in ((ast.Div(), "divided"), (ast.Mult(), "multiplied")):
                new = _with_value(node, ast.BinOp(node.value, sign, ast.Name(name, ast.Load())))
                yield LAST, f"what is stored is not {word} by `{name}`: write {quote(new)}.", new


def _fix_value(node, names):
    """Yield assignments of other values."""
    value = node.value
    for test in names.tests:
        text = ast.unparse(test.test)
        if isinstance(test, ast.IfExp) and not isinstance(value, ast.IfExp):
            new = _with_value(node, ast.IfExp(test.test, value, test.orelse))
            is_store = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
            yield (
                LIKELY if is_store else UNLIKELY,
                f"this is not so where `{text}` does not hold: write {quote(new)}.",
                new,
            )
    if isinstance(value, ast.BinOp | ast.Name):
        for sign, word in ((ast.Add(), "small"), (ast.Sub(), "large")):
            new = _with_value(node, ast.BinOp(value, sign, ast.Constant(1)))
            yield UNLIKELY, f"{quote(value)} is one too {word} here: write {quote(new)}.", new
    if isinstance(node, ast.Assign) and isinstance(value, ast.Subscript):
        new = _with_value(node, parse_expression(f"abs({ast.unparse(value)})"))
        yield LAST, f"{quote(value)} can be negative: write {quote(new)}.", new
    if isinstance(node, ast.AugAssign):
        new = _with_value(node, ast.BinOp(value, ast.Mult(), value))
        yield (
            POSSIBLE if isinstance(value, ast.Name) else LAST,
            f"{quote(value)} is not squared: write {quote(new)}.",
            new,
        )


def _guard_line(node, names):
    """Do a line only under a condition."""
    for test in names.tests:
        text = ast.unparse(test.test)
        new = ast.If(test.test, [node], [])
        yield UNLIKELY, f"this line is to be done only if `{text}`.", new
        new = ast.If(ast.UnaryOp(ast.Not(), test.test), [node], [])
        yield UNLIKELY, f"this line is to be done only where `{text}` does not hold.", new
    divisors = [each.right for each in ast.walk(node) if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div)]
    for name in dict.fromkeys(each.id for each in divisors if isinstance(each, ast.Name)):
        new = ast.If(parse_expression(f"{name} > np.float32(0)"), [node], [])
        yield UNLIKELY, f"`{name}` can be 0, and 0 / 0 is NaN: do this only if it is above 0.", new
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        for axis, index in enumerate(indices):
            text = f"{ast.unparse(index)} < {ast.unparse(target.value)}.shape[{axis}]"
            yield (
                UNLIKELY,
                f"{quote(target)} can be outside: store only if `{text}`.",
                ast.If(parse_expression(text), [node], []),
            )


def _loaded(target):
    return ast.parse(ast.unparse(target), mode="eval").body


def _with_value(node, value):
    if isinstance(node, ast.Assign):
        return ast.Assign(node.targets, value)
    return ast.AugAssign(node.target, node.op, value)


def _fix_start(node, names):
    """Yield other values to begin with."""
    for target, value in pairs_of(node):
        is_first = isinstance(value, ast.Subscript) and isinstance(target, ast.Name) and target.id in names.maxima
        if not isinstance(target, ast.Name) or not (is_first or is_start(value)):
            continue
        others = {"np.float32(0)": "0", "np.float32(1)": "1"}
        if target.id in names.maxima:
            others = {LEAST: "a number below all values", **others}
        if target.id in names.minima:
            others = {MOST: "a number above all values", **others}
        if target.id in names.before and is_start(value):
            text = names.before[target.id]
            said = f"the new maximum `{target.id}` begins at {quote(value)} each time and forgets the one so far: "
            yield LIKELY, f"{said}begin at `{text}`.", _replace(node, value, parse_expression(text))
        for text, words in others.items():
            if text == ast.unparse(value):
                continue
            said = f"`{target.id}` begins at {quote(value)}, and should begin at {words}: write `{text}`."
            if text == LEAST and "inf" not in ast.unparse(value):
                said = f"the maximum `{target.id}` begins at {quote(value)}, above values that it should find: "
                said += f"begin at `{text}`."
            if text == MOST:
                said = f"the minimum `{target.id}` begins at {quote(value)}, below values that it should find: "
                said += f"begin at `{text}`."
            if text == LEAST and "inf" in ast.unparse(value):
                said = f"-inf - -inf is NaN, so `{target.id}` must begin at a finite number: write `{text}`."
            if is_first:
                said = f"`{target.id}` begins at {quote(value)}, which may be -inf or none of those that count: "
                said += f"begin at `{text}`."
            for other in (target, None) if len(node.targets) > 1 else (None,):
                yield POSSIBLE, said, _replace(node, value, parse_expression(text), other)


def _replace(node, old, new, alone=None):
    """Put a new value in the place of an old one; only for one of the targets that are set alike, if that is given."""
    if alone is not None:
        values = [new if each is alone else node.value for each in node.targets]
        return ast.Assign([ast.Tuple(node.targets, ast.Store())], ast.Tuple(values, ast.Load()))
    if node.value is old:
        return ast.Assign(node.targets, new)
    elements = [new if each is old else each for each in node.value.elts]
    return ast.Assign(node.targets, ast.Tuple(elements, ast.Load()))
