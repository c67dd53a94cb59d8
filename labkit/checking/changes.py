"""Small changes to a function that may put a mistake right, each with a sentence on what is wrong.

They are the usual slips turned round: indices in the wrong order, a bound that is off by one, a step that is left out,
a line that stands in a loop and belongs after it. Whether a change helps is found by running the function with it.
"""

import ast
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from labkit.checking.mutants import put, slots

WARP = 32
MOST_CHARACTERS = 70  # of code that is quoted
BARRIER, FENCE = "cuda.syncthreads()", "cuda.threadfence()"
COPY_CALLS = "ptx.cp_async_commit()", "ptx.cp_async_wait(0)"
SHARED_CALLS = "cuda.shfl", "cuda.syncthreads", "cuda.syncwarp"  # which need all threads of a warp or block
LEAST = "np.float32(-3e38)"  # where a maximum begins
LIKELY, POSSIBLE, UNLIKELY, LAST = range(4)  # ranks
_AXES = {"x": "y", "y": "x"}
_SWAPPED_CALLS = {"min": "max", "max": "min", "exp": "exp2", "exp2": "exp", "log": "log2", "log2": "log"}
_COMPARISONS = {
    ast.Lt: (ast.LtE, "leaves out the case that both are equal"),
    ast.LtE: (ast.Lt, "also holds if both are equal"),
    ast.Gt: (ast.GtE, "leaves out the case that both are equal"),
    ast.GtE: (ast.Gt, "also holds if both are equal"),
}
_SIMPLE = ast.Assign | ast.AugAssign | ast.Expr


@dataclass(frozen=True)
class Change:
    """A change of a function: its line, the sentence on what is wrong there, and the text with the change made.

    `rank` is lower for likelier changes. `constants` are new values of names that the text's cell defines. `helper`
    names the function of the cell that is changed, if it is not the one that is judged.
    """

    rank: int
    line: int
    said: str
    text: str
    constants: dict[str, int] = field(default_factory=dict)
    helper: str = ""


def list_changes(function: ast.FunctionDef, constants: Collection[str], are_lines_first: bool) -> list[Change]:
    """Return the changes, the likeliest first.

    Parameters
    ----------
    constants
        The whole numbers among the names that the function reads from its cell.
    are_lines_first
        Whether threads wait for one another too little or too much: then whole lines come first, and barriers are
        added.
    """
    lines, others = _change_statements(function, are_lines_first), _change_expressions(function, constants)
    found = [*lines, *others] if are_lines_first else [*others, *lines]
    first: dict[str, Change] = {}
    for change in sorted(found, key=lambda change: change.rank):
        first.setdefault(change.text, change)
    return list(first.values())


def _quote(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node)).partition("\n")[0]
    return f"`{text}`" if len(text) <= MOST_CHARACTERS else f"`{text[:MOST_CHARACTERS]}...`"


def _change_expressions(function, constants) -> Iterator[Change]:
    names = _Names(function, constants)
    text = _Text(function)
    for parent, name, place, node in list(slots(function)):
        if isinstance(node, ast.stmt):
            fixes = _fix_statement(node, names)
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
            return _text(self.function)
        if statement not in self.around:
            slot, hole = self.slots[statement], ast.Expr(ast.Name("_here_", ast.Load()))
            now = other if node is statement else statement
            put(*slot, hole)
            before, _, after = _text(self.function).partition("_here_")
            put(*slot, now)
            before, newline, indentation = before.rpartition("\n")
            self.around[statement] = before + newline, indentation, after
        before, indentation, after = self.around[statement]
        changed = _text(other if node is statement else statement)
        return before + textwrap.indent(changed, indentation) + after


def _lines(function) -> list[ast.stmt]:
    """Return the statements that hold no others."""
    return [node for node in ast.walk(function) if isinstance(node, ast.stmt) and not hasattr(node, "body")]


class _Names:
    """The names of a function, as far as one is taken for another."""

    def __init__(self, function: ast.FunctionDef, constants: Collection[str]):
        nodes = list(ast.walk(function))
        loaded = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        parameters = [argument.arg for argument in function.args.args]
        subscripts = [node for node in nodes if isinstance(node, ast.Subscript)]
        self.arrays = {node.value.id: _rank_of(node) for node in subscripts if isinstance(node.value, ast.Name)}
        self.constants = [name for name in dict.fromkeys(loaded) if name in constants]
        stored = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        self.unused = [name for name in dict.fromkeys(parameters + stored) if name not in loaded and name != "_"]
        self.scalars = [name for name in parameters if name not in self.arrays and name in loaded]
        self.maxima = _find_maxima(nodes)
        self.factors = [name for name in _assigned(nodes, _is_factor) if name in loaded] + _find_moves(nodes)
        self.sums = _assigned(nodes, _is_start)
        choices = [node for node in nodes if isinstance(node, ast.If | ast.IfExp)]
        self.tests = list({(ast.unparse(each.test), _other_value(each)): each for each in choices}.values())
        self.sizes = sizes = _find_sizes(nodes, [*self.scalars, *self.constants])
        self.indices = [name for name in dict.fromkeys(loaded) if name in _find_indices(nodes)]
        chained = [node.targets for node in nodes if isinstance(node, ast.Assign) and len(node.targets) == 2]
        self.begun_alike = [{each.id for each in group if isinstance(each, ast.Name)} for group in chained]
        self.groups = [*_bound_together(nodes), sizes, self.sums, self.indices]
        self.groups += [[name for name, rank in self.arrays.items() if rank == each] for each in (1, 2, 3, 4)]
        loops = [(node.target, node.iter) for node in nodes if isinstance(node, ast.For)]
        stepped = [target for target, of in loops if isinstance(of, ast.Call) and len(of.args) == 3]
        self.firsts = [target.id for target in stepped if isinstance(target, ast.Name)]
        self.steps = [*self.constants, *self.scalars]

    def like(self, name: str) -> list[str]:
        """Return the names that stand for things of the same kind."""
        found = {other: None for group in self.groups if name in group for other in group if other != name}
        return list(found)


