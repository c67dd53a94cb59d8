"""Regions of a function (its body, branches, loop bodies) and the home region of each variable."""

import ast

from labkit.simulator.reading.syntax import walk


class Homes(ast.NodeVisitor):
    """Finds each variable's home: the innermost region that holds all its uses, the first a plain store."""

    def __init__(self, tree, free=()):
        """`free`: variables of the outer function, which an inner one takes as further arguments."""
        self.path = ["function"]
        self.uses: dict[str, list] = {}  # by name: (the regions around, whether it is a plain store) of each use
        for argument in (*tree.args.posonlyargs, *tree.args.args):
            self.uses[argument.arg] = [(tuple(self.path), True)]
        for name in free:
            self.uses[name] = [(tuple(self.path), True)]
        for statement in tree.body:
            self.visit(statement)
        self._stores = {name: sum(stores for _, stores in uses) for name, uses in self.uses.items()}
        self._homes = {name: self._shared_region(uses) for name, uses in self.uses.items()}

    def stores(self, name) -> int:
        """Return the number of assignments to a name."""
        return self._stores.get(name, 0)

    def home(self, name) -> str:
        """Return the home region of a name."""
        return self._homes[name]

    @staticmethod
    def _shared_region(paths):
        shared = list(paths[0][0])
        for path, _ in paths[1:]:
            while tuple(shared) != path[: len(shared)]:
                shared.pop()
        while len(shared) > 1:
            first, stores = paths[0]
            if not shared[-1].startswith("loop") or (stores and first == tuple(shared)):
                break
            shared.pop()
        return shared[-1]

    def _within(self, region, nodes):
        self.path.append(region)
        for node in nodes:
            self.visit(node)
        self.path.pop()

    def visit_Name(self, node):
        self.uses.setdefault(node.id, []).append((tuple(self.path), isinstance(node.ctx, ast.Store)))

    def visit_FunctionDef(self, node):
        """Note what an inner function reads as a use in the whole function: it is called anywhere."""
        for name in {n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}:
            self.uses.setdefault(name, []).append((("function",), False))

    visit_Lambda = visit_FunctionDef

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AugAssign(self, node):
        if isinstance(node.target, ast.Name):
            self.uses.setdefault(node.target.id, []).append((tuple(self.path), False))
        self.visit(node.value)
        self.visit(node.target)

    def visit_If(self, node):
        self.visit(node.test)
        self._within(region_of(node, "body"), node.body)
        self._within(region_of(node, "orelse"), node.orelse)

    def visit_For(self, node):
        self.visit(node.iter)
        self._within(region_of(node, "body"), [node.target, *node.body])
        self._within(region_of(node, "orelse"), node.orelse)

    def visit_While(self, node):
        self._within(region_of(node, "body"), [node.test, *node.body])
        self._within(region_of(node, "orelse"), node.orelse)


def region_of(node, part):
    """Return the name of a statement's region."""
    kind = "loop" if isinstance(node, (ast.For, ast.While)) and part == "body" else "branch"
    return f"{kind}{id(node)}_{part}"
