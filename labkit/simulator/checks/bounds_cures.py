"""Suggested fixes for an access outside an array, from how it is written and where it goes."""

import ast

import numpy as np

from labkit.simulator.checks.guards import Guard, enclosing_loop, guards_of, halfhearted_guards, split_constant
from labkit.simulator.checks.launch_scope import scope_at
from labkit.simulator.checks.origins import splits_of
from labkit.simulator.checks.random_cures import cure_of_missing_state


def name_in_kernel(site, array) -> str:
    """Return the kernel's expression for the array: its name, or the slice that the element is taken from."""
    if array.root is array:  # no slice of another one
        return array.name
    base, indices, _ = _parse_access(site.text)
    return ast.unparse(base) if indices else site.text


def cure_outside(launch, site, array, shape, axis, position, index, lanes) -> str:
    """Return a sentence that says how to fix an access outside an array.

    `axis` is the one along which it is outside, `position` the index of the reported access. `index` has that of every
    lane, a number or an array per axis, and `lanes` is the mask of the lanes whose access is outside.
    """
    if states := cure_of_missing_state(launch, site, shape[axis]):
        return states
    _, indices, nested = _parse_access(site.text)
    if len(indices) != len(shape):
        return "Guard the access with an `if`."
    name = name_in_kernel(site, array)
    is_dynamic = any(a.name == array.name and a.dynamic for a in launch.program.allocations.values())
    if array.space == "shared" and shape[axis] == 0 and is_dynamic:
        return (
            f"Give {array.name}'s bytes as the fourth entry of the launch, `kernel[grid, block, stream, bytes]`, or to "
            "`simulate` as `shared_bytes`."
        )
    own_axes = len(shape) - nested
    limit = f"{name}.size" if own_axes == 1 else f"{name}.shape[{axis}]"
    if axis >= own_axes:
        limit = str(shape[axis])
    if site.elements > 1 and axis == len(shape) - 1:
        indices[axis] = ast.BinOp(indices[axis], ast.Add(), ast.Constant(site.elements - 1))
    written = ast.unparse(indices[axis])
    is_above = position[axis] >= 0 and ("negative-index", site.line, site.column) not in launch.log.found
    guard = f"`if {written} < {limit}:`" if is_above else f"`if 0 <= {written} < {limit}:`"
    other = _guard_of_another(launch, site, indices, axis)
    if other and not (array.space == "shared" and ".shape" in other.text):  # which is about another array
        which = f"The guard in line {other.line}, `{other.text}`, tests another index than `{written}`"
        return f"{which}: write `{guard[4:-2]}`."
    if len(shape) == 2 and site.elements == 1 and _fits_swapped(shape, index, lanes):
        swapped, as_written = (", ".join(ast.unparse(p) for p in order) for order in (indices[::-1], indices))
        return (
            f"Are rows and columns swapped? `{name}[{swapped}]` would lie inside. If you mean `{name}[{as_written}]`, "
            f"guard the access, for instance {guard}."
        )
    splits = splits_of(scope_at(launch, site.line).tree, indices[axis], site.line)
    if array.space == "shared":
        if position[axis] >= 0 and (own := _cure_of_long_loop(launch, site, indices[axis], limit)):
            return own
        larger = f"ake {array.name} as large as the block needs, or guard the access, for instance {guard}."
        return f"{_ask_for_splits(splits)} If so, m{larger}" if splits else f"M{larger}"
    own = _cure_of_loop_or_guard(launch, site, indices[axis], limit, shape[axis]) if position[axis] >= 0 else ""
    if own:
        return own
    if splits:
        return f"{_ask_for_splits(splits)} If so, guard the access, for instance {guard}."
    if len({node.id for node in ast.walk(indices[axis]) if isinstance(node, ast.Name)}) > 1:  # it may itself be wrong
        return f"Is `{written}` the index that you mean? If so, guard the access, for instance {guard}."
    return f"Guard the access, for instance {guard}."


def _guard_of_another(launch, site, indices, axis) -> Guard | None:
    """Return the guard before an access that tests what is none of its indices, where nothing tests one of them."""
    scope = scope_at(launch, site.line)
    guards = [guard for guard in guards_of(scope.tree, site) if not guard.leaves]
    tested = {split_constant(guard.smaller)[0] for guard in guards}
    texts = {split_constant(index)[0] for index in indices}
    missing = split_constant(indices[axis])[0]
    if missing in tested or not isinstance(indices[axis], ast.BinOp):
        return None
    others = [guard for guard in guards if split_constant(guard.smaller)[0] not in texts and guard.strict]
    others = [guard for guard in others if not _names(guard.smaller) <= _names(indices[axis])]  # `i` for `i + n`
    alike = [guard for guard in others if _names(guard.smaller) & _names(indices[axis])]
    has_place = len(others) == 1 and bool(tested & (texts - {missing}))
    return (alike or others * has_place or [None])[0]


def _names(node):
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}