def _other_value(choice):
    return ast.unparse(choice.orelse) if isinstance(choice, ast.IfExp) else ""


def _rank_of(subscript):
    return len(subscript.slice.elts) if isinstance(subscript.slice, ast.Tuple) else 1


def _assigned(nodes, is_kind) -> list[str]:
    pairs = [pair for node in nodes if isinstance(node, ast.Assign) for pair in _pairs(node)]
    return list(dict.fromkeys(target.id for target, value in pairs if isinstance(target, ast.Name) and is_kind(value)))


def _pairs(assign: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """Return each target of an assignment with its value."""
    found = []
    for target in assign.targets:
        if isinstance(target, ast.Tuple) and isinstance(assign.value, ast.Tuple):
            found += zip(target.elts, assign.value.elts, strict=False)
        elif isinstance(target, ast.Tuple):
            found += [(each, assign.value) for each in target.elts]
        else:
            found.append((target, assign.value))
    return found


def _bound_together(nodes) -> list[list[str]]:
    targets = [node.targets[0] for node in nodes if isinstance(node, ast.Assign)]
    groups = [target.elts for target in targets if isinstance(target, ast.Tuple)]
    groups += [node.targets for node in nodes if isinstance(node, ast.Assign) and len(node.targets) > 1]
    return [[each.id for each in group if isinstance(each, ast.Name)] for group in groups]


def _find_moves(nodes) -> list[str]:
    """Return the factors by which a sum moves to a new maximum, one for each `new = max(old, ...)`."""
    pairs = [pair for node in nodes if isinstance(node, ast.Assign) for pair in _pairs(node)]
    return [
        f"exp({ast.unparse(old)} - {target.id})"
        for target, value in pairs
        if isinstance(target, ast.Name) and isinstance(value, ast.Call) and ast.unparse(value.func) == "max"
        for old in value.args
    ]


def _is_factor(value):
    return isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[-1] in ("exp", "exp2")


def _is_start(value):
    return isinstance(value, ast.Call) and ast.unparse(value.func).startswith(("np.float", "float"))


def _find_sizes(nodes, known) -> list[str]:
    """Return the names whose values follow from the lengths of arrays, from parameters and constants alone."""
    pairs = [pair for node in nodes if isinstance(node, ast.Assign) for pair in _pairs(node)]
    found = dict.fromkeys(known)
    for target, value in pairs:
        parts = list(ast.walk(value))
        has_length = any(isinstance(node, ast.Attribute) and node.attr in ("shape", "size") for node in parts)
        names = [node.id for node in parts if isinstance(node, ast.Name)]
        if isinstance(target, ast.Name) and (has_length or (names and all(name in found for name in names))):
            found[target.id] = None
    return list(found)


def _find_indices(nodes) -> set[str]:
    """Return the names of which indices are made, and those that are compared with a bound."""
    indices = [
        node.slice if isinstance(node, ast.Subscript) else node.left
        for node in nodes
        if isinstance(node, ast.Subscript | ast.Compare)
    ]
    return {node.id for index in indices for node in ast.walk(index) if isinstance(node, ast.Name)}


def _find_maxima(nodes) -> set[str]:
    """Return the names that hold a maximum: compared by `>`, or handed to `max`."""
    compared = [node for node in nodes if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Gt | ast.Lt)]
    sides = [side for node in compared for side in (node.left, *node.comparators)]
    sides += [
        arg for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "max" for arg in node.args
    ]
    return {side.id for side in sides if isinstance(side, ast.Name)}


