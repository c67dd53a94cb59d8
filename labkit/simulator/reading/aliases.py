"""Variables that stand for parts of modules: `a = cuda.atomic`, after which `a.add` is `cuda.atomic.add`.

What a kernel's syntax says of it (its atomics, where it waits) is read from these names. So each use of a variable that
is assigned once is replaced by what it stands for, and what is assigned to it is marked as `is_expanded`.
"""

import ast
from collections import Counter
from copy import deepcopy
from typing import Any

from labkit.simulator.language import CONSTANTS, POSITIONS
from labkit.simulator.reading.folding import replacement
from labkit.simulator.reading.outside import language_path, value_outside
from labkit.simulator.reading.syntax import walk


def expand_aliases(tree: ast.FunctionDef, names: dict[str, Any]) -> ast.FunctionDef:
    """Replace such variables of a function by what they stand for; changes the tree. `names` has its free names."""
    nodes = walk(tree)
    stored = Counter(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    parameters = {n.arg for n in nodes if isinstance(n, ast.arg)}
    meanings: dict[str, ast.expr] = {}
    for node in nodes:
        for target, value in _pairs(node) if isinstance(node, ast.Assign) else ():
            if stored[target.id] == 1 and target.id not in parameters:
                meaning = _Expander(meanings).visit(deepcopy(value))
                if _is_part_of_module(meaning, names, stored.keys() | parameters):
                    meanings[target.id] = meaning
                    value.is_expanded = True
    return _Expander(meanings).visit(tree) if meanings else tree


class _Expander(ast.NodeTransformer):
    def __init__(self, meanings):
        self.meanings = meanings

    def visit_Name(self, node):
        if not isinstance(node.ctx, ast.Load) or node.id not in self.meanings:
            return node
        return replacement(node, deepcopy(self.meanings[node.id]))


def _pairs(assignment):
    """Return (name, value) of each variable that an assignment gives one name or attribute."""
    pairs = [(target, assignment.value) for target in assignment.targets]
    for target, value in pairs:
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            pairs += zip(target.elts, value.elts)
    return [(t, v) for t, v in pairs if isinstance(t, ast.Name) and isinstance(v, ast.Name | ast.Attribute)]


def _is_part_of_module(node, names, local):
    """Return whether an expression names a module of the kernel language, or a part of one that is not a number."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id in local:
        return False
    root = language_path(value_outside(node, names))
    name = ".".join([root or "", *path])
    return root is not None and name not in POSITIONS and name not in CONSTANTS
