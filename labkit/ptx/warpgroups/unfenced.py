"""Registers that the tensor cores of a warpgroup read: were they written since the last `wgmma_fence`?

A warp orders what it did to its registers before the products that read them by a fence (PTX ISA, "wgmma.fence").
What is looked at are the statements that run before the product in any case, and one that may call a fence counts as
if it did: nobody is accused who may be right. What an earlier round of a loop wrote behind the product is not found.
"""

import ast

from labkit.simulator.translator.control_flow import called_names, callees


def written_since_fence(function: ast.FunctionDef, product: ast.Call, fragment: ast.expr, names) -> int:
    """The line that last wrote a variable of the product's fragment with no fence behind it; 0 for none.

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
    """The statements of this block, and of those within, that come before the one which holds the node."""
    for number, statement in enumerate(body):
        if any(part is node for part in ast.walk(statement)):
            inner = (getattr(statement, block, []) for block in ("body", "orelse"))
            return body[:number] + [before for block in inner for before in _statements_before(block, node)]
    return []


def _assigned(node) -> set[str]:
    """The variables to which a statement assigns, or to whose elements."""
    if not isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        return set()
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    while any(isinstance(target, ast.Tuple | ast.List) for target in targets):
        targets = [part for target in targets for part in getattr(target, "elts", [target])]
    roots = (target.value if isinstance(target, ast.Subscript | ast.Starred) else target for target in targets)
    return {root.id for root in roots if isinstance(root, ast.Name)}
