"""The names of a function, as far as one is taken for another."""

import ast
from collections.abc import Collection


class Names:
    """The names of a function, as far as one is taken for another."""

    def __init__(self, function: ast.FunctionDef, constants: Collection[str]):
        nodes = list(ast.walk(function))
        loaded = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
        self.parameters = parameters = [argument.arg for argument in function.args.args]
        subscripts = [node for node in nodes if isinstance(node, ast.Subscript)]
        self.arrays = {node.value.id: _rank_of(node) for node in subscripts if isinstance(node.value, ast.Name)}
        self.constants = [name for name in dict.fromkeys(loaded) if name in constants]
        stored = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        self.unused = [name for name in dict.fromkeys(parameters + stored) if name not in loaded and name != "_"]
        self.scalars = [name for name in parameters if name not in self.arrays and name in loaded]
        self.before = _find_before(nodes)
        self.maxima, self.minima = _find_maxima(nodes), _find_minima(nodes)
        self.factors = [name for name in _assigned(nodes, _is_factor) if name in loaded] + _find_moves(nodes)
        self.sums = _assigned(nodes, is_start)
        choices = [node for node in nodes if isinstance(node, ast.If | ast.IfExp)]
        self.tests = list({(ast.unparse(each.test), _other_value(each)): each for each in choices}.values())
        self.sizes = sizes = _find_sizes(nodes, [*self.scalars, *self.constants])
        self.indices = [name for name in dict.fromkeys(loaded) if name in _find_indices(nodes)]
        chained = [node.targets for node in nodes if isinstance(node, ast.Assign) and len(node.targets) == 2]
        self.begun_alike = [{each.id for each in group if isinstance(each, ast.Name)} for group in chained]
        self.copied = _find_copies(nodes)
        self.groups = [*_bound_together(nodes), *map(list, self.copied), sizes, self.sums, self.indices]
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
    pairs = [pair for node in nodes if isinstance(node, ast.Assign) for pair in pairs_of(node)]
    return list(dict.fromkeys(target.id for target, value in pairs if isinstance(target, ast.Name) and is_kind(value)))


def pairs_of(assign: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
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


def _find_copies(nodes) -> list[set[str]]:
    """Return each two names of which one is set to the other: what each lane has, and what all have."""
    pairs = [pair for node in nodes if isinstance(node, ast.Assign) for pair in pairs_of(node)]
    return [{t.id, v.id} for t, v in pairs if isinstance(t, ast.Name) and isinstance(v, ast.Name)]


def _find_moves(nodes) -> list[str]:
    """Return the factors by which a sum moves to a new maximum, one for each `new = max(old, ...)`."""
    pairs = [pair for node in nodes if isinstance(node, ast.Assign) for pair in pairs_of(node)]
    return [
        f"exp({ast.unparse(old)} - {target.id})"
        for target, value in pairs
        if isinstance(target, ast.Name) and isinstance(value, ast.Call) and ast.unparse(value.func) == "max"
        for old in value.args
    ]


def _is_factor(value):
    return isinstance(value, ast.Call) and ast.unparse(value.func).split(".")[-1] in ("exp", "exp2")


def is_start(value):
    return isinstance(value, ast.Call) and ast.unparse(value.func).startswith(("np.float", "float"))


def _find_sizes(nodes, known) -> list[str]:
    """Return the names whose values follow from the lengths of arrays, from parameters and constants alone."""
    pairs = [pair for node in nodes if isinstance(node, ast.Assign) for pair in pairs_of(node)]
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


def _find_before(nodes) -> dict[str, str]:
    """Return the maximum so far by the new one, of each weight `exp(old - new)`."""
    found = {}
    for node in nodes:
        match node:
            case ast.Call(_, [ast.BinOp(ast.Name(old), ast.Sub(), ast.Name(new))]) if _is_factor(node):
                found[new] = old
    return found


def _find_minima(nodes) -> set[str]:
    """Return the names that hold a minimum: set where something is below them, or to what `min` returns."""
    found = set()
    for node in nodes:
        match node:
            case ast.If(ast.Compare(_, [ast.Lt() | ast.LtE()], [ast.Name(name)])):
                found.add(name)
            case ast.If(ast.Compare(ast.Name(name), [ast.Gt() | ast.GtE()], _)):
                found.add(name)
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name("min"))):
                found.add(name)
    return found