def _fix_expression(node: ast.expr, parent: ast.AST, names: _Names) -> Iterator[tuple[int, str, ast.expr]]:
    match node:
        case ast.Subscript(_, ast.Tuple()):
            yield from _exchange_indices(node)
        case ast.Tuple(indices) if isinstance(parent, ast.Call):
            for other in _exchanges(indices):
                new = ast.Tuple(other, ast.Load())
                yield POSSIBLE, f"the indices {_quote(node)} are in the wrong order: write {_quote(new)}.", new
        case ast.Compare(left, [sign], right) if type(sign) in _COMPARISONS:
            other, why = _COMPARISONS[type(sign)]
            new = ast.Compare(left, [other()], right)
            yield LIKELY, f"{_quote(node)} {why}: write {_quote(new)}.", new
            is_more = isinstance(sign, ast.GtE | ast.Gt)
            for bound in (ast.Sub, ast.Add) if isinstance(right[0], ast.Name | ast.BinOp) else ():
                new = ast.Compare(left, [sign], [ast.BinOp(right[0], bound(), ast.Constant(1))])
                which = "holds one too late" if is_more is (bound is ast.Sub) else "holds one too early"
                if not is_more:
                    which = "ends one too late" if bound is ast.Sub else "ends one too early"
                yield UNLIKELY, f"{_quote(node)} {which}: write {_quote(new)}.", new
        case ast.BoolOp(sign, values):
            new = ast.BoolOp(ast.Or() if isinstance(sign, ast.And) else ast.And(), values)
            yield UNLIKELY, f"`and` and `or` are confused: write {_quote(new)}.", new
        case ast.BinOp():
            yield from _fix_operation(node, parent, names)
        case ast.Call():
            yield from _fix_call(node, names)
        case ast.Attribute(value, axis, context) if axis in _AXES:
            new = ast.Attribute(value, _AXES[axis], context)
            yield POSSIBLE, f"{_quote(node)} is along the wrong axis: write {_quote(new)}.", new
        case ast.Constant(int(value)) if not isinstance(value, bool):
            yield from _fix_number(node, value)
        case ast.Name(name) if not isinstance(parent, ast.Attribute) or name in names.arrays:
            for other in names.unused:
                new = ast.Name(other, ast.Load())
                rank = LIKELY if isinstance(parent, ast.Compare) else POSSIBLE
                yield rank, f"`{other}` is never used, and is needed here in place of `{name}`.", new
            for other in names.like(name):
                new = ast.Name(other, ast.Load())
                rank = LIKELY if {name, other} in names.begun_alike else UNLIKELY
                yield rank, f"`{name}` is not the one that is needed here: write `{other}`.", new
        case ast.IfExp(test, one, other):
            new = ast.IfExp(test, other, one)
            yield UNLIKELY, f"the two values are exchanged: write {_quote(new)}.", new
    if isinstance(node, ast.Attribute):
        yield from _fix_index(node, names)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        yield from _guard_load(node)
    if isinstance(node, ast.Name | ast.BinOp | ast.Subscript) and not isinstance(parent, ast.Subscript | ast.Attribute):
        yield from _add_name(node, names)
    if isinstance(node, ast.Name | ast.BinOp) and isinstance(parent, ast.Subscript | ast.Tuple | ast.Compare):
        for other in names.indices:
            if other not in ast.unparse(node) and ast.unparse(node) not in names.arrays:
                new = ast.BinOp(ast.Name(other, ast.Load()), ast.Add(), node)
                is_equality = isinstance(parent, ast.Compare) and isinstance(parent.ops[0], ast.Eq)
                rank = POSSIBLE if is_equality else LAST
                yield rank, f"the index {_quote(node)} lacks the term `{other}`: write {_quote(new)}.", new
    if isinstance(node, ast.Name | ast.Attribute | ast.BinOp) and _is_index(node, parent):
        for sign, word in ((ast.Add, "small"), (ast.Sub, "large")):
            new = ast.BinOp(node, sign(), ast.Constant(1))
            yield LAST, f"{_quote(node)} is one too {word} here: write {_quote(new)}.", new


def _guard_load(node):
    """Take 0 in place of an element that is outside of the array."""
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    tests = []
    for axis, index in enumerate(indices):
        if not isinstance(index, ast.Constant):
            tests.append(f"0 <= {ast.unparse(index)} < {ast.unparse(node.value)}.shape[{axis}]")
    if tests:
        where = "`, `".join(tests)
        new = _parse(f"({ast.unparse(node)} if {' and '.join(tests)} else np.float32(0))")
        yield POSSIBLE, f"{_quote(node)} can be outside; take `np.float32(0)` unless `{where}`.", new


def _add_name(node, names):
    """Use a name that is set and not used."""
    for name in names.unused:
        for sign in (ast.Mult(), ast.Mod(), ast.Add(), ast.Sub(), ast.Div()):
            new = ast.BinOp(node, sign, ast.Name(name, ast.Load()))
            yield (
                LAST if isinstance(sign, ast.Div) else POSSIBLE,
                f"`{name}` is never used, and is missing here: write {_quote(new)}.",
                new,
            )


def _exchange_indices(node):
    if isinstance(node.slice, ast.Tuple):
        for other in _exchanges(node.slice.elts):
            new = ast.Subscript(node.value, ast.Tuple(other, ast.Load()), node.ctx)
            yield LIKELY, f"the indices of {_quote(node)} are in the wrong order: write {_quote(new)}.", new


