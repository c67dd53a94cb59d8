"""Changes of one expression: indices, operators, calls, ranges, numbers."""

import ast
import textwrap
from collections.abc import Iterator

from labkit.checking.mutants import put, slots
from labkit.checking.slips.assignments import fix_statement
from labkit.checking.slips.change import (
    BARRIER,
    CHANCE,
    FENCE,
    LAST,
    LIKELY,
    POSSIBLE,
    UNLIKELY,
    Change,
    exchanges,
    parse_expression,
    quote,
    text_of,
)
from labkit.checking.slips.names import Names

WARP = 32
_AXES = {"x": "y", "y": "x"}
_SWAPPED_CALLS = {"min": "max", "max": "min", "exp": "exp2", "exp2": "exp", "log": "log2", "log2": "log"}
_REVERSED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
_COMPARISONS = {
    ast.Lt: (ast.LtE, "leaves out the case that both are equal"),
    ast.LtE: (ast.Lt, "also holds if both are equal"),
    ast.Gt: (ast.GtE, "leaves out the case that both are equal"),
    ast.GtE: (ast.Gt, "also holds if both are equal"),
}


def change_expressions(function, constants) -> Iterator[Change]:
    names = Names(function, constants)
    text = _Text(function)
    for parent, name, place, node in list(slots(function)):
        if isinstance(node, ast.stmt):
            fixes = fix_statement(node, names)
        elif isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            fixes = _fix_expression(node, parent, names)
        elif isinstance(node, ast.Subscript):
            fixes = _exchange_indices(node)
        else:
            continue
        for rank, said, other in fixes:
            put(parent, name, place, other)
            changed = text.with_other(node, other) if other is not node else ""
            put(parent, name, place, node)
            yield Change(rank, node.lineno, said, changed)
        for rank, said in _exchange_names(node, parent):
            yield Change(rank, node.lineno, said, text.with_other(node, node))


class _Text:
    """The text of a function, of which a change writes the changed line alone anew."""

    def __init__(self, function: ast.FunctionDef):
        self.function = function
        self.around: dict[ast.stmt, tuple[str, str, str]] = {}  # a line's text before it, its indentation, and after it
        self.statement = {node: each for each in _lines(function) for node in ast.walk(each)}
        self.slots = {node: (parent, name, place) for parent, name, place, node in slots(function)}

    def with_other(self, node: ast.AST, other: ast.AST) -> str:
        """Return the text with another node in a place, where it has been put already."""
        statement = self.statement.get(node)
        if statement is None:
            return text_of(self.function)
        if statement not in self.around:
            slot, hole = self.slots[statement], ast.Expr(ast.Name("_here_", ast.Load()))
            now = other if node is statement else statement
            put(*slot, hole)
            before, _, after = text_of(self.function).partition("_here_")
            put(*slot, now)
            before, newline, indentation = before.rpartition("\n")
            self.around[statement] = before + newline, indentation, after
        before, indentation, after = self.around[statement]
        changed = text_of(other if node is statement else statement)
        return before + textwrap.indent(changed, indentation) + after


def _lines(function) -> list[ast.stmt]:
    """Return the statements that hold no others."""
    return [node for node in ast.walk(function) if isinstance(node, ast.stmt) and not hasattr(node, "body")]


