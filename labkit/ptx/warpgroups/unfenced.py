"""Registers of a `wgmma` fragment that are written without a `wgmma_fence` before the product.

A fence orders a warp's register writes before the products that read them (PTX ISA, "wgmma.fence"). Only statements
that always run before the product are considered, and one that may call a fence counts as a fence: there are no false
alarms. Writes after the product in an earlier iteration of a loop are not found.
"""

import ast

from labkit.simulator.translator.control_flow import called_names, callees


def written_since_fence(function: ast.FunctionDef, product: ast.Call, fragment: ast.expr, names) -> int:
    """Return the line that last wrote a variable of the product's fragment with no fence after it; 0 for none.

    `names` resolves what the function calls.
    """
    variables = {node.id for node in ast.walk(fragment) if isinstance(node, ast.Name)}
    for before in reversed(_statements_before(function.body, product)):
        if "wgmma_fence" in called_names([before], names) or callees([before], names):
            return 0
        lines = [node.lineno for node in ast.walk(before) if variables & _assigned(node)]
        if lines:
            return max(lines)
    return 0


def _statements_before(body, node) -> list[ast.stmt]:
    """Return the statements of this block, and of nested ones, before the statement that contains the node."""
    for number, statement in enumerate(body):
        if any(part is node for part in ast.walk(statement)):
            inner = (getattr(statement, block, []) for block in ("body", "orelse"))
            return body[:number] + [before for block in inner for before in _statements_before(block, node)]
    return []


def _assigned(node) -> set[str]:
    """Return the variables that a statement assigns to, or to elements of."""
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    while any(isinstance(target, ast.Tuple | ast.List) for target in targets):
        targets = [part for target in targets for part in getattr(target, "elts", [target])]
    roots = (target.value if isinstance(target, ast.Subscript | ast.Starred) else target for target in targets)
    return {root.id for root in roots if isinstance(root, ast.Name)}