def _exchanges(indices: Sequence[ast.expr]) -> Iterator[list[ast.expr]]:
    for i in range(len(indices)):
        for j in range(i):
            if ast.unparse(indices[i]) != ast.unparse(indices[j]):
                other = list(indices)
                other[i], other[j] = other[j], other[i]
                yield other


def _is_index(node, parent):
    return isinstance(parent, ast.Subscript | ast.Compare) and getattr(parent, "value", None) is not node


def _fix_operation(node, parent, names):
    left, sign, right = node.left, node.op, node.right
    if isinstance(left, ast.BinOp):
        new = ast.BinOp(left.left, left.op, ast.BinOp(left.right, sign, right))
        yield POSSIBLE, f"{_quote(left)} is computed first: put brackets, {_quote(new)}.", new
    if isinstance(sign, ast.FloorDiv | ast.Mod):
        for factor in names.steps:
            new = ast.BinOp(left, sign, ast.BinOp(right, ast.Mult(), ast.Name(factor, ast.Load())))
            yield LAST, f"the divisor {_quote(right)} lacks the factor `{factor}`: write {_quote(new)}.", new
        if isinstance(right, ast.Name) and right.id in names.scalars:
            for size in names.sizes:
                part = ast.BinOp(ast.Name(size, ast.Load()), ast.FloorDiv(), right)
                new = ast.BinOp(left, sign, part)
                said = f"`{right.id}` is the number of parts, and not the size of one: write {_quote(new)}."
                if size != right.id:
                    yield POSSIBLE, said, new
    match sign:
        case ast.Add():
            new = ast.BinOp(left, ast.Sub(), right)
            yield UNLIKELY, f"{_quote(node)} has the wrong sign: write {_quote(new)}.", new
            rank = POSSIBLE if isinstance(left, ast.Name) and isinstance(right, ast.Name) else UNLIKELY
            yield rank, f"the term {_quote(right)} is one too many: write {_quote(left)}.", left
            yield rank, f"the term {_quote(left)} is one too many: write {_quote(right)}.", right
            for factor in names.factors:
                for one, other in ((left, right), (right, left)):
                    if factor not in ast.unparse(one):
                        new = ast.BinOp(ast.BinOp(one, ast.Mult(), _parse(factor)), sign, other)
                        yield POSSIBLE, f"{_quote(one)} is not rescaled: multiply it by `{factor}`.", new
        case ast.Sub():
            new = ast.BinOp(left, ast.Add(), right)
            yield UNLIKELY, f"{_quote(node)} has the wrong sign: write {_quote(new)}.", new
            new = ast.BinOp(right, ast.Sub(), left)
            rank = LIKELY if isinstance(parent, ast.Call) and ast.unparse(parent.func).endswith("exp") else POSSIBLE
            yield rank, f"the difference {_quote(node)} is the wrong way round: write {_quote(new)}.", new
            yield UNLIKELY, f"the term {_quote(right)} is one too many: write {_quote(left)}.", left
            new = ast.Call(ast.Name("max", ast.Load()), [node, ast.Constant(0)], [])
            yield LAST, f"{_quote(node)} can be negative: write {_quote(new)}.", new
        case ast.Mult():
            new = ast.BinOp(node, ast.Mult(), right)
            yield UNLIKELY, f"the factor {_quote(right)} is needed twice: write {_quote(new)}.", new
            yield UNLIKELY, f"the factor {_quote(right)} is one too many: write {_quote(left)}.", left
            yield UNLIKELY, f"the factor {_quote(left)} is one too many: write {_quote(right)}.", right
            new = ast.BinOp(left, ast.Div(), right)
            yield LAST, f"{_quote(node)} multiplies where it should divide: write {_quote(new)}.", new
        case ast.FloorDiv():
            new = ast.BinOp(left, ast.Mod(), right)
            yield POSSIBLE, f"`//` and `%` are confused: write {_quote(new)}.", new
            for size in names.sizes:
                new = ast.BinOp(node, ast.Mod(), ast.Name(size, ast.Load()))
                yield UNLIKELY, f"{_quote(node)} goes on past `{size}`: write {_quote(new)}.", new
            new = _negative(ast.BinOp(_negative(left), ast.FloorDiv(), right))
            yield POSSIBLE, f"{_quote(node)} rounds down, and leaves out what is over: write {_quote(new)}.", new
        case ast.Mod():
            new = ast.BinOp(left, ast.FloorDiv(), right)
            yield POSSIBLE, f"`//` and `%` are confused: write {_quote(new)}.", new
        case ast.BitXor():
            for size in names.sizes:
                new = ast.BinOp(left, sign, ast.BinOp(right, ast.Mod(), ast.Name(size, ast.Load())))
                said = f"{_quote(right)} goes on past `{size}`, and so does {_quote(node)}: write {_quote(new)}."
                if not ast.unparse(right).endswith(f"% {size}"):
                    yield LIKELY, said, new
        case ast.Div():
            new = ast.BinOp(left, ast.Mult(), right)
            yield LAST, f"{_quote(node)} divides where it should multiply: write {_quote(new)}.", new


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
        yield UNLIKELY, f"this needs `{other}`, not `{last}`: write {_quote(new)}.", new
    if text == "ptx.cp_async_wait" and isinstance(node.args[0], ast.Constant) and node.args[0].value > 0:
        new = ast.Call(node.func, [ast.Constant(node.args[0].value - 1)], [])
        yield LIKELY, f"{_quote(node)} leaves the copies in flight that are needed: write {_quote(new)}.", new
    if text == "range":
        yield from _fix_range(node, names)
    if ast.unparse(node) == "cuda.grid(1)":
        new = _parse("cuda.threadIdx.x")
        yield POSSIBLE, "this index counts the threads of all blocks; count those of one by `cuda.threadIdx.x`.", new
        for factor in names.constants:
            new = _parse(f"cuda.blockIdx.x * cuda.blockDim.x * {factor} + cuda.threadIdx.x")
            said = f"blocks begin `cuda.blockDim.x` apart, and each takes {factor} times as much: write {_quote(new)}."
            yield POSSIBLE, said, new
    if text == "cuda.syncthreads":
        yield UNLIKELY, f"a barrier promises nothing to other blocks: write `{FENCE}`.", _parse(FENCE)
    if text == "cuda.threadfence":
        yield UNLIKELY, f"a fence waits for no other thread: write `{BARRIER}`.", _parse(BARRIER)