def _fix_expression(node: ast.expr, parent: ast.AST, names: Names) -> Iterator[tuple[int, str, ast.expr]]:
    match node:
        case ast.Subscript(_, ast.Tuple()):
            yield from _exchange_indices(node)
        case ast.Tuple(indices) if isinstance(parent, ast.Call):
            for other in exchanges(indices):
                new = ast.Tuple(other, ast.Load())
                yield POSSIBLE, f"the indices {quote(node)} are in the wrong order: write {quote(new)}.", new
        case ast.Compare(left, [sign], right) if type(sign) in _COMPARISONS:
            other, why = _COMPARISONS[type(sign)]
            new = ast.Compare(left, [other()], right)
            yield LIKELY, f"{quote(node)} {why}: write {quote(new)}.", new
            is_more = isinstance(sign, ast.GtE | ast.Gt)
            new = ast.Compare(left, [_REVERSED[type(sign)]()], right)
            yield LIKELY, f"{quote(node)} is the wrong way round: write {quote(new)}.", new
            for bound in (ast.Sub, ast.Add) if isinstance(right[0], ast.Name | ast.BinOp) else ():
                new = ast.Compare(left, [sign], [ast.BinOp(right[0], bound(), ast.Constant(1))])
                which = "holds one too late" if is_more is (bound is ast.Sub) else "holds one too early"
                if not is_more:
                    which = "ends one too late" if bound is ast.Sub else "ends one too early"
                yield UNLIKELY, f"{quote(node)} {which}: write {quote(new)}.", new
        case ast.BoolOp(sign, values):
            for value in values if isinstance(sign, ast.And) else ():
                rest = [other for other in values if other is not value]
                new = ast.BoolOp(ast.And(), rest) if len(rest) > 1 else rest[0]
                yield UNLIKELY, f"the test {quote(value)} is one too many: leave it out.", new
            new = ast.BoolOp(ast.Or() if isinstance(sign, ast.And) else ast.And(), values)
            yield UNLIKELY, f"`and` and `or` are confused: write {quote(new)}.", new
        case ast.BinOp():
            yield from _fix_operation(node, parent, names)
        case ast.Call():
            yield from _fix_call(node, names)
        case ast.Attribute(value, axis, context) if axis in _AXES:
            new = ast.Attribute(value, _AXES[axis], context)
            yield POSSIBLE, f"{quote(node)} is along the wrong axis: write {quote(new)}.", new
        case ast.Constant(int(value)) if not isinstance(value, bool):
            is_step = isinstance(parent, ast.Call) and ast.unparse(parent.func) == "range" and parent.args[2:] == [node]
            is_step |= isinstance(parent, ast.AugAssign) and not isinstance(parent.op, ast.Add)
            yield from _fix_number(node, value, LIKELY if is_step else UNLIKELY)
        case ast.Name(name) if not isinstance(parent, ast.Attribute) or name in names.arrays:
            for other in names.unused:
                new = ast.Name(other, ast.Load())
                rank = LIKELY if isinstance(parent, ast.Compare) else POSSIBLE
                yield rank, f"`{other}` is never used, and is needed here in place of `{name}`.", new
            for other in names.like(name):
                new = ast.Name(other, ast.Load())
                rank = LIKELY if {name, other} in (*names.begun_alike, *names.copied) else UNLIKELY
                said = f"`{name}` is not the one that is needed here: write `{other}`."
                if {name, other} in names.copied:
                    said = f"`{name}` and `{other}` are the same only at first, and here it must be `{other}`."
                yield rank, said, new
        case ast.IfExp(test, one, other):
            new = ast.IfExp(test, other, one)
            yield UNLIKELY, f"the two values are exchanged: write {quote(new)}.", new
    if isinstance(node, ast.Attribute):
        yield from _fix_index(node, names)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        yield from _guard_load(node)
    if isinstance(node, ast.Name | ast.BinOp | ast.Subscript) and not isinstance(parent, ast.Subscript | ast.Attribute):
        yield from _add_name(node, names, _is_output(parent, names))
    if isinstance(node, ast.Name | ast.BinOp) and isinstance(parent, ast.Subscript | ast.Tuple | ast.Compare):
        for other in names.indices:
            if other not in ast.unparse(node) and ast.unparse(node) not in names.arrays:
                new = ast.BinOp(ast.Name(other, ast.Load()), ast.Add(), node)
                is_equality = isinstance(parent, ast.Compare) and isinstance(parent.ops[0], ast.Eq)
                rank = POSSIBLE if is_equality else LAST
                yield rank, f"the index {quote(node)} lacks the term `{other}`: write {quote(new)}.", new
    if isinstance(node, ast.Name | ast.Attribute | ast.BinOp) and _is_index(node, parent):
        for sign, word in ((ast.Add, "small"), (ast.Sub, "large")):
            new = ast.BinOp(node, sign(), ast.Constant(1))
            yield LAST, f"{quote(node)} is one too {word} here: write {quote(new)}.", new


