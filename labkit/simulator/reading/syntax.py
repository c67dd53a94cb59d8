"""Loops and branches of a kernel, by their syntax alone."""

import ast


def walk(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of a tree, as `ast.walk` does in more than twice the time, but for `Load`, `Store` and `Del`."""
    found = [tree]
    for node in found:
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and field != "ctx":
                found.append(value)
    return found


def is_atomic(node) -> bool:
    """Return whether this is a call of `cuda.atomic`."""
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) and getattr(function.value, "attr", "") == "atomic"


def is_spin(loop: ast.While) -> bool:
    """Return whether the loop waits for another thread: by an atomic's result, or by a bare reload in its condition."""
    unused = {id(n.value) for n in walk(loop) if isinstance(n, ast.Expr)}
    for node in walk(loop):
        if is_atomic(node) and id(node) not in unused:
            return True
    idle = all(
        isinstance(s, ast.Pass) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)) for s in loop.body
    )
    return idle and any(isinstance(n, ast.Subscript) for n in walk(loop.test))


def changing_variables(loop: ast.While) -> list[str]:
    """Return the variables of the condition that the loop changes: while they change, it makes progress."""
    stored = {n.id for s in loop.body for n in walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return sorted(stored & {n.id for n in walk(loop.test) if isinstance(n, ast.Name)})


def never_ends(loop: ast.While) -> bool:
    """Return whether nothing in the loop changes its condition, or leaves it."""
    if is_spin(loop) or contains([loop.test], ast.Call, ast.Subscript) or contains(loop.body, ast.Return, ast.Raise):
        return False
    return not changing_variables(loop) and not has_break(loop.body)


def has_break(body) -> bool:
    """Return whether these statements hold a `break` of the loop around them."""
    for node in body:
        if isinstance(node, ast.Break) or (
            isinstance(node, ast.If) and (has_break(node.body) or has_break(node.orelse))
        ):
            return True
    return False


def is_boolean(node) -> bool:
    """Return whether the value of this expression is certainly a bool."""
    if isinstance(node, ast.BoolOp):
        return all(is_boolean(operand) for operand in node.values)
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def contains(nodes, *kinds) -> bool:
    """Return whether a node of these kinds is among the nodes or inside one."""
    return any(isinstance(n, kinds) for node in nodes for n in walk(node))


def may_jump(nodes) -> bool:
    """Return whether lanes can leave these statements early (not counting break or continue of an inner loop)."""
    for node in nodes:
        if isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return True
        if isinstance(node, (ast.For, ast.While)):
            if not hasattr(node, "holds_return"):
                node.holds_return = contains([node], ast.Return)  # pyright: ignore[reportAttributeAccessIssue]
            if node.holds_return or may_jump(node.orelse):
                return True
        elif isinstance(node, ast.If) and (may_jump(node.body) or may_jump(node.orelse)):
            return True
    return False