def _parse(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _fix_range(node, names):
    steps = [_parse(name) for name in names.steps] + [ast.Constant(WARP), _parse("cuda.blockDim.x")]
    steps += [_parse("cuda.gridsize(1)")]
    start, stop, step = {1: (None, *node.args, None), 2: (*node.args, None), 3: node.args}[len(node.args)]
    for other in steps:
        new = ast.Call(node.func, [start or ast.Constant(0), stop, other], [])
        if step is None:
            yield POSSIBLE, f"this `range` has no step, and goes on by 1: write {_quote(new)}.", new
        elif ast.unparse(other) != ast.unparse(step):
            yield UNLIKELY, f"the step {_quote(step)} is wrong: write {_quote(new)}.", new
    for size in names.sizes if not isinstance(stop, ast.Constant) else ():
        if size != ast.unparse(stop):
            args = [*node.args]
            args[min(len(args), 2) - 1] = ast.Name(size, ast.Load())
            new = ast.Call(node.func, args, [])
            yield (
                UNLIKELY,
                f"this `range` ends at {_quote(stop)}, and should end at `{size}`: write {_quote(new)}.",
                new,
            )
    for size in names.sizes if start is None else ():
        for first in names.firsts:
            new = ast.Call(node.func, [_parse(f"min({ast.unparse(stop)}, {size} - {first})")], [])
            said = f"the last of these ranges goes past the end of `{size}`: write {_quote(new)}."
            yield POSSIBLE if ast.unparse(stop) in names.constants else UNLIKELY, said, new
    for sign, said in ((ast.Add, "ends one too early"), (ast.Sub, "ends one too late")):
        args = [*node.args]
        args[min(len(args), 2) - 1] = ast.BinOp(stop, sign(), ast.Constant(1))
        new = ast.Call(node.func, args, [])
        yield POSSIBLE, f"this `range` {said}: write {_quote(new)}.", new
    if start is None:
        new = ast.Call(node.func, [ast.Constant(1), stop], [])
        yield POSSIBLE, f"this `range` begins one too early: write {_quote(new)}.", new
    else:
        new = ast.Call(node.func, [ast.Constant(0), *node.args[1:]], [])
        yield POSSIBLE, f"this `range` begins too late: write {_quote(new)}.", new


def _fix_index(node, names):
    text = ast.unparse(node)
    if text == "cuda.threadIdx.x":
        new = _parse("cuda.grid(1)")
        yield (
            LIKELY,
            "this index leaves out the block, so all blocks take the same elements: write `cuda.grid(1)`.",
            new,
        )
    if text in ("cuda.blockIdx.x", "cuda.blockIdx.y"):
        for factor in (f"cuda.blockDim.{text[-1]}", *names.steps):
            new = ast.BinOp(node, ast.Mult(), _parse(factor))
            yield POSSIBLE, f"blocks begin {_quote(_parse(factor))} apart, not 1: write {_quote(new)}.", new
    if text in ("cuda.blockDim.x", "cuda.blockDim.y"):
        for factor in names.constants:
            new = ast.BinOp(node, ast.Mult(), _parse(factor))
            yield POSSIBLE, f"blocks begin {_quote(new)} apart: write that in place of {_quote(node)}.", new
    if isinstance(node.value, ast.Name) and node.attr == "shape":
        for other in names.arrays:
            if other != node.value.id:
                new = ast.Attribute(ast.Name(other, ast.Load()), "shape", ast.Load())
                yield LAST, f"{_quote(node)} is that of another array: write {_quote(new)}.", new


def _fix_number(node, value):
    near = [(value + 1, "one too small"), (value - 1, "one too large")]
    near += [(2 * value, "half of what it should be"), (value // 2, "twice what it should be")] if value > 1 else []
    for other, why in near:
        if other >= 0:
            yield UNLIKELY, f"`{value}` is {why}: write `{other}`.", ast.Constant(other)


def _fix_statement(node: ast.stmt, names: _Names) -> Iterator[tuple[int, str, ast.stmt]]:
    match node:
        case ast.Assign([ast.Tuple(targets, context)], value) if all(isinstance(each, ast.Name) for each in targets):
            for other in _exchanges(targets):
                new = ast.Assign([ast.Tuple(other, context)], value)
                said = f"the names are in the wrong order: write {_quote(new)}."
                if ast.unparse(value) == "cuda.grid(2)":
                    said = f"`cuda.grid(2)` gives x, the column, first: write {_quote(new)}."
                yield LIKELY, said, new
        case ast.Assign([ast.Name() | ast.Subscript() as target], value):
            new = ast.AugAssign(target, ast.Add(), value)
            yield LIKELY, f"`=` forgets what was there before: add to it, {_quote(new)}.", new
        case ast.AugAssign(target, sign, value):
            new = ast.Assign([target], value)
            yield POSSIBLE, f"this adds to what was there before: write {_quote(new)}.", new
            if isinstance(sign, ast.Add):
                new = ast.AugAssign(target, ast.Sub(), value)
                yield LAST, f"`+=` has the wrong sign: write {_quote(new)}.", new
                for factor in names.factors:
                    scaled = ast.BinOp(_loaded(target), ast.Mult(), _parse(factor))
                    new = ast.Assign([target], ast.BinOp(scaled, ast.Add(), value))
                    said = (
                        f"what {_quote(target)} held is not rescaled before this is added: multiply it by `{factor}`."
                    )
                    yield POSSIBLE, said, new
    if isinstance(node, ast.Break):
        yield POSSIBLE, "`break` ends the whole loop; `continue` leaves out this iteration alone.", ast.Continue()
    if isinstance(node, ast.Continue):
        yield UNLIKELY, "`continue` leaves out this iteration alone; `break` ends the loop.", ast.Break()
    if isinstance(node, ast.Assign):
        yield from _fix_start(node, names)
    if isinstance(node, ast.Assign | ast.AugAssign) and not isinstance(node.value, ast.Tuple):
        yield from _fix_value(node, names)
    if isinstance(node, _SIMPLE):
        yield from _guard_line(node, names)
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        for name in (*names.sums, *names.scalars):
            for sign, word in ((ast.Div(), "divided"), (ast.Mult(), "multiplied")):
                new = _with_value(node, ast.BinOp(node.value, sign, ast.Name(name, ast.Load())))
                yield LAST, f"what is stored is not {word} by `{name}`: write {_quote(new)}.", new


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
                f"this is not so where `{text}` does not hold: write {_quote(new)}.",
                new,
            )
    if isinstance(value, ast.BinOp | ast.Name):
        for sign, word in ((ast.Add(), "small"), (ast.Sub(), "large")):
            new = _with_value(node, ast.BinOp(value, sign, ast.Constant(1)))
            yield UNLIKELY, f"{_quote(value)} is one too {word} here: write {_quote(new)}.", new
    if isinstance(node, ast.Assign) and isinstance(value, ast.Subscript):
        new = _with_value(node, _parse(f"abs({ast.unparse(value)})"))
        yield LAST, f"{_quote(value)} can be negative: write {_quote(new)}.", new
    if isinstance(node, ast.AugAssign) and not isinstance(value, ast.Name):
        new = _with_value(node, ast.BinOp(value, ast.Mult(), value))
        yield LAST, f"{_quote(value)} is not squared: write {_quote(new)}.", new


def _guard_line(node, names):
    """Do a line only under a condition."""
    for test in names.tests:
        text = ast.unparse(test.test)
        new = ast.If(test.test, [node], [])
        yield UNLIKELY, f"this line is to be done only if `{text}`.", new
    divisors = [each.right for each in ast.walk(node) if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div)]
    for name in dict.fromkeys(each.id for each in divisors if isinstance(each, ast.Name)):
        new = ast.If(_parse(f"{name} > np.float32(0)"), [node], [])
        yield UNLIKELY, f"`{name}` can be 0, and 0 / 0 is NaN: do this only if it is above 0.", new
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        for axis, index in enumerate(indices):
            text = f"{ast.unparse(index)} < {ast.unparse(target.value)}.shape[{axis}]"
            yield (
                UNLIKELY,
                f"{_quote(target)} can be outside: store only if `{text}`.",
                ast.If(_parse(text), [node], []),
            )


def _loaded(target):
    return ast.parse(ast.unparse(target), mode="eval").body


def _with_value(node, value):
    if isinstance(node, ast.Assign):
        return ast.Assign(node.targets, value)
    return ast.AugAssign(node.target, node.op, value)


def _fix_start(node, names):
    """Yield other values to begin with."""
    for target, value in _pairs(node):
        is_first = isinstance(value, ast.Subscript) and isinstance(target, ast.Name) and target.id in names.maxima
        if not isinstance(target, ast.Name) or not (is_first or _is_start(value)):
            continue
        others = {"np.float32(0)": "0", "np.float32(1)": "1"}
        if target.id in names.maxima:
            others = {LEAST: "a number below all values", **others}
        for text, words in others.items():
            if text == ast.unparse(value):
                continue
            said = f"`{target.id}` begins at {_quote(value)}, and should begin at {words}: write `{text}`."
            if text == LEAST and "inf" not in ast.unparse(value):
                said = f"the maximum `{target.id}` begins at {_quote(value)}, above values that it should find: "
                said += f"begin at `{text}`."
            if text == LEAST and "inf" in ast.unparse(value):
                said = f"-inf - -inf is NaN, so `{target.id}` must begin at a finite number: write `{text}`."
            if is_first:
                said = f"`{target.id}` begins at {_quote(value)}, which may be -inf or none of those that count: "
                said += f"begin at `{text}`."
            yield POSSIBLE, said, _replace(node, value, _parse(text))


def _replace(node, old, new):
    if node.value is old:
        return ast.Assign(node.targets, new)
    elements = [new if each is old else each for each in node.value.elts]
    return ast.Assign(node.targets, ast.Tuple(elements, ast.Load()))


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
            yield UNLIKELY, f"`{other}` and `{one}` are exchanged: write {_quote(node)}."
            _rename(found, pair)


def _rename(nodes, pair):
    for node in nodes:
        node.id = pair.get(node.id, node.id)


def _change_statements(function, adds_barriers) -> Iterator[Change]:
    """Yield changes of whole lines: in another order, in or out of a loop, one more barrier, one line fewer."""
    bodies = [*_bodies(function)]
    missing = [BARRIER, *(COPY_CALLS if "ptx.cp_async(" in ast.unparse(function) else ())]
    for owner, body in bodies:
        for place, node in enumerate(list(body)):
            yield from _exchange(function, body, place)
            yield from _move_out(function, owner, body, place, bodies)
            yield from _leave_out(function, body, place)
            for call in missing if adds_barriers else ():
                yield from _add_call(function, body, place, node, call)


def _bodies(function) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    for node in ast.walk(function):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body:
                yield node, body


def _text(function):
    return ast.unparse(ast.fix_missing_locations(function))


def _exchange(function, body, place):
    if place + 1 >= len(body):
        return
    one, other = body[place : place + 2]
    if not (_sets(one) & _gets(other) or _sets(other) & _gets(one) or _is_barrier(one) or _is_barrier(other)):
        return
    body[place : place + 2] = other, one
    text = _text(function)
    body[place : place + 2] = one, other
    if _is_barrier(one):
        said = f"{_name(one)} stands too early: write it after line {_last_line(other)}."
    elif _is_barrier(other):
        said = f"{_name(other)} stands too late: write it before line {one.lineno}."
        yield Change(LIKELY, other.lineno, said, text)
        return
    elif still := sorted(_sets(one) & _gets(other)):
        said = f"line {other.lineno} still needs `{still[0]}` as it was before: write this line after it."
    else:
        name = min(_sets(other) & _gets(one))
        said = f"this line reads `{name}` before line {other.lineno} has set it: write it after that line."
    yield Change(LIKELY if _is_barrier(one) or isinstance(other, _SIMPLE) else UNLIKELY, one.lineno, said, text)


def _sets(node) -> set[str]:
    stored = [each for each in ast.walk(node) if isinstance(getattr(each, "ctx", None), ast.Store)]
    return {name for each in stored for name in _reads(each)[:1]}


def _gets(node) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def _is_barrier(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _name(node):
    return "the barrier" if ast.unparse(node) == BARRIER else _quote(node)


def _last_line(node):
    return getattr(node, "end_lineno", node.lineno)


def _move_out(function, owner, body, place, bodies):
    """Move a line at the beginning or the end of a loop or an `if` in front of it or behind it, and the other way."""
    node = body[place]
    if isinstance(owner, ast.For | ast.If) and isinstance(node, _SIMPLE | ast.Return) and len(body) > 1:
        outer = next(other for _, other in bodies if owner in other)
        what = "loop" if isinstance(owner, ast.For) else "`if`"
        if place == 0:
            said = f"this line belongs before the {what} of line {owner.lineno}, not into it"
            said += ", where each iteration begins anew." if what == "loop" else "."
            yield _moved(function, body, 0, outer, outer.index(owner), node, said)
        if place == len(body) - 1:
            said = f"this line belongs after the {what} of line {owner.lineno}, not into it"
            said += ", where each iteration does it." if what == "loop" else "."
            yield _moved(function, body, place, outer, outer.index(owner) + 1, node, said)
    for beside, at_end in ((place + 1, False), (place - 1, True)):
        other = body[beside] if 0 <= beside < len(body) else None
        if isinstance(node, _SIMPLE) and isinstance(other, ast.For | ast.If):
            inner = [each for each in ast.walk(other) if isinstance(each, ast.For | ast.If) and _is_about(each, node)]
            for each in inner[:1] if at_end else inner:
                what = "loop" if isinstance(each, ast.For) else "`if`"
                end = "end" if at_end else "beginning"
                said = f"this line belongs into the {what} of line {each.lineno}, at its {end}"
                said += (
                    f", so that each iteration {'ends with it' if at_end else 'begins anew'}." * (what == "loop") or "."
                )
                yield _moved(function, body, place, each.body, len(each.body) if at_end else 0, node, said)


def _is_about(owner, node):
    """Tell whether a loop or an `if` uses what a line sets, or the line is a call."""
    return _is_barrier(node) or bool(_sets(node) & (_gets(owner) | _sets(owner)))


def _moved(function, source, place, target, at, node, said):
    """Return the change by which a statement goes from one body to a place of another."""
    del source[place]
    target.insert(at, node)
    text = _text(function)
    del target[at]
    source.insert(place, node)
    if ast.unparse(node) == BARRIER:
        said = said.replace("this line", "the barrier of this line")
    rank = LIKELY if _is_barrier(node) else UNLIKELY if " `if` " in said else POSSIBLE
    return Change(rank, node.lineno, said, text)


def _leave_out(function, body, place):
    node = body[place]
    if isinstance(node, ast.For | ast.While | ast.FunctionDef):
        return
    body[place] = ast.Pass()
    text = _text(function)
    if isinstance(node, ast.If) and not node.orelse:
        body[place : place + 1] = node.body
        unguarded = _text(function)
        body[place : place + len(node.body)] = [node]
        yield Change(UNLIKELY, node.lineno, "what follows this `if` is to be done without it.", unguarded)
    else:
        body[place] = node
        yield Change(LAST, node.lineno, f"{_quote(node)} is one line too many: leave it out.", text)
    body[place] = node


def _add_call(function, body, place, node, call):
    """Add a barrier, or what ends a group of copies or waits for it, before a line or at the end of its loop."""
    for at in (place, len(body)) if place + 1 == len(body) else (place,):
        body.insert(at, ast.parse(call).body[0])
        text = _text(function)
        del body[at]
        before = body[at - 1] if at else None
        where = f"before line {node.lineno}" if before is None else f"after line {_last_line(before)}"
        where += f", outside of the loop of line {before.lineno}" if isinstance(before, ast.For) else ""
        is_arrive = at == place and "_arrive(" in ast.unparse(node) and isinstance(node, ast.Expr)
        where = f"before line {node.lineno}" if is_arrive else where
        what = {BARRIER: "a barrier"}.get(call, f"`{call}`")
        said = f"{what} is missing: write {'it' if what != 'a barrier' else f'`{call}`'} {where}."
        follows_copy = isinstance(before, ast.Expr) and call != BARRIER and "ptx.cp_async(" in ast.unparse(before)
        is_needed = follows_copy or (is_arrive and call == COPY_CALLS[1])
        line = node.lineno if is_arrive else (before or node).lineno
        yield Change(LIKELY if is_needed else POSSIBLE, line, said, text)


def find_index_lines(function: ast.FunctionDef, line: int) -> set[int]:
    """Return the lines that decide which elements are accessed in a line, and whether they are."""
    around: dict[ast.stmt, tuple[ast.stmt, ...]] = {}
    todo = [(statement, ()) for statement in function.body]
    while todo:
        statement, outer = todo.pop()
        around[statement] = outer
        for name in ("body", "orelse"):
            todo += [(inner, (*outer, statement)) for inner in getattr(statement, name, ())]
    found = {each for each in around if each.lineno <= line <= _last_line(each) and not hasattr(each, "body")}
    names = [
        name
        for each in found
        for part in ast.walk(each)
        if isinstance(part, ast.Subscript)
        for name in _reads(part.slice)
    ]
    for outer in [outer for each in found for outer in around[each]]:
        found.add(outer)
        names += _reads(
            outer.iter if isinstance(outer, ast.For) else outer.test if isinstance(outer, ast.If) else outer
        )
    done = set()
    while names:
        name = names.pop()
        for each in around:
            if (
                name not in done
                and isinstance(each, ast.Assign)
                and name in _reads(ast.Tuple(each.targets, ast.Load()))
            ):
                found.add(each)
                names += _reads(each.value)
        done.add(name)
    return {each.lineno for each in found}


def _reads(node) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]


def find_early_return(function: ast.FunctionDef) -> tuple[int, int] | None:
    """Return the lines of an early `return` and of the first shuffle or barrier after it; None if there is none."""
    returns = [node.lineno for node in ast.walk(function) if isinstance(node, ast.Return)]
    calls = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(SHARED_CALLS)
    ]
    after = sorted(call.lineno for call in calls for line in returns[:1] if call.lineno > line)
    return (returns[0], after[0]) if after else None


def find_unused(function: ast.FunctionDef) -> list[str]:
    """Return the parameters and variables that nothing reads."""
    return _Names(function, ()).unused