def _is_output(statement, names):
    """Tell whether a statement stores to an array that the function is given."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return isinstance(target, ast.Subscript) and ast.unparse(target.value) in names.parameters


def _guard_load(node):
    """Take 0 in place of an element that is outside of the array."""
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if any(isinstance(index, ast.Slice | ast.Starred) for index in indices):
        return  # no element
    tests = []
    for axis, index in enumerate(indices):
        if not isinstance(index, ast.Constant):
            size = parse_expression(f"{ast.unparse(node.value)}.shape[{axis}]")
            tests.append(ast.unparse(ast.Compare(ast.Constant(0), [ast.LtE(), ast.Lt()], [index, size])))
    if tests:
        where = "`, `".join(tests)
        new = parse_expression(f"({ast.unparse(node)} if {' and '.join(tests)} else np.float32(0))")
        yield POSSIBLE, f"{quote(node)} can be outside; take `np.float32(0)` unless `{where}`.", new


def _add_name(node, names, is_stored):
    """Use a name that is set and not used."""
    for name in names.unused:
        for sign in (ast.Mult(), ast.Mod(), ast.Add(), ast.Sub(), ast.Div()):
            new = ast.BinOp(node, sign, ast.Name(name, ast.Load()))
            yield (
                LAST if isinstance(sign, ast.Div) else LIKELY if is_stored else POSSIBLE,
                f"`{name}` is never used, and is missing here: write {quote(new)}.",
                new,
            )


def _exchange_indices(node):
    if isinstance(node.slice, ast.Tuple):
        for other in exchanges(node.slice.elts):
            new = ast.Subscript(node.value, ast.Tuple(other, ast.Load()), node.ctx)
            yield LIKELY, f"the indices of {quote(node)} are in the wrong order: write {quote(new)}.", new


def _is_index(node, parent):
    return isinstance(parent, ast.Subscript | ast.Compare) and getattr(parent, "value", None) is not node


def _fix_operation(node, parent, names):
    left, sign, right = node.left, node.op, node.right
    if isinstance(left, ast.BinOp):
        new = ast.BinOp(left.left, left.op, ast.BinOp(left.right, sign, right))
        yield POSSIBLE, f"{quote(left)} is computed first: put brackets, {quote(new)}.", new
    if isinstance(sign, ast.FloorDiv | ast.Mod):
        for factor in names.steps:
            new = ast.BinOp(left, sign, ast.BinOp(right, ast.Mult(), ast.Name(factor, ast.Load())))
            yield LAST, f"the divisor {quote(right)} lacks the factor `{factor}`: write {quote(new)}.", new
        if isinstance(right, ast.Name) and right.id in names.scalars:
            for size in names.sizes:
                part = ast.BinOp(ast.Name(size, ast.Load()), ast.FloorDiv(), right)
                new = ast.BinOp(left, sign, part)
                said = f"`{right.id}` is the number of parts, and not the size of one: write {quote(new)}."
                if size != right.id:
                    yield POSSIBLE, said, new
    match sign:
        case ast.Add():
            new = ast.BinOp(left, ast.Sub(), right)
            yield UNLIKELY, f"{quote(node)} has the wrong sign: write {quote(new)}.", new
            rank = POSSIBLE if isinstance(left, ast.Name) and isinstance(right, ast.Name) else UNLIKELY
            is_one = isinstance(right, ast.Constant) and isinstance(parent, ast.Compare)
            yield LIKELY if is_one else rank, f"the term {quote(right)} is one too many: write {quote(left)}.", left
            yield rank, f"the term {quote(left)} is one too many: write {quote(right)}.", right
            for factor in names.factors:
                for one, other in ((left, right), (right, left)):
                    if factor not in ast.unparse(one):
                        new = ast.BinOp(ast.BinOp(one, ast.Mult(), parse_expression(factor)), sign, other)
                        yield POSSIBLE, f"{quote(one)} is not rescaled: multiply it by `{factor}`.", new
        case ast.Sub():
            new = ast.BinOp(left, ast.Add(), right)
            yield UNLIKELY, f"{quote(node)} has the wrong sign: write {quote(new)}.", new
            new = ast.BinOp(right, ast.Sub(), left)
            rank = LIKELY if isinstance(parent, ast.Call) and ast.unparse(parent.func).endswith("exp") else POSSIBLE
            yield rank, f"the difference {quote(node)} is the wrong way round: write {quote(new)}.", new
            is_one = isinstance(right, ast.Constant) and isinstance(parent, ast.Compare)
            yield LIKELY if is_one else UNLIKELY, f"the term {quote(right)} is one too many: write {quote(left)}.", left
            new = ast.Call(ast.Name("max", ast.Load()), [node, ast.Constant(0)], [])
            yield LAST, f"{quote(node)} can be negative: write {quote(new)}.", new
        case ast.Mult():
            new = ast.BinOp(node, ast.Mult(), right)
            yield UNLIKELY, f"the factor {quote(right)} is needed twice: write {quote(new)}.", new
            yield UNLIKELY, f"the factor {quote(right)} is one too many: write {quote(left)}.", left
            yield UNLIKELY, f"the factor {quote(left)} is one too many: write {quote(right)}.", right
            new = ast.BinOp(left, ast.Div(), right)
            yield LAST, f"{quote(node)} multiplies where it should divide: write {quote(new)}.", new
        case ast.FloorDiv():
            new = ast.BinOp(left, ast.Mod(), right)
            yield POSSIBLE, f"`//` and `%` are confused: write {quote(new)}.", new
            for size in names.sizes:
                new = ast.BinOp(node, ast.Mod(), ast.Name(size, ast.Load()))
                yield UNLIKELY, f"{quote(node)} goes on past `{size}`: write {quote(new)}.", new
            new = _negative(ast.BinOp(_negative(left), ast.FloorDiv(), right))
            yield POSSIBLE, f"{quote(node)} rounds down, and loses the remainder: write {quote(new)}.", new
        case ast.Mod():
            new = ast.BinOp(left, ast.FloorDiv(), right)
            yield POSSIBLE, f"`//` and `%` are confused: write {quote(new)}.", new
        case ast.BitXor():
            for size in names.sizes:
                new = ast.BinOp(left, sign, ast.BinOp(right, ast.Mod(), ast.Name(size, ast.Load())))
                said = f"{quote(right)} goes on past `{size}`, and so does {quote(node)}: write {quote(new)}."
                if not ast.unparse(right).endswith(f"% {size}"):
                    yield LIKELY, said, new
        case ast.Div():
            new = ast.BinOp(left, ast.Mult(), right)
            yield LAST, f"{quote(node)} divides where it should multiply: write {quote(new)}.", new


def _negative(node):
    return ast.UnaryOp(ast.USub(), node)


def _fix_call(node, names):
    text = ast.unparse(node.func)
    last = text.split(".")[-1]
    if last in _SWAPPED_CALLS and (text != last or last in ("min", "max")):
        owner = node.func
        other = _SWAPPED_CALLS[last]
        func = ast.Attribute(owner.value, other, ast.Load()) if text != last else ast.Name(other, ast.Load())
        new = ast.Call(func, node.args, [])
        yield UNLIKELY, f"this needs `{other}`, not `{last}`: write {quote(new)}.", new
    if text == "ptx.cp_async_wait" and isinstance(node.args[0], ast.Constant) and node.args[0].value > 0:
        new = ast.Call(node.func, [ast.Constant(node.args[0].value - 1)], [])
        yield LIKELY, f"{quote(node)} leaves the copies in flight that are needed: write {quote(new)}.", new
    if text == "range":
        yield from _fix_range(node, names)
    if ast.unparse(node) == "cuda.grid(1)":
        new = parse_expression("cuda.threadIdx.x")
        yield POSSIBLE, "this index counts the threads of all blocks; count those of one by `cuda.threadIdx.x`.", new
        for factor in names.constants:
            new = parse_expression(f"cuda.blockIdx.x * cuda.blockDim.x * {factor} + cuda.threadIdx.x")
            said = f"blocks begin `cuda.blockDim.x` apart, and each takes {factor} times as much: write {quote(new)}."
            yield POSSIBLE, said, new
    if text == "cuda.syncthreads":
        yield UNLIKELY, f"a barrier promises nothing to other blocks: write `{FENCE}`.", parse_expression(FENCE)
    if text == "cuda.threadfence":
        yield UNLIKELY, f"a fence waits for no other thread: write `{BARRIER}`.", parse_expression(BARRIER)


def _fix_range(node, names):
    steps = [parse_expression(name) for name in names.steps] + [ast.Constant(WARP), parse_expression("cuda.blockDim.x")]
    steps += [parse_expression("cuda.gridsize(1)")]
    start, stop, step = {1: (None, *node.args, None), 2: (*node.args, None), 3: node.args}[len(node.args)]
    for other in steps:
        new = ast.Call(node.func, [start or ast.Constant(0), stop, other], [])
        if step is None:
            yield POSSIBLE, f"this `range` has no step, and goes on by 1: write {quote(new)}.", new
        elif ast.unparse(other) != ast.unparse(step):
            yield UNLIKELY, f"the step {quote(step)} is wrong: write {quote(new)}.", new
    for size in names.sizes if not isinstance(stop, ast.Constant) else ():
        if size != ast.unparse(stop):
            args = [*node.args]
            args[min(len(args), 2) - 1] = ast.Name(size, ast.Load())
            new = ast.Call(node.func, args, [])
            yield (
                UNLIKELY,
                f"this `range` ends at {quote(stop)}, and should end at `{size}`: write {quote(new)}.",
                new,
            )
    for size in names.sizes if start is None else ():
        for first in names.firsts:
            new = ast.Call(node.func, [parse_expression(f"min({ast.unparse(stop)}, {size} - {first})")], [])
            said = f"the last of these ranges goes past the end of `{size}`: write {quote(new)}."
            yield POSSIBLE if ast.unparse(stop) in names.constants else UNLIKELY, said, new
    for sign, said in ((ast.Add, "ends one too early"), (ast.Sub, "ends one too late")):
        args = [*node.args]
        args[min(len(args), 2) - 1] = ast.BinOp(stop, sign(), ast.Constant(1))
        new = ast.Call(node.func, args, [])
        yield POSSIBLE, f"this `range` {said}: write {quote(new)}.", new
    if start is None:
        new = ast.Call(node.func, [ast.Constant(1), stop], [])
        yield POSSIBLE, f"this `range` begins one too early: write {quote(new)}.", new
    else:
        new = ast.Call(node.func, [ast.Constant(0), *node.args[1:]], [])
        yield POSSIBLE, f"this `range` begins too late: write {quote(new)}.", new


def _fix_index(node, names):
    text = ast.unparse(node)
    if text == "cuda.threadIdx.x":
        new = parse_expression("cuda.grid(1)")
        yield (
            LIKELY,
            "this index leaves out the block, so all blocks take the same elements: write `cuda.grid(1)`.",
            new,
        )
    if text in ("cuda.blockIdx.x", "cuda.blockIdx.y"):
        for factor in (f"cuda.blockDim.{text[-1]}", *names.steps):
            new = ast.BinOp(node, ast.Mult(), parse_expression(factor))
            yield POSSIBLE, f"blocks begin {quote(parse_expression(factor))} apart, not 1: write {quote(new)}.", new
    if text in ("cuda.blockDim.x", "cuda.blockDim.y"):
        for factor in names.constants:
            new = ast.BinOp(node, ast.Mult(), parse_expression(factor))
            yield POSSIBLE, f"blocks begin {quote(new)} apart: write that in place of {quote(node)}.", new
    if isinstance(node.value, ast.Name) and node.attr == "shape":
        for other in names.arrays:
            if other != node.value.id:
                new = ast.Attribute(ast.Name(other, ast.Load()), "shape", ast.Load())
                yield LAST, f"{quote(node)} is that of another array: write {quote(new)}.", new


def _fix_number(node, value, rank):
    near = [(value + 1, "one too small"), (value - 1, "one too large")]
    far = [(2 * value, "half of what it should be"), (value // 2, "twice what it should be")] if value > 1 else []
    for other, why in near + far:
        if other >= 0:
            yield (
                (CHANCE if (other, why) in far and rank > LIKELY else rank),
                f"`{value}` is {why}: write `{other}`.",
                ast.Constant(other),
            )


def _exchange_names(node, parent) -> Iterator[tuple[int, str]]:
    """Exchange two names in a whole expression, and put them back after each."""
    if not isinstance(node, ast.BinOp | ast.Call | ast.Compare) or isinstance(parent, ast.BinOp):
        return
    found = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    names = list(dict.fromkeys(each.id for each in found))
    for i, one in enumerate(names):
        for other in names[:i]:
            pair = {one: other, other: one}
            _rename(found, pair)
            yield UNLIKELY, f"`{other}` and `{one}` are exchanged: write {quote(node)}."
            _rename(found, pair)


def _rename(nodes, pair):
    for node in nodes:
        node.id = pair.get(node.id, node.id)
