"""How to mend an access outside of its array, in a learner's words: from how it is written and where it goes."""

import ast

import numpy as np


def name_in_kernel(site, array) -> str:
    """What the kernel calls the array: its name, or the slice that it takes the element from."""
    if array.root is array:
        return array.name
    base, parts, _ = _parse_access(site.text)
    return ast.unparse(base) if parts else site.text


def cure_outside(launch, site, array, shape, axis, place, index, lanes) -> str:
    """What to do about an access to `place`, outside of `shape` along `axis`; `index` is that of all `lanes` outside.

    `index` has a number or an array of them for each axis.
    """
    _, parts, inner = _parse_access(site.text)
    if len(parts) != len(shape):
        return "Guard the access with an `if`."
    name = name_in_kernel(site, array)
    if array.space == "shared" and shape[axis] == 0 and _is_dynamic(launch, array.name):
        return (
            f"Give {array.name}'s bytes as the fourth entry of the launch, `kernel[grid, block, stream, bytes]`, or to "
            "`simulate` as `shared_bytes`."
        )
    own = len(shape) - inner
    limit = f"{name}.size" if own == 1 else f"{name}.shape[{axis}]"
    if axis >= own:
        limit = str(shape[axis])
    if site.elements > 1 and axis == len(shape) - 1:
        parts[axis] = ast.BinOp(parts[axis], ast.Add(), ast.Constant(site.elements - 1))
    written = ast.unparse(parts[axis])
    guard = f"`if {written} < {limit}:`" if place[axis] >= 0 else f"`if 0 <= {written} < {limit}:`"
    if len(shape) == 2 and site.elements == 1 and _fits_swapped(shape, index, lanes):
        swapped, given = (", ".join(ast.unparse(p) for p in order) for order in (parts[::-1], parts))
        return (
            f"Are rows and columns swapped? `{name}[{swapped}]` would lie inside. If you mean `{name}[{given}]`, guard "
            f"the access, for instance {guard}."
        )
    if array.space == "shared":
        return f"Make {array.name} as large as the block needs, or guard the access, for instance {guard}."
    return f"Guard the access, for instance {guard}."


def _parse_access(text):
    """What an access as written takes from, the index along each axis, and how many of these are behind a field.

    There is no index where it takes a slice.
    """
    node, parts, inner = ast.parse(text, mode="eval").body, [], 0
    while isinstance(node, ast.Subscript | ast.Attribute):
        if isinstance(node, ast.Attribute) or isinstance(getattr(node.slice, "value", None), str):
            inner = len(parts)
        else:
            here = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(isinstance(part, ast.Slice) for part in here):
                break
            parts = [*here, *parts]
        node = node.value
    return node, parts, inner


def _fits_swapped(shape, index, lanes):
    """Would every access lie inside, were its rows its columns?"""
    row, col = (np.broadcast_to(i, lanes.shape)[lanes] for i in index)
    return bool(np.all((col >= 0) & (col < shape[0]) & (row >= 0) & (row < shape[1])))


def _is_dynamic(launch, name):
    return any(a.name == name and a.dynamic for a in launch.program.allocations.values())