def _ask_for_splits(splits):
    """Ask whether the lines are right that make an index from parts of numbers."""
    lines = " and ".join(f"`{split.text}` (line {split.line})" for split in splits)
    return f"{'Is' if len(splits) == 1 else 'Are'} {lines} right?"


def _cure_of_long_loop(launch, site, index, limit):
    """Return the fix of a loop over a tile whose end is no number of the code; "" if there is none."""
    scope = scope_at(launch, site.line)
    text, constant = split_constant(index)
    loop = enclosing_loop(scope.tree, site.line, text)
    if loop is None or constant or scope.value(loop.iter.args[-1]) is not None or len(loop.iter.args) > 2:
        return ""
    return f"The loop in line {loop.lineno} goes too far, `{ast.unparse(loop.iter)}`: end it at `{limit}`."


def _cure_of_loop_or_guard(launch, site, index, limit, length):
    """Return the fix of a loop or a guard that lets an index go beyond the end; "" if none is there."""
    scope = scope_at(launch, site.line)
    guards = guards_of(scope.tree, site)
    text, constant = split_constant(index)
    loop = enclosing_loop(scope.tree, site.line, text)
    if loop is not None:
        end = f"{limit} - {constant}" if constant > 0 else f"{limit} + {-constant}" if constant else limit
        stop = loop.iter.args[-1]
        end = end if scope.value(stop) is not None else f"min({ast.unparse(stop)}, {end})"
        return f"The loop in line {loop.lineno} goes too far, `{ast.unparse(loop.iter)}`: end it at `{end}`."
    if factor := _cure_of_factor(scope, guards, index, length):
        return factor
    for guard in guards:
        guarded, added = split_constant(guard.smaller)
        if guarded != text:
            continue
        largest = length if ast.unparse(guard.larger) == limit else scope.value(guard.larger)
        excess = largest is not None and largest - length + constant - added + (not guard.strict)
        how = f"is too wide by {excess} here" if excess and excess <= 2 else "lets it through"
        kept = f"{ast.unparse(index)} {'>=' if guard.leaves else '<'} {limit}"
        others = {n.id for n in ast.walk(guard.larger) if isinstance(n, ast.Name)} & scope.shapes.keys() - {site.array}
        if guard.strict and others:
            how, kept = "lets it through", f"{kept}`, or pass a larger `{site.array}"
        return f"The guard in line {guard.line}, `{guard.text}`, {how}: write `{kept}`."
    for node, parts in halfhearted_guards(scope.tree, site.line):
        if any(split_constant(g.smaller) == (text, constant) and scope.value(g.larger) == length for g in parts):
            written = ast.unparse(node.test)
            return f"The guard in line {node.lineno} returns only where all of `{written}` is true: write `or`."
    return ""


def _cure_of_factor(scope, guards, index, length):
    """Return the fix of `row * width + col` whose width is not the number of columns that the guards let through."""
    match index:
        case ast.BinOp(ast.BinOp(row, ast.Mult(), width), ast.Add(), col) | ast.BinOp(
            col, ast.Add(), ast.BinOp(row, ast.Mult(), width)
        ):
            pass
        case _:
            return ""
    if scope.value(row) is not None:  # `width * row`
        row, width = width, row
    rows, cols = _bound(guards, row), _bound(guards, col)
    if rows is None or cols is None:
        return ""
    sizes = [scope.value(node) for node in (width, rows.larger, cols.larger)]
    if None in sizes or sizes[0] == sizes[2] or sizes[1] * sizes[2] > length:
        return ""
    row, width, col = (ast.unparse(node) for node in (row, width, col))
    as_rows, as_cols = f"{row} * {ast.unparse(cols.larger)} + {col}", f"{col} * {ast.unparse(rows.larger)} + {row}"
    return (
        f"Is `{width}` the length of a row? The guard in line {cols.line} bounds {col} by "
        f"`{ast.unparse(cols.larger)}`: `{as_rows}` would lie inside, and so would `{as_cols}`."
    )


def _bound(guards: list[Guard], node) -> Guard | None:
    """Return the guard `node < ...`, if there is one."""
    return next((g for g in guards if g.strict and ast.unparse(g.smaller) == ast.unparse(node)), None)


def _parse_access(text):
    """Return the base of an access as written, its index along each axis, and how many follow a field.

    There is no index where the base is a slice.
    """
    node, indices, nested = ast.parse(text, mode="eval").body, [], 0
    while isinstance(node, ast.Subscript | ast.Attribute):
        if isinstance(node, ast.Attribute) or isinstance(getattr(node.slice, "value", None), str):
            nested = len(indices)
        else:
            level = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(isinstance(part, ast.Slice) for part in level):
                break
            indices = [*level, *indices]
        node = node.value
    return node, indices, nested


def _fits_swapped(shape, index, lanes):
    """Return whether every access would be inside with row and column swapped."""
    row, col = (np.broadcast_to(i, lanes.shape)[lanes] for i in index)
    return bool(np.all((col >= 0) & (col < shape[0]) & (row >= 0) & (row < shape[1])))
